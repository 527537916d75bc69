/* A list of ready keys and a timer for each delayed one. The loop processes keys in batches, with I/O between them.
 */
#include "kube/workqueue.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "net/registry.h"

/* A key that is ready, delayed or being processed; all other keys are freed. */
struct workqueue_item {
    struct workqueue *q;
    struct workqueue_item *prev, *next; /* in the ready list */
    bool ready;
    int64_t ready_ns;
    struct timer later;
    char key[];
};

struct workqueue_metrics {
    struct counter *adds, *retries;
    struct gauge *depth;
    struct histogram *queued, *worked;
};

struct workqueue {
    struct loop *loop;
    int at_once;
    void (*work)(void *user, const char *key);
    void *user;
    struct map items;
    struct workqueue_item *first, *last;
    size_t ready;
    struct workqueue_item *working;
    bool dropped, freed; /* work() dropped its key, or freed the queue */
    struct timer run;
    char *name;
    struct registry *registry;
    struct workqueue_metrics metrics;
    _Atomic int64_t started_ns; /* of the current work, read by the metrics thread; 0: none */
};

/* ---- metrics ---- */

static double unfinished_s(void *user)
{
    struct workqueue *q = user;
    int64_t since = q != NULL ? atomic_load_explicit(&q->started_ns, memory_order_relaxed) : 0;
    return since != 0 ? (double)(clock_ns() - since) / 1e9 : 0;
}

static void register_work_gauges(struct registry *r, const char *name, struct workqueue *q)
{
    registry_gauge_fn(r, "workqueue_unfinished_work_seconds",
                      "Seconds of work that is in progress and not yet observed.", LABELS({ "name", name }),
                      unfinished_s, q);
    registry_gauge_fn(r, "workqueue_longest_running_processor_seconds",
                      "Seconds the longest running work takes by now.", LABELS({ "name", name }), unfinished_s, q);
}

static void metrics_init(struct workqueue *q, struct registry *r)
{
    static const double BOUNDS[] = { 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000 };
    const struct label *labels = LABELS({ "name", q->name });
    struct workqueue_metrics *m = &q->metrics;

    q->registry = r;
    m->depth = registry_gauge(r, "workqueue_depth", "Keys that are ready.", labels);
    m->adds = registry_counter(r, "workqueue_adds_total", "Keys added.", labels);
    m->queued = registry_histogram(r, "workqueue_queue_duration_seconds", "How long a key was ready before work began.",
                                   labels, BOUNDS, COUNT_OF(BOUNDS));
    m->worked = registry_histogram(r, "workqueue_work_duration_seconds", "How long the work on a key took.", labels,
                                   BOUNDS, COUNT_OF(BOUNDS));
    m->retries = registry_counter(r, "workqueue_retries_total", "Keys added for later.", labels);
    register_work_gauges(r, q->name, q);
}

static void update_depth(struct workqueue *q)
{
    if (q->registry != NULL)
        gauge_set(q->metrics.depth, (double)q->ready);
}

/* ---- ready keys ---- */

static void process_ready(void *user);

static void push(struct workqueue *q, struct workqueue_item *it)
{
    if (it->ready)
        return;
    it->ready = true;
    it->ready_ns = clock_ns();
    it->prev = q->last;
    it->next = NULL;
    *(q->last != NULL ? &q->last->next : &q->first) = it;
    q->last = it;
    q->ready++;
    if (q->registry != NULL)
        counter_add(q->metrics.adds, 1);
    update_depth(q);
    if (!timer_is_set(&q->run) && q->working == NULL)
        timer_set(q->loop, &q->run, loop_now(q->loop), process_ready, q);
}

static void unlink_ready(struct workqueue *q, struct workqueue_item *it)
{
    if (!it->ready)
        return;
    it->ready = false;
    *(it->prev != NULL ? &it->prev->next : &q->first) = it->next;
    *(it->next != NULL ? &it->next->prev : &q->last) = it->prev;
    q->ready--;
    update_depth(q);
}

/* ---- keys ---- */

