/* The sums of a step are one vector; a gradient is added where it was received, a few kilobytes at a time. */
#include "collective/reduction.h"

#include <stdatomic.h>
#include <string.h>

#include "base/buf.h"
#include "base/thread.h"
#include "shard/float_reader.h"
#include "shard/update_kernel.h"

/* A gradient that came before its turn: a copy, or memory of who gave it. */
struct early {
    const float *floats; /* NULL: none waits */
    float *copy;
};
struct own_chunk {
    struct mutex lock;
    int64_t next;        /* the gradients below are in the sum */
    struct early *early; /* [end - at] */
    bool *has;           /* [end - at] */
};

struct reduction {
    struct reduction_frame *frame;
    int64_t at, end;
    atomic_int refs;
    atomic_bool open;
    atomic_size_t left;          /* chunks without a sum */
    atomic_bool *done;           /* [chunk] */
    atomic_bool *delivered;      /* [end - at]; NULL without CHUNK_OF_ALL */
    atomic_int_fast64_t missing; /* ordinals that are not delivered */
    struct own_chunk *own;       /* [own_end - own_first] */
    float *sums;
};

/* ---- frames ---- */

static bool is_of(const struct chunk_range *c, size_t member)
{
    return c->owner == member || c->owner == CHUNK_OF_ALL;
}

struct reduction_frame *reduction_frame_new(const struct layout *layout, const float *values,
                                            const struct groups *groups, size_t members, size_t self)
{
    struct reduction_frame *f = xcalloc(1, sizeof(*f));
    f->layout = layout;
    f->values = values;
    f->groups = *groups;
    f->self = self;
    f->nchunks = view_chunks(layout->vector, members, groups->size, &f->chunks);
    while (f->own_first < f->nchunks && !is_of(&f->chunks[f->own_first], self))
        f->own_first++;
    for (f->own_end = f->own_first; f->own_end < f->nchunks && is_of(&f->chunks[f->own_end], self);)
        f->own_end++;
    atomic_init(&f->refs, 1);
    return f;
}

bool reduction_frame_owns(const struct reduction_frame *f, size_t chunk)
{
    return chunk >= f->own_first && chunk < f->own_end;
}

struct reduction_frame *reduction_frame_ref(struct reduction_frame *f)
{
    atomic_fetch_add(&f->refs, 1);
    return f;
}

void reduction_frame_unref(struct reduction_frame *f)
{
    if (f == NULL || atomic_fetch_sub(&f->refs, 1) > 1)
        return;
    free(f->chunks);
    free(f);
}

/* ---- life ---- */

static int64_t reduction_size(const struct reduction *r)
{
    return r->end - r->at;
}

int reduction_new(struct reduction_frame *f, int64_t at, struct reduction **ret, struct err *e)
{
    size_t bytes, own = f->own_end - f->own_first;
    void *sums;
    if (size_mul(f->layout->vector, sizeof(float), &bytes, e) < 0 ||
        mem_alloc_plain(bytes, "the sums of a step", &sums, e) < 0)
        return -1;
    struct reduction *r = xcalloc(1, sizeof(*r));
    r->frame = reduction_frame_ref(f);
    r->at = at;
    r->end = groups_end(&f->groups, at);
    r->sums = sums;
    r->done = xcalloc(f->nchunks, sizeof(*r->done));
    r->own = xcalloc(own, sizeof(*r->own));
    atomic_init(&r->refs, 1);
    atomic_init(&r->left, f->nchunks);
    if (f->chunks[0].owner == CHUNK_OF_ALL) {
        r->delivered = xcalloc((size_t)reduction_size(r), sizeof(*r->delivered));
        atomic_init(&r->missing, reduction_size(r));
    }
    for (size_t i = 0; i < own; i++) {
        mutex_init(&r->own[i].lock);
        r->own[i].next = at;
        r->own[i].has = xcalloc((size_t)reduction_size(r), sizeof(bool));
        r->own[i].early = xcalloc((size_t)reduction_size(r), sizeof(struct early));
    }
    *ret = r;
    return 0;
}

struct reduction *reduction_ref(struct reduction *r)
{
    atomic_fetch_add(&r->refs, 1);
    return r;
}

static void own_fini(const struct reduction *r, struct own_chunk *c)
{
    for (int64_t i = 0; i < reduction_size(r); i++)
        free(c->early[i].copy);
    free(c->early);
    free(c->has);
    mutex_fini(&c->lock);
}

void reduction_unref(struct reduction *r)
{
    if (r == NULL || atomic_fetch_sub(&r->refs, 1) > 1)
        return;
    for (size_t i = 0; i < r->frame->own_end - r->frame->own_first; i++)
        own_fini(r, &r->own[i]);
    reduction_frame_unref(r->frame);
    free(r->own);
    free(r->delivered);
    free(r->done);
    free(r->sums);
    free(r);
}

