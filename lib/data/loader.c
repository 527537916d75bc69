/* Produces batches by ordinal. For formats that must be parsed, a thread prepares the batch that the caller announced;
 * results and errors are the same with and without it. */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "data/dataset_internal.h"
#include "data/epoch_order.h"
#include "data/values.h"

/* A batch that was returned stays valid during the next call; the thread prepares the third. Without a thread there
 * are two, because fewer buffers fit the cache better. */
enum { SLOTS = 3 };

struct loader_slot {
    void *x;
    void *y;
    void *w; /* NULL: no weights */
    /* Of the tensors to which the data set is bound, one after the other; NULL: x or y is the only tensor. */
    void *inputs;
    void *outputs;
};

/* When all processors are busy, the parsing thread waits for one, and its owner waits for the thread. So the time
 * saved by TRIALS hinted batches is added up, and when there was none, the next PAUSE hints are ignored. */
enum { TRIALS = 16, PAUSE = 512 };

enum ahead_state { AHEAD_NONE, AHEAD_WANTED, AHEAD_BUSY, AHEAD_DONE };

struct loader {
    const struct records *records;
    struct read_team *team; /* NULL: batches are read as a whole */
    struct row_cache *rows; /* NULL: records are read each time */
    int64_t first;          /* record of the first example */
    struct ordinal_space space;
    const struct binding *inputs, *outputs;
    struct label_range *ranges;        /* of each output, then of labels that belong to none */
    size_t *range_of;                  /* of each number of a label; NULL: the first */
    const struct index_range *indices; /* of each number of a row of features; NULL: any numbers */
    int64_t batches;
    struct epoch_order order; /* used by the thread while AHEAD_BUSY, else by the owner */
    int64_t *which;           /* same */
    size_t x_count, y_count;  /* elements an example */
    struct loader_slot slot[SLOTS];
    unsigned slots;   /* of them in use */
    unsigned current; /* slot of the last batch returned */

    struct thread thread; /* started by the first hint that pays */
    struct mutex lock;    /* guards all below */
    struct cond changed;
    bool stop;
    enum ahead_state ahead; /* the batch for slot current + 1 */
    int64_t ahead_ordinal;
    int ahead_rc;
    struct err ahead_err;
    int64_t ahead_ns; /* processor time it took */
    int64_t saved_ns; /* by the trials so far */
    unsigned trials, pause;
};

static size_t label_count(const struct records *r)
{
    return r->has_labels ? shape_elements(&r->y) : 0;
}

/* Several class numbers for each example, which records have as other numbers. */
static bool classes_as_floats(const struct loader *l)
{
    return l->records->has_labels && !l->records->integer_labels && l->outputs->n == 0 && l->ranges[0].classes;
}

static int make_tensors(const struct binding *b, size_t rows, const char *what, void **ret, struct err *e)
{
    size_t numbers = 0, bytes;
    for (size_t i = 0; i < b->n; i++)
        if (size_add(numbers, b->v[i].count, &numbers, e) < 0)
            return -1;
    if (size_mul(rows, numbers, &bytes, e) < 0 || size_mul(bytes, sizeof(float), &bytes, e) < 0)
        return err_wrap(e, "batch of %zu", rows);
    return numbers > 0 ? mem_alloc(bytes, what, ret, e) : 0;
}

static int make_slot(const struct loader *l, struct loader_slot *s, struct err *e)
{
    size_t x_bytes, y_bytes, rows = ordinal_space_rows(&l->space);
    if (size_mul(rows, l->x_count, &x_bytes, e) < 0 ||
        size_mul(x_bytes, dtype_size(l->records->x_type), &x_bytes, e) < 0 ||
        size_mul(rows, l->y_count, &y_bytes, e) < 0 || size_mul(y_bytes, sizeof(float), &y_bytes, e) < 0)
        return err_wrap(e, "batch of %zu", rows);
    if (mem_alloc(x_bytes, "a batch", &s->x, e) < 0)
        return -1;
    if (l->records->has_weights && mem_alloc(rows * sizeof(float), "the weights of a batch", &s->w, e) < 0)
        return -1;
    if (l->y_count > 0 && mem_alloc(y_bytes, "the labels of a batch", &s->y, e) < 0)
        return -1;
    if (make_tensors(l->inputs, rows, "the inputs of a batch", &s->inputs, e) < 0)
        return -1;
    return make_tensors(l->outputs, rows, "the labels of a batch", &s->outputs, e);
}

