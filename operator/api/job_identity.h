/* job_identity - which certificates a job has, as its status remembers them (status.identity).
 *
 * The operator cannot read Secrets, so the status is all it knows about them: which Secrets it made, which leaf is in
 * which Secret, until when each leaf is valid and which CA issued it. Keys are never part of it.
 */
#ifndef TRAINYARD_API_JOB_IDENTITY_H
#define TRAINYARD_API_JOB_IDENTITY_H

#include "api/index_set.h"
#include "codec/json.h"
#include "identity/certificate.h"
#include "job/job.h"

enum {
    SECRET_NAME_SIZE = 254,
    SECRET_UID_SIZE = 64,
    SECRET_KEY_SIZE = 64,
    CA_LIST_MAX = 8, /* CAs that a ca.crt holds */
};
#define SECRET_CA_KEY "ca.crt"

/* The ids of trusted CAs, the issuing one first. */
struct ca_list {
    char ids[CA_LIST_MAX][CA_ID_SIZE];
    size_t n;
};
bool ca_list_equal(const struct ca_list *a, const struct ca_list *b);

struct identity_secret {
    char name[SECRET_NAME_SIZE], uid[SECRET_UID_SIZE]; /* uid "": it was deleted, and is made again */
    struct ca_list cas;                                /* in ca.crt */
};

/* Leaves of one role that are in one Secret and were issued together. */
struct identity_leaves {
    enum role role;
    struct index_set indexes;
    size_t secret; /* in secrets */
    int64_t not_after_ms;
    char ca[CA_ID_SIZE];
};

struct job_identity {
    bool insecure; /* the job was started without an identity: its replicas run with --insecure */
    struct identity_secret *secrets;
    size_t nsecrets;
    struct identity_leaves *leaves; /* each replica is in at most one of them */
    size_t nleaves, leaves_cap;     /* how many there are, and have room */
};

void job_identity_fini(struct job_identity *i);
DEFINE_AUTO_FINI(job_identity, job_identity_fini);
void job_identity_copy(const struct job_identity *i, struct job_identity *ret); /* deep; ret is overwritten */
bool job_identity_equal(const struct job_identity *a, const struct job_identity *b);
/* Lenient, as job_status_parse(): entries that are not valid are ignored. */
void job_identity_parse(const json_t *v, struct job_identity *ret);
/* New reference: the value of status.identity, or null for a job without one. */
json_t *job_identity_json(const struct job_identity *i);

/* NULL: the replica has no leaf. */
const struct identity_leaves *job_identity_find(const struct job_identity *i, enum role role, int index);
/* The name of the Secret for the pod of this replica; NULL: none. */
const char *job_identity_secret(const struct job_identity *i, enum role role, int index);
/* The key of the replica's certificate (ending "crt") or private key ("key") in that Secret: worker-0.crt. */
const char *job_identity_key(enum role role, int index, const char *ending, char out[SECRET_KEY_SIZE]);
/* Number of leaves in a Secret. */
int job_identity_count(const struct job_identity *i, size_t secret);
/* Adds a leaf, or replaces the leaf that the replica has. */
void job_identity_put(struct job_identity *i, enum role role, int index, size_t secret, int64_t not_after_ms,
                      const char *ca);
/* Adds a Secret without leaves, and returns its place. */
size_t job_identity_add_secret(struct job_identity *i, const char *name, const char *uid);

#endif
