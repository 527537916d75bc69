/* Each folder of test/data/plan is a scenario: case.yaml names a job of test/data/plan/jobs, and steps. A step lists
 * what happens (pods are created, deleted or change; the spec is edited; time passes). It also lists what is wanted
 * then: actions, events, conditions, messages, and parts of the status. After each step a second plan must change
 * nothing. A step begins with the status of the step before it, written and read again. TRAINYARD_SHOW=1 prints what
 * happens. */
#include "plan_world.h"

#define CASES "test/data/plan/"
enum { CASE_MAX = 1 << 18 };

static json_t *load(const char *path)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) text = BUF_INIT;
    ck_ok_e(file_read(path, CASE_MAX, &text, &e));
    return world_yaml(text.data, path);
}

static const char *text_at(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static int64_t number_at(const json_t *o, const char *key, int64_t fallback)
{
    const json_t *v = json_object_get(o, key);
    return json_is_integer(v) ? json_integer_value(v) : fallback;
}

static int64_t time_at(const json_t *o, const char *key, int64_t fallback)
{
    const json_t *v = json_object_get(o, key);
    return json_is_integer(v) ? ZERO + json_integer_value(v) * 1000 : fallback;
}

static bool flag_at(const json_t *o, const char *key, bool fallback)
{
    const json_t *v = json_object_get(o, key);
    return json_is_boolean(v) ? json_is_true(v) : fallback;
}

/* RFC 7386 */
static void merge(json_t *into, json_t *patch)
{
    const char *key;
    json_t *v;
    json_object_foreach(patch, key, v)
    {
        json_t *old = json_object_get(into, key);
        if (json_is_null(v))
            json_object_del(into, key);
        else if (json_is_object(v) && json_is_object(old))
            merge(old, v);
        else
            json_object_set(into, key, v);
    }
}

/* ---- what happens ---- */

static void set_text(char **at, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    if (v == NULL)
        return;
    free(*at);
    *at = json_is_string(v) ? xstrdup(json_string_value(v)) : NULL;
}

static enum pod_phase phase_at(const json_t *o, enum pod_phase fallback)
{
    static const char *const NAMES[] = { "Pending", "Running", "Succeeded", "Failed", "Unknown" };
    const char *s = text_at(o, "phase");
    for (size_t i = 0; s != NULL && i < COUNT_OF(NAMES); i++)
        if (str_eq(s, NAMES[i]))
            return (enum pod_phase)i;
    ck_assert_msg(s == NULL, "no phase: %s", s);
    return fallback;
}

static void change_pod(struct pod_info *p, const json_t *o)
{
    p->phase = phase_at(o, p->phase);
    p->ready = flag_at(o, "ready", p->phase == POD_RUNNING);
    p->disrupted = flag_at(o, "disrupted", p->disrupted);
    p->lingers = flag_at(o, "lingers", false);
    p->creating = p->deleting = false;
    p->gone_by_ms = time_at(o, "goneBy", p->gone_by_ms);
    p->created_ms = time_at(o, "created", p->created_ms);
    p->started_ms = time_at(o, "started", p->started_ms);
    p->ended_ms = time_at(o, "ended", p->ended_ms);
    p->exit_code = (int)number_at(o, "exit", p->phase == POD_SUCCEEDED ? 0 : p->exit_code);
    p->container_restarts = (int)number_at(o, "containerRestarts", p->container_restarts);
    p->restarts = (int)number_at(o, "restarts", p->restarts);
    set_text(&p->reason, o, "reason");
    set_text(&p->message, o, "message");
    set_text(&p->node, o, "node");
    set_text(&p->owner_uid, o, "owner");
    set_text(&p->held_by, o, "heldBy");
    set_text(&p->made_for, o, "madeFor");
    p->mislabelled = flag_at(o, "mislabelled", p->mislabelled);
}

static void change_pods(struct world *w, const json_t *step)
{
    const char *name;
    json_t *v;
    json_object_foreach(json_object_get(step, "pods"), name, v)
    {
        struct pod_info *p = world_find(w, name);
        if (json_is_null(v)) {
            ck_assert_msg(p != NULL, "%s is not there", name);
            world_remove(w, p);
            continue;
        }
        json_auto_t *short_form = json_is_string(v) ? json_pack("{s:O}", "phase", v) : json_incref(v);
        change_pod(p != NULL ? p : world_add(w, name), short_form);
    }
}

/* Pods as the API server has them. */
static void change_objects(struct world *w, const json_t *step)
{
    size_t k;
    json_t *v;
    json_array_foreach(json_object_get(step, "objects"), k, v)
    {
        struct pod_info facts;
        ck_assert_int_eq(pod_info_parse(w->spec.kind, v, &facts), 0);
        struct pod_info *old = world_find(w, facts.name);
        if (old != NULL)
            world_remove(w, old);
        ck_assert_uint_lt(w->npods, WORLD_MAX);
        w->pods[w->npods++] = facts;
    }
}

static void change_services(struct world *w, const json_t *names, const char *owner)
{
    size_t k;
    json_t *v;
    json_array_foreach(names, k, v)
    {
        const char *name = json_string_value(v);
        enum role r = ROLE_PS;
        int index = -1;
        for (int i = 0; i < ROLE_COUNT * WORLD_MAX; i++) {
            char right[128];
            if (str_eq(job_spec_pod_name(&w->spec, (enum role)(i % ROLE_COUNT), i / ROLE_COUNT, right), name)) {
                r = (enum role)(i % ROLE_COUNT);
                index = i / ROLE_COUNT;
            }
        }
        struct service_info *s = world_add_service(w, name, r, index);
        free(s->owner_uid);
        s->owner_uid = owner != NULL ? xstrdup(owner) : NULL;
        s->labelled = true;
    }
}

static void change_progress(struct world *w, const json_t *step)
{
    const json_t *v = json_object_get(step, "progress");
    if (v == NULL)
        return;
    w->seen.progress = (struct training_progress){ .present = true,
                                                   .step = number_at(v, "step", 0),
                                                   .epoch = number_at(v, "epoch", 0) };
    str_fmt(w->seen.progress.loss, sizeof(w->seen.progress.loss), "%s",
            text_at(v, "loss") != NULL ? text_at(v, "loss") : "");
    str_fmt(w->seen.progress.waiting, sizeof(w->seen.progress.waiting), "%s",
            text_at(v, "waiting") != NULL ? text_at(v, "waiting") : "");
    w->seen.progress_ms = w->now;
}

static enum group_phase group_at(const json_t *o, enum group_phase fallback)
{
    static const char *const NAMES[] = { "unknown", "absent", "pending", "admitted" };
    const char *s = text_at(o, "group");
    for (size_t i = 0; s != NULL && i < COUNT_OF(NAMES); i++)
        if (str_eq(s, NAMES[i]))
            return (enum group_phase)i;
    return fallback;
}

static void change_settings(struct world *w, const json_t *v)
{
    w->settings.network_policy = flag_at(v, "networkPolicy", w->settings.network_policy);
    w->settings.gang = flag_at(v, "gang", w->settings.gang);
    w->settings.gang_waits = flag_at(v, "gangWaits", w->settings.gang_waits);
    w->settings.force_delete_ms = number_at(v, "forceDeleteSeconds", w->settings.force_delete_ms / 1000) * 1000;
}

/* The server refuses requests in flight: {pod: NAME, words: ...} and more pods in `too`, or {config: NAME, words: ...}
 * and all pods with it. The named one is reported. */
static void refuse_pod(struct world *w, const char *name)
{
    struct pod_info *p = world_pod(w, name);
    ck_assert_msg(p->creating, "%s is not being made", name);
    world_remove(w, p);
}

static void refuse(struct world *w, const json_t *v)
{
    const char *pod = text_at(v, "pod"), *name = pod != NULL ? pod : text_at(v, "config");
    size_t i;
    json_t *too;
    json_array_foreach(json_object_get(v, "too"), i, too) refuse_pod(w, json_string_value(too));
    refusal_fini(&w->refused);
    if (name == NULL)
        return;
    w->refused = (struct refusal){ .kind = ACT_ENSURE_CONFIG,
                                   .role = ROLE_COUNT,
                                   .index = -1,
                                   .name = xstrdup(name),
                                   .what = xasprintf("%s %s", pod != NULL ? "pod" : "ConfigMap", name),
                                   .words = xstrdup(text_at(v, "words")),
                                   .over_quota = strstr(text_at(v, "words"), "exceeded quota") != NULL,
                                   .never_fits = flag_at(v, "neverFits", false) };
    if (pod != NULL) {
        const struct pod_info *p = world_pod(w, pod);
        w->refused.kind = ACT_CREATE_POD;
        w->refused.role = p->role;
        w->refused.index = p->index;
        refuse_pod(w, pod);
    } else {
        w->seen.config_ensured = false;
        for (size_t k = w->npods; k-- > 0;)
            refuse_pod(w, w->pods[k].name);
    }
}

/* true: it exists; false: it does not; a number: the status of the answer */
static void set_claim(struct claim_info *f, const json_t *v)
{
    f->found = json_is_true(v);
    f->refused = (int)json_integer_value(v);
}

/* As the controller reports it for a spec whose replicas cannot all be listed. */
static void too_large(struct world *w, const char *why, const int before[ROLE_COUNT])
{
    w->spec.too_large = why != NULL;
    memcpy(w->spec.accepted, before, sizeof(w->spec.accepted));
    if (why != NULL && w->spec.invalid == NULL)
        w->spec.invalid = xstrdup(why);
}

static void happen(struct world *w, json_t *job, const json_t *step)
{
    json_t *change = json_object_get(step, "change");
    if (change != NULL) {
        json_t *metadata = json_object_get(job, "metadata");
        merge(job, change);
        int before[ROLE_COUNT];
        for (int i = 0; i < ROLE_COUNT; i++)
            before[i] = flag_at(step, "operatorRestarted", false) ? -1 : w->spec.roles[i].replicas;
        json_object_set_new(metadata, "generation", json_integer(number_at(metadata, "generation", 1) + 1));
        world_job(w, job);
        too_large(w, text_at(step, "tooLarge"), before);
    }
    w->now = time_at(step, "now", w->now);
    if (json_object_get(step, "refused") != NULL)
        refuse(w, json_object_get(step, "refused"));
    const json_t *rival = json_object_get(step, "rival");
    if (rival != NULL) {
        w->seen.quota_rival = text_at(rival, "name");
        w->seen.rival_is_older = flag_at(rival, "older", false);
    }
    if (flag_at(step, "settled", true))
        world_settle(w);
    change_settings(w, json_object_get(step, "settings"));
    change_pods(w, step);
    change_objects(w, step);
    change_services(w, json_object_get(step, "services"), w->spec.uid);
    change_services(w, json_object_get(step, "foreignServices"), "job-0");
    change_services(w, json_object_get(step, "orphanServices"), NULL);
    change_progress(w, step);
    w->seen.group = group_at(step, w->seen.group);
    w->seen.claims_fault = text_at(step, "claimsFault");
    const json_t *claims = json_object_get(step, "claims");
    w->seen.claims_known = claims != NULL || (w->seen.claims_known && !flag_at(step, "operatorRestarted", false));
    for (size_t i = 0; i < w->spec.nclaims && claims != NULL; i++)
        set_claim(&w->claims[i], json_object_get(claims, w->spec.claims[i].name));
    w->seen.config_ensured = flag_at(step, "configThere", w->seen.config_ensured);
    w->seen.policy_ensured = flag_at(step, "policyThere", w->seen.policy_ensured);
    w->seen.tensorboard_found = flag_at(step, "boardFound", w->seen.tensorboard_found);
    if (json_object_get(step, "boardTrouble") != NULL)
        w->seen.tensorboard_trouble = text_at(step, "boardTrouble");
    if (flag_at(step, "operatorRestarted", false))
        w->seen.config_ensured = w->seen.policy_ensured = w->seen.tensorboard_ensured = false;
}

/* ---- what was decided, as text ---- */

static void action_text(const struct world *w, const struct action *a, struct buf *out)
{
    static const char *const NAMES[] = {
        [ACT_GET_CLAIMS] = "look up claims",       [ACT_ENSURE_CONFIG] = "ensure config",
        [ACT_ENSURE_POLICY] = "ensure policy",     [ACT_ENSURE_GROUP] = "ensure group",
        [ACT_DELETE_GROUP] = "delete group",       [ACT_ENSURE_TENSORBOARD] = "ensure board",
        [ACT_DELETE_TENSORBOARD] = "delete board", [ACT_CREATE_SERVICE] = "create service",
        [ACT_CREATE_POD] = "create pod",           [ACT_DELETE_SERVICE] = "delete service",
        [ACT_DELETE_POD] = "delete pod",           [ACT_ADOPT_POD] = "adopt pod",
        [ACT_ADOPT_SERVICE] = "adopt service",     [ACT_LABEL_POD] = "label pod",
        [ACT_DELETE_JOB] = "delete job",
    };
    char name[128];
    buf_str(out, NAMES[a->kind]);
    if (a->name != NULL)
        buf_printf(out, " %s", a->name);
    else if (a->kind == ACT_CREATE_POD || a->kind == ACT_CREATE_SERVICE)
        buf_printf(out, " %s", a->index < 0 ? w->spec.name : job_spec_pod_name(&w->spec, a->role, a->index, name));
    if (a->kind == ACT_CREATE_POD && a->restarts > 0)
        buf_printf(out, " restarts %d", a->restarts);
    if (a->kind == ACT_DELETE_POD && a->grace_s == 0)
        buf_str(out, " by force");
}

static json_t *actions_of(const struct world *w, const struct job_plan *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->nactions; i++) {
        AUTO_FINI(buf) text = BUF_INIT;
        action_text(w, &p->actions[i], &text);
        json_array_append_new(list, json_string(text.data));
    }
    return list;
}

