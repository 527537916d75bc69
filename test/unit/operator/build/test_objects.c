/* Objects of jobs: test/data/build/<case>/{job.yaml, settings.yaml, want/NAME.yaml}. All objects of the job are built
 * and compared with the case byte by byte, including lists, TF_CONFIG and the order of variables.
 *
 * settings.yaml is optional: {restarts, gang, domain, pullPolicy, lostAfter, assignUser, architecture, scrapers,
 * claims: {NAME: [access modes]}, only: [names], identity}; with `only` no other objects are compared. identity: true
 * (default for a TrainJob with a model): all replicas have a certificate; insecure: the job runs without; none.
 * TRAINYARD_REWRITE=1 writes what is built: review all of it afterwards. */
#include "operator/api_case.h"

#include "build/json_fill.h"
#include "build/objects.h"
#include "job/cluster.h"

#define CASES "test/data/build/"

/* ---- what is built ---- */

struct built {
    const char *path; /* of the case */
    json_t *options;
    struct job_spec view;
    json_t *spec;
    struct build_settings settings;
    struct strlist scrapers, texts;
    struct claim_info claims[CLAIMS_MAX];
    struct job_identity identity;
    int restarts;
    struct buf warnings;
    size_t compared;
};

static json_t *option(const struct built *b, const char *name)
{
    return json_object_get(b->options, name);
}

static const char *text_option(const struct built *b, const char *name)
{
    const char *s = json_string_value(option(b, name));
    return s != NULL ? s : "";
}

static bool is_listed(const json_t *list, const char *name)
{
    size_t i;
    const json_t *v;

    json_array_foreach(list, i, v) if (str_eq(json_string_value(v), name)) return true;
    return false;
}

static void read_claims(struct built *b)
{
    for (size_t i = 0; i < b->view.nclaims; i++) {
        const json_t *modes = json_object_get(option(b, "claims"), b->view.claims[i].name);
        b->claims[i] = (struct claim_info){
            .name = b->view.claims[i].name,
            .found = modes != NULL,
            .read_write_many = is_listed(modes, "ReadWriteMany"),
            .read_write_once = is_listed(modes, "ReadWriteOnce"),
            .read_write_once_pod = is_listed(modes, "ReadWriteOncePod"),
            .read_only_many = is_listed(modes, "ReadOnlyMany"),
        };
    }
}

/* The replicas of each role are in a Secret of their own, as in a large job. */
static void read_identity(struct built *b)
{
    const json_t *given = option(b, "identity");
    char name[128];

    b->identity = (struct job_identity){ .insecure = str_eq(json_string_value(given), "insecure") };
    if (given != NULL ? !json_is_true(given) : !b->view.has_model)
        return;
    for (int r = 0; r < ROLE_COUNT; r++) {
        str_fmt(name, sizeof(name), "%s-identity-%s", b->view.name, role_name((enum role)r));
        size_t secret = job_identity_add_secret(&b->identity, name, "secret-uid");
        for (int i = 0; i < b->view.roles[r].replicas; i++)
            job_identity_put(&b->identity, (enum role)r, i, secret, 1767225600000, "00");
    }
}

static void open_case(const char *path, struct built *b)
{
    auto_free char *job = path_join(path, "job.yaml"), *settings = path_join(path, "settings.yaml");
    json_auto_t *object = api_load(job);
    size_t i;
    const json_t *v;

    *b = (struct built){ .path = path, .warnings = BUF_INIT };
    b->options = file_exists(settings) ? api_load(settings) : json_object();
    job_spec_parse(str_eq(json_string_value(json_object_get(object, "kind")), "TFJob") ? &KIND_TFJOB : &KIND_TRAINJOB,
                   object, CLEAN_NONE, &b->view);
    ck_assert_msg(b->view.invalid == NULL, "%s: %s", path, b->view.invalid);
    b->spec = job_spec_json(&b->view);
    json_array_foreach(option(b, "scrapers"), i, v) strlist_add(&b->scrapers, json_string_value(v));
    read_claims(b);
    read_identity(b);
    b->restarts = (int)json_integer_value(option(b, "restarts"));
    b->settings = (struct build_settings){
        .trainer_image = "trainyard/trainer:0.1.0",
        .pull_policy = text_option(b, "pullPolicy"),
        .tensorboard_image = "tensorflow/tensorflow:2.16.1",
        .cluster_domain = text_option(b, "domain"),
        .gang_scheduler = text_option(b, "gang"),
        .operator_ns = "trainyard-system",
        .scraper_namespaces = &b->scrapers,
        .leave_user = json_is_false(option(b, "assignUser")),
        .architecture = text_option(b, "architecture"),
        .lost_after_s = (int)json_integer_value(option(b, "lostAfter")),
    };
}

