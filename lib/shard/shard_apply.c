/* Pull and push: the hot path of a ps. A push walks its segments under the gate; what a gradient does to a segment is
 * the update policy's (shard/update_policy.h). */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "nn/exec.h"
#include "shard/update_policy.h"

/* ---- element types ---- */

int shard_element_check(enum dtype element, const char *what, struct err *e)
{
    if (element == DT_FLOAT)
        return 0;
    return err_set(e, ERR_REFUSED, "unsupported %s element type %s (%u); only float32 (1) is supported", what,
                   dtype_name(element), (unsigned)element);
}

/* ---- parts ---- */

static int part_end(const struct shard *s, struct shard_part part, size_t *ret, struct err *e)
{
    if (part.first > s->n || part.count > s->n - part.first)
        return err_set(e, ERR_INPUT, "segments %zu to %zu of %zu", part.first, part.first + part.count, s->n);
    *ret = part.count == 0 ? s->n : part.first + part.count;
    return 0;
}

static struct shard_sizes sizes_of(const struct shard *s, size_t first, size_t end)
{
    size_t pull_from = first < s->n ? s->segments[first].pull_at : s->pull_size;
    size_t push_from = first < s->n ? s->segments[first].push_at : s->push_size;
    return (struct shard_sizes){
        .segments = end - first,
        .shard = s->pull_size,
        .pull = (end < s->n ? s->segments[end].pull_at : s->pull_size) - pull_from,
        .push = (end < s->n ? s->segments[end].push_at : s->push_size) - push_from,
    };
}

int shard_measure(struct shard *s, struct shard_part part, struct shard_sizes *ret, struct err *e)
{
    GATE_SHARED(s);
    size_t end = 0;
    if (s->n == 0) {
        *ret = (struct shard_sizes){ 0 };
        return 0;
    }
    if (part_end(s, part, &end, e) < 0)
        return -1;
    *ret = sizes_of(s, part.first, end);
    return 0;
}

/* Makes the room if the caller wants that, and checks what is there. */
static int find_room(struct shard_out *out, const struct shard_sizes *sizes, size_t bytes, struct err *e)
{
    if (out->make != NULL && out->make(out, sizes, e) < 0)
        return -1;
    if (out->values != NULL && shard_element_check(out->element, "value", e) < 0)
        return -1;
    if ((out->values != NULL && out->size != bytes) || (out->versions != NULL && out->nversions != sizes->segments))
        return err_set(e, ERR_NOT_READY, "the ps was initialised again during the call; retry");
    return 0;
}

/* ---- pull ---- */

/* Values and version of a segment, of the step that `at` names (shard_pull_at), or of now. to NULL: no values. */
static int copy_values(struct shard *s, struct segment *g, const int64_t *at, float *to, int64_t *ret_version,
                       struct err *e)
{
    SETTLED_GUARD(s, g);
    const float *values = g->values;
    if (at != NULL && group_values(g, *at, &values, e) < 0)
        return -1;
    if (to != NULL)
        memcpy(to, values, segment_bytes(g));
    if (ret_version != NULL)
        *ret_version = g->state.t - (at != NULL && *at != g->group.first);
    return 0;
}

static int copy_out(struct shard *s, size_t first, size_t end, const int64_t *at, struct shard_out *out, struct err *e)
{
    float *to = out->values;
    for (size_t i = first; i < end; i++) {
        struct segment *g = &s->segments[i];
        if (copy_values(s, g, at, to, out->versions != NULL ? &out->versions[i - first] : NULL, e) < 0)
            return -1;
        to += to != NULL ? g->spec.count : 0;
    }
    return 0;
}

static int pull_part(struct shard *s, const struct shard_caller *who, struct shard_part part, const int64_t *at,
                     struct shard_out *out, struct err *e)
{
    size_t end;
    if (shard_admit(s, who, SHARD_SERVING, e) < 0 || part_end(s, part, &end, e) < 0)
        return -1;
    if (at != NULL && s->groups.size == 0)
        return err_set(e, ERR_INPUT, "a pull of a step, and the updates are asynchronous");
    struct shard_sizes sizes = sizes_of(s, part.first, end);
    if (find_room(out, &sizes, sizes.pull, e) < 0)
        return -1;
    if (at != NULL)
        shard_settle(s);
    return copy_out(s, part.first, end, at, out, e);
}

int shard_pull(struct shard *s, const struct shard_caller *who, struct shard_part part, struct shard_out *out,
               struct err *e)
{
    GATE_SHARED(s);
    return pull_part(s, who, part, NULL, out, e);
}

