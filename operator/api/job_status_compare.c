/* Compares two statuses without building JSON from them, because every reconcile does it. */
#include <string.h>

#include "api/job_status.h"

/* Times are written in whole seconds. */
static bool same_time(int64_t a, int64_t b)
{
    return a / 1000 == b / 1000;
}

static bool same_bytes(const void *a, const void *b, size_t n)
{
    return n == 0 || memcmp(a, b, n) == 0;
}

static bool same_condition(const struct condition *a, const struct condition *b)
{
    return a->type == b->type && a->is_true == b->is_true && same_time(a->updated_ms, b->updated_ms) &&
           same_time(a->changed_ms, b->changed_ms) && str_eq(a->reason, b->reason) && str_eq(a->message, b->message);
}

static bool same_conditions(const struct job_status *a, const struct job_status *b, bool generations)
{
    for (size_t i = 0; i < a->nconds && a->nconds == b->nconds; i++)
        if (!same_condition(&a->conds[i], &b->conds[i]) ||
            (generations && a->conds[i].generation != b->conds[i].generation))
            return false;
    return a->nconds == b->nconds;
}

static bool same_counts_by_index(const struct role_status *a, const struct role_status *b)
{
    return a->again.n == b->again.n && same_bytes(a->again.items, b->again.items, a->again.n * sizeof(*a->again.items));
}

bool job_status_counts_differ(const struct job_status *a, const struct job_status *b)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        if (!same_counts_by_index(&a->roles[r], &b->roles[r]))
            return true;
    return false;
}

static bool same_role(const struct role_status *a, const struct role_status *b)
{
    return a->active == b->active && a->succeeded == b->succeeded && a->failed == b->failed &&
           a->restarts == b->restarts && a->counted == b->counted && a->completed.n == b->completed.n &&
           same_counts_by_index(a, b) &&
           same_bytes(a->completed.ranges, b->completed.ranges, a->completed.n * sizeof(*a->completed.ranges));
}

static bool same_roles(const struct job_status *a, const struct job_status *b)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        if (!same_role(&a->roles[r], &b->roles[r]))
            return false;
    return true;
}

/* The API server sorts their names. */
static bool same_metrics(const char *a, const char *b)
{
    if (a == b || str_eq(a, b))
        return true;
    if (a == NULL || b == NULL || strlen(a) != strlen(b))
        return false;
    json_auto_t *x = json_loads(a, 0, NULL), *y = json_loads(b, 0, NULL);
    return json_equal(x, y) != 0;
}

static bool same_steps(const struct training_progress *a, const struct training_progress *b)
{
    return a->step == b->step && MAX(a->highest_step, a->step) == MAX(b->highest_step, b->step) &&
           a->epoch == b->epoch && a->epochs == b->epochs && a->last_checkpoint_step == b->last_checkpoint_step &&
           a->percent == b->percent && a->remaining_s == b->remaining_s;
}

static bool same_progress(const struct training_progress *a, const struct training_progress *b)
{
    if (!a->present || !b->present)
        return a->present == b->present;
    return same_steps(a, b) && str_eq(a->loss, b->loss) && str_eq(a->weights_sha256, b->weights_sha256) &&
           same_bytes(&a->examples_per_second, &b->examples_per_second, sizeof(a->examples_per_second)) &&
           same_metrics(a->metrics, b->metrics) && same_time(a->updated_ms, b->updated_ms);
}

static bool same_rest(const struct job_status *a, const struct job_status *b)
{
    return same_roles(a, b) && str_eq(a->state, b->state) && str_eq(a->ready, b->ready) &&
           str_eq(a->spec_hash, b->spec_hash) && same_time(a->start_ms, b->start_ms) &&
           same_time(a->completion_ms, b->completion_ms) && a->observed_generation == b->observed_generation;
}

unsigned job_status_differs(const struct job_status *a, const struct job_status *b)
{
    return (same_conditions(a, b, true) ? 0 : STATUS_CONDITIONS) |
           (same_progress(&a->progress, &b->progress) ? 0 : STATUS_PROGRESS) | (same_rest(a, b) ? 0 : STATUS_REST) |
           (job_identity_equal(&a->identity, &b->identity) ? 0 : STATUS_IDENTITY);
}

static bool same_counts(const struct job_status *a, const struct job_status *b)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        if (a->roles[r].active != b->roles[r].active || a->roles[r].succeeded != b->roles[r].succeeded ||
            a->roles[r].failed != b->roles[r].failed)
            return false;
    return true;
}

bool job_status_lacks(const struct job_status *has, const struct job_status *written)
{
    if (has->state[0] != '\0' || has->observed_generation != 0)
        return job_status_differs(has, written) != 0;
    return !same_conditions(has, written, false) || !same_counts(has, written) ||
           !same_time(has->start_ms, written->start_ms) || !same_time(has->completion_ms, written->completion_ms);
}