static json_t *events_of(const struct job_plan *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->nevents; i++) {
        const struct plan_event *e = &p->events[i];
        auto_free char *text = xasprintf("%s%s %s%s%s", e->warning ? "Warning " : "", e->reason, e->about,
                                         e->about[0] ? ": " : "", e->note);
        json_array_append_new(list, json_string(text));
    }
    return list;
}

static json_t *conditions_of(const struct job_status *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->nconds; i++) {
        auto_free char *text = xasprintf("%s%s", s->conds[i].is_true ? "" : "-", condition_name(s->conds[i].type));
        json_array_append_new(list, json_string(text));
    }
    return list;
}

/* {Failed: "BadInput: digits-worker-1 exited ..."} */
static json_t *says_of(const struct job_status *s)
{
    json_t *says = json_object();
    for (size_t i = 0; i < s->nconds; i++) {
        auto_free char *text = xasprintf("%s: %s", s->conds[i].reason, s->conds[i].message);
        json_object_set_new(says, condition_name(s->conds[i].type), json_string(text));
    }
    return says;
}

static json_t *got_of(const struct world *w, const struct job_plan *p)
{
    struct job_status none = { .nconds = 0 };
    json_auto_t *written = job_status_patch(w->spec.kind, w->spec.uid, 0, &none, &p->status);
    json_t *status = json_object_get(written, "status"), *got = json_object();

    json_object_set_new(got, "actions", actions_of(w, p));
    json_object_set_new(got, "events", events_of(p));
    json_object_set_new(got, "conditions", conditions_of(&p->status));
    json_object_set_new(got, "says", says_of(&p->status));
    json_object_set_new(got, "state", json_string(p->status.state));
    json_object_set_new(got, "ready", json_string(p->status.ready));
    json_object_set_new(got, "next", json_integer(p->next_ms == 0 ? 0 : (p->next_ms - ZERO) / 1000));
    json_object_set_new(got, "restarted", json_integer(p->restarted));
    json_object_set_new(got, "poll", json_boolean(p->poll));
    json_object_del(status, "conditions");
    json_object_set(got, "status", status);
    return got;
}

