/* Jobs in a cluster where anything may happen at any time. Always: an index never has two pods, nothing that has
 * succeeded is re-created, nothing is created after the end, and a second plan changes nothing. When the faults stop,
 * the job runs or has ended. TRAINYARD_SEED=n runs one walk alone and prints it. */
#include "plan_world.h"

#ifdef TRAINYARD_SANITIZED
enum { WALKS = 120 };
#else
enum { WALKS = 400 };
#endif
enum { STEPS = 250, KIND_ROUNDS = 400 };

static const char *const JOBS[] = { "digits", "tf", "tf_workers", "ranks" };
static const char *const CHANGES[] = {
    "{spec: {runPolicy: {suspend: true}}}",       "{spec: {runPolicy: {suspend: false}}}",
    "{spec: {runPolicy: {backoffLimit: 3}}}",     "{spec: {runPolicy: {backoffLimit: 1000}}}",
    "{spec: {runPolicy: {cleanPodPolicy: All}}}", "{spec: {runPolicy: {stallSeconds: 60, stallPolicy: Restart}}}",
    "{spec: {%s: {Worker: {replicas: 1}}}}",      "{spec: {%s: {Worker: {replicas: 3}}}}",
    "{spec: {%s: {Worker: {replicas: 5}}}}",      "{spec: {fit: {epochs: 4}}}",
};

struct walk {
    struct world w;
    json_t *job;
    uint64_t random;
    bool ended, tells;
    enum condition_type how;
    int64_t restarts;
};

static unsigned draw(struct walk *k, unsigned n) /* xorshift */
{
    k->random ^= k->random << 13;
    k->random ^= k->random >> 7;
    k->random ^= k->random << 17;
    return (unsigned)(k->random >> 33) % n;
}

static void merge(json_t *into, json_t *patch)
{
    const char *key;
    json_t *v;
    json_object_foreach(patch, key, v)
    {
        json_t *old = json_object_get(into, key);
        if (json_is_object(v) && json_is_object(old))
            merge(old, v);
        else
            json_object_set(into, key, v);
    }
}

static void change(struct walk *k, const char *text)
{
    AUTO_FINI(buf) b = BUF_INIT;
    const char *at = strstr(text, "%s");
    if (at != NULL)
        buf_printf(&b, "%.*s%s%s", (int)(at - text), text, k->w.spec.kind->replica_specs, at + 2);
    else
        buf_str(&b, text);
    json_auto_t *patch = world_yaml(b.data, "change");
    json_t *metadata = json_object_get(k->job, "metadata");
    bool own = k->w.spec.kind == &KIND_TRAINJOB, model = json_at(k->job, "spec.model") != NULL;
    if ((!own && json_at(patch, "spec.fit") != NULL) ||
        (own && !model && json_at(patch, "spec.runPolicy.stallSeconds") != NULL)) /* would be refused */
        return;
    merge(k->job, patch);
    json_object_set_new(metadata, "generation", json_integer(k->w.spec.generation + 1));
    world_job(&k->w, k->job);
}

/* ---- what may happen ---- */

static void end_pod(struct walk *k, struct pod_info *p, int code)
{
    p->phase = code == 0 ? POD_SUCCEEDED : POD_FAILED;
    p->exit_code = code;
    p->ready = false;
    p->ended_ms = k->w.now;
    p->lingers = draw(k, 4) == 0; /* a sidecar runs on */
}

/* As the controller does: the first pod that is refused is reported until it is created. */
static void refuse(struct walk *k, struct pod_info *p)
{
    struct refusal *f = &k->w.refused;
    if (f->name == NULL)
        *f = (struct refusal){ .kind = ACT_CREATE_POD,
                               .role = p->role,
                               .index = p->index,
                               .name = xstrdup(p->name),
                               .what = xasprintf("pod %s", p->name),
                               .words = xstrdup("no"),
                               .over_quota = draw(k, 2) == 0,
                               .never_fits = draw(k, 4) == 0 };
    world_remove(&k->w, p);
}

