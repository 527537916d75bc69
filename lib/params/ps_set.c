/* Describes all ps at once, sums up their answers, and brings them under a generation: those that have state are
 * adopted, the others are filled. Nothing is changed before all have answered. */
#include "params/ps_set.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/wait.h"
#include "params/params_admin.h"

enum { CALL_MS = 5000, BULK_MS = 60000, CONFIRM_MS = 2000 };

struct ps_set {
    struct params *params;
    const struct layout *layout;
    const struct placement *placement;
    const struct optimizer *optimizer_of;
    struct buf optimizer; /* the same as JSON */
    const char *job_uid;
    const struct report *report;
    size_t *holder;        /* [segment] ps */
    uint64_t *incarnation; /* [ps] of the process we brought into service; 0: none */
    uint64_t *filled;      /* [ps] the generation in which we filled it last */
};

struct ps_set *ps_set_new(struct params *params, const struct layout *l, const struct placement *p,
                          const struct optimizer *o, const char *job_uid, const struct report *report)
{
    struct ps_set *f = xcalloc(1, sizeof(*f));
    *f = (struct ps_set){
        .params = params, .layout = l, .placement = p, .optimizer_of = o, .job_uid = job_uid, .report = report
    };
    json_auto_t *config = json_pack("{s:s, s:o}", "class_name", optimizer_name(o), "config", optimizer_config(o));
    json_emit(config, &f->optimizer);
    params_set_optimizer(params, f->optimizer.data);
    f->holder = xcalloc(l->n + 1, sizeof(*f->holder));
    f->incarnation = xcalloc(p->nps + 1, sizeof(*f->incarnation));
    f->filled = xcalloc(p->nps + 1, sizeof(*f->filled));
    for (size_t ps = 0; ps < p->nps; ps++)
        for (size_t i = 0; i < p->n[ps]; i++)
            f->holder[p->ids[ps][i]] = ps;
    return f;
}

void ps_set_free(struct ps_set *f)
{
    if (f == NULL)
        return;
    buf_fini(&f->optimizer);
    free(f->holder);
    free(f->incarnation);
    free(f->filled);
    free(f);
}

size_t ps_set_size(const struct ps_set *f)
{
    return f->placement->nps;
}

void ps_set_view_fini(struct ps_set_view *v)
{
    ordinal_set_fini(&v->done);
}

static bool serves(const struct shard_info *i)
{
    return i->state == SHARD_SERVING || i->state == SHARD_TERMINATING;
}

static enum ps_set_condition condition_of(const struct ps_set *f, size_t ps, const struct shard_info *i)
{
    if (!serves(i) || i->incarnation != f->incarnation[ps] || i->generation != params_generation(f->params))
        return PS_SET_NEEDS_RESTORE;
    return i->state == SHARD_TERMINATING ? PS_SET_TERMINATING : PS_SET_READY;
}

/* What is worse hides what is better. */
static void worsen(struct ps_set_view *v, enum ps_set_condition c, const char *message)
{
    static const int badness[] = {
        [PS_SET_READY] = 0, [PS_SET_TERMINATING] = 1, [PS_SET_NEEDS_RESTORE] = 2, [PS_SET_UNREACHABLE] = 3
    };
    if (badness[c] <= badness[v->condition])
        return;
    v->condition = c;
    str_fmt(v->message, sizeof(v->message), "%s", message);
}

static void view_add(struct ps_set_view *v, const struct shard_info *i, bool first, bool holds_any)
{
    v->highest_generation = MAX(v->highest_generation, i->generation);
    v->pushes += i->pushes;
    v->duplicates += i->duplicates;
    v->staleness_sum += i->staleness_sum;
    v->staleness_max = MAX(v->staleness_max, i->staleness_max);
    v->apply_ns += i->apply_ns;
    if (!holds_any)
        return;
    if (first) {
        ordinal_set_copy(&v->done, &i->applied);
        v->step = i->version_min;
        v->step_max = i->version_max;
    } else {
        ordinal_set_intersect(&v->done, &i->applied);
        v->step = MIN(v->step, i->version_min);
        v->step_max = MAX(v->step_max, i->version_max);
    }
}

/* What every ps answered. */
struct answers {
    struct shard_info *infos;
    struct err *errors;
    size_t n;
};

static void answers_fini(struct answers *a)
{
    for (size_t i = 0; i < a->n; i++)
        shard_info_fini(&a->infos[i]);
    free(a->infos);
    free(a->errors);
}
DEFINE_AUTO_FINI(answers, answers_fini);

static struct answers ask_all(struct ps_set *f, int64_t deadline_ms)
{
    size_t n = ps_set_size(f);
    struct answers a = { .infos = xcalloc(n + 1, sizeof(*a.infos)),
                         .errors = xcalloc(n + 1, sizeof(*a.errors)),
                         .n = n };
    params_describe(f->params, deadline_ms, a.infos, a.errors);
    return a;
}