/* ---- what is wanted ---- */

/* All that `want` holds is in `got`; null or 0: it may be missing there. */
static bool holds(const json_t *got, const json_t *want)
{
    const char *key;
    json_t *v;
    if (!json_is_object(want))
        return json_equal(got, want) ||
               (got == NULL && (json_is_null(want) || (json_is_integer(want) && json_integer_value(want) == 0)));
    json_object_foreach((json_t *)(uintptr_t)want, key, v) if (!holds(json_object_get(got, key), v)) return false;
    return true;
}

static void expect(const char *what, json_t *got, json_t *want)
{
    json_auto_t *no = json_array();
    if (json_object_get(want, "actions") == NULL)
        json_object_set(want, "actions", no);
    if (json_object_get(want, "events") == NULL)
        json_object_set(want, "events", no);
    if (holds(got, want))
        return;
    AUTO_FINI(buf) is = BUF_INIT;
    AUTO_FINI(buf) should = BUF_INIT;
    yaml_emit(got, &is);
    yaml_emit(want, &should);
    ck_abort_msg("%s: wanted\n%s\nthere is\n%s", what, should.data, is.data);
}

static void play_step(struct world *w, json_t *job, json_t *step, const char *what)
{
    AUTO_FINI(job_plan) p = { .nactions = 0 };
    happen(w, job, step);
    world_plan(w, &w->status, &p);
    json_auto_t *got = got_of(w, &p);
    if (getenv("TRAINYARD_SHOW") != NULL) {
        AUTO_FINI(buf) text = BUF_INIT;
        yaml_emit(got, &text);
        printf("--- %s\n%s", what, text.data);
    }
    expect(what, got, json_object_get(step, "want"));
    world_keep_status(w, &p.status);
    world_act(w, &p);
    world_look_again(w, what);
}

