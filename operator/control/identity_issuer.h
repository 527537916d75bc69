/* identity_issuer - the certificates of all jobs: which CAs a job has now, and leaves of the issuing one.
 *
 * One for both controllers, while this operator leads. The keys of the CAs are derived when they are needed and freed
 * at once. With --insecure the master keys are only read when a job has certificates from before.
 */
#ifndef TRAINYARD_CONTROL_IDENTITY_ISSUER_H
#define TRAINYARD_CONTROL_IDENTITY_ISSUER_H

#include "control/master_key.h"
#include "net/registry.h"
#include "plan/plan.h"

struct identity_issuer_settings {
    bool insecure;
    int64_t lifetime_s;        /* of leaves */
    struct registry *registry; /* trainyard_operator_certificate_* */
};
struct identity_issuer_metrics {
    struct counter *issued, *renewals, *failures;
};

struct identity_issuer;
struct identity_issuer *identity_issuer_new(struct kube_client *k, const struct identity_issuer_settings *s);
void identity_issuer_free(struct identity_issuer *i);
DEFINE_AUTO(identity_issuer, identity_issuer_free);
const struct identity_issuer_metrics *identity_issuer_metrics(const struct identity_issuer *i);
int64_t identity_issuer_lifetime_s(const struct identity_issuer *i);

/* A user of the issuer, such as a controller; part of its owner's structure. */
struct identity_issuer_user {
    struct identity_issuer_user *next, **link;
    void (*on_change)(void *user);    /* the trusted CAs changed: look at all jobs again */
    int64_t (*expiry_ms)(void *user); /* the earliest end of a leaf that is in use; 0: there is none */
    void *user;
};
void identity_issuer_add(struct identity_issuer *i, struct identity_issuer_user *u);
void identity_issuer_remove(struct identity_issuer_user *u);

/* What a job remembers between two reconciles: the ids of its CAs, which cost a derivation each. */
struct identity_cas {
    uint64_t version; /* of the keys; 0: none yet */
    int64_t from_ms;  /* when they were derived, and until when they are the trusted ones */
    int64_t until_ms;
    struct ca_list list;
};
/* Sets cas, cas_until_ms, lifetime_ms, insecure and fault. */
void identity_issuer_facts(struct identity_issuer *i, const struct job_spec *v, const struct job_identity *has,
                           int64_t now_ms, struct identity_cas *cas, struct identity_facts *ret);

/* The CAs of one job for a while: to issue leaves. */
struct job_cas {
    struct ca *issuing;
    char *pem; /* of all trusted ones, the issuing one first: ca.crt */
    struct ca_list list;
};
void job_cas_fini(struct job_cas *c); /* wipes the key */
DEFINE_AUTO_FINI(job_cas, job_cas_fini);
/* ERR_NOT_READY: the master keys are not known. */
MUST_USE int identity_issuer_cas(struct identity_issuer *i, const struct job_spec *v, int64_t now_ms,
                                 struct job_cas *ret, struct err *e);

#endif