int shard_pull_at(struct shard *s, const struct shard_caller *who, struct shard_part part, int64_t at,
                  struct shard_out *out, struct err *e)
{
    GATE_SHARED(s);
    return pull_part(s, who, part, &at, out, e);
}

int shard_pull_vectors_at(struct shard *s, const struct shard_caller *who, struct shard_part part, int64_t at,
                          const struct shard_vectors *vectors, int64_t *versions, size_t nversions, struct err *e)
{
    GATE_SHARED(s);
    size_t end;
    if (shard_admit(s, who, SHARD_SERVING, e) < 0 || part_end(s, part, &end, e) < 0)
        return -1;
    if (s->groups.size == 0 || vectors->floats < s->vector_floats || nversions != end - part.first)
        return err_set(e, ERR_INPUT, "a pull of a step into %zu floats and %zu versions: its segments need %zu and %zu",
                       vectors->floats, nversions, s->vector_floats, end - part.first);
    for (size_t i = part.first; i < end; i++) {
        struct segment *g = &s->segments[i];
        if (copy_values(s, g, &at, vectors->values + g->spec.offset, &versions[i - part.first], e) < 0)
            return -1;
    }
    return 0;
}

/* ---- push ---- */

void push_begin(const struct shard *s, struct push *p)
{
    p->optimizer = s->optimizer;
    p->groups = &s->groups;
    p->announced = &s->announced;
    p->rate = rates_at(&s->rates, p->ordinal, (double)NAN);
}

size_t push_grads(struct push *p, const struct segment *g, size_t at, size_t want, const void **ret)
{
    if (p->grads.in != NULL)
        return floats_next(&p->grads, want, ret);
    *ret = p->vectors.grads + g->spec.offset + at;
    return want;
}

int push_skip(struct push *p, const struct segment *g, struct err *e)
{
    if (p->grads.in != NULL && !floats_skip(&p->grads, g->spec.count))
        return err_set(e, ERR_INTERNAL, "a push ended within segment %u", g->spec.id);
    return 0;
}

const struct opt_step *push_step(struct push *p, const struct segment *g, int64_t ordinals)
{
    bool same = p->has_step && p->begun.t == g->state.t && memcmp(&p->begun.aux, &g->state.aux, sizeof(double)) == 0;
    if (!same) {
        if (isnan(p->rate))
            optimizer_begin(p->optimizer, &g->state, &p->step);
        else
            optimizer_begin_at(p->optimizer, &g->state, p->rate, &p->step);
        p->begun = g->state;
        p->has_step = true;
    }
    p->step.ordinals = (float)ordinals;
    return &p->step;
}

static int push_segment(const struct update_policy *policy, struct segment *g, struct push *p, const int64_t *seen,
                        int64_t *ret_version, struct err *e)
{
    MUTEX_GUARD(&g->lock);
    int64_t from = seen != NULL ? *(const volatile int64_t *)seen : -1; /* read once: a worker may write it meanwhile */
    int64_t version = g->state.t;
    int taken = policy->take(g, p, e);
    if (taken < 0)
        return -1;
    if (taken == 1) {
        p->taken++;
        g->clean = false;
        if (from >= 0)
            p->staleness = MAX(p->staleness, version - from);
    }
    if (p->out != NULL && g->spec.kind != VAR_CONST)
        p->out += g->spec.count;
    if (ret_version != NULL)
        *ret_version = g->state.t;
    return 0;
}

/* A push in parts counts once, with its first part. */
static void count_push(struct shard *s, const struct push *p, size_t first, int64_t begun_ns)
{
    uint64_t staleness = (uint64_t)p->staleness;
    atomic_fetch_add_explicit(&s->apply_ns, (uint64_t)(clock_ns() - begun_ns), memory_order_relaxed);
    if (first != 0)
        return;
    if (p->taken == 0) {
        atomic_fetch_add_explicit(&s->duplicates, 1, memory_order_relaxed);
        return;
    }
    atomic_fetch_add_explicit(&s->pushes, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->staleness_sum, staleness, memory_order_relaxed);
    uint_fast64_t old = atomic_load_explicit(&s->staleness_max, memory_order_relaxed);
    while (staleness > old && !atomic_compare_exchange_weak(&s->staleness_max, &old, staleness))
        ;
}

/* Once the updates that were due are made. */
static void read_versions(struct shard *s, size_t first, size_t end, int64_t *ret)
{
    for (size_t i = first; i < end; i++) {
        MUTEX_GUARD(&s->segments[i].lock);
        ret[i - first] = s->segments[i].state.t;
    }
}

