/* Tables of the plan: training-operator's rows of success and failure, every restart policy against every end, every
 * clean policy against every ending. */
#include "plan_world.h"

static void write_roles(struct buf *out, bool tf, const char *policy, int chiefs, int ps, int workers)
{
    const struct {
        const char *key;
        int n;
    } ROLES_OF[] = { { "Chief", chiefs }, { "PS", ps }, { "Worker", workers } };
    buf_printf(out, "  %s:\n", tf ? "tfReplicaSpecs" : "replicaSpecs");
    for (size_t i = 0; i < COUNT_OF(ROLES_OF); i++)
        if (ROLES_OF[i].n > 0)
            buf_printf(out, "    %s: {replicas: %d, restartPolicy: %s%s}\n", ROLES_OF[i].key, ROLES_OF[i].n, policy,
                       tf ? ", template: {spec: {containers: [{name: tensorflow, image: a}]}}" : "");
}

static json_t *make_job(bool tf, const char *more, const char *policy, int chiefs, int ps, int workers)
{
    AUTO_FINI(buf) text = BUF_INIT;
    buf_printf(&text, "apiVersion: %s\nkind: %s\nmetadata: {name: j, namespace: n, uid: job-1, generation: 1}\nspec:\n",
               tf ? "kubeflow.org/v1" : "trainyard.dev/v1alpha1", tf ? "TFJob" : "TrainJob");
    if (!tf)
        buf_str(&text,
                "  model: {inputShape: [4], layers: [{Dense: {units: 1}}]}\n  compile: {optimizer: Adam, loss: mse}\n"
                "  data: {train: {format: csv, files: a.csv}}\n  fit: {epochs: 3}\n"
                "  storage: {data: {emptyDir: {}}, output: {emptyDir: {}}}\n");
    buf_str(&text, more);
    write_roles(&text, tf, policy, chiefs, ps, workers);
    return world_yaml(text.data, "job");
}

static void reconcile_and_act(struct world *w, const char *what)
{
    AUTO_FINI(job_plan) p = { .nactions = 0 };
    world_plan(w, &w->status, &p);
    world_keep_status(w, &p.status);
    world_act(w, &p);
    world_look_again(w, what);
}

/* The job exists and all its pods run. */
static void start(struct world *w, const json_t *job)
{
    world_init(w, job);
    ck_assert_msg(w->spec.invalid == NULL, "%s", w->spec.invalid);
    reconcile_and_act(w, "start");
    world_settle(w);
    for (size_t i = 0; i < w->npods; i++) {
        w->pods[i].phase = POD_RUNNING;
        w->pods[i].ready = true;
    }
    w->now += 10000;
    reconcile_and_act(w, "running");
}

/* ---- success and failure ---- */

