/* Compares what a worker says of itself with the job, field by field. The message of a refusal names the field of the
 * manifest, or what else to change. */
#include "coord/register_check.h"

#include <string.h>

static int register_check_space(const struct coordinator_config *c, const struct register_request *q, struct err *e)
{
    const struct ordinal_space *own = &c->space, *its = &q->space;
    if (its->batch_size != own->batch_size)
        return err_set(e, ERR_REFUSED, "%s trains with fit.batchSize %lld, the job with %lld", q->sender.name,
                       (long long)its->batch_size, (long long)own->batch_size);
    if (its->seed != own->seed)
        return err_set(e, ERR_REFUSED, "%s trains with fit.seed %llu, the job with %llu", q->sender.name,
                       (unsigned long long)its->seed, (unsigned long long)own->seed);
    if (its->examples != own->examples)
        return err_set(e, ERR_REFUSED, "%s sees %lld training examples in data.train, the chief %lld", q->sender.name,
                       (long long)its->examples, (long long)own->examples);
    if (its->fingerprint != own->fingerprint || its->shuffle != own->shuffle)
        return err_set(e, ERR_REFUSED,
                       "%s reads other training data (data.train) than the chief: fingerprint %016llx, not %016llx",
                       q->sender.name, (unsigned long long)its->fingerprint, (unsigned long long)own->fingerprint);
    if (q->shuffle_version != SHUFFLE_VERSION)
        return err_set(e, ERR_REFUSED, "%s shuffles by version %u, the chief by %d: use the same release",
                       q->sender.name, q->shuffle_version, SHUFFLE_VERSION);
    return 0;
}

/* The gradients of all workers are added. If some are rounded otherwise, the sum depends on who computes which batch.
 */
static int register_check_arithmetic(const struct coordinator_config *c, const char *of_job,
                                     const struct register_request *q, struct err *e)
{
    if (!c->one_arithmetic || of_job[0] == '\0' || q->arithmetic == NULL || q->arithmetic[0] == '\0' ||
        strcmp(q->arithmetic, of_job) == 0)
        return 0;
    return err_set(e, ERR_REFUSED,
                   "%s computes with '%s', the job with '%s', which gives other bits: use nodes of one kind, or set "
                   "OPENBLAS_CORETYPE to one core type in all workers, or set strategy.deterministic: false",
                   q->sender.name, q->arithmetic, of_job);
}

int register_check(const struct coordinator_config *c, const char *arithmetic, const struct register_request *q,
                   struct err *e)
{
    if (q->layout_hash != c->layout_hash)
        return err_set(e, ERR_REFUSED,
                       "%s has another spec.model or spec.compile than the chief: give all the same manifest",
                       q->sender.name);
    if (q->sender.role == ROLE_EVALUATOR)
        return 0;
    if (q->ps_count != c->ps_count)
        return err_set(e, ERR_REFUSED, "%s knows %u ps, the chief %u", q->sender.name, q->ps_count, c->ps_count);
    if (q->placement_hash != c->placement_hash)
        return err_set(
            e, ERR_REFUSED,
            "%s has other variables on the ps than the chief (strategy.placement, or `device` of a layer): give "
            "all the same manifest",
            q->sender.name);
    return register_check_space(c, q, e) < 0 ? -1 : register_check_arithmetic(c, arithmetic, q, e);
}
