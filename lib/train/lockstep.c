/* Lanes in ascending order of their ordinals. Engines are made when a lane needs one, and stay. */
#include "train/lockstep.h"

#include <string.h>

#include "base/clock.h"
#include "nn/sync_check.h"
#include "shard/group_sums.h"

_Static_assert((int)SYNC_BATCHES_MAX == (int)GROUP_SUMS_ORDINALS_MAX, "a checked job has no larger groups");

struct lane {
    struct step_engine *engine;
    struct train_step *step; /* NULL: the lane is free */
    uint32_t phase;          /* of the sums for which it waits */
    struct exec_sums sums;   /* of its batch */
    bool done;
};

struct lockstep {
    struct train_strategy *strategy;
    struct step_engine_config engine;
    int64_t at;
    int64_t advanced; /* the ordinal whose lane advanced last */
    size_t n;
    struct lane lanes[GROUP_SUMS_ORDINALS_MAX];
};

struct lockstep *lockstep_new(struct train_strategy *strategy, const struct step_engine_config *engine)
{
    struct lockstep *l = xcalloc(1, sizeof(*l));
    l->strategy = strategy;
    l->engine = *engine;
    l->at = l->advanced = -1;
    return l;
}

void lockstep_free(struct lockstep *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < COUNT_OF(l->lanes); i++)
        step_engine_free(l->lanes[i].engine);
    free(l);
}

int64_t lockstep_advanced(const struct lockstep *l)
{
    return l->advanced;
}

int64_t lockstep_at(const struct lockstep *l)
{
    return l->n > 0 ? l->at : -1;
}

size_t lockstep_lanes(const struct lockstep *l)
{
    return l->n;
}

struct train_step *lockstep_step(const struct lockstep *l, size_t lane)
{
    return l->lanes[lane].step;
}

struct step_engine *lockstep_reader(const struct lockstep *l)
{
    return l->n == 1 ? l->lanes[0].engine : NULL;
}

/* ---- one lane ---- */

/* Up to the next sums, or to the end. */
static int lane_advance(struct lockstep *l, struct lane *lane, struct err *e)
{
    int64_t begun = clock_ns();
    l->advanced = lane->step->ordinal;
    int rc = step_engine_advance(lane->engine, &lane->sums, e);
    lane->step->compute_ns += (uint64_t)(clock_ns() - begun);
    lane->done = rc == 1;
    return MIN(rc, 0);
}

static int lane_begin(struct lockstep *l, struct lane *lane, struct err *e)
{
    struct train_step *step = lane->step;
    int64_t begun = clock_ns();
    if (step_engine_load(lane->engine, step->ordinal, e) < 0)
        return -1;
    step->data_ns += (uint64_t)(clock_ns() - begun);
    step->first = step->ordinal == l->at;
    lane->phase = 0;
    step_engine_begin(lane->engine, step);
    return lane_advance(l, lane, e);
}

/* ---- all lanes ---- */

/* A free lane, in its place. */
static struct lane *insert_lane(struct lockstep *l, int64_t ordinal)
{
    struct lane free_one = l->lanes[l->n];
    size_t at = l->n++;
    for (; at > 0 && l->lanes[at - 1].step->ordinal > ordinal; at--)
        l->lanes[at] = l->lanes[at - 1];
    l->lanes[at] = (struct lane){ .engine = free_one.engine };
    return &l->lanes[at];
}

/* Its engine stays, for the lane that is made next. */
static void remove_lane(struct lockstep *l, size_t at)
{
    struct lane gone = l->lanes[at];
    l->n--;
    memmove(&l->lanes[at], &l->lanes[at + 1], (l->n - at) * sizeof(l->lanes[0]));
    l->lanes[l->n] = (struct lane){ .engine = gone.engine };
}

void lockstep_clear(struct lockstep *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->strategy->ops->give_up(l->strategy, l->lanes[i].step);
        l->lanes[i].step = NULL;
    }
    l->n = 0;
}

static bool has_lane(const struct lockstep *l, int64_t ordinal)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->lanes[i].step->ordinal == ordinal)
            return true;
    return false;
}

