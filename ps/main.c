/* trainyard-ps: a shard (lib/shard/shard.h) behind gRPC. Waits until the chief initialises it, serves, and ends with
 * the job. After a signal it waits some time first, so that the chief can save the state that it holds. */
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/stop.h"
#include "base/thread.h"
#include "net/address.h"
#include "options.h"
#include "pages.h"
#include "params/parameters_codec.h"
#include "params/shard_service.h"
#include "ps_life.h"
#include "rpc/replica_credentials.h"

enum { POLL_MS = 50, THREADS_LEAST = 2, THREADS_MOST = 8 };
static const double DEFAULT_MAX_WAIT_S = 7200; /* fit.maxWaitSeconds' default */

struct ps {
    const struct options *options;
    struct cluster cluster;
    struct replica_credentials credentials;
    char name[64], address[300];
    struct shard *shard;
    struct shard_service *service;
    struct rpc_server *server;
    struct pages *pages;
    struct ps_life life;
};

static void ps_fini(struct ps *p)
{
    pages_close(p->pages);
    if (p->service != NULL)
        shard_service_serve(p->service, NULL);
    rpc_server_free(p->server);
    shard_service_free(p->service);
    shard_free(p->shard);
    cluster_fini(&p->cluster);
    replica_credentials_fini(&p->credentials);
}
DEFINE_AUTO_FINI(ps, ps_fini);

/* ---- identity and address ---- */

static int open_cluster(struct ps *p, struct err *e)
{
    struct cluster_input env = cluster_env();
    if (cluster_resolve(&p->options->common.cluster, &env, &p->cluster, e) < 0)
        return -1;
    if (!p->cluster.configured && p->options->common.listen == NULL)
        return err_set(e, ERR_INPUT,
                       "a ps needs its place in the cluster: TF_CONFIG, or JOB_NAME, TASK_INDEX, PS_HOSTS and "
                       "WORKER_HOSTS, or the flags of these names (or --listen)");
    if (p->cluster.configured && p->cluster.role != ROLE_PS)
        return err_set(e, ERR_INPUT, "trainyard-ps is for role ps, not %s (trainyard-worker is)",
                       role_name(p->cluster.role));
    if (p->cluster.configured)
        cluster_task_name(&p->cluster, p->name);
    else
        str_fmt(p->name, sizeof(p->name), "ps");
    return 0;
}

static const char *own_entry(const struct ps *p) /* "": --listen is given without a cluster */
{
    return !p->cluster.configured ? "" : p->cluster.hosts[ROLE_PS].items[p->cluster.index];
}

/* ---- starting ---- */

static int max_wait(const struct options *o, int64_t *ret_ms, struct err *e)
{
    AUTO(job) *job = NULL;
    if (o->common.job != NULL && job_load(o->common.job, &job, e) < 0)
        return -1;
    *ret_ms = (int64_t)((job != NULL ? job->limits.max_wait_seconds : DEFAULT_MAX_WAIT_S) * 1000);
    return 0;
}

static int threads(const struct options *o)
{
    int cpus = (int)thread_cpus();
    return o->threads > 0 ? (int)o->threads : MIN(MAX(cpus, THREADS_LEAST), THREADS_MOST);
}

/* Where no chief is listed, one may exist all the same: TFJob's enableDynamicWorker does not tell a ps. */
static enum role leader(const struct ps *p)
{
    return p->cluster.hosts[ROLE_CHIEF].n > 0 ? ROLE_CHIEF : ROLE_COUNT;
}

