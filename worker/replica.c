/* Opens what a replica needs, in the order in which errors are cheapest to find: flags and cluster, manifest, model,
 * and only then the data. */
#include "replica.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "chief/output_dir.h"
#include "data/job_learn.h"
#include "nn/callback.h"
#include "nn/sync_check.h"

size_t replica_ps_count(const struct replica *r)
{
    return r->cluster.hosts[ROLE_PS].n;
}

bool replica_is_collective(const struct replica *r)
{
    return r->job->strategy.name == STRATEGY_MULTI_WORKER_MIRRORED;
}

int replica_towers(const struct replica *r)
{
    return job_towers(r->job);
}

bool replica_leads(const struct replica *r)
{
    return !r->cluster.configured || cluster_is_chief(&r->cluster);
}

/* A chief trains when there are no workers or fit.chiefTrains is set. */
bool replica_trains(const struct replica *r)
{
    if (!r->cluster.configured || r->cluster.role == ROLE_WORKER)
        return true;
    return r->cluster.role == ROLE_CHIEF && (cluster_workers(&r->cluster) == 0 || r->job->fit.chief_trains);
}

const char *replica_address(const struct replica *r)
{
    const struct strlist *hosts = &r->cluster.hosts[r->cluster.role];
    if (!r->cluster.configured)
        return "localhost:2222";
    const char *own = (size_t)r->cluster.index < hosts->n ? hosts->items[r->cluster.index] : NULL;
    const char *leader = cluster_chief_address(&r->cluster); /* is on loopback if this task's address is */
    return own != NULL ? own : leader != NULL ? leader : "localhost:2222";
}

static int check_collective(const struct replica *r, struct err *e)
{
    const struct cluster *c = &r->cluster;
    const char *strategy = strategy_name(r->job->strategy.name);
    if (!c->configured)
        return err_set(e, ERR_INPUT,
                       "strategy %s needs a cluster: start the job with trainyard run, or name its workers "
                       "(WORKER_HOSTS)",
                       strategy);
    if (c->hosts[ROLE_PS].n > 0)
        return err_set(e, ERR_INPUT, "strategy %s trains without parameter servers; the cluster has %zu", strategy,
                       c->hosts[ROLE_PS].n);
    return 0;
}

static int check_ps(const struct replica *r, struct err *e)
{
    const struct cluster *c = &r->cluster;
    if (c->hosts[ROLE_PS].n > 0 && replica_towers(r) > 0)
        return err_set(e, ERR_INPUT,
                       "strategy %s trains in one process, without parameter servers; the cluster has %zu",
                       strategy_name(r->job->strategy.name), c->hosts[ROLE_PS].n);
    if (c->hosts[ROLE_PS].n == 0 && cluster_workers(c) + (int)c->hosts[ROLE_CHIEF].n > 1)
        return err_set(e, ERR_INPUT,
                       "strategy ParameterServer with several workers needs a ps in the cluster (PS_HOSTS)");
    return 0;
}

static int check_cluster(const struct replica *r, struct err *e)
{
    const struct cluster *c = &r->cluster;
    if (c->configured && c->role == ROLE_PS)
        return err_set(e, ERR_INPUT, "this is trainyard-worker, the task is ps-%d: start trainyard-ps instead",
                       c->index);
    if (c->configured && cluster_chief_address(c) == NULL)
        return err_set(e, ERR_INPUT,
                       "The \"cluster\" must have one \"chief\" node, or a worker 0 that takes its place");
    if (replica_is_collective(r))
        return check_collective(r, e);
    return c->configured ? check_ps(r, e) : 0;
}

/* A job without ps whose replica got a cluster with ps by hand trains with them. */
static void follow_cluster(struct replica *r)
{
    if (r->cluster.configured && replica_ps_count(r) > 0 && r->job->strategy.name == STRATEGY_SINGLE)
        r->job->strategy.name = STRATEGY_PARAMETER_SERVER;
}

/* Unpacked files and indexes are kept in the output folder, where all replicas find them. When that is not writable
 * (a worker needs no output volume), each replica has a temporary folder. NULL: the temporary folder belongs to
 * another user. */
static char *default_cache(const struct replica *r)
{
    bool writable = eaccess(r->output_dir, W_OK) == 0 || (replica_leads(r) && !file_exists(r->output_dir));
    const char *temporary = getenv("TMPDIR");
    struct stat st;
    if (writable)
        return path_join(r->output_dir, "cache");
    auto_free char *path = xasprintf(
        "%s/trainyard-cache-%u", temporary != NULL && temporary[0] != '\0' ? temporary : "/tmp", (unsigned)geteuid());
    return lstat(path, &st) == 0 && (st.st_uid != geteuid() || !S_ISDIR(st.st_mode)) ? NULL : TAKE(path);
}

static int find_folders(struct replica *r, struct err *e)
{
    const struct worker_options *o = r->options;
    r->data_dir = o->data_dir != NULL ? xstrdup(o->data_dir) : path_dir(o->common.job);
    r->output_dir = o->output_dir != NULL ? xstrdup(o->output_dir) : xasprintf("runs/%s", r->job->name);
    r->cache_dir = o->cache_dir != NULL ? xstrdup(o->cache_dir) : default_cache(r);
    return dir_check(r->data_dir, e) < 0 ? err_wrap(e, "data folder (--data-dir)") : 0;
}