static void close_case(struct built *b)
{
    json_decref(b->options);
    json_decref(b->spec);
    job_spec_fini(&b->view);
    strlist_fini(&b->scrapers);
    strlist_fini(&b->texts);
    job_identity_fini(&b->identity);
    buf_fini(&b->warnings);
}

/* ---- compared ---- */

static void check_text(struct built *b, const char *name, const char *got, size_t n)
{
    struct err e = { .code = ERR_NONE };
    auto_free char *folder = path_join(b->path, "want"), *path = path_join(folder, name);
    AUTO_FINI(buf) want = BUF_INIT;

    b->compared++;
    if (getenv("TRAINYARD_REWRITE") != NULL) {
        ck_ok_e(dir_make(folder, &e));
        ck_ok_e(file_write(path, got, n, &e));
        return;
    }
    ck_ok_e(file_read(path, API_CASE_MAX, &want, &e));
    ck_assert_msg(str_eq(want.data, got), "%s is now\n%s", path, got);
}

static void check_object(struct built *b, const char *what, json_t *object)
{
    json_auto_t *mine = object;
    AUTO_FINI(buf) text = BUF_INIT;
    const char *name = json_string_value(json_at(object, "metadata.name"));
    auto_free char *file = xasprintf("%s-%s.yaml", what, name);

    ck_assert_ptr_nonnull(mine);
    if (option(b, "only") != NULL && !is_listed(option(b, "only"), name))
        return;
    yaml_emit(mine, &text);
    check_text(b, file, text.data, text.len);
}

static void check_replicas(struct built *b)
{
    const struct job_spec *v = &b->view;

    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; i < v->roles[r].replicas; i++) {
            check_object(b, "pod",
                         build_pod(v, b->spec, (enum role)r, i, b->restarts, b->claims, v->nclaims, &b->identity,
                                   &b->settings, &b->warnings));
            if (v->kind->service_per_replica)
                check_object(b, "service", build_service(v, b->spec, (enum role)r, i));
        }
    if (!v->kind->service_per_replica)
        check_object(b, "service", build_service(v, b->spec, ROLE_WORKER, -1));
}

static void check_others(struct built *b)
{
    const struct job_spec *v = &b->view;
    auto_free char *fault = build_claims_fault(v, b->claims, v->nclaims);
    json_t *config = build_config_map(v, b->spec, &b->settings);

    ck_assert_int_eq(config != NULL, build_needs_config_map(v));
    if (config != NULL)
        check_object(b, "configmap", config);
    if (v->kind->own_processes)
        check_object(b, "networkpolicy", build_network_policy(v, &b->settings));
    if (*b->settings.gang_scheduler != '\0')
        check_object(b, "podgroup", build_pod_group(v, b->spec, 0, &b->settings));
    if (v->tensorboard) {
        check_object(b, "deployment", build_tensorboard(v, b->spec, b->claims, v->nclaims, &b->settings));
        check_object(b, "service", build_tensorboard_service(v));
    }
    if (fault != NULL)
        check_text(b, "fault", fault, strlen(fault));
    if (b->warnings.len > 0)
        check_text(b, "warnings", b->warnings.data, b->warnings.len);
}

/* Every file of the case must have been built, so that a missing object is found. */
static void check_case(const char *path)
{
    struct err e = { .code = ERR_NONE };
    auto_free char *folder = path_join(path, "want");
    AUTO_FINI(strlist) files = { .n = 0 };
    struct built b;

    open_case(path, &b);
    check_replicas(&b);
    check_others(&b);
    ck_ok_e(dir_list(folder, &files, &e));
    ck_assert_msg(files.n == b.compared, "%s: %zu objects are wanted, %zu were built", path, files.n, b.compared);
    close_case(&b);
}

START_TEST(objects_are_as_the_cases_say)
{
    api_each(CASES, check_case);
}
END_TEST

/* ---- the rest ---- */

static void text_is(json_t *v, const char *want)
{
    AUTO_FINI(buf) text = BUF_INIT;
    json_emit(v, &text);
    ck_assert_str_eq(text.data, want);
    json_decref(v);
}