static int ps_open(struct ps *p, struct err *e)
{
    struct rpc_method methods[SHARD_METHODS];
    if (open_cluster(p, e) < 0)
        return -1;
    if (file_check_limit(cluster_files(&p->cluster), e) < 0)
        return -1;
    const struct rpc_server_options rpc = { .threads = threads(p->options),
                                            .payload_max = PARAMETERS_PAYLOAD_MAX,
                                            .leader = leader(p) };
    log_setup(p->options->common.level, p->options->common.format, p->name);
    if (replica_credentials_open(&p->options->common, &p->cluster, ROLE_PS, &p->credentials, e) < 0 ||
        max_wait(p->options, &p->life.max_wait_ms, e) < 0)
        return -1;
    address_to_listen_on(p->options->common.listen, own_entry(p), 0, p->address, sizeof(p->address));
    p->shard = shard_new(random_incarnation());
    if (strlen(p->options->job_uid) >= SHARD_UID_MAX)
        return err_set(e, ERR_INPUT, "--job-uid has %zu characters, at most %d", strlen(p->options->job_uid),
                       SHARD_UID_MAX - 1);
    shard_set_job(p->shard, p->options->job_uid);
    p->service = shard_service_new(p->shard);
    shard_service_share(p->service, p->options->share);
    shard_service_methods(p->service, methods);
    if (rpc_server_start(p->address, &p->credentials.rpc, methods, COUNT_OF(methods), &rpc, &p->server, e) < 0)
        return -1;
    shard_service_serve(p->service, p->server);
    return pages_open(&p->options->common, p->address, p->name, p->shard, p->service, p->server, &p->pages, e);
}

static void log_start(const struct ps *p)
{
    char memory[32];
    const char *uid = p->options->job_uid;
    if (p->options->common.insecure)
        log_warning("%s", REPLICA_INSECURE_WARNING);
    log_info("trainyard-ps %s on port %d; waiting for the chief", TRAINYARD_VERSION, rpc_server_port(p->server));
    log_debug("address %s, %d threads, %s resident, job %s", p->address, threads(p->options),
              str_bytes(mem_resident(), memory), uid[0] != '\0' ? uid : "not known yet");
}

/* ---- serving ---- */

static struct ps_seen observe(const struct ps *p)
{
    struct shard_info info;
    struct shard_sizes sizes = { 0 };
    struct err ignored;
    shard_brief(p->shard, &info);
    if (shard_measure(p->shard, (struct shard_part){ 0 }, &sizes, &ignored) < 0)
        sizes.segments = 0;
    return (struct ps_seen){
        .now_ms = clock_ms(),
        .heard_ms = shard_service_heard_ms(p->service),
        .state = info.state,
        .generation = info.generation,
        .segments = sizes.segments,
        .bytes = shard_bytes(p->shard),
        .signals = stop_count(),
        .saved = shard_saved(p->shard),
    };
}

/* Sleeps; the first signal ends the sleep. */
static void wait_poll(void)
{
    struct pollfd fd = { .fd = stop_count() == 0 ? stop_fd() : -1, .events = POLLIN };
    poll(&fd, 1, POLL_MS);
}

static int serve(struct ps *p, struct err *e)
{
    char line[240];
    for (;;) {
        struct ps_seen seen = observe(p);
        switch (ps_poll(&p->life, &seen, line)) {
        case PS_LIFE_ON:
            break;
        case PS_LIFE_LEAVE:
            shard_terminating(p->shard);
            rpc_server_set_serving(p->server, false);
            break;
        case PS_LIFE_DONE:
            log_info("%s", line);
            return 0;
        case PS_LIFE_STOPPED:
            return err_set(e, ERR_STOPPED, "%s", line);
        case PS_LIFE_LOST:
            return err_set(e, ERR_LOST, "%s", line);
        }
        if (line[0] != '\0')
            log_info("%s", line);
        if (seen.state != SHARD_FINISHED)
            wait_poll();
    }
}

static int run(const struct options *o, struct err *e)
{
    AUTO_FINI(ps) p = { .options = o };
    if (stop_install(e) < 0 || ps_open(&p, e) < 0)
        return -1;
    log_start(&p);
    return serve(&p, e);
}

int main(int argc, char **argv)
{
    struct options o;
    enum opt_result parsed;
    struct err e = { .code = ERR_NONE };
    mem_keep_pages();
    if (options_parse(argc, argv, &o, &parsed, &e) < 0)
        return replica_end(NULL, &e);
    if (parsed == OPT_DONE)
        return 0;
    rpc_init();
    int result = run(&o, &e);
    rpc_shutdown();
    return replica_end(&o.common, result < 0 ? &e : NULL);
}