/* The job's uid: from the environment or the manifest; a chief makes one and keeps it beside its output. */
static int find_uid(struct replica *r, struct err *e)
{
    const char *given = getenv("TRAINYARD_JOB_UID");
    if (given == NULL || given[0] == 0)
        given = r->job->uid;
    if (given[0] != 0 || !replica_leads(r)) {
        r->job_uid = xstrdup(given);
        return given[0] != 0 ? job_check_uid(given, e) : 0;
    }
    auto_free char *path = path_join(r->output_dir, "uid");
    AUTO_FINI(buf) text = BUF_INIT;
    if (file_exists(path)) {
        if (file_read(path, 4096, &text, e) < 0)
            return -1;
        r->job_uid = xstrndup(text.data, strcspn(text.data, " \r\n"));
        return job_check_uid(r->job_uid, e) < 0 ? err_wrap(e, "%s", path) : 0;
    }
    r->job_uid = xasprintf("%s-%016llx", r->job->name, (unsigned long long)r->incarnation);
    auto_free char *line = xasprintf("%s\n", r->job_uid);
    if (output_dir_prepare(r->output_dir, r->job->summaries.directory, e) < 0)
        return -1;
    return file_write(path, line, strlen(line), e);
}

static int open_data(struct replica *r, struct err *e)
{
    const struct job *j = r->job;
    bool evaluates = replica_leads(r) || r->cluster.role == ROLE_EVALUATOR;
    if (job_data_open_train(j, r->model, r->data_dir, r->cache_dir, &r->data, e) < 0 ||
        (evaluates && job_data_open_validation(j, r->model, r->data_dir, r->cache_dir, &r->data, e) < 0))
        return -1;
    const struct row_space space = { .dir = r->cache_dir, .bytes = (uint64_t)r->options->cache_space };
    if (j->fit.epochs != 1 && replica_trains(r))
        dataset_keep_rows(r->data.train, &space);
    if (j->fit.epochs != 1 && evaluates && r->data.validation != NULL)
        dataset_keep_rows(r->data.validation, &space);
    AUTO_FINI(strlist) warnings = { 0 };
    if (replica_leads(r))
        job_data_warnings(j, &r->data, &warnings);
    for (size_t i = 0; i < warnings.n; i++)
        log_warning("%s", warnings.items[i]);
    if (j->fit.validation_split > 0 && replica_leads(r))
        log_info("validationSplit %g: the first %lld examples are trained on, the last %lld evaluated",
                 j->fit.validation_split, (long long)dataset_size(r->data.train),
                 (long long)dataset_size(r->data.validation));
    return 0;
}

/* What the manifest leaves to data.train. */
static int learn(struct replica *r, struct err *e)
{
    AUTO_FINI(strlist) notes = { 0 };
    if (job_learns(r->job) && job_learn(r->job, NULL, r->data_dir, r->cache_dir, &notes, e) < 0)
        return -1;
    for (size_t i = 0; i < notes.n && replica_leads(r); i++)
        log_info("learned from data.train: %s", notes.items[i]);
    return 0;
}

int replica_open(const struct worker_options *o, struct replica *ret, struct err *e)
{
    AUTO_FINI(replica) r = { .options = o };
    struct cluster_input env = cluster_env();
    r.incarnation = random_incarnation();
    if (cluster_resolve(&o->common.cluster, &env, &r.cluster, e) < 0)
        return -1;
    if (r.cluster.configured)
        cluster_task_name(&r.cluster, r.name);
    else
        str_fmt(r.name, sizeof(r.name), "local");
    log_setup(o->common.level, o->common.format, r.name);
    if (job_load(o->common.job, &r.job, e) < 0)
        return -1;
    if (!r.job->has_model)
        return err_set(e, ERR_INPUT,
                       "%s: spec.model is missing: trainyard-worker trains the model a manifest describes",
                       o->common.job);
    follow_cluster(&r);
    int nps = r.cluster.configured ? (int)replica_ps_count(&r) : job_ps_count(r.job);
    if (check_cluster(&r, e) < 0 || job_check_devices(r.job, nps, e) < 0 ||
        file_check_limit(cluster_files(&r.cluster), e) < 0 ||
        replica_credentials_open(&o->common, &r.cluster, r.cluster.configured ? r.cluster.role : ROLE_COUNT,
                                 &r.credentials, e) < 0 ||
        find_folders(&r, e) < 0 || learn(&r, e) < 0 ||
        model_build(&r.job->model, &r.job->compile, r.data_dir, &r.model, e) < 0 || sync_check(r.job, r.model, e) < 0 ||
        callbacks_check(&r.job->callbacks, r.model, job_evaluates(r.job), e) < 0 ||
        class_weights_parse(&r.job->class_weight, r.model, &r.class_weights, e) < 0)
        return -1;
    r.layout = layout_new(r.model);
    r.placement = placement_new(r.layout, r.job->strategy.placement, MAX(replica_ps_count(&r), (size_t)1));
    *ret = r;
    r = (struct replica){ 0 };
    return 0;
}

int replica_open_data(struct replica *r, struct err *e)
{
    return open_data(r, e) < 0 ? -1 : find_uid(r, e);
}

void replica_fini(struct replica *r)
{
    job_data_fini(&r->data);
    placement_free(r->placement);
    layout_free(r->layout);
    class_weights_free(r->class_weights);
    model_free(r->model);
    free(r->data_dir);
    free(r->output_dir);
    free(r->cache_dir);
    free(r->job_uid);
    cluster_fini(&r->cluster);
    replica_credentials_fini(&r->credentials);
    job_free(r->job);
}