int64_t reduction_at(const struct reduction *r)
{
    return r->at;
}

int64_t reduction_end(const struct reduction *r)
{
    return r->end;
}

const struct reduction_frame *reduction_frame(const struct reduction *r)
{
    return r->frame;
}

/* ---- adding ---- */

/* Floats [at, at + n) of the vector. */
struct float_range {
    size_t at, n;
};

static void sum_nothing(const struct reduction *r, int64_t ordinal, struct float_range to)
{
    if (ordinal == r->at)
        memset(r->sums + to.at, 0, to.n * sizeof(float));
}

/* The gradients of an ordinal, and of the next one or NULL, from some float on. */
struct addends {
    int64_t ordinal;
    const char *x, *next;
};

/* One gradient in a range of floats of one segment, as in shard/update_sync.c. */
static void sum_one(const struct reduction *r, const struct segment_spec *g, int64_t ordinal, const void *x,
                    struct float_range to)
{
    bool first = ordinal == r->at;
    float w = groups_weight(&r->frame->groups, ordinal), *sum = r->sums + to.at;
    if (g->kind == VAR_MOVING) /* the next values: each batch of the group counts by itself */
        update_average(first ? r->frame->values + to.at : sum, x, g->momentum, sum, to.n);
    else if (g->kind == VAR_TRAINABLE && first)
        update_weigh(x, w, sum, to.n);
    else if (g->kind == VAR_TRAINABLE)
        update_add(x, w, sum, to.n);
    else
        sum_nothing(r, ordinal, to);
}

static struct addends addends_skip(struct addends a, size_t floats)
{
    size_t bytes = floats * sizeof(float);
    return (struct addends){ a.ordinal, a.x + bytes, a.next != NULL ? a.next + bytes : NULL };
}

static void sum_range(const struct reduction *r, const struct segment_spec *g, const struct addends *a,
                      struct float_range to)
{
    const struct groups *groups = &r->frame->groups;
    if (a->next != NULL && a->ordinal == r->at && g->kind == VAR_TRAINABLE) {
        update_weigh_two(a->x, groups_weight(groups, a->ordinal), a->next, groups_weight(groups, a->ordinal + 1),
                         r->sums + to.at, to.n);
        return;
    }
    sum_one(r, g, a->ordinal, a->x, to);
    if (a->next != NULL)
        sum_one(r, g, a->ordinal + 1, a->next, to);
}

