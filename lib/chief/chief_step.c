/* Checkpoints of synchronous training are of one step. The chief names a step that no ps has passed; each segment
 * copies itself when it is there, and training goes on. */
#include "base/clock.h"
#include "base/stop.h"
#include "chief/chief_internal.h"

enum { POLL_CALL_MS = 2000, POLL_MS = 5, STEP_MS = 30000, SETTLE_MS = 3000, EXPLAIN_FIRST_MS = 1000 };

static int64_t chief_step_of(const struct chief *c, int64_t ordinal)
{
    return groups_below(&c->groups, ordinal) + c->step_offset;
}

int chief_observe(struct chief *c, int64_t *ret_step, struct err *e)
{
    AUTO_FINI(ps_set_view) view = { 0 };
    ps_set_poll(c->ps_set, POLL_CALL_MS, &view);
    if (chief_confirm_ps_set(c, &view, e) < 0)
        return -1;
    if (view.condition == PS_SET_UNREACHABLE || view.condition == PS_SET_NEEDS_RESTORE)
        return err_set(e, ERR_LOST, "%s", view.message);
    coordinator_observe(c->coordinator, &view.done, view.begun_ms);
    coordinator_tick(c->coordinator, clock_ms());
    *ret_step = view.step;
    return 0;
}

/* 1: all segments are at the step, or beyond. */
static int chief_poll_step(struct chief *c, struct err *e)
{
    int64_t step;
    return chief_observe(c, &step, e) < 0 ? -1 : step >= chief_step_of(c, c->save_at);
}

/* Longer while batches become done, and shorter once this process is to stop. */
struct patience {
    int64_t at_most_ms, until_ms, done;
    bool stopping;
};

static bool patience_over(struct patience *p, const struct coordinator_view *coord)
{
    int64_t now = clock_ms();
    if (coord->done != p->done && !p->stopping)
        p->until_ms = now + p->at_most_ms;
    p->done = coord->done;
    if (stop_count() > 0 && !p->stopping)
        p->until_ms = MIN(p->until_ms, now + SETTLE_MS);
    p->stopping = stop_count() > 0;
    return now >= p->until_ms;
}

/* This process ends, and none of its threads is left that could complete the step. */
static bool chief_alone(const struct chief *c, const struct coordinator_view *coord)
{
    return (c->config.local || c->config.members) && coord->workers == 0 && stop_count() > 0;
}

static int chief_wait_step(struct chief *c, int64_t at_most_ms, struct err *e)
{
    struct patience patience = { .at_most_ms = at_most_ms, .until_ms = clock_ms() + at_most_ms, .done = -1 };
    struct coordinator_view view;
    char text[COORDINATOR_TEXT_MAX];
    str_fmt(text, sizeof(text), "step %lld, to save it", (long long)chief_step_of(c, c->save_at));
    for (;;) {
        int there = chief_poll_step(c, e);
        if (there != 0)
            return there < 0 ? -1 : 0;
        coordinator_view(c->coordinator, &view);
        if (chief_alone(c, &view) || patience_over(&patience, &view))
            return err_set(e, ERR_TIMEOUT, "no step could be saved: the workers made no progress towards step %lld",
                           (long long)chief_step_of(c, c->save_at));
        if (!c->ending)
            chief_wait(c, &c->step_wait, EXPLAIN_FIRST_MS, text);
        coordinator_wait(c->coordinator, clock_ms() + POLL_MS);
    }
}

/* The end of the step at which the ps are, if they are not beyond it when they learn that; else the first one of which
 * no batch is leased. With batches that take long the latter is minutes away. */
static int chief_announce_step(struct chief *c, struct err *e)
{
    AUTO_FINI(ps_set_view) view = { 0 };
    struct err passed = { 0 };
    ps_set_poll(c->ps_set, POLL_CALL_MS, &view);
    bool rests = c->config.members && view.condition == PS_SET_TERMINATING; /* no worker computes any more */
    int64_t free = coordinator_hold(c->coordinator),
            end = groups_ordinal(&c->groups, view.step_max - c->step_offset + !rests);
    c->save_at = MIN(end, free);
    int rc = ps_set_announce_snapshot(c->ps_set, c->save_at, &passed);
    if (rc < 0 && err_is(&passed, ERR_STALE)) {
        c->save_at = free;
        rc = ps_set_announce_snapshot(c->ps_set, c->save_at, &passed);
    }
    coordinator_allow_below(c->coordinator, c->limit);
    return rc < 0 ? err_set(e, passed.code, "%s", passed.msg) : 0;
}

int chief_await_step(struct chief *c, struct err *e)
{
    int rc = chief_announce_step(c, e) < 0 ? -1 : chief_wait_step(c, STEP_MS, e);
    chief_wait_over(c, &c->step_wait);
    return rc;
}

void chief_settle_step(struct chief *c)
{
    struct err ignored;
    c->save_at = coordinator_hold(c->coordinator);
    if (chief_wait_step(c, SETTLE_MS, &ignored) < 0)
        report_info(c->config.report, "%s", ignored.msg);
    chief_wait_over(c, &c->step_wait);
}

int chief_find_step(struct chief *c, struct err *e)
{
    AUTO_FINI(ps_set_view) view = { 0 };
    ps_set_poll(c->ps_set, POLL_CALL_MS, &view);
    if (view.condition == PS_SET_UNREACHABLE || view.condition == PS_SET_NEEDS_RESTORE)
        return err_set(e, ERR_LOST, "%s", view.message);
    if (view.step != view.step_max)
        return err_set(e, ERR_LOST, "the parameter servers are at steps %lld and %lld", (long long)view.step,
                       (long long)view.step_max);
    c->save_at = groups_ordinal(&c->groups, view.step - c->step_offset);
    return 0;
}