static void take(struct walk *k, struct pod_info *p)
{
    p->creating = false;
    if (str_eq(k->w.refused.name, p->name))
        refusal_fini(&k->w.refused);
}

static void befall_pod(struct walk *k, struct pod_info *p, size_t i)
{
    static const int CODES[] = { 138, 138, 143, 137, 130, 255, 0, 1 };
    if (p->creating && draw(k, 10) == 0) {
        refuse(k, p);
    } else if (p->creating) {
        take(k, p);
    } else if (p->phase == POD_PENDING) {
        p->phase = POD_RUNNING;
        p->ready = true;
        p->started_ms = k->w.now;
    } else if (p->phase == POD_RUNNING && draw(k, 3) == 0) {
        end_pod(k, p, CODES[draw(k, draw(k, 3) == 0 ? COUNT_OF(CODES) : 6)]);
    } else if (p->phase == POD_RUNNING && draw(k, 4) == 0) {
        p->container_restarts++;
    } else if (p->deleting || p->gone_by_ms > 0) {
        world_remove(&k->w, &k->w.pods[i]);
    } else if (draw(k, 2) == 0) {
        p->gone_by_ms = k->w.now + 30000;
        p->disrupted = draw(k, 2) == 0;
    } else if (draw(k, 3) == 0) {
        world_remove(&k->w, &k->w.pods[i]);
    }
}

static void befall_services(struct walk *k)
{
    for (size_t i = k->w.nservices; i-- > 0;) {
        k->w.services[i].creating = false;
        if (!k->w.services[i].deleting && draw(k, 20) > 0)
            continue;
        service_info_fini(&k->w.services[i]);
        k->w.services[i] = k->w.services[--k->w.nservices];
    }
}

static void operator_restarts(struct walk *k)
{
    struct job_status none = { .nconds = 0 }, read;
    json_auto_t *written = job_status_patch(k->w.spec.kind, k->w.spec.uid, 0, &none, &k->w.status);
    job_status_parse(json_object_get(written, "status"), &read);
    job_status_fini(&k->w.status);
    k->w.status = read;
    refusal_fini(&k->w.refused);
    k->w.seen.config_ensured = k->w.seen.policy_ensured = false;
    for (size_t i = k->w.npods; i-- > 0;) {
        if (k->w.pods[i].creating && draw(k, 2) == 0)
            world_remove(&k->w, &k->w.pods[i]); /* the request never arrived */
        else
            k->w.pods[i].creating = k->w.pods[i].deleting = false;
    }
}

static void progress(struct walk *k)
{
    k->w.seen.progress.present = true;
    k->w.seen.progress.step += (int64_t)draw(k, 10) - 2;
}

/* Another job begins to wait for a quota, or has what it needs. */
static void befall_quota(struct walk *k)
{
    k->w.seen.quota_rival = draw(k, 2) == 0 ? "rival" : NULL;
    k->w.seen.rival_is_older = draw(k, 2) == 0;
}

static void befall(struct walk *k)
{
    unsigned what = draw(k, 20);
    k->w.now += draw(k, 5) * 1000; /* the status has whole seconds */
    if (what == 0)
        change(k, CHANGES[draw(k, COUNT_OF(CHANGES))]);
    else if (what == 1)
        operator_restarts(k);
    else if (what == 2)
        progress(k);
    else if (what == 3)
        k->w.now += 100000;
    else if (what < 6)
        befall_services(k);
    else if (what == 6)
        befall_quota(k);
    else if (k->w.npods > 0) {
        size_t i = draw(k, (unsigned)k->w.npods);
        befall_pod(k, &k->w.pods[i], i);
    }
}

/* ---- what must hold ---- */