struct count {
    int failed, succeeded, active;
};
static const struct row {
    const char *what;
    bool chief, all_workers, restart, worker_0;
    int workers, nps;
    struct count ps, worker, chiefs;
    enum condition_type want;
} ROWS[] = {
    { "worker failed", .workers = 3, .worker = { 1, 0, 2 }, .want = COND_FAILED },
    { "chief succeeded", .chief = true, .workers = 1, .worker = { 0, 1, 0 }, .chiefs = { 0, 1, 0 },
      .want = COND_SUCCEEDED },
    { "chief running", .chief = true, .workers = 1, .worker = { 0, 0, 1 }, .chiefs = { 0, 0, 1 },
      .want = COND_RUNNING },
    { "chief failed", .chief = true, .workers = 1, .worker = { 0, 0, 1 }, .chiefs = { 1, 0, 0 }, .want = COND_FAILED },
    { "no chief, worker failed", .workers = 1, .worker = { 1, 0, 0 }, .want = COND_FAILED },
    { "no chief, worker succeeded", .workers = 1, .worker = { 0, 1, 0 }, .worker_0 = true, .want = COND_SUCCEEDED },
    { "no chief, worker running", .workers = 1, .worker = { 0, 0, 1 }, .want = COND_RUNNING },
    { "2 workers succeeded, 2 running", .workers = 4, .nps = 2, .ps = { 0, 0, 2 }, .worker = { 0, 2, 2 },
      .want = COND_RUNNING },
    { "2 workers failed, 2 running", .workers = 4, .nps = 2, .ps = { 0, 0, 2 }, .worker = { 2, 0, 2 },
      .want = COND_FAILED },
    { "2 workers succeeded, 2 failed", .workers = 4, .nps = 2, .ps = { 0, 0, 2 }, .worker = { 2, 2, 0 },
      .want = COND_FAILED },
    { "worker 0 succeeded, 3 running", .workers = 4, .nps = 2, .ps = { 0, 0, 2 }, .worker = { 0, 1, 3 },
      .worker_0 = true, .want = COND_SUCCEEDED },
    { "AllWorkers: worker 0 succeeded, 3 running", .all_workers = true, .workers = 4, .worker = { 0, 1, 3 },
      .worker_0 = true, .want = COND_RUNNING },
    { "AllWorkers: 4 succeeded", .all_workers = true, .workers = 4, .worker = { 0, 4, 0 }, .worker_0 = true,
      .want = COND_SUCCEEDED },
    { "AllWorkers: 1 succeeded, 2 running, 1 failed", .all_workers = true, .workers = 4, .worker = { 1, 1, 2 },
      .worker_0 = true, .want = COND_FAILED },
    { "chief running, workers failed", .chief = true, .workers = 4, .nps = 2, .ps = { 0, 0, 2 }, .worker = { 4, 0, 0 },
      .chiefs = { 0, 0, 1 }, .want = COND_FAILED },
    { "chief running, workers succeeded", .chief = true, .workers = 4, .nps = 2, .ps = { 0, 0, 2 },
      .worker = { 0, 4, 0 }, .chiefs = { 0, 0, 1 }, .want = COND_RUNNING },
    { "chief running, a ps failed", .chief = true, .workers = 4, .nps = 2, .ps = { 1, 0, 1 }, .worker = { 0, 4, 0 },
      .chiefs = { 0, 0, 1 }, .want = COND_FAILED },
    { "chief failed, workers succeeded", .chief = true, .workers = 4, .nps = 2, .ps = { 0, 0, 2 },
      .worker = { 0, 4, 0 }, .chiefs = { 1, 0, 0 }, .want = COND_FAILED },
    { "chief succeeded, workers failed", .chief = true, .workers = 4, .nps = 2, .ps = { 0, 0, 2 },
      .worker = { 4, 0, 0 }, .chiefs = { 0, 1, 0 }, .want = COND_SUCCEEDED },
    { "chief failed and restarting", .chief = true, .restart = true, .workers = 4, .nps = 2, .ps = { 0, 0, 2 },
      .worker = { 4, 0, 0 }, .chiefs = { 1, 0, 0 }, .want = COND_RESTARTING },
};

/* Succeeded ones come first when worker 0 is among them, else last. */
static void set_phases(struct world *w, enum role r, struct count c, bool succeeded_first)
{
    int n = c.failed + c.succeeded + c.active;
    for (int i = 0; i < n; i++) {
        char name[128];
        int at = succeeded_first ? i : n - 1 - i;
        struct pod_info *p = world_pod(w, job_spec_pod_name(&w->spec, r, at, name));
        p->phase = i < c.succeeded ? POD_SUCCEEDED : i < c.succeeded + c.active ? POD_RUNNING : POD_FAILED;
        p->exit_code = p->phase == POD_SUCCEEDED ? 0 : p->phase == POD_FAILED ? 1 : -1;
        p->ready = p->phase == POD_RUNNING;
    }
}

