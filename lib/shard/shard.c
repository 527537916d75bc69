/* The states of a shard: Init, adopt, serve, finish, and which callers are allowed in a generation. A call that
 * changes the state holds the gate exclusively, so it returns only when no call of an older generation is inside. */
#include "shard/shard.h"

#include <string.h>

#include "shard/update_policy.h"

enum { SEGMENTS_MAX = 1 << 20, CACHE_LINE_FLOATS = 16 };
static const size_t VECTOR_MAX = (size_t)1 << 48; /* floats; far below overflow */

struct shard *shard_new(uint64_t incarnation)
{
    struct shard *s = xcalloc(1, sizeof(*s));
    pthread_rwlockattr_t attr;
    s->policy = &UPDATE_ASYNC;
    atomic_init(&s->announced, -1);
    atomic_init(&s->unconfirmed, false);
    mutex_init(&s->updated_lock);
    cond_init(&s->updated);
    mutex_init(&s->sums_lock);
    s->sums = group_sums_new();

    pthread_rwlockattr_init(&attr);
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&s->gate, &attr);
    pthread_rwlockattr_destroy(&attr);
    s->incarnation = incarnation;
    return s;
}

static void drop_segments(struct shard *s)
{
    for (size_t i = 0; i < s->n; i++) {
        mutex_fini(&s->segments[i].lock);
        group_fini(&s->segments[i]);
        ordinal_set_fini(&s->segments[i].applied);
        free(s->segments[i].memory);
    }
    free(s->segments);
    s->segments = NULL;
    s->n = s->pull_size = s->push_size = s->vector_floats = 0;
    optimizer_free(s->optimizer);
    s->optimizer = NULL;
    free(s->optimizer_json);
    s->optimizer_json = NULL;
    s->state = SHARD_UNINITIALISED;
}

void shard_free(struct shard *s)
{
    if (s == NULL)
        return;
    drop_segments(s);
    group_sums_free(s->sums);
    mutex_fini(&s->sums_lock);
    rates_fini(&s->rates);
    cond_fini(&s->updated);
    mutex_fini(&s->updated_lock);
    pthread_rwlock_destroy(&s->gate);
    free(s);
}

void shard_set_job(struct shard *s, const char *job_uid)
{
    str_fmt(s->job_uid, sizeof(s->job_uid), "%s", job_uid);
}

void shard_on_update(struct shard *s, void (*fn)(void *user), void *user)
{
    MUTEX_GUARD(&s->updated_lock);
    s->on_update = fn;
    s->on_update_user = user;
}

void shard_updated(struct shard *s)
{
    void (*fn)(void *user);
    void *user;
    {
        MUTEX_GUARD(&s->updated_lock);
        s->updates++;
        cond_broadcast(&s->updated);
        fn = s->on_update;
        user = s->on_update_user;
    }
    if (fn != NULL)
        fn(user);
}

uint64_t shard_updates(struct shard *s)
{
    MUTEX_GUARD(&s->updated_lock);
    return s->updates;
}

void shard_await_update(struct shard *s, uint64_t seen, int64_t deadline_ms)
{
    MUTEX_GUARD(&s->updated_lock);
    while (s->updates == seen && cond_wait_until(&s->updated, &s->updated_lock, deadline_ms))
        continue;
}

void shard_use_vector(struct shard *s, float *vector)
{
    s->vector = vector;
}

float *shard_vector(const struct shard *s)
{
    return s->vector;
}

/* ---- permissions ---- */

static int check_caller(const struct shard *s, const struct shard_caller *who, struct err *e)
{
    if (s->job_uid[0] != '\0' && strcmp(s->job_uid, who->job_uid) != 0)
        return err_set(e, ERR_REFUSED, "this ps belongs to job %s, not to %s of %s", s->job_uid, who->job_uid,
                       who->sender);
    if (who->generation < s->generation)
        return err_set(e, ERR_FENCED, "generation %llu is over, this is %llu", (unsigned long long)who->generation,
                       (unsigned long long)s->generation);
    return 0;
}

