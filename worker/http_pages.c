/* The HTTP pages of a replica. The lock protects what the main thread changes while the server's thread answers;
 * numbers of the session are atomic. */
#include "http_pages.h"

#include <math.h>
#include <stdatomic.h>

#include "base/stop.h"
#include "base/thread.h"
#include "collective/collective.h"
#include "net/address.h"
#include "net/replica_http.h"

enum { SELF_MS = 1000 };

struct http_pages {
    const struct replica *replica;
    struct session_stats *stats;
    struct mutex lock;             /* of what follows */
    struct chief *chief;           /* NULL: a worker without the chief, or not yet set */
    const struct rpc_server *rpc;  /* the chief's; NULL: the chief is not in this process */
    bool ready, over;              /* over: there was a chief, and it has ended */
    struct collective *collective; /* of this member; NULL: none */
    const char *unready;           /* static: what the replica waits for before it is ready */
    struct registry *registry;
    struct replica_http *http;
};

void http_pages_free(struct http_pages *s)
{
    if (s == NULL)
        return;
    replica_http_free(s->http);
    registry_free(s->registry);
    mutex_fini(&s->lock);
    free(s);
}

void http_pages_set_wait_reason(struct http_pages *s, const char *text)
{
    if (s == NULL)
        return;
    MUTEX_GUARD(&s->lock);
    s->unready = text;
}

void http_pages_ready(struct http_pages *s)
{
    if (s == NULL)
        return;
    MUTEX_GUARD(&s->lock);
    s->ready = true;
}

void http_pages_set_chief(struct http_pages *s, struct chief *chief)
{
    if (s == NULL)
        return;
    MUTEX_GUARD(&s->lock);
    s->over = chief == NULL;
    s->chief = chief;
}

void http_pages_set_server(struct http_pages *s, const struct rpc_server *server)
{
    if (s == NULL)
        return;
    MUTEX_GUARD(&s->lock);
    s->rpc = server;
}

void http_pages_set_collective(struct http_pages *s, struct collective *collective)
{
    if (s == NULL)
        return;
    MUTEX_GUARD(&s->lock);
    s->collective = collective;
}

/* ---- /metrics ---- */

static struct chief_numbers numbers(struct http_pages *s)
{
    struct chief_numbers n = { .checkpoint_step = -1 };
    MUTEX_GUARD(&s->lock);
    if (s->chief != NULL)
        chief_numbers(s->chief, &n);
    return n;
}

#define CHIEF_NUMBER(name, field)                                                                                      \
    static double name(void *user)                                                                                     \
    {                                                                                                                  \
        return (double)numbers(user).field;                                                                            \
    }
CHIEF_NUMBER(global_step, step)
CHIEF_NUMBER(batches_done, done)
CHIEF_NUMBER(batches_total, total)
CHIEF_NUMBER(examples_per_second, examples_per_second)
CHIEF_NUMBER(workers, workers)
CHIEF_NUMBER(generation, generation)
CHIEF_NUMBER(restored, restored)
CHIEF_NUMBER(checkpoint_step_shown, checkpoint_step)

static double steps_computed(void *user)
{
    return (double)atomic_load(&((struct http_pages *)user)->stats->steps);
}

static double examples_computed(void *user)
{
    return (double)atomic_load(&((struct http_pages *)user)->stats->examples);
}

static double loss_of(struct session_stats *stats)
{
    return atomic_load(&stats->steps) > 0 ? atomic_load(&stats->loss) : (double)NAN;
}

static double last_loss(void *user)
{
    return loss_of(((struct http_pages *)user)->stats);
}

#define SECONDS_OF(name, activity)                                                                                     \
    static double name(void *user)                                                                                     \
    {                                                                                                                  \
        return (double)atomic_load(&((struct http_pages *)user)->stats->spent_ns[activity]) / 1e9;                     \
    }
SECONDS_OF(seconds_of_compute, ACTIVITY_COMPUTE)
SECONDS_OF(seconds_of_network, ACTIVITY_NETWORK)
SECONDS_OF(seconds_of_data, ACTIVITY_DATA)
SECONDS_OF(seconds_of_wait, ACTIVITY_WAIT)
static const struct {
    const char *name;
    metric_fn *seconds;
} ACTIVITIES[] = { { "compute", seconds_of_compute },
                   { "network", seconds_of_network },
                   { "data", seconds_of_data },
                   { "wait", seconds_of_wait } };

static double workers_that_share(void *user)
{
    struct http_pages *s = user;
    MUTEX_GUARD(&s->lock);
    return s->collective != NULL ? (double)collective_shared(s->collective) : 0;
}