START_TEST(rows_of_success_and_failure)
{
    const struct row *row = &ROWS[_i];
    AUTO_FINI(world) w;
    json_auto_t *job = make_job(true, row->all_workers ? "  successPolicy: AllWorkers\n" : "",
                                row->restart ? "OnFailure" : "Never", row->chief, row->nps, row->workers);
    start(&w, job);
    set_phases(&w, ROLE_PS, row->ps, true);
    set_phases(&w, ROLE_WORKER, row->worker, row->worker_0);
    set_phases(&w, ROLE_CHIEF, row->chiefs, true);
    reconcile_and_act(&w, row->what);
    for (enum condition_type t = COND_RUNNING; t <= COND_FAILED; t++)
        ck_assert_msg(job_status_is(&w.status, t) == (t == row->want), "%s: %s is %d", row->what, condition_name(t),
                      job_status_is(&w.status, t));
    ck_assert_str_eq(w.status.state, condition_name(row->want));
}
END_TEST

/* ---- restart policies ---- */

enum outcome { RUNS, RESTARTS, SUCCEEDS, FAILS };
static const char *const POLICIES[] = { "Always", "OnFailure", "Never", "ExitCode" };
static const int EXITS[] = { 0, 1, 130, 137, 139, 143, -1 /* evicted */ };
static const enum role ROLES_TRIED[] = { ROLE_PS, ROLE_WORKER, ROLE_CHIEF };

static enum outcome wanted(const char *policy, int code, enum role r)
{
    static const enum outcome NONZERO[][COUNT_OF(EXITS)] = {
        { RUNS, RESTARTS, RESTARTS, RESTARTS, RESTARTS, RESTARTS, RESTARTS },
        { RUNS, RESTARTS, RESTARTS, RESTARTS, RESTARTS, RESTARTS, RESTARTS },
        { RUNS, FAILS, FAILS, FAILS, FAILS, FAILS, FAILS },
        { RUNS, FAILS, RESTARTS, RESTARTS, RESTARTS, RESTARTS, RESTARTS },
    };
    size_t p = 0, e = 0;
    while (!str_eq(POLICIES[p], policy))
        p++;
    while (EXITS[e] != code)
        e++;
    return code == 0 && r == ROLE_CHIEF ? SUCCEEDS : NONZERO[p][e];
}

static enum outcome outcome_of(const struct world *w)
{
    if (job_status_is(&w->status, COND_FAILED))
        return FAILS;
    if (job_status_is(&w->status, COND_SUCCEEDED))
        return SUCCEEDS;
    return job_status_is(&w->status, COND_RESTARTING) ? RESTARTS : RUNS;
}

static void end_pod(struct pod_info *p, int code, int64_t now)
{
    p->phase = code == 0 ? POD_SUCCEEDED : POD_FAILED;
    p->ready = false;
    p->exit_code = code;
    p->ended_ms = code < 0 ? 0 : now;
    p->reason = xstrdup(code < 0 ? "Evicted" : code == 137 ? "OOMKilled" : "Error");
}

static void try_end(bool tf, const char *policy, int code, enum role r)
{
    char name[128];
    AUTO_FINI(world) w;
    auto_free char *what = xasprintf("%s %s %d %s", tf ? "TFJob" : "TrainJob", policy, code, role_name(r));
    json_auto_t *job = make_job(tf, "  runPolicy: {cleanPodPolicy: None}\n", policy, 1, 1, 2);
    enum outcome want = wanted(policy, code, r);

    start(&w, job);
    int index = r == ROLE_WORKER ? 1 : 0;
    job_spec_pod_name(&w.spec, r, index, name);
    end_pod(world_pod(&w, name), code, w.now);
    if (code == 143)
        w.now += 5000; /* the leader runs on, so this one was not stopped by it */
    reconcile_and_act(&w, what);
    ck_assert_msg(outcome_of(&w) == want, "%s: %s", what, w.status.state);
    world_settle(&w);
    ck_assert_msg((world_find(&w, name) == NULL) == (want == RESTARTS), "%s: pod", what);
    reconcile_and_act(&w, what);
    ck_assert_msg(world_find(&w, name) != NULL, "%s: is not there", what);
    ck_assert_int_eq(world_pod(&w, name)->restarts, want == RESTARTS);
    ck_assert_msg(index_counts_get(&w.status.roles[r].again, index) == (want == RESTARTS), "%s: count", what);
    ck_assert_msg(outcome_of(&w) == want, "%s: then %s", what, w.status.state);
}