/* A generation that a chief announces. */
static int check_range(const struct shard_caller *who, struct err *e)
{
    if (who->generation <= GENERATION_MAX)
        return 0;
    return err_set(e, ERR_INPUT, "generation %llu is out of range: at most %llu", (unsigned long long)who->generation,
                   (unsigned long long)GENERATION_MAX);
}

/* Two chiefs that use the same generation: it belongs to the one that named it here first. */
static int check_chief(const struct shard *s, const struct shard_caller *who, struct err *e)
{
    if (check_caller(s, who, e) < 0)
        return -1;
    if (s->generation > 0 && who->generation == s->generation && who->incarnation != s->chief)
        return err_set(e, ERR_FENCED, "generation %llu belongs to another chief (incarnation %016llx, not %016llx)",
                       (unsigned long long)s->generation, (unsigned long long)s->chief,
                       (unsigned long long)who->incarnation);
    return 0;
}

static void bind_generation(struct shard *s, const struct shard_caller *who)
{
    s->generation = who->generation;
    s->chief = who->incarnation;
}

static int check_running(const struct shard *s, struct err *e)
{
    return s->state == SHARD_FINISHED ? err_set(e, ERR_REFUSED, "the job has finished") : 0;
}

static size_t missing(const struct shard *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        MUTEX_GUARD(&s->segments[i].lock);
        n += !s->segments[i].restored;
    }
    return n;
}

int shard_admit(const struct shard *s, const struct shard_caller *who, enum shard_state state, struct err *e)
{
    if (check_running(s, e) < 0 || check_caller(s, who, e) < 0)
        return -1;
    if (s->state == SHARD_UNINITIALISED)
        return err_set(e, ERR_NOT_READY, "it waits for the chief to initialise it");
    if (who->generation > s->generation)
        return err_set(e, ERR_NOT_READY, "it is in generation %llu and waits for the chief to announce %llu",
                       (unsigned long long)s->generation, (unsigned long long)who->generation);
    if (s->state == state)
        return 0;
    if (s->state == SHARD_LOADING)
        return err_set(e, ERR_NOT_READY, "it is being loaded: %zu of %zu segments are missing", missing(s), s->n);
    return err_set(e, ERR_REFUSED, "it serves already: a segment can only be restored before");
}

int shard_admit_chief(const struct shard *s, const struct shard_caller *who, enum shard_state state, struct err *e)
{
    if (check_running(s, e) < 0 || check_chief(s, who, e) < 0)
        return -1;
    return shard_admit(s, who, state, e);
}

int shard_check(struct shard *s, const struct shard_caller *who, struct err *e)
{
    GATE_SHARED(s);
    return shard_admit(s, who, SHARD_SERVING, e);
}

uint64_t shard_incarnation(const struct shard *s)
{
    return s->incarnation;
}

static int by_id(const void *key, const void *element)
{
    uint32_t id = *(const uint32_t *)key, other = ((const struct segment *)element)->spec.id;
    return id < other ? -1 : id > other;
}

int shard_find(struct shard *s, uint32_t id, struct segment **ret, struct err *e)
{
    struct segment *g = s->n > 0 ? bsearch(&id, s->segments, s->n, sizeof(*g), by_id) : NULL;
    if (g == NULL)
        return err_set(e, ERR_INPUT, "segment %u is not held here", id);
    *ret = g;
    return 0;
}

/* ---- Init ---- */