static void register_metrics(struct http_pages *s)
{
    struct registry *r = s->registry;
    registry_add_process(r);
    registry_counter_fn(r, "trainyard_worker_steps_total", "Batches this process computed and applied.", NULL,
                        steps_computed, s);
    registry_counter_fn(r, "trainyard_worker_examples_total", "Examples this process computed.", NULL,
                        examples_computed, s);
    for (size_t i = 0; i < COUNT_OF(ACTIVITIES) && replica_trains(s->replica); i++)
        registry_counter_fn(r, "trainyard_worker_seconds_total", "What the time of this process's steps went to.",
                            LABELS({ "activity", ACTIVITIES[i].name }), ACTIVITIES[i].seconds, s);
    registry_gauge_fn(r, "trainyard_worker_loss", "Loss of the last batch.", NULL, last_loss, s);
    if (replica_is_collective(s->replica) && replica_trains(s->replica))
        registry_gauge_fn(r, "trainyard_worker_shared_memory_workers",
                          "Workers of this host whose gradients come through shared memory.", NULL, workers_that_share,
                          s);
    if (!replica_leads(s->replica))
        return;
    registry_gauge_fn(r, "trainyard_global_step", "Smallest version of any segment.", NULL, global_step, s);
    registry_gauge_fn(r, "trainyard_batches_done", "Batches every segment has applied.", NULL, batches_done, s);
    registry_gauge_fn(r, "trainyard_batches", "Batches of the whole job.", NULL, batches_total, s);
    registry_gauge_fn(r, "trainyard_examples_per_second", "Training examples a second, all workers.", NULL,
                      examples_per_second, s);
    registry_gauge_fn(r, "trainyard_workers", "Workers alive.", NULL, workers, s);
    registry_gauge_fn(r, "trainyard_generation", "Generation of the job.", NULL, generation, s);
    registry_counter_fn(r, "trainyard_ps_restored_total", "Parameter servers filled since the chief began.", NULL,
                        restored, s);
    registry_gauge_fn(r, "trainyard_checkpoint_step", "Step of the newest checkpoint, -1: none.", NULL,
                      checkpoint_step_shown, s);
}

/* ---- pages ---- */

static int readyz(void *user, struct buf *body, const char **content_type)
{
    struct http_pages *s = user;
    (void)content_type;
    struct err e = { .msg = "" };
    MUTEX_GUARD(&s->lock);
    if (s->rpc != NULL && rpc_server_answers(s->rpc, SELF_MS, &e) < 0) {
        buf_printf(body, "its own port does not answer: %s\n", e.msg);
        return 503;
    }
    const char *text = stop_count() > 0 ? "terminating" : s->ready ? "ok" : s->unready;
    buf_printf(body, "%s\n", text);
    return str_eq(text, "ok") ? 200 : 503;
}

static void starting_progress(const struct http_pages *s, struct buf *out)
{
    json_auto_t *v =
        json_pack("{s:s, s:s, s:s}", "state", "starting", "message", s->unready, "replica", s->replica->name);
    json_emit(v, out);
}

static void worker_progress(const struct http_pages *s, struct buf *out)
{
    bool trains = replica_trains(s->replica);
    json_auto_t *v =
        json_pack("{s:s, s:s, s:I, s:I, s:o}", "state", trains ? "training" : "evaluating", "replica", s->replica->name,
                  "steps", (json_int_t)atomic_load(&s->stats->steps), "last_ordinal",
                  (json_int_t)atomic_load(&s->stats->last_ordinal), "loss", json_number(loss_of(s->stats)));
    json_emit(v, out);
}

static int progress(void *user, struct buf *body, const char **content_type)
{
    struct http_pages *s = user;
    MUTEX_GUARD(&s->lock);
    if (s->over) {
        buf_str(body, "leaving\n");
        return 503;
    }
    *content_type = "application/json";
    if (s->chief != NULL)
        chief_progress(s->chief, body);
    else if (!s->ready || replica_leads(s->replica))
        starting_progress(s, body);
    else
        worker_progress(s, body);
    buf_char(body, '\n');
    return 200;
}

int http_pages_open(const struct replica *r, struct session_stats *stats, struct http_pages **ret, struct err *e)
{
    const struct replica_options *o = &r->options->common;
    char address[300];
    *ret = NULL;
    if (o->http_port == 0 && o->https_port == 0)
        return 0;
    AUTO(http_pages) *s = xcalloc(1, sizeof(*s));
    *s = (struct http_pages){ .replica = r, .stats = stats, .registry = registry_new(), .unready = "opening the data" };
    mutex_init(&s->lock);
    register_metrics(s);
    const struct replica_pages pages = {
        .registry = s->registry,
        .ready = { .path = "/readyz", .handle = readyz, .user = s },
        .progress = { .path = "/progress", .handle = progress, .user = s },
    };
    address_to_listen_on(NULL, replica_address(r), 0, address, sizeof(address));
    if (replica_http_start(o, address, &pages, &s->http, e) < 0)
        return -1;
    *ret = TAKE(s);
    return 0;
}