int lockstep_add(struct lockstep *l, int64_t at, int64_t ordinal, struct err *e)
{
    struct train_step *step;
    if (l->n == 0)
        l->at = at;
    if (has_lane(l, ordinal))
        return 0;
    if (l->n == COUNT_OF(l->lanes))
        return err_set(e, ERR_INTERNAL, "more than %d batches of a group", GROUP_SUMS_ORDINALS_MAX);
    struct step_engine **engine = &l->lanes[l->n].engine;
    if (*engine == NULL && step_engine_new(&l->engine, engine, e) < 0)
        return -1;
    int begun = l->strategy->ops->begin_step(l->strategy, ordinal, &step, e);
    if (begun != 0)
        return begun;
    step->compute_ns = step->data_ns = step->wait_ns = 0;
    struct lane *lane = insert_lane(l, ordinal);
    lane->step = step;
    return lane_begin(l, lane, e);
}

static int begin_again(struct lockstep *l, struct err *e)
{
    for (size_t i = 0; i < l->n; i++)
        if (lane_begin(l, &l->lanes[i], e) < 0)
            return -1;
    return 0;
}

/* The lowest phase for whose sums a lane waits; UINT32_MAX: none does. */
static uint32_t lowest_phase(const struct lockstep *l)
{
    uint32_t lowest = UINT32_MAX;
    for (size_t i = 0; i < l->n; i++)
        if (!l->lanes[i].done)
            lowest = MIN(lowest, l->lanes[i].phase);
    return lowest;
}

static bool waits_in(const struct lane *lane, uint32_t phase)
{
    return !lane->done && lane->phase == phase;
}

/* The numbers of the lanes in this phase, one after the other: all have as many. */
struct phase_part {
    int64_t ordinals[GROUP_SUMS_ORDINALS_MAX];
    size_t n, width;
    double *numbers; /* then room for the totals */
};

static void phase_part_fini(struct phase_part *p)
{
    free(p->numbers);
}
DEFINE_AUTO_FINI(phase_part, phase_part_fini);

static void collect(const struct lockstep *l, uint32_t phase, struct phase_part *ret)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct lane *lane = &l->lanes[i];
        if (!waits_in(lane, phase))
            continue;
        if (ret->n == 0) {
            ret->width = lane->sums.n;
            ret->numbers = xmalloc((l->n + 1) * ret->width * sizeof(double));
        }
        memcpy(ret->numbers + ret->n * ret->width, lane->sums.sum, ret->width * sizeof(double));
        ret->ordinals[ret->n++] = lane->step->ordinal;
    }
}

static int continue_lanes(struct lockstep *l, uint32_t phase, const double *totals, struct err *e)
{
    for (size_t i = 0; i < l->n; i++) {
        struct lane *lane = &l->lanes[i];
        if (!waits_in(lane, phase))
            continue;
        memcpy(lane->sums.sum, totals, lane->sums.n * sizeof(double));
        lane->phase++;
        if (lane_advance(l, lane, e) < 0)
            return -1;
    }
    return 0;
}

/* 0, STEP_LATER or STEP_OVER. */
static int make_phase(struct lockstep *l, uint32_t phase, struct err *e)
{
    AUTO_FINI(phase_part) part = { .n = 0 };
    collect(l, phase, &part);
    struct group_request q = { .part = { .at = l->at,
                                         .phase = phase,
                                         .ordinals = part.ordinals,
                                         .n = part.n,
                                         .numbers = part.numbers,
                                         .width = part.width },
                               .totals = part.numbers + part.n * part.width };
    int64_t begun = clock_ns();
    int rc = l->strategy->ops->reduce(l->strategy, &q, e);
    l->lanes[0].step->network_ns += (uint64_t)(clock_ns() - begun);
    if (rc != 0)
        return rc;
    return q.answer == GROUP_AGAIN ? begin_again(l, e) : continue_lanes(l, phase, q.totals, e);
}

int lockstep_compute(struct lockstep *l, struct err *e)
{
    for (uint32_t phase; (phase = lowest_phase(l)) != UINT32_MAX;) {
        int rc = make_phase(l, phase, e);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int lockstep_submit(struct lockstep *l, struct err *e)
{
    int rc = l->strategy->ops->submit(l->strategy, l->lanes[0].step, e);
    if (rc == 0)
        remove_lane(l, 0);
    if (rc == STEP_AGAIN)
        return begin_again(l, e) < 0 ? -1 : STEP_LATER;
    return rc;
}
