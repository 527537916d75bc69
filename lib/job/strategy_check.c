/* What a strategy needs of the manifest, and which fields and replicas it cannot have. A row for each strategy, and one
 * for each field that belongs to some strategies only. */
#include "job/fields.h"

#define OF(strategy) (1U << (unsigned)(strategy))

enum {
    TOWERS = OF(STRATEGY_MIRRORED) | OF(STRATEGY_HOGWILD),
    ALL_REDUCE = OF(STRATEGY_MULTI_WORKER_MIRRORED),
    WITHOUT_PS = TOWERS | ALL_REDUCE,
};
enum { MEMBERS_MAX = 1024 }; /* of an all-reduce; a larger number is a mistake */

static int trainers(const struct job *j)
{
    return j->replicas[ROLE_CHIEF].count + j->replicas[ROLE_WORKER].count;
}

/* ---- fields ---- */

/* The fields of some strategies, for the others. Where it matters whether updates are sync, see check_updates. */
static const struct strategy_field {
    const char *path;
    unsigned of; /* strategies */
    const char *cure;
} STRATEGY_FIELD[] = {
    { "spec.strategy.replicas", OF(STRATEGY_MIRRORED), "is for strategy Mirrored; remove it, or set 'name: Mirrored'" },
    { "spec.strategy.concurrentSteps", OF(STRATEGY_HOGWILD),
      "is for strategy Hogwild; remove it, or set 'name: Hogwild'" },
    { "spec.strategy.updates", ~(unsigned)WITHOUT_PS, "is for strategy ParameterServer; remove it" },
    { "spec.strategy.placement", ~(unsigned)WITHOUT_PS, "is for strategy ParameterServer; remove it" },
    { "spec.strategy.overlap", ~(unsigned)WITHOUT_PS, "is for strategy ParameterServer; remove it" },
    { "spec.strategy.replicasToAggregate", ~OF(STRATEGY_HOGWILD),
      "is for strategies Mirrored and MultiWorkerMirrored and for 'updates: sync'; Hogwild applies each gradient at "
      "once: remove it" },
    { "spec.strategy.deterministic", ~OF(STRATEGY_HOGWILD),
      "is for strategies Mirrored and MultiWorkerMirrored and for 'updates: sync'; remove it" },
    { "spec.strategy.minReplicas", ALL_REDUCE,
      "is for strategy MultiWorkerMirrored; remove it, or set 'name: MultiWorkerMirrored'" },
};

static int check_fields(const struct job *j, struct err *e)
{
    for (size_t i = 0; i < COUNT_OF(STRATEGY_FIELD); i++) {
        const struct strategy_field *f = &STRATEGY_FIELD[i];
        struct node n = job_at(j, f->path);
        if (node_present(&n) && (f->of & OF(j->strategy.name)) == 0)
            return node_error(&n, e, "%s", f->cure);
    }
    return 0;
}

static int check_updates(const struct job *j, struct err *e)
{
    struct node aggregate = job_at(j, "spec.strategy.replicasToAggregate"),
                overlap = job_at(j, "spec.strategy.overlap");
    struct node deterministic = job_at(j, "spec.strategy.deterministic");
    if (j->strategy.replicas_to_aggregate > 0 && j->strategy.updates != UPDATES_SYNC)
        return node_error(&aggregate, e, "is for 'updates: sync'; remove it, or set that");
    if (node_present(&deterministic) && j->strategy.updates != UPDATES_SYNC)
        return node_error(&deterministic, e, "is for 'updates: sync'; remove it, or set that");
    if (j->strategy.overlap && j->strategy.updates == UPDATES_SYNC)
        return node_error(
            &overlap, e,
            "with 'updates: sync' the next batch needs the values that the push changes; remove 'overlap'");
    return 0;
}

/* ---- strategies ---- */

static int check_parameter_server(struct job *j, struct err *e)
{
    struct node specs = job_at(j, "spec.replicaSpecs");

    if (check_updates(j, e) < 0)
        return -1;
    if (node_present(&specs) && j->replicas[ROLE_PS].count == 0)
        return node_error(&specs, e, "strategy ParameterServer needs parameter servers; add 'PS: {replicas: 1}'");
    if (node_present(&specs) && trainers(j) == 0)
        return node_error(&specs, e, "no replica trains; add 'Worker: {replicas: 1}' or 'Chief: {}'");
    return 0;
}

static int check_trainer(const struct job *j, struct err *e)
{
    struct node specs = job_at(j, "spec.replicaSpecs");
    if (node_present(&specs) && trainers(j) == 0)
        return node_error(&specs, e, "no replica trains; add 'Worker: {replicas: 1}'");
    return 0;
}

static int check_single(struct job *j, struct err *e)
{
    struct node specs = job_at(j, "spec.replicaSpecs"), overlap = job_at(j, "spec.strategy.overlap");
    struct node updates = job_at(j, "spec.strategy.updates");

    if (j->strategy.updates != UPDATES_ASYNC)
        return node_error(&updates, e,
                          "is for ParameterServer, and the job has no PS; remove it, or add 'PS: {replicas: 1}'");
    if (check_updates(j, e) < 0)
        return -1;
    if (j->strategy.overlap)
        return node_error(&overlap, e, "strategy Single has no pushes to overlap with; remove 'overlap'");
    if (j->replicas[ROLE_PS].count > 0)
        return node_error(&j->replicas[ROLE_PS].node, e,
                          "strategy Single has no parameter servers; remove PS, or the strategy");
    if (trainers(j) > 1)
        return node_error(&specs, e, "%d processes train, but no PS holds the variables; add 'PS: {replicas: 1}'",
                          trainers(j));
    return check_trainer(j, e);
}

