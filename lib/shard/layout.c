/* Cuts the variables of a model into segments and places them on the ps. Pure: every process of a job must compute
 * the same boundaries, and layout_hash shows whether it did. */
#include "shard/layout.h"

#include <string.h>

#include "base/rng.h"
#include "codec/json.h"

enum { SEGMENT_MAX_FLOATS = SEGMENT_MAX / sizeof(float), HASH_SEED = 1 };

/* Floats of a full segment of a variable: whole rows while a row fits. */
static size_t segment_floats(const struct variable *v)
{
    size_t row = v->shape.rank > 0 && v->shape.dim[0] > 0 ? v->count / (size_t)v->shape.dim[0] : v->count;
    if (row == 0 || row > SEGMENT_MAX_FLOATS)
        return SEGMENT_MAX_FLOATS;
    return SEGMENT_MAX_FLOATS / row * row;
}

static void hash_add(uint64_t *h, uint64_t v)
{
    *h = hash64_mix(*h, v);
}

static void hash_variable(uint64_t *h, const struct variable *v)
{
    uint32_t momentum;
    memcpy(&momentum, &v->momentum, sizeof(momentum));
    hash_add(h, hash64(v->name, strlen(v->name), HASH_SEED));
    hash_add(h, (uint64_t)v->shape.rank);
    for (int i = 0; i < v->shape.rank; i++)
        hash_add(h, (uint64_t)v->shape.dim[i]);
    hash_add(h, v->offset);
    hash_add(h, (uint64_t)v->kind << 32 | (v->kind == VAR_MOVING ? momentum : 0));
}

static void add_segments(struct layout *l, uint32_t variable, const struct variable *v)
{
    size_t step = segment_floats(v), pieces = (v->count + step - 1) / step;

    l->segments = xrealloc(l->segments, (l->n + pieces) * sizeof(*l->segments));
    for (size_t start = 0; start < v->count; start += step) {
        l->segments[l->n] = (struct segment_spec){
            .id = (uint32_t)l->n,
            .variable = variable,
            .offset = v->offset + start,
            .count = MIN(step, v->count - start),
            .start = start,
            .kind = v->kind,
            .momentum = v->momentum,
            .pin = v->pin,
        };
        hash_add(&l->hash, l->segments[l->n].count);
        l->n++;
    }
}

struct layout *layout_of(const struct variable *const variables[], size_t n, size_t vector)
{
    struct layout *l = xcalloc(1, sizeof(*l));
    l->vector = vector;
    l->hash = hash64_mix(HASH_SEED, vector);
    for (size_t i = 0; i < n; i++) {
        hash_variable(&l->hash, variables[i]);
        add_segments(l, (uint32_t)i, variables[i]);
    }
    return l;
}

struct layout *layout_new(const struct model *m)
{
    size_t n = model_variables(m);
    auto_free const struct variable **variables = xcalloc(n, sizeof(*variables));
    for (size_t i = 0; i < n; i++)
        variables[i] = model_variable(m, i);
    return layout_of(variables, n, model_size(m));
}

uint64_t layout_register_hash(const struct layout *l, const struct model *m)
{
    AUTO_FINI(buf) text = BUF_INIT;
    json_auto_t *v = model_to_json(m);
    json_emit(v, &text);
    return hash64_mix(l->hash, hash64(text.data, text.len, HASH_SEED));
}

void layout_free(struct layout *l)
{
    if (l == NULL)
        return;
    free(l->segments);
    free(l);
}

/* ---- placement ---- */

static int by_size(const void *a, const void *b)
{
    const struct segment_spec *const *x = a, *const *y = b;
    if ((*x)->count != (*y)->count)
        return (*x)->count > (*y)->count ? -1 : 1;
    return (*x)->id < (*y)->id ? -1 : 1;
}

/* A process without ps has everything in one place, and no pins. */
static bool is_pinned(const struct segment_spec *s, size_t nps)
{
    return s->pin > 0 && (size_t)s->pin <= nps;
}

static void place_greedy(const struct layout *l, size_t nps, size_t *home)
{
    auto_free const struct segment_spec **order = xcalloc(l->n, sizeof(*order));
    auto_free size_t *load = xcalloc(nps, sizeof(*load));

    for (size_t i = 0; i < l->n; i++) {
        order[i] = &l->segments[i];
        if (is_pinned(order[i], nps))
            load[order[i]->pin - 1] += order[i]->count;
    }
    qsort(order, l->n, sizeof(*order), by_size);
    for (size_t i = 0; i < l->n; i++) {
        size_t least = 0;
        if (is_pinned(order[i], nps))
            continue;
        for (size_t ps = 1; ps < nps; ps++)
            if (load[ps] < load[least])
                least = ps;
        load[least] += order[i]->count;
        home[order[i]->id] = least;
    }
}

static void place_round_robin(const struct layout *l, size_t nps, size_t *home)
{
    for (size_t i = 0; i < l->n; i++)
        home[i] = l->segments[i].variable % nps;
}

struct placement *placement_new(const struct layout *l, enum placement_kind kind, size_t nps)
{
    struct placement *p = xcalloc(1, sizeof(*p));
    auto_free size_t *home = xcalloc(l->n, sizeof(*home));

    (kind == PLACEMENT_ROUND_ROBIN ? place_round_robin : place_greedy)(l, nps, home);
    for (size_t i = 0; i < l->n; i++)
        if (is_pinned(&l->segments[i], nps))
            home[i] = (size_t)l->segments[i].pin - 1;
    p->nps = nps;
    p->ids = xcalloc(nps, sizeof(*p->ids));
    p->n = xcalloc(nps, sizeof(*p->n));
    for (size_t i = 0; i < l->n; i++)
        p->n[home[i]]++;
    for (size_t ps = 0; ps < nps; ps++) {
        p->ids[ps] = xcalloc(p->n[ps], sizeof(**p->ids));
        p->n[ps] = 0;
    }
    for (size_t i = 0; i < l->n; i++)
        p->ids[home[i]][p->n[home[i]]++] = l->segments[i].id;
    return p;
}

uint64_t placement_hash(const struct placement *p)
{
    uint64_t h = hash64_mix(HASH_SEED, p->nps);
    for (size_t ps = 0; ps < p->nps; ps++) {
        hash_add(&h, p->n[ps]);
        for (size_t i = 0; i < p->n[ps]; i++)
            hash_add(&h, p->ids[ps][i]);
    }
    return h;
}

void placement_free(struct placement *p)
{
    if (p == NULL)
        return;
    for (size_t ps = 0; ps < p->nps; ps++)
        free(p->ids[ps]);
    free(p->ids);
    free(p->n);
    free(p);
}