START_TEST(every_policy_and_every_end)
{
    for (int tf = 0; tf < 2; tf++)
        for (size_t p = 0; p < COUNT_OF(POLICIES); p++)
            for (size_t e = 0; e < COUNT_OF(EXITS); e++)
                for (size_t r = 0; r < COUNT_OF(ROLES_TRIED); r++)
                    try_end(tf != 0, POLICIES[p], EXITS[e], ROLES_TRIED[r]);
}
END_TEST

/* ---- clean policies ---- */

static const char *const CLEANS[] = { "None", "Running", "All" };
static const char *const ENDINGS[] = { "success", "failure", "deadline", "backoff" };

static void end_job(struct world *w, const char *ending)
{
    if (str_eq(ending, "success"))
        end_pod(world_pod(w, "j-chief-0"), 0, w->now);
    else if (str_eq(ending, "failure"))
        end_pod(world_pod(w, "j-worker-1"), 1, w->now);
    else if (str_eq(ending, "deadline"))
        w->now += 1000000;
    else
        world_pod(w, "j-worker-0")->container_restarts = 5;
}

static bool cleaned(const char *clean, const struct pod_info *p)
{
    bool ended = p->phase == POD_SUCCEEDED || p->phase == POD_FAILED;
    return str_eq(clean, "All") || (str_eq(clean, "Running") && !ended);
}

static void try_clean(const char *clean, const char *ending)
{
    AUTO_FINI(world) w;
    auto_free char *more =
        xasprintf("  runPolicy: {cleanPodPolicy: %s, activeDeadlineSeconds: 900, backoffLimit: 5}\n", clean);
    auto_free char *what = xasprintf("%s after %s", clean, ending);
    json_auto_t *job = make_job(true, more, "ExitCode", 1, 2, 3);

    start(&w, job);
    end_pod(world_pod(&w, "j-worker-2"), 0, w.now); /* has ended already */
    world_pod(&w, "j-ps-1")->phase = POD_PENDING;
    end_job(&w, ending);
    reconcile_and_act(&w, what);
    ck_assert_msg(job_status_finished(&w.status), "%s", what);
    for (size_t i = 0; i < w.npods; i++)
        ck_assert_msg(w.pods[i].deleting == cleaned(clean, &w.pods[i]), "%s: %s", what, w.pods[i].name);
    for (size_t i = 0; i < w.nservices; i++) {
        struct pod_info *p = world_find(&w, w.services[i].name);
        ck_assert_msg(w.services[i].deleting == (p != NULL && p->deleting), "%s: service %s", what, w.services[i].name);
    }
    world_settle(&w);
    reconcile_and_act(&w, what);
    ck_assert_msg(!str_eq(clean, "All") || (w.npods == 0 && w.nservices == 0), "%s: something is left", what);
}

START_TEST(every_clean_policy_and_every_ending)
{
    for (size_t c = 0; c < COUNT_OF(CLEANS); c++)
        for (size_t e = 0; e < COUNT_OF(ENDINGS); e++)
            try_clean(CLEANS[c], ENDINGS[e]);
}
END_TEST

/* ---- no replicas do not mean success ---- */

START_TEST(no_replicas_is_no_success)
{
    AUTO_FINI(world) w;
    json_auto_t *job = make_job(true, "", "Never", 0, 1, 1);
    world_init(&w, job);
    w.spec.roles[ROLE_WORKER].replicas = 0;
    free(w.spec.invalid);
    w.spec.invalid = NULL;
    reconcile_and_act(&w, "no workers");
    ck_assert(!job_status_finished(&w.status));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("plan tables");
    TCase *t = tcase_create("tables");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, rows_of_success_and_failure, 0, (int)COUNT_OF(ROWS));
    tcase_add_test(t, every_policy_and_every_end);
    tcase_add_test(t, every_clean_policy_and_every_ending);
    tcase_add_test(t, no_replicas_is_no_success);
    suite_add_tcase(s, t);
    return s;
}
