/* identity - who a process of a job is, as its certificate says: one URI in the subject alternative name,
 *
 *     spiffe://trainyard/NAMESPACE/JOB-UID/ROLE/INDEX
 *
 * NAMESPACE and JOB-UID are those of the TrainJob; `trainyard run` and `trainyard certs` use the namespace "local" and
 * a uid of their own. The uid of a certificate is not the uid in the Header of a message, which identifies one run and
 * changes with a rebase. ROLE is that of a replica (ps, worker, chief, evaluator), or operator or launcher, which are
 * not replicas and have index 0. Pure: no I/O, no clock.
 */
#ifndef TRAINYARD_IDENTITY_IDENTITY_H
#define TRAINYARD_IDENTITY_IDENTITY_H

#include "job/job.h"

/* Values below ROLE_COUNT are those of enum role. */
enum identity_role { IDENTITY_OPERATOR = ROLE_COUNT, IDENTITY_LAUNCHER, IDENTITY_ROLES };
/* A set of roles, as bits. */
#define IDENTITY_BIT(role) (1u << (unsigned)(role))
enum {
    IDENTITY_NAMESPACE_SIZE = 64,
    IDENTITY_UID_SIZE = 128,
    IDENTITY_INDEX_MAX = 1 << 20,
    IDENTITY_URI_SIZE = 320,
    IDENTITY_NAME_SIZE = 32,
};

struct identity {
    char ns[IDENTITY_NAMESPACE_SIZE];
    char job_uid[IDENTITY_UID_SIZE];
    int role; /* enum role or enum identity_role */
    int index;
};

const char *identity_role_name(int role); /* "worker", "operator" */
/* "worker-3"; "operator" and "launcher" without an index. */
const char *identity_name(const struct identity *i, char out[IDENTITY_NAME_SIZE]);
const char *identity_uri(const struct identity *i, char out[IDENTITY_URI_SIZE]);
/* Accepts exactly what identity_uri writes. ERR_INPUT says what is wrong with it. */
MUST_USE int identity_parse(const char *uri, struct identity *ret, struct err *e);
/* Namespace, uid, role and index are valid parts of the URI: ERR_INPUT names the one that is not. */
MUST_USE int identity_check(const struct identity *i, struct err *e);
bool identity_same_job(const struct identity *a, const struct identity *b);

/* Whether `own` accepts `peer`, whose certificate chain is valid: the same namespace and job uid and, unless role is
 * -1, this role and index. ERR_REFUSED: "the peer is worker-1 of job ..., not ps-0 of job ...". */
MUST_USE int identity_accept(const struct identity *own, const struct identity *peer, int role, int index,
                             struct err *e);

#endif