/* Its threads are in one process. field: their number. */
static int check_towers(struct job *j, const char *field, struct err *e)
{
    const char *name = strategy_name(j->strategy.name);
    struct node specs = job_at(j, "spec.replicaSpecs"), strategy = job_at(j, "spec.strategy");
    struct node count = node_get(&j->replicas[ROLE_WORKER].node, "replicas"), towers = node_get(&strategy, field);
    if (!node_present(&towers))
        return node_error(&strategy, e, "'%s' is missing: the number of threads that train; add '%s: 2'", field, field);
    if (j->replicas[ROLE_PS].count > 0)
        return node_error(&j->replicas[ROLE_PS].node, e,
                          "strategy %s trains in one process, without parameter servers; remove PS, or set "
                          "'name: ParameterServer'",
                          name);
    if (j->replicas[ROLE_WORKER].count > 1)
        return node_error(&count, e, "strategy %s trains in one process; set it to 1, and 'strategy.%s' to the threads",
                          name, field);
    if (trainers(j) > 1)
        return node_error(&specs, e, "strategy %s trains in one process; remove Chief or Worker", name);
    return check_trainer(j, e);
}

static int check_mirrored(struct job *j, struct err *e)
{
    j->strategy.updates = UPDATES_SYNC;
    return check_towers(j, "replicas", e);
}

static int check_hogwild(struct job *j, struct err *e)
{
    return check_towers(j, "concurrentSteps", e);
}

static int check_min_replicas(const struct job *j, struct err *e)
{
    struct node least = job_at(j, "spec.strategy.minReplicas");
    int workers = MAX(j->replicas[ROLE_WORKER].count, 1); /* without workers the chief trains */
    if (!node_present(&least) || j->strategy.min_replicas <= workers)
        return 0;
    return node_error(&least, e, "training would wait for ever: the job has %d worker%s; set it to at most %d", workers,
                      workers == 1 ? "" : "s", workers);
}

static int check_multi_worker_mirrored(struct job *j, struct err *e)
{
    struct node specs = job_at(j, "spec.replicaSpecs"), strategy = job_at(j, "spec.strategy");
    struct node deterministic = job_at(j, "spec.strategy.deterministic");
    struct node count = node_get(&j->replicas[ROLE_WORKER].node, "replicas");

    j->strategy.updates = UPDATES_SYNC;
    if (!j->strategy.deterministic)
        return node_error(&deterministic, e, "ring and tree all-reduce are not available in this release; remove it");
    if (!node_present(&specs))
        return node_error(&strategy, e,
                          "strategy MultiWorkerMirrored needs workers; add 'replicaSpecs: {Worker: {replicas: 2}}'");
    if (j->replicas[ROLE_PS].count > 0)
        return node_error(&j->replicas[ROLE_PS].node, e,
                          "strategy MultiWorkerMirrored adds the gradients between the workers, without parameter "
                          "servers; remove PS, or set 'name: ParameterServer'");
    if (trainers(j) == 0)
        return node_error(&specs, e, "no replica trains; add 'Worker: {replicas: 2}'");
    if (j->replicas[ROLE_WORKER].count > MEMBERS_MAX)
        return node_error(&count, e, "strategy MultiWorkerMirrored has at most %d workers", MEMBERS_MAX);
    return check_min_replicas(j, e);
}

int strategy_check(struct job *j, struct err *e)
{
    static int (*const CHECKS[])(struct job *, struct err *) = {
        [STRATEGY_PARAMETER_SERVER] = check_parameter_server,
        [STRATEGY_SINGLE] = check_single,
        [STRATEGY_MIRRORED] = check_mirrored,
        [STRATEGY_HOGWILD] = check_hogwild,
        [STRATEGY_MULTI_WORKER_MIRRORED] = check_multi_worker_mirrored,
    };
    return check_fields(j, e) < 0 ? -1 : CHECKS[j->strategy.name](j, e);
}

/* ---- numbers ---- */

int job_towers(const struct job *j)
{
    const int64_t towers[] = {
        [STRATEGY_MIRRORED] = j->strategy.replicas,
        [STRATEGY_HOGWILD] = j->strategy.concurrent_steps,
    };
    return (size_t)j->strategy.name < COUNT_OF(towers) ? (int)towers[j->strategy.name] : 0;
}

int64_t job_default_group(const struct job *j, int workers)
{
    bool beside = j->strategy.name == STRATEGY_MULTI_WORKER_MIRRORED && j->replicas[ROLE_CHIEF].count > 0 &&
                  j->fit.chief_trains && workers > 0;
    return MAX(j->strategy.name == STRATEGY_MIRRORED ? job_towers(j) : workers + beside, 1);
}