START_TEST(an_orphan_is_adopted_by_uid)
{
    struct built b;
    open_case(CASES "tf_chief_ps_worker_evaluator", &b);
    text_is(build_adoption_patch(&b.view, "pod-uid", 41),
            "{\"metadata\":{\"uid\":\"pod-uid\",\"resourceVersion\":\"41\","
            "\"ownerReferences\":[{\"apiVersion\":\"kubeflow.org/"
            "v1\",\"kind\":\"TFJob\",\"name\":\"mnist\",\"uid\":\"8f1e\","
            "\"controller\":true,\"blockOwnerDeletion\":true}]}}");
    close_case(&b);
}
END_TEST

START_TEST(a_group_is_of_its_schedulers_kind)
{
    const struct build_settings none = { .gang_scheduler = "" }, volcano = { .gang_scheduler = "volcano" },
                                other = { .gang_scheduler = "scheduler-plugins-scheduler" };
    ck_assert_ptr_null(build_pod_group_resource(&none));
    ck_assert_str_eq(build_pod_group_resource(&volcano)->group, "scheduling.volcano.sh");
    ck_assert_str_eq(build_pod_group_resource(&other)->group, "scheduling.x-k8s.io");
}
END_TEST

static void check_members(struct built *b, int min_available, int completed, int members, const char *cpu)
{
    b->view.gang.min_available = min_available;
    json_auto_t *group = build_pod_group(&b->view, b->spec, completed, &b->settings);
    ck_assert_int_eq(json_integer_value(json_at(group, "spec.minMember")), members);
    ck_assert_str_eq(json_string_value(json_at(group, "spec.minResources.cpu")), cpu);
}

/* A scheduler that waits for a pod that is never re-created lets no other pod start again. */
START_TEST(a_group_does_not_wait_for_who_is_done)
{
    struct built b;
    open_case(CASES "train_volcano", &b);
    check_members(&b, 0, 0, 5, "6200m");
    check_members(&b, 0, 1, 4, "4200m");
    check_members(&b, 2, 1, 2, "200m");
    check_members(&b, 10, 0, 10, "6200m"); /* more than there are: the user wants it to wait */
    check_members(&b, 10, 1, 4, "4200m");
    check_members(&b, 0, 5, 1, "100m");
    close_case(&b);
}
END_TEST

/* Once the pods have their job file the operator forgets the model: nothing else depends on it. */
START_TEST(pods_need_no_model)
{
    struct built b;
    open_case(CASES "train_digits", &b);
    job_spec_drop_model(&b.view);
    json_decref(b.spec);
    b.spec = job_spec_json(&b.view);
    check_replicas(&b);
    ck_assert_ptr_null(build_config_map(&b.view, b.spec, &b.settings));
    close_case(&b);
}
END_TEST

/* The API server refuses fields of a template that have a wrong type: here they must only do no harm. */
START_TEST(nonsense_in_a_template_is_left_alone)
{
    static const char *const NONSENSE[] = {
        "{\"metadata\": {\"labels\": 3, \"annotations\": [], \"finalizers\": {}}, \"spec\": {\"volumes\": 1}}",
        "{\"spec\": {\"containers\": [{\"name\": \"trainer\", \"env\": {}, \"ports\": \"x\", \"volumeMounts\": 7}]}}",
        "{\"spec\": {\"containers\": [7, null, {\"name\": 3}], \"affinity\": [], \"tolerations\": {}}}",
        "{\"spec\": {\"containers\": [7]}}",
        "{\"spec\": {\"containers\": {}, \"securityContext\": \"none\"}}",
        "{\"spec\": [], \"metadata\": null}",
        "3",
    };
    struct built b;
    open_case(CASES "train_shared_node", &b);
    for (size_t i = 0; i < COUNT_OF(NONSENSE); i++) {
        json_auto_t *template = NULL;
        struct err e = { .code = ERR_NONE };
        ck_ok_e(json_parse(NONSENSE[i], strlen(NONSENSE[i]), "template", &template, &e));
        json_object_set(json_at(b.spec, "spec.replicaSpecs.Chief"), "template", template);
        json_auto_t *pod =
            build_pod(&b.view, b.spec, ROLE_CHIEF, 0, 1, b.claims, b.view.nclaims, &b.identity, &b.settings, NULL);
        json_auto_t *group = build_pod_group(
            &b.view, b.spec, 0, &(struct build_settings){ .gang_scheduler = "volcano", .trainer_image = "x" });
        ck_assert_str_eq(json_string_value(json_at(pod, "metadata.name")), "digits-chief-0");
        ck_assert_ptr_nonnull(group);
    }
    close_case(&b);
}
END_TEST

