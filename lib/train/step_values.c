/* Asks the ps for the values of a step, for a longer time after each failure. */
#include "train/step_values.h"

#include "base/clock.h"

/* How long the ps are asked to wait for a step before the chief is asked: longer each time. */
enum { PATIENCE_MS = 10, PATIENCE_MAX_MS = 160 };

int step_values_open(struct step_values *v, struct train_strategy *s, struct err *e)
{
    *v = (struct step_values){ .strategy = s, .at = -1, .patience_ms = PATIENCE_MS };
    if (strategy_begin(s, e) < 0)
        return -1;
    v->groups = groups_of(s->config.space, s->config.group_size);
    params_set_synchronous(s->config.params);
    return 0;
}

int step_values_later(struct step_values *v, const struct err *why)
{
    const struct strategy_config *c = &v->strategy->config;
    int64_t now = clock_ms();
    wait_begin(&v->wait, now, WAIT_EXPLAIN_MS);
    wait_report(&v->wait, now, c->report, why->msg);
    chief_client_waiting(c->chief, why->msg);
    v->patience_ms = MIN(2 * v->patience_ms, (int64_t)PATIENCE_MAX_MS);
    return STEP_LATER;
}

static void step_values_end_wait(struct step_values *v)
{
    v->patience_ms = PATIENCE_MS;
    if (!v->wait.on)
        return;
    chief_client_waiting(v->strategy->config.chief, NULL);
    wait_end(&v->wait, clock_ms(), NULL);
}

void step_values_take(struct step_values *v, int64_t at)
{
    step_values_end_wait(v);
    v->at = at;
    v->generation = params_generation(v->strategy->config.params);
}

int step_values_get(struct step_values *v, int64_t ordinal, struct err *e)
{
    struct params *params = v->strategy->config.params;
    struct err cause = { 0 };
    int64_t at = groups_first(&v->groups, ordinal);
    if (v->at == at && v->generation == params_generation(params))
        return 0;
    int64_t begun = clock_ns();
    v->at = -1; /* a pull that fails leaves values of two steps */
    int rc = strategy_pull_at(v->strategy, at, v->patience_ms, &cause);
    v->pull_ns += (uint64_t)(clock_ns() - begun);
    if (err_is(&cause, ERR_PENDING))
        return step_values_later(v, &cause);
    step_values_end_wait(v);
    if (err_is(&cause, ERR_STALE))
        return STEP_OVER;
    if (rc < 0)
        return err_set(e, cause.code, "%s", cause.msg);
    step_values_take(v, at);
    return 0;
}

int64_t step_values_want(struct step_values *v, int64_t ordinal)
{
    const struct strategy_config *c = &v->strategy->config;
    int64_t end = groups_end(&v->groups, ordinal), next = chief_client_peek(c->chief);
    if (next < end || groups_first(&v->groups, next) != end)
        return -1;
    v->at = -1; /* some values may come, and others not */
    params_want_step(c->params, end, v->patience_ms);
    return end;
}

uint64_t step_values_waited_ns(struct step_values *v)
{
    uint64_t ns = v->pull_ns;
    v->pull_ns = 0;
    return ns;
}