static void tell(const struct walk *k, const struct job_plan *p)
{
    if (!k->tells)
        return;
    printf("%6lld s %s %s, %zu pods:", (long long)((k->w.now - ZERO) / 1000), p->status.state, p->status.ready,
           k->w.npods);
    for (size_t i = 0; i < p->nactions; i++)
        printf(" %d:%s-%d", (int)p->actions[i].kind,
               p->actions[i].role < ROLE_COUNT ? role_name(p->actions[i].role) : "", p->actions[i].index);
    printf("\n");
}

static int64_t restarts_of(const struct job_status *s)
{
    int64_t n = 0;
    for (int r = 0; r < ROLE_COUNT; r++)
        n += s->roles[r].restarts;
    return n;
}

/* runPolicy.restartScope Job: no new pod runs at the same time as one from before a restart of all. */
static void check_meets_no_old_one(const struct walk *k, const struct action *a, const struct job_status *s)
{
    for (size_t i = 0; i < k->w.npods && k->w.spec.scope == SCOPE_JOB && a->role != ROLE_EVALUATOR; i++) {
        const struct pod_info *p = &k->w.pods[i];
        bool wanted =
            p->index < k->w.spec.roles[p->role].replicas && !index_set_has(&s->roles[p->role].completed, p->index);
        ck_assert_msg(!wanted || p->role == ROLE_EVALUATOR ||
                          p->restarts >= index_counts_get(&s->roles[p->role].again, p->index),
                      "%s-%d is made beside %s, which is of before", role_name(a->role), a->index, p->name);
    }
}

static void check_action(const struct walk *k, const struct action *a, const struct job_status *s)
{
    if (a->kind == ACT_CREATE_POD) {
        ck_assert_msg(!k->ended, "a pod is made after the end");
        ck_assert_msg(!k->w.spec.suspend, "a pod is made of a suspended job");
        ck_assert_msg(!index_set_has(&s->roles[a->role].completed, a->index), "%s-%d has succeeded and is made again",
                      role_name(a->role), a->index);
        ck_assert_int_lt(a->index, k->w.spec.roles[a->role].replicas);
        ck_assert_int_eq(a->restarts, index_counts_get(&s->roles[a->role].again, a->index));
        check_meets_no_old_one(k, a, s);
    }
    ck_assert_msg(a->kind != ACT_DELETE_POD || a->uid != NULL, "a pod without uid is deleted");
}

static void check(struct walk *k, const struct job_plan *p)
{
    for (size_t i = 0; i < p->nactions; i++)
        check_action(k, &p->actions[i], &p->status);
    int64_t restarts = restarts_of(&p->status);
    ck_assert_int_eq(restarts - k->restarts, p->restarted);
    k->restarts = restarts;
    bool running = job_status_is(&p->status, COND_RUNNING), again = job_status_is(&p->status, COND_RESTARTING);
    ck_assert(!(running && again));
    ck_assert(!(job_status_is(&p->status, COND_SUCCEEDED) && job_status_is(&p->status, COND_FAILED)));
    ck_assert_msg(!k->ended || job_status_is(&p->status, k->how), "the end is taken back");
    ck_assert_msg(!job_status_finished(&p->status) || p->status.completion_ms > 0, "ended, but when?");
    ck_assert_msg(!job_status_finished(&p->status) || !(running || again), "ended, and yet it runs");
    bool refused = job_status_find(&p->status, COND_REPLICA_FAILURE) != NULL;
    ck_assert_msg(!refused || k->w.spec.kind == &KIND_TRAINJOB, "a TFJob has no condition of that type");
    ck_assert_msg(!refused || !(job_status_finished(&p->status) || k->w.spec.suspend),
                  "nothing is to be made, yet it is refused");
    if (job_status_finished(&p->status)) {
        k->ended = true;
        k->how = job_status_is(&p->status, COND_FAILED) ? COND_FAILED : COND_SUCCEEDED;
    }
}