static int make_buffers(struct loader *l, struct err *e)
{
    size_t bytes, rows = ordinal_space_rows(&l->space);
    void *which;
    for (unsigned i = 0; i < l->slots; i++)
        if (make_slot(l, &l->slot[i], e) < 0)
            return -1;
    if (size_mul(rows, sizeof(*l->which), &bytes, e) < 0 || mem_alloc(bytes, "a batch", &which, e) < 0)
        return -1;
    l->which = which;
    return 0;
}

/* Without a model all finite labels may occur. */
static void make_ranges(struct loader *l, const struct model *m)
{
    size_t n = MAX(l->outputs->n, 1);
    l->ranges = xcalloc(n + 1, sizeof(l->ranges[0]));
    for (size_t i = 0; i < n; i++)
        l->ranges[i] = m != NULL ? model_label_range(m, i) : label_range_any();
    l->ranges[n] = label_range_any(); /* of labels that no output takes */
    if (l->outputs->n == 0)
        return;
    l->range_of = xcalloc(l->y_count + 1, sizeof(l->range_of[0]));
    for (size_t i = 0; i < l->y_count; i++)
        l->range_of[i] = n;
    for (size_t k = 0; k < n; k++)
        binding_mark(&l->outputs->v[k], k, l->range_of);
}

int loader_new(const struct dataset *d, const struct ordinal_space *space, const struct model *labels_of,
               struct loader **ret, struct err *e)
{
    const struct records *r = dataset_records(d);
    if (space->batch_size < 1 || space->examples != dataset_size(d))
        return err_set(e, ERR_INPUT, "batches of %lld out of %lld examples, the data has %lld",
                       (long long)space->batch_size, (long long)space->examples, (long long)dataset_size(d));

    AUTO(loader) *l = xcalloc(1, sizeof(*l));
    l->records = r;
    l->team = dataset_team(d);
    l->rows = dataset_rows(d);
    l->first = dataset_first(d);
    l->space = *space;
    l->inputs = dataset_inputs(d);
    l->outputs = dataset_outputs(d);
    l->indices = dataset_indices(d);
    l->batches = ordinal_space_batches(space);
    l->order = epoch_order_of(space->examples, r->random_access, space->shuffle, space->seed);
    l->x_count = shape_elements(&r->x);
    l->y_count = label_count(r);
    make_ranges(l, labels_of);
    l->slots = r->cost == READ_COPIES ? SLOTS - 1 : SLOTS;
    mutex_init(&l->lock);
    cond_init(&l->changed);
    if (make_buffers(l, e) < 0)
        return -1;
    *ret = TAKE(l);
    return 0;
}

void loader_free(struct loader *l)
{
    if (l == NULL)
        return;
    mutex_lock(&l->lock);
    l->stop = true;
    cond_broadcast(&l->changed);
    mutex_unlock(&l->lock);
    thread_join(&l->thread);
    for (unsigned i = 0; i < SLOTS; i++) {
        free(l->slot[i].x);
        free(l->slot[i].y);
        free(l->slot[i].w);
        free(l->slot[i].inputs);
        free(l->slot[i].outputs);
    }
    free(l->ranges);
    free(l->range_of);
    free(l->which);
    cond_fini(&l->changed);
    mutex_fini(&l->lock);
    free(l);
}

/* The place of a batch in its epoch. */
static size_t batch_range(const struct loader *l, int64_t ordinal, int64_t *ret_epoch, int64_t *ret_position)
{
    *ret_epoch = ordinal / l->batches;
    *ret_position = ordinal % l->batches * l->space.batch_size;
    return (size_t)MIN(l->space.batch_size, l->space.examples - *ret_position);
}