static int check_segments(const struct segment_spec *segments, size_t n, struct err *e)
{
    if (n > SEGMENTS_MAX)
        return err_set(e, ERR_INPUT, "%zu segments, at most %d", n, SEGMENTS_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct segment_spec *g = &segments[i];
        if (g->count == 0 || g->count > SEGMENT_MAX / sizeof(float))
            return err_set(e, ERR_INPUT, "segment %u: %zu floats, must be 1 to %zu", g->id, g->count,
                           SEGMENT_MAX / sizeof(float));
        if (g->offset > VECTOR_MAX)
            return err_set(e, ERR_INPUT, "segment %u: offset %zu is out of range", g->id, g->offset);
        if (i > 0 && g->id <= segments[i - 1].id)
            return err_set(e, ERR_INPUT, "segment ids must ascend: %u follows %u", g->id, segments[i - 1].id);
        if (g->kind > VAR_CONST || (g->kind == VAR_MOVING && !(g->momentum >= 0 && g->momentum <= 1)))
            return err_set(e, ERR_INPUT, "segment %u: kind %d, momentum %g is not known", g->id, (int)g->kind,
                           (double)g->momentum);
    }
    return 0;
}

/* Does not compare the place in the vector: shard_use_vector determines where the values are. */
static bool same_segments(const struct shard *s, const char *optimizer_json, const struct segment_spec *segments,
                          size_t n)
{
    if (s->n != n || !str_eq(s->optimizer_json, optimizer_json))
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct segment_spec *a = &s->segments[i].spec, *b = &segments[i];
        uint32_t momentum_a, momentum_b;
        memcpy(&momentum_a, &a->momentum, sizeof(momentum_a));
        memcpy(&momentum_b, &b->momentum, sizeof(momentum_b));
        if (a->id != b->id || a->count != b->count || a->kind != b->kind || momentum_a != momentum_b)
            return false;
    }
    return true;
}

static int parse_optimizer(const char *text, struct optimizer **ret, struct err *e)
{
    json_auto_t *json = NULL;
    if (json_parse(text, strlen(text), "optimizer", &json, e) < 0)
        return -1;
    struct node node = node_root(json, NULL);
    return optimizer_parse(&node, ret, e);
}

/* Values and slots in one block, each on its own cache lines. */
static int segment_init(struct shard *s, struct segment *g, const struct segment_spec *spec, struct err *e)
{
    size_t room = (spec->count + CACHE_LINE_FLOATS - 1) / CACHE_LINE_FLOATS * CACHE_LINE_FLOATS;
    bool own = s->vector == NULL;

    g->spec = *spec;
    g->group.previous_at = g->group.lent = -1;
    g->in_place = !own;
    g->sums_elsewhere = s->sums_elsewhere;
    mutex_init(&g->lock);
    g->nslots = spec->kind == VAR_TRAINABLE ? optimizer_slots(s->optimizer) : 0;
    g->pull_at = s->pull_size;
    g->push_at = s->push_size;
    s->pull_size += segment_bytes(g);
    s->push_size += spec->kind == VAR_CONST ? 0 : segment_bytes(g);
    s->vector_floats = MAX(s->vector_floats, spec->offset + spec->count);
    s->n++;

    size_t parts = (size_t)g->nslots + (own ? 1 : 0);
    if (parts > 0 && mem_alloc(parts * room * sizeof(float), "the parameters", &g->memory, e) < 0)
        return -1;
    float *next = g->memory;
    g->values = own ? next : s->vector + spec->offset;
    if (own)
        next += room;
    for (int i = 0; i < g->nslots; i++, next += room)
        g->slots[i] = next;
    return 0;
}

static int build(struct shard *s, const char *optimizer_json, const struct segment_spec *segments, size_t n,
                 struct err *e)
{
    AUTO(optimizer) *optimizer = NULL;
    void *memory;
    if (parse_optimizer(optimizer_json, &optimizer, e) < 0 ||
        mem_alloc(n * sizeof(struct segment), "segments", &memory, e) < 0)
        return -1;
    drop_segments(s); /* the old segments first: there may be no memory for both */
    s->optimizer = TAKE(optimizer);
    s->optimizer_json = xstrdup(optimizer_json);
    s->segments = memory;
    for (size_t i = 0; i < n; i++) {
        if (segment_init(s, &s->segments[i], &segments[i], e) < 0) {
            drop_segments(s);
            return -1;
        }
    }
    return 0;
}

