/* Segments from and to checkpoints: a segment is loaded and copied out as a whole, under its lock, so that values,
 * slots, version and applied set belong together. */
#include <string.h>

#include "shard/shard_internal.h"

static const int64_t VERSION_MAX = INT64_MAX / 2; /* far below overflow */

static void initial_slots(const struct shard *s, struct segment *g)
{
    for (int i = 0; i < g->nslots; i++) {
        float v = optimizer_slot_init(s->optimizer, i);
        for (size_t j = 0; j < g->spec.count; j++)
            g->slots[i][j] = v;
    }
}

static int load(const struct shard *s, struct segment *g, bool with_slots, struct bytes_in *payload, struct err *e)
{
    struct float_reader r = { .in = payload };
    bool whole = floats_copy(&r, g->values, g->spec.count);
    for (int i = 0; whole && with_slots && i < g->nslots; i++)
        whole = floats_copy(&r, g->slots[i], g->spec.count);
    if (!whole)
        return err_set(e, ERR_INTERNAL, "a restore ended within segment %u", g->spec.id);
    if (!with_slots)
        initial_slots(s, g);
    return 0;
}

int shard_restore(struct shard *s, const struct shard_caller *who, uint32_t id, bool with_slots, int64_t version,
                  const struct ordinal_set *applied, struct bytes_in *payload, struct err *e)
{
    GATE_SHARED(s);
    struct segment *g;
    if (shard_element_check(payload->element, "value", e) < 0 || shard_admit_chief(s, who, SHARD_LOADING, e) < 0 ||
        shard_find(s, id, &g, e) < 0)
        return -1;
    if (version < 0 || version > VERSION_MAX)
        return err_set(e, ERR_INPUT, "segment %u: version %lld is out of range", id, (long long)version);
    size_t parts = 1 + (with_slots ? (size_t)g->nslots : 0);
    if (payload->size != parts * segment_bytes(g))
        return err_set(e, ERR_INPUT, "segment %u: %zu bytes instead of %zu x %zu", id, payload->size, parts,
                       segment_bytes(g));

    MUTEX_GUARD(&g->lock);
    g->restored = false;
    if (load(s, g, with_slots, payload, e) < 0)
        return -1;
    optimizer_seek(s->optimizer, version, &g->state);
    g->state.t = version;
    ordinal_set_copy(&g->applied, applied);
    g->group.previous_at = -1;
    if (s->groups.size > 0 && group_begin(g, &s->groups, e) < 0)
        return -1;
    g->restored = g->clean = true;
    return 0;
}

int segment_copy(const struct segment *g, struct shard_snapshot *ret, struct err *e)
{
    void *memory;
    if (mem_alloc((size_t)(1 + g->nslots) * segment_bytes(g), "a snapshot", &memory, e) < 0)
        return -1;
    *ret = (struct shard_snapshot){ .version = g->state.t, .slots = g->nslots, .count = g->spec.count, .data = memory };
    ordinal_set_copy(&ret->applied, &g->applied);
    memcpy(ret->data, g->values, segment_bytes(g));
    for (int i = 0; i < g->nslots; i++)
        memcpy(ret->data + (size_t)(i + 1) * g->spec.count, g->slots[i], segment_bytes(g));
    return 0;
}

void segment_keep_copy(struct segment *g, int64_t at)
{
    struct err ignored;
    if (g->copy.data != NULL && g->copy_at == at)
        return;
    shard_snapshot_fini(&g->copy);
    g->copy_at = at;
    (void)!segment_copy(g, &g->copy, &ignored);
}

int shard_snapshot(struct shard *s, const struct shard_caller *who, uint32_t id, struct shard_snapshot *ret,
                   struct err *e)
{
    GATE_SHARED(s);
    struct segment *g;
    if (shard_admit_chief(s, who, SHARD_SERVING, e) < 0 || shard_find(s, id, &g, e) < 0)
        return -1;
    SETTLED_GUARD(s, g);
    if (segment_copy(g, ret, e) < 0)
        return -1;
    atomic_store(&s->unconfirmed, true);
    g->clean = g->saved = true;
    return 0;
}

static int admit_step(const struct shard *s, const struct shard_caller *who, struct err *e)
{
    if (shard_admit_chief(s, who, SHARD_SERVING, e) < 0)
        return -1;
    return s->groups.size > 0 ? 0 : err_set(e, ERR_INPUT, "a snapshot of a step, and the updates are asynchronous");
}

int shard_announce_snapshot(struct shard *s, const struct shard_caller *who, int64_t at, struct err *e)
{
    GATE_SHARED(s);
    if (admit_step(s, who, e) < 0)
        return -1;
    atomic_store(&s->announced, at);
    for (size_t i = 0; i < s->n; i++) {
        struct segment *g = &s->segments[i];
        SETTLED_GUARD(s, g);
        if (g->group.first == at)
            segment_keep_copy(g, at);
        else if (g->group.first > at && (g->copy.data == NULL || g->copy_at != at))
            return err_set(e, ERR_STALE, "segment %u is beyond batch %lld already", g->spec.id, (long long)at);
    }
    return 0;
}

/* The copy, or the segment itself where it is still at that step. */
static int take_copy(struct segment *g, int64_t at, struct shard_snapshot *ret, struct err *e)
{
    if (g->copy.data != NULL && g->copy_at == at) {
        *ret = g->copy;
        g->copy = (struct shard_snapshot){ 0 };
        return 0;
    }
    if (g->group.first == at)
        return segment_copy(g, ret, e);
    if (g->group.first > at)
        return err_set(e, ERR_STALE, "segment %u is beyond batch %lld, and has no copy of that step", g->spec.id,
                       (long long)at);
    AUTO_FINI(buf) text = BUF_INIT;
    group_describe_missing(g, &text);
    return err_set(e, ERR_PENDING, "%s", text.data);
}

int shard_snapshot_at(struct shard *s, const struct shard_caller *who, uint32_t id, int64_t at,
                      struct shard_snapshot *ret, struct err *e)
{
    GATE_SHARED(s);
    struct segment *g;
    if (admit_step(s, who, e) < 0 || shard_find(s, id, &g, e) < 0)
        return -1;
    SETTLED_GUARD(s, g);
    if (take_copy(g, at, ret, e) < 0)
        return -1;
    atomic_store(&s->unconfirmed, true);
    g->saved = true;
    g->clean = g->group.first == at;
    return 0;
}

int shard_confirm_snapshots(struct shard *s, const struct shard_caller *who, struct err *e)
{
    GATE_SHARED(s);
    if (shard_admit_chief(s, who, SHARD_SERVING, e) < 0)
        return -1;
    atomic_store(&s->unconfirmed, false);
    return 0;
}

void shard_snapshot_fini(struct shard_snapshot *s)
{
    ordinal_set_fini(&s->applied);
    free(s->data);
    *s = (struct shard_snapshot){ 0 };
}
