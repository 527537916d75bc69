/* operator_leaf - the operator's own certificates: one of role operator for each job whose /progress it reads.
 *
 * They are in memory only: issued at the first use, kept until two thirds of their lifetime have passed, the trusted
 * CAs change, or the job is not polled any more. A pod can therefore not get one.
 */
#ifndef TRAINYARD_CONTROL_OPERATOR_LEAF_H
#define TRAINYARD_CONTROL_OPERATOR_LEAF_H

#include "control/identity_issuer.h"
#include "kube/http_client.h"

struct operator_leaves;
struct operator_leaves *operator_leaves_new(struct identity_issuer *issuer); /* borrowed */
void operator_leaves_free(struct operator_leaves *l);
DEFINE_AUTO(operator_leaves, operator_leaves_free);

/* The job's CAs and our certificate for it; borrowed until the next call. Errors are those of identity_issuer_cas().
 */
MUST_USE int operator_leaves_get(struct operator_leaves *l, const struct job_spec *v, int64_t now_ms,
                                 struct http_own_tls *ret, struct err *e);
void operator_leaves_drop(struct operator_leaves *l, const char *key); /* of a job: "namespace/name" */
/* Whether the PEM certificate of a peer, whose chain is valid, is that of the job's leader. ERR_REFUSED says whose it
 * is; NULL: the peer has shown none. */
MUST_USE int operator_leaf_check_leader(const struct job_spec *v, const char *peer, struct err *e);

#endif
