/* Metrics and pages of a ps. Each scrape reads the shard, so no counter is kept twice. */
#include "pages.h"

#include "codec/json.h"
#include "net/replica_http.h"
#include "ps_life.h"

enum { SELF_MS = 1000 };

struct pages {
    const struct rpc_server *rpc;
    struct shard *shard;
    const char *name;
    struct registry *registry;
    struct replica_http *http;
};

/* ---- /metrics ---- */

static struct shard_info brief(void *user)
{
    struct shard_info info;
    shard_brief(user, &info);
    return info;
}

static double read_pushes(void *user)
{
    return (double)brief(user).pushes;
}

static double read_duplicates(void *user)
{
    return (double)brief(user).duplicates;
}

static double read_staleness(void *user)
{
    return (double)brief(user).staleness_sum;
}

static double read_staleness_max(void *user)
{
    return (double)brief(user).staleness_max;
}

static double read_apply_seconds(void *user)
{
    return (double)brief(user).apply_ns / 1e9;
}

static double read_generation(void *user)
{
    return (double)brief(user).generation;
}

static double read_state(void *user)
{
    return brief(user).state;
}

static double read_bytes(void *user)
{
    return (double)shard_bytes(user);
}

static double read_shared(void *user)
{
    return (double)shard_service_shared(user);
}

static double read_step(void *user)
{
    AUTO_FINI(shard_info) info = { 0 };
    shard_describe(user, &info);
    return (double)info.version_min;
}

static void add_metrics(struct pages *p)
{
    static const struct {
        const char *name, *help;
        void (*add)(struct registry *r, const char *name, const char *help, const struct label *labels, metric_fn *read,
                    void *user);
        metric_fn *read;
    } TABLE[] = {
        { "trainyard_ps_pushes_total", "Gradients applied.", registry_counter_fn, read_pushes },
        { "trainyard_ps_duplicates_total", "Gradients that had been applied before.", registry_counter_fn,
          read_duplicates },
        { "trainyard_ps_staleness_total", "Sum of the staleness, in updates, of the gradients applied.",
          registry_counter_fn, read_staleness },
        { "trainyard_ps_staleness_max", "Largest staleness of a gradient.", registry_gauge_fn, read_staleness_max },
        { "trainyard_ps_apply_seconds_total", "Time in the optimizer and waiting for segments.", registry_counter_fn,
          read_apply_seconds },
        { "trainyard_ps_step", "Smallest version of its segments.", registry_gauge_fn, read_step },
        { "trainyard_ps_generation", "Generation of the job.", registry_gauge_fn, read_generation },
        { "trainyard_ps_state", "0 uninitialised, 1 loading, 2 serving, 3 terminating, 4 finished.", registry_gauge_fn,
          read_state },
        { "trainyard_ps_parameter_bytes", "Values and optimizer slots it holds.", registry_gauge_fn, read_bytes },
    };
    registry_add_process(p->registry);
    for (size_t i = 0; i < COUNT_OF(TABLE); i++)
        TABLE[i].add(p->registry, TABLE[i].name, TABLE[i].help, NULL, TABLE[i].read, p->shard);
}

/* ---- the others ---- */

static int show_ready(void *user, struct buf *body, const char **content_type)
{
    const struct pages *p = user;
    enum shard_state state = brief(p->shard).state;
    (void)content_type;
    struct err e = { .msg = "" };
    if (rpc_server_answers(p->rpc, SELF_MS, &e) < 0) {
        buf_printf(body, "its own port does not answer: %s\n", e.msg);
        return 503;
    }
    buf_printf(body, "%s\n", shard_state_name(state));
    return state == SHARD_TERMINATING || state == SHARD_FINISHED ? 503 : 200;
}

static int show_progress(void *user, struct buf *body, const char **content_type)
{
    const struct pages *p = user;
    AUTO_FINI(shard_info) info = { 0 };
    shard_describe(p->shard, &info);
    json_auto_t *v = json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "replica", p->name, "state", shard_state_name(info.state),
        "job_uid", info.job_uid, "generation", (json_int_t)info.generation, "step", (json_int_t)info.version_min,
        "batches", (json_int_t)ordinal_set_count(&info.applied), "pushes", (json_int_t)info.pushes, "duplicates",
        (json_int_t)info.duplicates, "parameter_bytes", (json_int_t)shard_bytes(p->shard));
    json_emit_pretty(v, body);
    *content_type = "application/json";
    return 200;
}

int pages_open(const struct replica_options *o, const char *address, const char *name, struct shard *shard,
               struct shard_service *service, const struct rpc_server *server, struct pages **ret, struct err *e)
{
    AUTO(pages) *p = xcalloc(1, sizeof(*p));
    p->shard = shard;
    p->name = name;
    p->rpc = server;
    p->registry = registry_new();
    add_metrics(p);
    registry_gauge_fn(p->registry, "trainyard_ps_shared_memory_workers",
                      "Workers of this host that push through shared memory.", NULL, read_shared, service);
    const struct replica_pages pages = {
        .registry = p->registry,
        .ready = { .path = "/readyz", .handle = show_ready, .user = p },
        .progress = { .path = "/progress", .handle = show_progress, .user = p },
    };
    if (replica_http_start(o, address, &pages, &p->http, e) < 0)
        return -1;
    *ret = TAKE(p);
    return 0;
}

void pages_close(struct pages *p)
{
    if (p == NULL)
        return;
    replica_http_free(p->http);
    registry_free(p->registry);
    free(p);
}