/* The segment that has this float, or the next one above: segments ascend by offset. */
static size_t segment_at(const struct layout *l, size_t at)
{
    size_t low = 0, high = l->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->segments[middle].offset + l->segments[middle].count <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Between variables there may be floats of none. */
static void sum_floats(const struct reduction *r, struct addends a, struct float_range to)
{
    const struct layout *l = r->frame->layout;
    size_t end = to.at + to.n;
    for (size_t i = segment_at(l, to.at); to.at < end; i++) {
        size_t begin = i < l->n ? MIN(l->segments[i].offset, end) : end;
        size_t stop = begin < end ? MIN(begin + l->segments[i].count, end) : end;
        begin = MAX(begin, to.at);
        sum_nothing(r, a.ordinal, (struct float_range){ to.at, begin - to.at });
        a = addends_skip(a, begin - to.at);
        if (stop > begin)
            sum_range(r, &l->segments[i], &a, (struct float_range){ begin, stop - begin });
        a = addends_skip(a, stop - begin);
        to.at = stop;
    }
}

static int keep_bytes(struct early *early, const struct chunk_range *c, struct bytes_in *bytes, struct err *e)
{
    void *memory;
    struct float_reader reader = { .in = bytes };
    size_t n = c->to - c->from;
    if (mem_alloc_plain(MAX(n, (size_t)1) * sizeof(float), "a gradient that waits for its group", &memory, e) < 0)
        return -1;
    auto_free float *copy = memory;
    if (!floats_copy(&reader, copy, n))
        return err_set(e, ERR_INTERNAL, "a gradient ended within its chunk");
    early->floats = early->copy = TAKE(copy);
    return 0;
}

/* A gradient in a chunk. lent: the same as in bytes, in one piece that stays; or NULL. */
struct gradient_part {
    size_t chunk;
    int64_t ordinal;
    struct bytes_in *bytes;
    const float *lent;
};

/* ---- adding: under the chunk's lock ---- */

/* The gradients [own->next, end) are there. arriving: this one counts as such; -1: none. */
static int64_t run_end(const struct reduction *r, const struct own_chunk *own, int64_t arriving)
{
    int64_t o = own->next;
    while (o < r->end && (own->early[o - r->at].floats != NULL || o == arriving))
        o++;
    return o;
}

/* One alone that is lent waits for the next one: two are added with one pass over the sum. */
static bool run_is_due(const struct reduction *r, const struct own_chunk *own, int64_t end)
{
    if (end == own->next)
        return false;
    const struct early *first = &own->early[own->next - r->at];
    bool lent = first->floats != NULL && first->copy == NULL;
    return !lent || end - own->next > 1 || end == r->end;
}

/* Of a gradient that is there, from a float of the chunk on. arriving: the floats of the one whose bytes arrive now. */
static const void *run_floats(const struct reduction *r, const struct own_chunk *own, int64_t ordinal, size_t from,
                              const void *arriving)
{
    const float *early = own->early[ordinal - r->at].floats;
    return early != NULL ? early + from : arriving;
}

/* All of [own->next, end), a block of all of them after the other: the sum stays in the cache. p: the one whose bytes
 * arrive now, or NULL. */
static int sum_run(const struct reduction *r, struct own_chunk *own, const struct chunk_range *c, int64_t end,
                   const struct gradient_part *p, struct err *e)
{
    enum { BLOCK = 4096 };
    struct float_reader reader = { .in = p != NULL ? p->bytes : NULL };
    for (size_t at = c->from, n; at < c->to; at += n) {
        const void *x = NULL;
        n = MIN(c->to - at, (size_t)BLOCK);
        if (p != NULL && (n = floats_next(&reader, n, &x)) == 0)
            return err_set(e, ERR_INTERNAL, "a gradient ended within its chunk");
        for (int64_t o = own->next; o < end; o += 2) {
            const struct addends a = { o, run_floats(r, own, o, at - c->from, x),
                                       o + 1 < end ? run_floats(r, own, o + 1, at - c->from, x) : NULL };
            sum_floats(r, a, (struct float_range){ at, n });
        }
    }
    for (; own->next < end; own->next++) {
        free(own->early[own->next - r->at].copy);
        own->early[own->next - r->at] = (struct early){ 0 };
    }
    return 0;
}

static void sum_waiting(const struct reduction *r, struct own_chunk *own, const struct chunk_range *c, int64_t end)
{
    struct err never;
    (void)!sum_run(r, own, c, end, NULL, &never);
}

static bool note_sum(struct reduction *r, struct own_chunk *own, size_t chunk)
{
    if (own->next < r->end || atomic_load(&r->done[chunk]))
        return false;
    reduction_set_sum(r, chunk);
    return true;
}

void reduction_open(struct reduction *r)
{
    const struct reduction_frame *f = r->frame;
    atomic_store(&r->open, true);
    for (size_t i = f->own_first; i < f->own_end; i++) {
        struct own_chunk *own = &r->own[i - f->own_first];
        MUTEX_GUARD(&own->lock);
        int64_t end = run_end(r, own, -1);
        if (run_is_due(r, own, end))
            sum_waiting(r, own, &f->chunks[i], end);
        (void)note_sum(r, own, i);
    }
}

static int check_add(const struct reduction *r, size_t chunk, int64_t ordinal, const struct bytes_in *bytes,
                     struct err *e)
{
    const struct reduction_frame *f = r->frame;
    if (!reduction_frame_owns(f, chunk))
        return err_set(e, ERR_INPUT, "chunk %zu of %zu belongs to another member", chunk, f->nchunks);
    if (ordinal < r->at || ordinal >= r->end)
        return err_set(e, ERR_INPUT, "batch %lld is not in the group of batches %lld to %lld", (long long)ordinal,
                       (long long)r->at, (long long)r->end - 1);
    size_t want = (f->chunks[chunk].to - f->chunks[chunk].from) * sizeof(float);
    if (bytes->size != want)
        return err_set(e, ERR_INPUT, "a gradient of %zu bytes for a chunk of %zu", bytes->size, want);
    return 0;
}

/* Under the chunk's lock. */
static int take_part(struct reduction *r, struct own_chunk *own, const struct gradient_part *p, struct err *e)
{
    const struct chunk_range *c = &r->frame->chunks[p->chunk];
    struct early *early = &own->early[p->ordinal - r->at];
    int64_t end = run_end(r, own, p->ordinal);
    bool turn = atomic_load(&r->open) && p->ordinal < end;
    if (p->lent != NULL)
        early->floats = p->lent;
    else if (!turn)
        return keep_bytes(early, c, p->bytes, e);
    return turn && run_is_due(r, own, end) ? sum_run(r, own, c, end, p->lent != NULL ? NULL : p, e) : 0;
}

static int add_part(struct reduction *r, const struct gradient_part *p, bool *ret_complete, struct err *e)
{
    *ret_complete = false;
    if (check_add(r, p->chunk, p->ordinal, p->bytes, e) < 0)
        return -1;
    struct own_chunk *own = &r->own[p->chunk - r->frame->own_first];
    MUTEX_GUARD(&own->lock);
    if (own->has[p->ordinal - r->at])
        return 0;
    if (take_part(r, own, p, e) < 0)
        return -1;
    own->has[p->ordinal - r->at] = true;
    *ret_complete = note_sum(r, own, p->chunk);
    return 0;
}

int reduction_add(struct reduction *r, size_t chunk, int64_t ordinal, struct bytes_in *bytes, bool *ret_complete,
                  struct err *e)
{
    return add_part(r, &(struct gradient_part){ chunk, ordinal, bytes, NULL }, ret_complete, e);
}

int reduction_lend(struct reduction *r, size_t chunk, int64_t ordinal, struct one_range floats, bool *ret_complete,
                   struct err *e)
{
    const float *lent = floats.data;
    struct bytes_in bytes = one_range(&floats);
    return add_part(r, &(struct gradient_part){ chunk, ordinal, &bytes, lent }, ret_complete, e);
}

int reduction_keep(struct reduction *r, size_t chunk, int64_t ordinal, struct err *e)
{
    const struct reduction_frame *f = r->frame;
    if (!reduction_frame_owns(f, chunk) || ordinal < r->at || ordinal >= r->end)
        return 0;
    const struct chunk_range *c = &f->chunks[chunk];
    struct own_chunk *own = &r->own[chunk - f->own_first];
    MUTEX_GUARD(&own->lock);
    struct early *early = &own->early[ordinal - r->at];
    if (early->floats == NULL || early->copy != NULL)
        return 0;
    int64_t end = run_end(r, own, -1);
    if (atomic_load(&r->open) && ordinal < end) {
        sum_waiting(r, own, c, end);
        return 0;
    }
    struct one_range range = { .data = early->floats, .size = (c->to - c->from) * sizeof(float) };
    struct bytes_in bytes = one_range(&range);
    return keep_bytes(early, c, &bytes, e);
}

void reduction_delivered(struct reduction *r, int64_t ordinal)
{
    if (r->delivered != NULL && !atomic_exchange(&r->delivered[ordinal - r->at], true))
        atomic_fetch_sub(&r->missing, 1);
}

void reduction_delivered_all(struct reduction *r)
{
    for (int64_t o = r->at; o < r->end; o++)
        reduction_delivered(r, o);
}

/* ---- sums ---- */

float *reduction_sum_of(struct reduction *r, size_t chunk)
{
    return r->sums + r->frame->chunks[chunk].from;
}

void reduction_set_sum(struct reduction *r, size_t chunk)
{
    if (!atomic_exchange(&r->done[chunk], true))
        atomic_fetch_sub(&r->left, 1);
}

bool reduction_has_sum(struct reduction *r, size_t chunk)
{
    return atomic_load(&r->done[chunk]);
}

bool reduction_fetched(const struct reduction *r)
{
    const struct reduction_frame *f = r->frame;
    for (size_t i = 0; i < f->nchunks; i++)
        if (!reduction_frame_owns(f, i) && !atomic_load(&r->done[i]))
            return false;
    return true;
}

bool reduction_complete(const struct reduction *r)
{
    return atomic_load(&r->left) == 0 && atomic_load(&r->missing) == 0;
}

const float *reduction_sums(const struct reduction *r)
{
    return r->sums;
}

/* Which gradients all chunks of this member have. */
static void own_have(struct reduction *r, bool *ret)
{
    memset(ret, true, (size_t)reduction_size(r) * sizeof(*ret));
    for (size_t k = 0; k < r->frame->own_end - r->frame->own_first; k++) {
        MUTEX_GUARD(&r->own[k].lock);
        for (int64_t i = 0; i < reduction_size(r); i++)
            ret[i] = ret[i] && r->own[k].has[i];
    }
}

void reduction_received(struct reduction *r, struct ordinal_set *ret)
{
    struct err never;
    auto_free bool *have = xcalloc((size_t)reduction_size(r), sizeof(*have));
    own_have(r, have);
    *ret = (struct ordinal_set){ .low = r->at, .high = r->at };
    for (int64_t i = 0; i < reduction_size(r); i++)
        if (have[i] && ordinal_set_add(ret, r->at + i, &never) < 0)
            return;
}

void reduction_missing(struct reduction *r, struct buf *out)
{
    auto_free bool *have = xcalloc((size_t)reduction_size(r), sizeof(*have));
    own_have(r, have);
    groups_describe_missing(r->at, have, reduction_size(r), out);
}