void segment_forget(struct segment *g)
{
    MUTEX_GUARD(&g->lock);
    group_fini(g);
    ordinal_set_fini(&g->applied);
    g->state = (struct opt_state){ 0 };
    g->restored = g->clean = g->saved = false;
}

int shard_init(struct shard *s, const struct shard_caller *who, const char *optimizer_json,
               const struct segment_spec *segments, size_t n, uint64_t layout_hash, struct err *e)
{
    GATE_EXCLUSIVE(s);
    if (check_running(s, e) < 0 || check_range(who, e) < 0 || check_chief(s, who, e) < 0 ||
        check_segments(segments, n, e) < 0)
        return -1;
    if (who->generation == 0 || who->job_uid[0] == '\0' || strlen(who->job_uid) >= SHARD_UID_MAX)
        return err_set(e, ERR_INPUT, "Init needs a generation from 1 and a job uid of at most %d bytes",
                       SHARD_UID_MAX - 1);

    bool same = s->state != SHARD_UNINITIALISED && s->layout_hash == layout_hash &&
                same_segments(s, optimizer_json, segments, n);
    if (s->state != SHARD_UNINITIALISED && who->generation == s->generation)
        return same ? 0
                    : err_set(e, ERR_REFUSED, "generation %llu began with other segments",
                              (unsigned long long)s->generation);
    if (!same && build(s, optimizer_json, segments, n, e) < 0)
        return -1;
    for (size_t i = 0; i < s->n; i++)
        segment_forget(&s->segments[i]);
    str_fmt(s->job_uid, sizeof(s->job_uid), "%s", who->job_uid);
    bind_generation(s, who);
    s->layout_hash = layout_hash;
    s->policy = &UPDATE_ASYNC;
    shard_forget_sums(s);
    s->groups = (struct groups){ 0 };
    atomic_store(&s->announced, -1);
    atomic_store(&s->unconfirmed, false);
    s->state = SHARD_LOADING;
    shard_updated(s);
    return 0;
}

int shard_set_groups(struct shard *s, const struct shard_caller *who, const struct groups *groups, struct err *e)
{
    GATE_EXCLUSIVE(s);
    if (check_running(s, e) < 0 || check_chief(s, who, e) < 0 || groups_check(groups, e) < 0)
        return -1;
    if (who->generation != s->generation)
        return err_set(e, ERR_NOT_READY, "it is in generation %llu, the groups are of %llu",
                       (unsigned long long)s->generation, (unsigned long long)who->generation);
    if (groups_same(&s->groups, groups))
        return 0;
    if (s->state != SHARD_LOADING || missing(s) < s->n)
        return err_set(e, ERR_REFUSED, "generation %llu began with groups of %lld batches",
                       (unsigned long long)s->generation, (long long)s->groups.size);
    s->groups = *groups;
    s->policy = &UPDATE_SYNC;
    return 0;
}

/* ---- the rest of a life ---- */

int shard_adopt(struct shard *s, const struct shard_caller *who, struct err *e)
{
    GATE_EXCLUSIVE(s);
    if (check_running(s, e) < 0 || check_range(who, e) < 0 || check_chief(s, who, e) < 0)
        return -1;
    if (s->state != SHARD_SERVING)
        return err_set(e, ERR_NOT_READY, "it has no values to keep: initialise it");
    bind_generation(s, who);
    shard_updated(s);
    return 0;
}

int shard_set_rates(struct shard *s, const struct shard_caller *who, const struct rates *rates, struct err *e)
{
    GATE_EXCLUSIVE(s);
    if (check_running(s, e) < 0 || check_chief(s, who, e) < 0)
        return -1;
    if (who->generation != s->generation)
        return err_set(e, ERR_NOT_READY, "it is in generation %llu, the learning rates are of %llu",
                       (unsigned long long)s->generation, (unsigned long long)who->generation);
    rates_copy(&s->rates, rates);
    return 0;
}