/* ---- what a replica reads from it ---- */

/* As the kubelet passes it to the container: from the ConfigMap, with $(TRAINYARD_CLUSTER) expanded. NULL: the
 * container does not have it. Owned by the case. */
static const char *variable(struct built *b, const json_t *pod, const char *name)
{
    const json_t *v = json_find_named(json_at(pod, "spec.containers.0.env"), name);
    const char *text = json_string_value(json_object_get(v, "value")),
               *key = json_string_value(json_at(v, "valueFrom.configMapKeyRef.key"));
    json_auto_t *config = build_config_map(&b->view, b->spec, &b->settings);
    static const char CLUSTER[] = "$(TRAINYARD_CLUSTER)";
    const char *at = text != NULL ? strstr(text, CLUSTER) : NULL;
    if (key != NULL) {
        ck_assert_str_eq(json_string_value(json_at(v, "valueFrom.configMapKeyRef.name")),
                         json_string_value(json_at(config, "metadata.name")));
        text = json_string_value(json_object_get(json_object_get(config, "data"), key));
        ck_assert_ptr_nonnull(text);
    }
    if (text == NULL)
        return NULL;
    auto_free char *whole = at == NULL ? xstrdup(text)
                                       : xasprintf("%.*s%s%s", (int)(at - text), text,
                                                   variable(b, pod, "TRAINYARD_CLUSTER"), at + strlen(CLUSTER));
    strlist_add(&b->texts, whole);
    return b->texts.items[b->texts.n - 1];
}

static void same_cluster(const char *pod, const struct cluster *a, const struct cluster *b)
{
    ck_assert_msg(a->role == b->role && a->index == b->index, "%s", pod);
    for (int r = 0; r < ROLE_COUNT; r++) {
        if (r == ROLE_EVALUATOR) /* the variables have no name for it */
            continue;
        ck_assert_uint_eq(a->hosts[r].n, b->hosts[r].n);
        for (size_t i = 0; i < a->hosts[r].n; i++)
            ck_assert_str_eq(a->hosts[r].items[i], b->hosts[r].items[i]);
    }
}

/* The pod's own program reads the same from its TF_CONFIG and from its JOB_NAME variables. */
static void check_cluster_of(struct built *b, enum role r, int index)
{
    struct err e = { .code = ERR_NONE };
    json_auto_t *pod = build_pod(&b->view, b->spec, r, index, 0, NULL, 0, &b->identity, &b->settings, NULL);
    const char *name = json_string_value(json_at(pod, "metadata.name"));
    struct cluster_input none = { .job_name = NULL }, config = { .tf_config = variable(b, pod, "TF_CONFIG") },
                         family = { .job_name = variable(b, pod, "JOB_NAME"),
                                    .task_index = variable(b, pod, "TASK_INDEX"),
                                    .ps_hosts = variable(b, pod, "PS_HOSTS"),
                                    .worker_hosts = variable(b, pod, "WORKER_HOSTS"),
                                    .chief_host = variable(b, pod, "CHIEF_HOST") };
    AUTO_FINI(cluster) one = { .configured = false };
    AUTO_FINI(cluster) two = { .configured = false };

    ck_ok_e(cluster_resolve(&none, &config, &one, &e));
    ck_ok_e(cluster_resolve(&none, &family, &two, &e));
    ck_assert(one.configured && two.configured);
    ck_assert_int_eq(one.role, r);
    ck_assert_int_eq(one.index, index);
    ck_assert_int_eq((int)one.hosts[r].n, b->view.roles[r].replicas);
    same_cluster(name, &one, &two);
}

START_TEST(replicas_find_each_other)
{
    static const char *const NAMES[] = { "tf_chief_ps_worker_evaluator", "tf_master", "tf_custom_ports_and_domain",
                                         "train_own_image" };
    for (size_t i = 0; i < COUNT_OF(NAMES); i++) {
        auto_free char *path = path_join(CASES, NAMES[i]);
        struct built b;
        open_case(path, &b);
        for (int r = 0; r < ROLE_COUNT; r++)
            for (int n = 0; n < b.view.roles[r].replicas; n++)
                check_cluster_of(&b, (enum role)r, n);
        close_case(&b);
    }
}
END_TEST