static struct workqueue_item *item_of(struct workqueue *q, const char *key)
{
    struct workqueue_item *it = map_get(&q->items, key);
    if (it != NULL)
        return it;
    size_t n = strlen(key) + 1;
    it = xcalloc(1, sizeof(*it) + n);
    it->q = q;
    memcpy(it->key, key, n);
    map_put(&q->items, it->key, it);
    return it;
}

static void item_free(struct workqueue *q, struct workqueue_item *it)
{
    unlink_ready(q, it);
    timer_clear(q->loop, &it->later);
    free(it);
}

static void forget_idle(struct workqueue *q, struct workqueue_item *it)
{
    if (it->ready || timer_is_set(&it->later) || it == q->working)
        return;
    map_remove(&q->items, it->key);
    item_free(q, it);
}

static void observe(struct workqueue *q, struct histogram *h, int64_t from_ns, int64_t to_ns)
{
    if (q->registry != NULL)
        histogram_observe(h, (double)(to_ns - from_ns) / 1e9);
}

/* false: the queue was freed. */
static bool process_item(struct workqueue *q, struct workqueue_item *it)
{
    int64_t started_ns = clock_ns();

    unlink_ready(q, it);
    observe(q, q->metrics.queued, it->ready_ns, started_ns);
    atomic_store_explicit(&q->started_ns, started_ns, memory_order_relaxed);
    q->working = it;
    q->dropped = false;
    q->work(q->user, it->key);
    q->working = NULL;
    atomic_store_explicit(&q->started_ns, 0, memory_order_relaxed);
    observe(q, q->metrics.worked, started_ns, clock_ns());
    if (q->dropped)
        item_free(q, it);
    else if (!q->freed)
        forget_idle(q, it);
    return !q->freed;
}

static void process_ready(void *user)
{
    struct workqueue *q = user;

    for (int n = 0; n < q->at_once && q->first != NULL; n++)
        if (!process_item(q, q->first)) {
            workqueue_free(q);
            return;
        }
    if (q->first != NULL)
        timer_set(q->loop, &q->run, loop_now(q->loop), process_ready, q);
}

static void on_due(void *user)
{
    struct workqueue_item *it = user;
    push(it->q, it);
}

/* ---- the interface ---- */

struct workqueue *workqueue_new(struct loop *l, const char *name, int at_once,
                                void (*work)(void *user, const char *key), void *user, struct registry *r)
{
    struct workqueue *q = xcalloc(1, sizeof(*q));

    q->loop = l;
    q->name = xstrdup(name);
    q->at_once = MAX(at_once, 1);
    q->work = work;
    q->user = user;
    if (r != NULL)
        metrics_init(q, r);
    return q;
}

void workqueue_free(struct workqueue *q)
{
    struct map_slot *s;

    if (q == NULL)
        return;
    if (q->working != NULL) { /* by its own work(): process_ready() frees it */
        q->freed = true;
        return;
    }
    for (size_t i = 0; (s = map_next(&q->items, &i)) != NULL;)
        item_free(q, s->value);
    map_fini(&q->items);
    timer_clear(q->loop, &q->run);
    if (q->registry != NULL)
        register_work_gauges(q->registry, q->name, NULL);
    free(q->name);
    free(q);
}

void workqueue_add(struct workqueue *q, const char *key)
{
    push(q, item_of(q, key));
}

void workqueue_add_at(struct workqueue *q, const char *key, int64_t due_ms)
{
    struct workqueue_item *it = item_of(q, key);

    if (q->registry != NULL)
        counter_add(q->metrics.retries, 1);
    if (due_ms <= loop_now(q->loop))
        push(q, it);
    else if (!timer_is_set(&it->later) || due_ms < it->later.due_ms)
        timer_set(q->loop, &it->later, due_ms, on_due, it);
}

void workqueue_drop(struct workqueue *q, const char *key)
{
    struct workqueue_item *it = map_remove(&q->items, key);

    if (it == NULL)
        return;
    if (it != q->working) {
        item_free(q, it);
        return;
    }
    unlink_ready(q, it);
    timer_clear(q->loop, &it->later);
    q->dropped = true;
}

size_t workqueue_length(const struct workqueue *q)
{
    return q->ready;
}