/* The chief that has our generation at this ps, when it is another one; else 0. */
static uint64_t other_chief(const struct ps_set *f, const struct shard_info *i)
{
    bool ours = i->chief == params_incarnation(f->params);
    return i->generation == params_generation(f->params) && !ours ? i->chief : 0;
}

static void describe_condition(const struct ps_set *f, size_t ps, enum ps_set_condition c, char *out, size_t n)
{
    char name[32];
    bool ends = c == PS_SET_TERMINATING;
    if (params_in_workers(f->params))
        str_fmt(out, n, "all workers %s", ends ? "are terminating" : "have lost the state");
    else
        str_fmt(out, n, "%s %s", params_holder(f->params, ps, name), ends ? "is terminating" : "has lost its state");
}

void ps_set_poll(struct ps_set *f, int64_t deadline_ms, struct ps_set_view *ret)
{
    *ret = (struct ps_set_view){ .condition = PS_SET_READY, .begun_ms = clock_ms() };
    AUTO_FINI(answers) all = ask_all(f, deadline_ms);
    bool first = true;
    for (size_t ps = 0; ps < all.n; ps++) {
        const struct shard_info *info = &all.infos[ps];
        if (all.errors[ps].code != ERR_NONE) {
            worsen(ret, PS_SET_UNREACHABLE, all.errors[ps].msg);
            continue;
        }
        char text[64];
        enum ps_set_condition c = condition_of(f, ps, info);
        describe_condition(f, ps, c, text, sizeof(text));
        worsen(ret, c, text);
        if (other_chief(f, info) != 0)
            ret->other_chief = other_chief(f, info);
        bool holds_any = f->placement->n[ps] > 0;
        view_add(ret, info, first, holds_any);
        first = first && !holds_any;
    }
}

/* ---- bringing into service ---- */

static int restore_segment(struct ps_set *f, size_t ps, const struct segment_spec *segment,
                           const struct segment_source *source, float *data, struct err *e)
{
    bool slots = false;
    int64_t version = 0;
    AUTO_FINI(ordinal_set) applied = ORDINAL_SET_INIT;
    if (source->read(source->user, segment, data, &slots, &version, &applied, e) < 0)
        return -1;
    size_t nslots = segment->kind == VAR_TRAINABLE ? (size_t)optimizer_slots(f->optimizer_of) : 0;
    size_t floats = segment->count * (slots ? 1 + nslots : 1);
    return params_restore(f->params, ps, segment->id, slots, version, &applied, data, floats, BULK_MS, e);
}

/* Over a slow link a ps is filled for minutes: says how far it is, and ends at a signal. */
static int explain_fill(const struct ps_set *f, size_t ps, size_t filled, struct wait_state *wait, struct err *e)
{
    int64_t now = clock_ms();
    char name[32];
    if (stop_count() > 0)
        return err_set(e, ERR_STOPPED, "stopped while filling %s", params_holder(f->params, ps, name));
    if (wait_due(wait, now))
        report_info(f->report, "waiting %lld s for %s: %zu of %zu segments restored",
                    (long long)wait_ms(wait, now) / 1000, params_holder(f->params, ps, name), filled,
                    f->placement->n[ps]);
    return 0;
}

static int fill(struct ps_set *f, size_t ps, const struct segment_source *source, struct err *e)
{
    void *data;
    if (mem_alloc((size_t)SEGMENT_MAX * (1 + OPTIMIZER_MAX_SLOTS), "a segment", &data, e) < 0)
        return -1;
    auto_free float *segment = data;
    if (params_init(f->params, ps, f->optimizer.data, CALL_MS, e) < 0)
        return -1;
    struct wait_state wait = { 0 };
    wait_begin(&wait, clock_ms(), WAIT_EXPLAIN_MS);
    for (size_t i = 0; i < f->placement->n[ps]; i++)
        if (explain_fill(f, ps, i, &wait, e) < 0 ||
            restore_segment(f, ps, &f->layout->segments[f->placement->ids[ps][i]], source, segment, e) < 0)
            return -1;
    return params_serve(f->params, ps, CALL_MS, e);
}

static int check_owner(const struct ps_set *f, size_t ps, const struct shard_info *i, struct err *e)
{
    if (i->state == SHARD_UNINITIALISED || i->job_uid[0] == 0 || strcmp(i->job_uid, f->job_uid) == 0)
        return 0;
    char name[32];
    return err_set(e, ERR_REFUSED, "%s serves another job (%s)", params_holder(f->params, ps, name), i->job_uid);
}

/* May this chief have the ps? */
static int check_answer(const struct ps_set *f, size_t ps, const struct shard_info *i, const struct err *cause,
                        struct err *e)
{
    uint64_t generation = params_generation(f->params);
    char name[32];
    if (cause->code != ERR_NONE)
        return err_set(e, cause->code, "%s", cause->msg);
    if (check_owner(f, ps, i, e) < 0)
        return -1;
    if (i->generation > generation)
        return err_set(e, ERR_FENCED, "%s is at generation %llu, this chief at %llu",
                       params_holder(f->params, ps, name), (unsigned long long)i->generation,
                       (unsigned long long)generation);
    if (other_chief(f, i) != 0)
        return err_set(e, ERR_FENCED, "%s has generation %llu from another chief (incarnation %016llx)",
                       params_holder(f->params, ps, name), (unsigned long long)generation,
                       (unsigned long long)i->chief);
    return 0;
}