/* Our programs get the addresses that they need, however many workers there are. */
START_TEST(our_replicas_find_ps_and_leader)
{
    static const char *const NAMES[] = { "train_digits", "train_no_chief" };
    for (size_t i = 0; i < COUNT_OF(NAMES); i++) {
        auto_free char *path = path_join(CASES, NAMES[i]);
        struct err e = { .code = ERR_NONE };
        struct built b;
        open_case(path, &b);
        b.view.roles[ROLE_WORKER].replicas = 3000;
        static const int WORKERS[] = { 0, 1, 2999 };
        for (size_t k = 0; k < COUNT_OF(WORKERS); k++) {
            json_auto_t *pod =
                build_pod(&b.view, b.spec, ROLE_WORKER, WORKERS[k], 0, NULL, 0, &b.identity, &b.settings, NULL);
            const char *text = variable(&b, pod, "TF_CONFIG");
            struct cluster_input none = { .job_name = NULL }, config = { .tf_config = text };
            AUTO_FINI(cluster) c = { .configured = false };
            ck_assert_uint_lt(strlen(text), 400);
            ck_assert_ptr_null(variable(&b, pod, "WORKER_HOSTS"));
            ck_ok_e(cluster_resolve(&none, &config, &c, &e));
            ck_assert(c.configured && c.role == ROLE_WORKER && c.index == WORKERS[k]);
            ck_assert_int_eq((int)c.hosts[ROLE_PS].n, b.view.roles[ROLE_PS].replicas);
            ck_assert_int_eq(cluster_workers(&c), 3000);
            bool chief = b.view.roles[ROLE_CHIEF].replicas > 0;
            ck_assert_uint_eq(c.hosts[ROLE_WORKER].n, chief ? 0 : 1);
            ck_assert(str_starts(cluster_chief_address(&c), chief ? "digits-chief-0." : "digits-worker-0."));
            ck_assert(cluster_is_chief(&c) == (!chief && k == 0));
        }
        close_case(&b);
    }
}
END_TEST

/* ---- cost ---- */

static size_t objects_allocations, objects_bytes;

static void *objects_malloc(size_t n)
{
    objects_allocations++;
    objects_bytes += n;
    return malloc(n);
}

/* All objects of a job of six replicas. What they cost is counted in allocations for JSON values: a count is the same
 * on each machine. */
START_TEST(the_objects_of_a_job_cost_little)
{
    enum { ALLOCATIONS_MAX = 1600, BYTES_MAX = 90000 };
    struct built b;

    open_case(CASES "tf_chief_ps_worker_evaluator", &b);
    json_set_alloc_funcs(objects_malloc, free);
    for (int r = 0; r < ROLE_COUNT; r++)
        for (int n = 0; n < b.view.roles[r].replicas; n++) {
            json_decref(build_pod(&b.view, b.spec, (enum role)r, n, 0, NULL, 0, &b.identity, &b.settings, NULL));
            json_decref(build_service(&b.view, b.spec, (enum role)r, n));
        }
    json_set_alloc_funcs(malloc, free);
    printf("the objects of a job of %d replicas: %zu allocations for JSON of %zu bytes\n", job_spec_replicas(&b.view),
           objects_allocations, objects_bytes);
    ck_assert_uint_le(objects_allocations, ALLOCATIONS_MAX);
    ck_assert_uint_le(objects_bytes, BYTES_MAX);
    close_case(&b);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("objects");
    TCase *t = tcase_create("objects");
    tcase_add_test(t, objects_are_as_the_cases_say);
    tcase_add_test(t, an_orphan_is_adopted_by_uid);
    tcase_add_test(t, a_group_is_of_its_schedulers_kind);
    tcase_add_test(t, a_group_does_not_wait_for_who_is_done);
    tcase_add_test(t, pods_need_no_model);
    tcase_add_test(t, nonsense_in_a_template_is_left_alone);
    tcase_add_test(t, replicas_find_each_other);
    tcase_add_test(t, our_replicas_find_ps_and_leader);
    tcase_add_test(t, the_objects_of_a_job_cost_little);
    suite_add_tcase(s, t);
    return s;
}