static void play(const char *name)
{
    auto_free char *path = xasprintf(CASES "%s/case.yaml", name);
    json_auto_t *scenario = load(path);
    auto_free char *job_path = xasprintf(CASES "jobs/%s.yaml", text_at(scenario, "job"));
    json_auto_t *job = load(job_path);
    AUTO_FINI(world) w;
    size_t i;
    json_t *step, *change = json_object_get(scenario, "change");

    merge(job, change);
    world_init(&w, job);
    w.settings.force_delete_ms = 60000;
    job_status_parse(json_object_get(scenario, "status"), &w.status);
    change_settings(&w, json_object_get(scenario, "settings"));
    ck_assert_uint_gt(json_array_size(json_object_get(scenario, "steps")), 0);
    json_array_foreach(json_object_get(scenario, "steps"), i, step)
    {
        auto_free char *what =
            xasprintf("%s, step %zu (%s)", name, i + 1, text_at(step, "what") != NULL ? text_at(step, "what") : "");
        play_step(&w, job, step, what);
    }
}

START_TEST(every_scenario_ends_as_expected)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(strlist) names = { .n = 0 };
    const char *only = getenv("TRAINYARD_ONLY");
    int played = 0;

    ck_ok_e(dir_list(CASES, &names, &e));
    for (size_t i = 0; i < names.n; i++) {
        if (str_eq(names.items[i], "jobs") || (only != NULL && !str_eq(only, names.items[i])))
            continue;
        play(names.items[i]);
        played++;
    }
    ck_assert_int_gt(played, only != NULL ? 0 : 30);
}
END_TEST

START_TEST(pauses_grow_to_a_minute)
{
    static const int64_t WANT[] = { 0, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000 };
    for (size_t i = 0; i < COUNT_OF(WANT); i++)
        ck_assert_int_eq(plan_backoff_ms((int64_t)i), WANT[i]);
    ck_assert_int_eq(plan_backoff_ms(INT64_MAX), 60000);
    ck_assert_int_eq(plan_backoff_ms(-1), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("plan");
    TCase *t = tcase_create("plan");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, every_scenario_ends_as_expected);
    tcase_add_test(t, pauses_grow_to_a_minute);
    suite_add_tcase(s, t);
    return s;
}