/* Under the gate, all checked. versions: one for each segment, or NULL. */
static int push_part(struct shard *s, struct push *p, size_t first, size_t end, const int64_t *seen, int64_t *versions,
                     bool *ret_duplicate, struct err *e)
{
    int64_t begun_ns = clock_ns();
    push_begin(s, p);
    int rc = 0;
    for (size_t i = first; i < end && rc == 0; i++) {
        size_t at = i - first;
        rc = push_segment(s->policy, &s->segments[i], p, seen != NULL ? seen + at : NULL,
                          versions != NULL ? versions + at : NULL, e);
    }
    if (p->updates > 0 || p->due > 0)
        shard_updated(s);
    if (p->due > 0)
        shard_settle(s);
    if (rc < 0)
        return -1;
    if (p->due > 0 && versions != NULL)
        read_versions(s, first, end, versions);
    count_push(s, p, first, begun_ns);
    *ret_duplicate = p->taken == 0;
    return 0;
}

/* ---- what may be applied ---- */

/* Of one segment, cut as the message is. */
static bool segment_finite(struct float_reader *r, const struct segment_spec *g)
{
    const void *x = NULL;
    bool finite = true;
    for (size_t left = g->count, n; left > 0 && finite && (n = floats_next(r, left, &x)) > 0; left -= n)
        finite = update_finite(g->kind, x, n);
    return finite;
}

static bool bytes_finite(const struct shard *s, struct bytes_in *grads, size_t first, size_t end)
{
    struct float_reader r = { .in = grads };
    bool finite = true;
    for (size_t i = first; i < end && finite; i++) {
        const struct segment_spec *g = &s->segments[i].spec;
        finite = g->kind == VAR_CONST || segment_finite(&r, g);
    }
    grads->again(grads->user);
    return finite;
}

static bool vectors_finite(const struct shard *s, const struct shard_vectors *v, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        const struct segment_spec *g = &s->segments[i].spec;
        if (g->kind != VAR_CONST && !update_finite(g->kind, v->grads + g->offset, g->count))
            return false;
    }
    return true;
}

/* Checks all gradients before the first is applied: they are read again from the cache. A worker checks, too, before
 * it sends them; this is for what is between, and for other clients. With a loss scale (float16) such a push would be
 * answered as skipped, and its ordinal marked; here is the place for that. */
static int check_finite(bool finite, int64_t ordinal, struct err *e)
{
    if (finite)
        return 0;
    return err_set(e, ERR_DIVERGED, "a gradient of batch %lld is not finite: nothing of this push was applied",
                   (long long)ordinal);
}

int shard_push(struct shard *s, const struct shard_caller *who, struct shard_part part, int64_t ordinal,
               const int64_t *seen, struct bytes_in *grads, struct shard_out *out, bool *ret_duplicate, struct err *e)
{
    GATE_SHARED(s);
    size_t end;
    if (shard_element_check(grads->element, "gradient", e) < 0 || shard_admit(s, who, SHARD_SERVING, e) < 0 ||
        part_end(s, part, &end, e) < 0)
        return -1;
    struct shard_sizes sizes = sizes_of(s, part.first, end);
    if (grads->size != sizes.push)
        return err_set(e, ERR_INPUT, "a push of %zu bytes for segments of %zu bytes", grads->size, sizes.push);
    if (check_finite(bytes_finite(s, grads, part.first, end), ordinal, e) < 0 ||
        find_room(out, &sizes, sizes.push, e) < 0)
        return -1;
    if (!s->policy->answers_values)
        out->values = NULL; /* nothing is written there, so it must not be sent */
    struct push p = { .ordinal = ordinal, .grads = { .in = grads }, .out = out->values };
    return push_part(s, &p, part.first, end, seen, out->versions, ret_duplicate, e);
}

int shard_push_vectors(struct shard *s, const struct shard_caller *who, struct shard_part part, int64_t ordinal,
                       const int64_t *seen, const struct shard_vectors *vectors, int64_t *versions, size_t nversions,
                       bool *ret_duplicate, struct err *e)
{
    GATE_SHARED(s);
    size_t end;
    if (shard_admit(s, who, SHARD_SERVING, e) < 0 || part_end(s, part, &end, e) < 0)
        return -1;
    if (vectors->floats < s->vector_floats || nversions != end - part.first)
        return err_set(e, ERR_INPUT, "a push of vectors of %zu floats and %zu versions: its segments need %zu and %zu",
                       vectors->floats, nversions, s->vector_floats, end - part.first);
    if (check_finite(vectors->trusted || vectors_finite(s, vectors, part.first, end), ordinal, e) < 0)
        return -1;
    struct push p = { .ordinal = ordinal, .vectors = *vectors };
    return push_part(s, &p, part.first, end, seen, versions, ret_duplicate, e);
}