static int64_t look(struct walk *k, const char *what)
{
    AUTO_FINI(job_plan) p = { .nactions = 0 };
    world_plan(&k->w, &k->w.status, &p);
    tell(k, &p);
    check(k, &p);
    world_keep_status(&k->w, &p.status);
    world_act(&k->w, &p);
    world_look_again(&k->w, what);
    return p.next_ms;
}

/* ---- a cluster without faults ---- */

static void be_kind(struct walk *k)
{
    world_settle(&k->w);
    for (size_t i = k->w.npods; i-- > 0;) {
        struct pod_info *p = &k->w.pods[i];
        if (p->gone_by_ms > 0) {
            world_remove(&k->w, p);
        } else if (p->phase == POD_PENDING) {
            p->phase = POD_RUNNING;
            p->ready = true;
            p->started_ms = k->w.now;
        }
    }
}

static bool runs_or_ended(const struct walk *k)
{
    if (k->ended)
        return true;
    size_t n = 0;
    for (size_t i = 0; i < k->w.npods; i++)
        n += k->w.pods[i].phase == POD_RUNNING || k->w.pods[i].phase == POD_SUCCEEDED;
    return job_status_is(&k->w.status, COND_RUNNING) && n == k->w.npods;
}

static void end_well(struct walk *k, const char *what)
{
    change(k, CHANGES[1]);
    change(k, CHANGES[3]);
    k->w.seen.quota_rival = NULL;
    for (int i = 0; i < KIND_ROUNDS; i++) {
        int64_t next = look(k, what);
        if (runs_or_ended(k) && i > 5) {
            ck_assert_ptr_null(job_status_find(&k->w.status, COND_REPLICA_FAILURE));
            return;
        }
        be_kind(k);
        k->w.now = MAX(k->w.now + 1000, MIN(next, k->w.now + 70000) / 1000 * 1000);
        k->w.seen.progress.step++;
    }
    ck_abort_msg("%s: neither runs nor ended, but is %s %s", what, k->w.status.state, k->w.status.ready);
}

static void walk(uint64_t seed, bool tells, int *ends)
{
    struct walk k = { .random = seed * 0x9E3779B97F4A7C15U + 1, .tells = tells };
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) text = BUF_INIT;
    const char *name = JOBS[seed % COUNT_OF(JOBS)];
    auto_free char *path = xasprintf("test/data/plan/jobs/%s.yaml", name);
    auto_free char *what = xasprintf("walk %llu (%s)", (unsigned long long)seed, name);

    ck_ok_e(file_read(path, 1 << 16, &text, &e));
    k.job = world_yaml(text.data, path);
    if (seed / COUNT_OF(JOBS) % 2 == 0 && json_at(k.job, "spec.replicaSpecs") != NULL) {
        json_auto_t *scope = world_yaml("{spec: {runPolicy: {restartScope: Job}}}", "scope");
        merge(k.job, scope);
    }
    world_init(&k.w, k.job);
    k.w.settings.force_delete_ms = 60000;
    for (int i = 0; i < STEPS && !k.ended; i++) {
        look(&k, what);
        befall(&k);
    }
    if (!k.ended)
        end_well(&k, what);
    for (int i = 0; i < 20; i++) {
        look(&k, what);
        befall(&k);
    }
    ends[k.ended ? k.how == COND_FAILED : 2]++;
    world_fini(&k.w);
    json_decref(k.job);
}

START_TEST(whatever_happens)
{
    const char *one = getenv("TRAINYARD_SEED");
    int ends[3] = { 0 };
    if (one != NULL) {
        walk(strtoull(one, NULL, 10), true, ends);
        return;
    }
    for (uint64_t seed = 1; seed <= WALKS; seed++)
        walk(seed, false, ends);
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        ck_assert_msg(ends[i] > WALKS / 20, "of %d walks %d succeeded, %d failed, %d went on", WALKS, ends[0], ends[1],
                      ends[2]);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("plan walk");
    TCase *t = tcase_create("walk");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, whatever_happens);
    suite_add_tcase(s, t);
    return s;
}