static bool has_state(const struct ps_set *f, const struct shard_info *i)
{
    return serves(i) && i->layout_hash == f->layout->hash && groups_same(&i->groups, params_groups(f->params));
}

/* Filled in this generation already, before a call that failed for another ps. */
static bool is_filled(const struct ps_set *f, size_t ps, const struct shard_info *i)
{
    return has_state(f, i) && f->filled[ps] == params_generation(f->params) && f->incarnation[ps] == i->incarnation;
}

/* Synchronous training: the state is of one step. Either all ps keep theirs, or none does. Once one was filled, all
 * are: another one may still have its state of before. */
static int judge_together(const struct ps_set *f, const struct answers *all, bool *ret_keep, struct err *e)
{
    bool keep = true;
    for (size_t ps = 0; ps < all->n; ps++)
        keep = keep && has_state(f, &all->infos[ps]) && !is_filled(f, ps, &all->infos[ps]);
    for (size_t ps = 0; ps < all->n; ps++) {
        const struct shard_info *i = &all->infos[ps];
        if (!keep && has_state(f, i) && i->generation == params_generation(f->params) && !is_filled(f, ps, i))
            return err_set(e, ERR_STALE, "ps-%zu was taken over before another ps lost its state", ps);
    }
    *ret_keep = keep;
    return 0;
}

int ps_set_initialise(struct ps_set *f, uint64_t generation, const struct segment_source *source, int *ret_restored,
                      struct err *e)
{
    int restored = 0;
    bool together = params_groups(f->params)->size > 0, all_keep = false;
    params_set_generation(f->params, generation);
    AUTO_FINI(answers) all = ask_all(f, CALL_MS);
    for (size_t ps = 0; ps < all.n; ps++)
        if (check_answer(f, ps, &all.infos[ps], &all.errors[ps], e) < 0)
            return -1;
    if (together && judge_together(f, &all, &all_keep, e) < 0)
        return -1;
    for (size_t ps = 0; ps < all.n; ps++) {
        const struct shard_info *info = &all.infos[ps];
        bool keeps = together ? all_keep || is_filled(f, ps, info) : has_state(f, info);
        if ((keeps ? params_adopt(f->params, ps, CALL_MS, e) : fill(f, ps, source, e)) < 0)
            return -1;
        restored += !keeps;
        f->incarnation[ps] = info->incarnation;
        if (!keeps)
            f->filled[ps] = generation;
    }
    *ret_restored = restored;
    return 0;
}

void ps_set_fence(struct ps_set *f, uint64_t generation)
{
    params_set_generation(f->params, generation);
    for (size_t ps = 0; ps < ps_set_size(f); ps++) {
        struct err e = { 0 };
        if (params_fence(f->params, ps, CALL_MS, &e) < 0)
            log_debug("fence: %s", e.msg);
    }
}

int ps_set_announce(struct ps_set *f, struct err *e)
{
    for (size_t ps = 0; ps < ps_set_size(f); ps++)
        if (params_adopt(f->params, ps, CALL_MS, e) < 0)
            return -1;
    return 0;
}

int ps_set_snapshot(struct ps_set *f, uint32_t segment, struct shard_snapshot *ret, struct err *e)
{
    return params_snapshot(f->params, f->holder[segment], segment, BULK_MS, ret, e);
}

int ps_set_announce_snapshot(struct ps_set *f, int64_t at, struct err *e)
{
    for (size_t ps = 0; ps < ps_set_size(f); ps++)
        if (params_announce_snapshot(f->params, ps, at, CALL_MS, e) < 0)
            return -1;
    return 0;
}

int ps_set_snapshot_at(struct ps_set *f, uint32_t segment, int64_t at, struct shard_snapshot *ret, struct err *e)
{
    return params_snapshot_at(f->params, f->holder[segment], segment, at, BULK_MS, ret, e);
}

void ps_set_confirm_snapshots(struct ps_set *f)
{
    for (size_t ps = 0; ps < ps_set_size(f); ps++) {
        struct err e = { 0 };
        if (params_confirm_snapshots(f->params, ps, CONFIRM_MS, &e) < 0)
            log_debug("confirm: %s", e.msg);
    }
}

int ps_set_finish(struct ps_set *f, int64_t step)
{
    int answered = 0;
    for (size_t ps = 0; ps < ps_set_size(f); ps++) {
        struct err e = { 0 };
        if (params_finish(f->params, ps, step, CALL_MS, &e) == 0)
            answered++;
        else
            log_debug("finish: %s", e.msg);
    }
    return answered;
}