int shard_serve(struct shard *s, const struct shard_caller *who, struct err *e)
{
    GATE_EXCLUSIVE(s);
    if (s->state == SHARD_SERVING)
        return shard_admit_chief(s, who, SHARD_SERVING, e);
    if (shard_admit_chief(s, who, SHARD_LOADING, e) < 0)
        return -1;
    size_t left = missing(s);
    if (left > 0)
        return err_set(e, ERR_NOT_READY, "%zu of %zu segments are missing", left, s->n);
    s->state = SHARD_SERVING;
    shard_updated(s);
    return 0;
}

int shard_finish(struct shard *s, const struct shard_caller *who, struct err *e)
{
    GATE_EXCLUSIVE(s);
    if (check_chief(s, who, e) < 0)
        return -1;
    s->state = SHARD_FINISHED;
    shard_updated(s);
    return 0;
}

void shard_terminating(struct shard *s)
{
    GATE_EXCLUSIVE(s);
    s->terminating = true;
    for (size_t i = 0; i < s->n; i++) {
        MUTEX_GUARD(&s->segments[i].lock);
        s->segments[i].saved = s->segments[i].clean;
    }
}

bool shard_saved(struct shard *s)
{
    GATE_SHARED(s);
    if (!s->terminating || s->state == SHARD_LOADING)
        return s->terminating;
    if (atomic_load(&s->unconfirmed))
        return false;
    for (size_t i = 0; i < s->n; i++) {
        MUTEX_GUARD(&s->segments[i].lock);
        if (!s->segments[i].saved)
            return false;
    }
    return true;
}

/* ---- Describe ---- */

static void describe_segments(struct shard *s, struct shard_info *ret)
{
    AUTO_FINI(ordinal_set) received = ORDINAL_SET_INIT;
    for (size_t i = 0; i < s->n; i++) {
        struct segment *g = &s->segments[i];
        SETTLED_GUARD(s, g);
        const struct ordinal_set *has = &g->applied;
        if (s->groups.size > 0) {
            group_received(g, &received);
            has = &received;
        }
        if (i == 0) {
            ordinal_set_copy(&ret->applied, has);
            ret->version_min = ret->version_max = g->state.t;
            continue;
        }
        if (!ordinal_set_equal(&ret->applied, has))
            ordinal_set_intersect(&ret->applied, has);
        ret->version_min = MIN(ret->version_min, g->state.t);
        ret->version_max = MAX(ret->version_max, g->state.t);
    }
}

static void describe_shard(const struct shard *s, struct shard_info *ret)
{
    *ret = (struct shard_info){
        .incarnation = s->incarnation,
        .generation = s->generation,
        .chief = s->chief,
        .layout_hash = s->layout_hash,
        .state = s->terminating && s->state == SHARD_SERVING ? SHARD_TERMINATING : s->state,
        .pushes = atomic_load(&s->pushes),
        .duplicates = atomic_load(&s->duplicates),
        .staleness_sum = atomic_load(&s->staleness_sum),
        .staleness_max = atomic_load(&s->staleness_max),
        .apply_ns = atomic_load(&s->apply_ns),
        .groups = s->groups,
    };
    memcpy(ret->job_uid, s->job_uid, sizeof(ret->job_uid));
}

void shard_describe(struct shard *s, struct shard_info *ret)
{
    GATE_SHARED(s);
    describe_shard(s, ret);
    describe_segments(s, ret);
}

void shard_brief(struct shard *s, struct shard_info *ret)
{
    GATE_SHARED(s);
    describe_shard(s, ret);
}

size_t shard_bytes(struct shard *s)
{
    GATE_SHARED(s);
    bool sums = s->groups.size > 0 && !s->sums_elsewhere;
    size_t bytes = 0, more = !sums ? 0 : s->vector != NULL ? 1 : 2; /* sum of a group, step before */
    for (size_t i = 0; i < s->n; i++)
        bytes += (1 + (size_t)s->segments[i].nslots + more) * segment_bytes(&s->segments[i]);
    return bytes;
}

void shard_info_fini(struct shard_info *i)
{
    ordinal_set_fini(&i->applied);
}