static void split_inputs(const struct loader *l, struct loader_slot *s, size_t n)
{
    float *to = s->inputs;
    for (size_t i = 0; i < l->inputs->n; i++) {
        binding_gather(&l->inputs->v[i], s->x, l->x_count, n, to);
        to += n * l->inputs->v[i].count;
    }
}

static void make_integers(float *v, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        int32_t whole = (int32_t)v[k];
        memcpy(v + k, &whole, sizeof(whole));
    }
}

/* Class numbers become integers. */
static void split_outputs(const struct loader *l, struct loader_slot *s, size_t n)
{
    float *to = s->outputs;
    if (classes_as_floats(l))
        make_integers(s->y, n * l->y_count);
    for (size_t i = 0; i < l->outputs->n; i++) {
        size_t numbers = n * l->outputs->v[i].count;
        binding_gather(&l->outputs->v[i], s->y, l->y_count, n, to);
        if (l->ranges[i].classes)
            make_integers(to, numbers);
        to += numbers;
    }
}

static int read_batch(const struct loader *l, const struct loader_slot *s, size_t n, struct err *e)
{
    const struct read_rows rows = { .which = l->which, .n = n, .x = s->x, .y = s->y, .w = s->w };
    if (l->team != NULL)
        return read_team_read(l->team, &rows, e);
    if (l->rows != NULL)
        return row_cache_read(l->rows, &rows, e);
    return l->records->ops->read(l->records, rows.which, n, rows.x, rows.y, rows.w, e);
}

static int fill(struct loader *l, int64_t ordinal, struct loader_slot *s, struct err *e)
{
    int64_t epoch, position;
    size_t n = batch_range(l, ordinal, &epoch, &position);
    epoch_order_records(&l->order, epoch, position, n, l->which);
    for (size_t i = 0; i < n; i++)
        l->which[i] += l->first;
    if (read_batch(l, s, n, e) < 0)
        return -1;
    const struct value_ranges ranges = { .range = l->ranges, .of = l->range_of, .indices = l->indices };
    if (values_check(l->records, &ranges, l->which, n, &(struct batch_values){ .x = s->x, .y = s->y }, e) < 0)
        return -1;
    split_inputs(l, s, n);
    split_outputs(l, s, n);
    return 0;
}

static int64_t thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void run_ahead(void *user)
{
    struct loader *l = user;
    MUTEX_GUARD(&l->lock);
    while (!l->stop) {
        if (l->ahead != AHEAD_WANTED) {
            cond_wait(&l->changed, &l->lock);
            continue;
        }
        struct loader_slot *s = &l->slot[(l->current + 1) % l->slots];
        int64_t ordinal = l->ahead_ordinal;
        struct err e = { .code = ERR_NONE };
        l->ahead = AHEAD_BUSY;
        mutex_unlock(&l->lock);
        int64_t begun = thread_ns();
        int rc = fill(l, ordinal, s, &e);
        int64_t took = thread_ns() - begun;
        mutex_lock(&l->lock);
        l->ahead_ns = took;
        l->ahead_rc = rc;
        l->ahead_err = e;
        l->ahead = AHEAD_DONE;
        cond_broadcast(&l->changed);
    }
}

/* A hinted batch was taken (saved: the time to parse it less the time waited for it) or left to the owner (0). */
static void judge_hint(struct loader *l, int64_t saved_ns)
{
    l->saved_ns += saved_ns;
    if (++l->trials < TRIALS)
        return;
    l->pause = l->saved_ns > 0 ? 0 : PAUSE;
    l->trials = 0;
    l->saved_ns = 0;
}

/* Waits until the thread is idle (one batch at most); true when it prepared the requested batch. A batch that it has
 * not begun is not waited for: when all processors are busy, the owner is faster. */
static bool take_ahead(struct loader *l, int64_t ordinal, int *ret_rc, struct err *e)
{
    MUTEX_GUARD(&l->lock);
    int64_t begun = l->ahead == AHEAD_BUSY ? clock_ns() : 0, waited = 0;
    while (l->ahead == AHEAD_BUSY)
        cond_wait(&l->changed, &l->lock);
    if (begun != 0)
        waited = clock_ns() - begun;
    bool hit = l->ahead == AHEAD_DONE && l->ahead_ordinal == ordinal;
    if (l->ahead != AHEAD_NONE)
        judge_hint(l, hit ? l->ahead_ns - waited : -waited);
    l->ahead = AHEAD_NONE;
    if (hit && l->ahead_rc < 0 && e != NULL)
        *e = l->ahead_err;
    *ret_rc = l->ahead_rc;
    return hit;
}

bool loader_prefetches(const struct loader *l)
{
    return l->records->cost != READ_COPIES;
}

void loader_hint(struct loader *l, int64_t next_ordinal)
{
    if (!loader_prefetches(l) || next_ordinal < 0)
        return;
    if (!l->thread.started && thread_start(&l->thread, "loader", run_ahead, l, NULL) < 0)
        return; /* a hint is only a hint */
    MUTEX_GUARD(&l->lock);
    if (l->pause > 0) {
        l->pause--;
        return;
    }
    if (l->ahead == AHEAD_BUSY || (l->ahead == AHEAD_DONE && l->ahead_ordinal == next_ordinal))
        return;
    l->ahead = AHEAD_WANTED;
    l->ahead_ordinal = next_ordinal;
    cond_broadcast(&l->changed);
}

static struct tensor rows_of(enum dtype dtype, size_t n, const struct shape *example, void *data)
{
    struct tensor t = { .dtype = dtype, .shape.rank = example->rank + 1, .data = data };
    t.shape.dim[0] = (int64_t)n;
    for (int i = 0; i < example->rank; i++)
        t.shape.dim[i + 1] = example->dim[i];
    return t;
}

static int add_inputs(const struct loader *l, const struct loader_slot *s, struct batch *b, struct err *e)
{
    const struct records *r = l->records;
    float *data = s->inputs;
    if (l->inputs->n == 0)
        return batch_add_input(b, "features", rows_of(r->x_type, b->n, &r->x, s->x), e);
    for (size_t i = 0; i < l->inputs->n; i++) {
        const struct bound_tensor *t = &l->inputs->v[i];
        if (batch_add_input(b, t->name, rows_of(DT_FLOAT, b->n, &t->shape, data), e) < 0)
            return -1;
        data += b->n * t->count;
    }
    return 0;
}

static int add_labels(const struct loader *l, const struct loader_slot *s, struct batch *b, struct err *e)
{
    const struct records *r = l->records;
    float *data = s->outputs;
    if (s->y == NULL)
        return 0;
    if (l->outputs->n == 0) {
        enum dtype type = r->integer_labels || classes_as_floats(l) ? DT_INT32 : DT_FLOAT;
        return batch_add_label(b, "labels", rows_of(type, b->n, &r->y, s->y), e);
    }
    for (size_t i = 0; i < l->outputs->n; i++) {
        const struct bound_tensor *t = &l->outputs->v[i];
        enum dtype type = l->ranges[i].classes ? DT_INT32 : DT_FLOAT;
        if (batch_add_label(b, t->name, rows_of(type, b->n, &t->shape, data), e) < 0)
            return -1;
        data += b->n * t->count;
    }
    return 0;
}

int loader_get(struct loader *l, int64_t ordinal, struct batch *ret, struct err *e)
{
    if (ordinal < 0)
        return err_set(e, ERR_INTERNAL, "there is no batch %lld", (long long)ordinal);

    unsigned next = (l->current + 1) % l->slots;
    int rc = 0;
    if (!l->thread.started || !take_ahead(l, ordinal, &rc, e))
        rc = fill(l, ordinal, &l->slot[next], e);
    if (rc < 0)
        return -1;

    l->current = next;
    batch_clear(ret);
    ret->ordinal = ordinal;
    ret->n = batch_range(l, ordinal, &ret->epoch, &ret->position);
    ret->weight = l->slot[next].w;
    return add_inputs(l, &l->slot[next], ret, e) < 0 ? -1 : add_labels(l, &l->slot[next], ret, e);
}
