/* Facts of pods: test/data/api/pod/<case>/{pod.json,expected.json}. The pods were read from a real API server. Those
 * with managedFields are whole; of the others only what the kubelet and the scheduler wrote is kept. */
#include "operator/api_case.h"

#include "api/pod_info.h"
#include "codec/json_prune.h"

#define WHOLE     API_CASES "pod/running_ready/pod.json"
#define TALKATIVE API_CASES "pod/failed_exit_code/pod.json"

/* The kind whose controller created the object. */
static const struct job_kind *kind_of(const json_t *object)
{
    const json_t *labels = json_at(object, "metadata.labels");
    return json_object_get(labels, "training.kubeflow.org/operator-name") != NULL ? &KIND_TFJOB : &KIND_TRAINJOB;
}

/* ---- pods ---- */

static json_t *pod_json(const struct pod_info *p)
{
    static const char *const PHASES[] = { "Pending", "Running", "Succeeded", "Failed", "Unknown" };
    json_t *j = json_pack("{s:o, s:o, s:o, s:[s, i]}", "name", text_or_null(p->name), "uid", text_or_null(p->uid),
                          "owner", text_or_null(p->owner_uid), "replica", role_name(p->role), p->index);

    ck_assert(!p->creating && !p->deleting);
    json_object_set_new(j, "phase", json_string(PHASES[p->phase]));
    if (p->held_by != NULL)
        json_object_set_new(j, "held by", json_string(p->held_by));
    if (p->lingers)
        json_object_set_new(j, "lingers", json_true());
    json_object_set_new(j, "ready, disrupted", json_pack("[b, b]", p->ready, p->disrupted));
    json_object_set_new(j, "version", json_integer(p->version));
    json_object_set_new(j, "created, started, ended, gone by",
                        json_pack("[I, I, I, I]", (json_int_t)p->created_ms, (json_int_t)p->started_ms,
                                  (json_int_t)p->ended_ms, (json_int_t)p->gone_by_ms));
    json_object_set_new(j, "exit code", json_integer(p->exit_code));
    json_object_set_new(j, "restarts by kubelet, by us", json_pack("[i, i]", p->container_restarts, p->restarts));
    json_object_set_new(j, "reason", text_or_null(p->reason));
    json_object_set_new(j, "message", text_or_null(p->message));
    json_object_set_new(j, "node, ip", json_pack("[o, o]", text_or_null(p->node), text_or_null(p->ip)));
    return j;
}

/* As the watch delivers it: fields that the reader ignores are missing. */
static json_t *cut_pod(const json_t *pod)
{
    AUTO_FINI(strlist) paths = { 0 };
    AUTO_FINI(buf) text = BUF_INIT, shorter = BUF_INIT;
    json_t *v = NULL;
    struct err e;

    for (const char *const *p = POD_INFO_PRUNED; *p != NULL; p++)
        strlist_add(&paths, *p);
    json_emit(pod, &text);
    json_prune(text.data, text.len, &paths, &shorter);
    ck_ok_e(json_parse(shorter.data, shorter.len, "pod", &v, &e));
    return v;
}

static void check_pod(const char *path)
{
    AUTO_FINI(pod_info) p = { .name = NULL };
    auto_free char *input = path_join(path, "pod.json");
    json_auto_t *object = api_load(input), *before = json_deep_copy(object);

    ck_assert_int_eq(pod_info_parse(kind_of(object), object, &p), 0);
    ck_assert(json_equal(object, before));
    json_auto_t *got = pod_json(&p);
    ck_assert_ptr_nonnull(got);
    api_expect(path, got);

    AUTO_FINI(pod_info) q = { .name = NULL };
    json_auto_t *cut = cut_pod(object);
    ck_assert_int_eq(pod_info_parse(kind_of(object), cut, &q), 0);
    json_auto_t *same = pod_json(&q);
    ck_assert(json_equal(got, same));
}

START_TEST(every_pod_is_understood)
{
    api_each(API_CASES "pod", check_pod);
}
END_TEST

START_TEST(a_pod_names_its_job)
{
    json_auto_t *ours = api_load(WHOLE), *tf = api_load(API_CASES "pod/orphan/pod.json");
    ck_assert_str_eq(object_job_name(&KIND_TRAINJOB, ours), "mnist");
    ck_assert_ptr_null(object_job_name(&KIND_TFJOB, ours));
    ck_assert_str_eq(object_job_name(&KIND_TFJOB, tf), "dist-mnist");
}
END_TEST

START_TEST(a_pod_of_another_kind_or_without_place_is_none_of_ours)
{
    static const char *const TEXTS[] = { "{}",
                                         "[]",
                                         "{\"metadata\": {\"labels\": 1}}",
                                         "{\"metadata\": {\"labels\": {\"trainyard.dev/replica-type\": \"worker\"}}}",
                                         "{\"metadata\": {\"labels\": {\"trainyard.dev/replica-type\": \"worker\", "
                                         "\"trainyard.dev/replica-index\": \"-1\"}}}",
                                         "{\"metadata\": {\"labels\": {\"trainyard.dev/replica-type\": \"worker\", "
                                         "\"trainyard.dev/replica-index\": \"99999999999\"}}}",
                                         "{\"metadata\": {\"labels\": {\"trainyard.dev/replica-type\": \"launcher\", "
                                         "\"trainyard.dev/replica-index\": \"1\"}}}",
                                         "{\"metadata\": {\"labels\": {\"training.kubeflow.org/replica-type\": "
                                         "\"worker\", \"training.kubeflow.org/replica-index\": \"1\"}}}" };
    for (size_t i = 0; i < COUNT_OF(TEXTS); i++) {
        struct pod_info p = { .index = 77 };
        json_auto_t *object = json_loads(TEXTS[i], 0, NULL);
        ck_assert_ptr_nonnull(object);
        ck_assert_int_eq(pod_info_parse(&KIND_TRAINJOB, object, &p), -1);
        ck_assert_int_eq(p.index, 77);
    }
}
END_TEST

/* Values of any type in any field do no harm. */
/* A pod that a job controls belongs to that job whatever its labels are, and its name determines the replica. For an
 * orphan the labels do. */
static const struct {
    const char *owner, *labels; /* labels: job-name, operator-name, replica-type, replica-index; "-": none */
    const char *job;
    enum role role;
    int index;
    bool parsed, mislabelled;
} PLACES[] = {
    { "TFJob kubeflow.org/v1", "tf tfjob-controller worker 3", "tf", ROLE_WORKER, 3, true, false },
    { "TFJob kubeflow.org/v1", "other tfjob-controller worker 3", "tf", ROLE_WORKER, 3, true, true },
    { "TFJob kubeflow.org/v1", "tf nobody worker 3", "tf", ROLE_WORKER, 3, true, true },
    { "TFJob kubeflow.org/v1", "tf tfjob-controller ps 3", "tf", ROLE_WORKER, 3, true, true },
    { "TFJob kubeflow.org/v1", "tf tfjob-controller worker 0", "tf", ROLE_WORKER, 3, true, true },
    { "TFJob kubeflow.org/v1", "- - - -", "tf", ROLE_WORKER, 3, true, true },
    { "TrainJob trainyard.dev/v1alpha1", "other tfjob-controller ps 1", "other", ROLE_PS, 1, true, false },
    { "TFJob example.com/v1", "other tfjob-controller ps 1", "other", ROLE_PS, 1, true, false },
    { "- -", "other tfjob-controller ps 1", "other", ROLE_PS, 1, true, false },
    { "- -", "other tfjob-controller - 1", "other", ROLE_PS, 1, false, false },
};

static json_t *pod_of(const char *owner, const char *text)
{
    static const char *const NAMES[] = { "job-name", "operator-name", "replica-type", "replica-index" };
    char kind[32], version[32], words[4][32];
    json_t *labels = json_object(), *meta = json_pack("{s:s, s:s}", "name", "tf-worker-3", "uid", "u");

    ck_assert_int_eq(sscanf(owner, "%31s %31s", kind, version), 2);
    ck_assert_int_eq(sscanf(text, "%31s %31s %31s %31s", words[0], words[1], words[2], words[3]), 4);
    for (size_t i = 0; i < COUNT_OF(NAMES); i++)
        if (!str_eq(words[i], "-")) {
            auto_free char *key = xasprintf("training.kubeflow.org/%s", NAMES[i]);
            json_object_set_new(labels, key, json_string(words[i]));
        }
    json_object_set_new(meta, "labels", labels);
    if (!str_eq(kind, "-"))
        json_object_set_new(meta, "ownerReferences",
                            json_pack("[{s:s, s:s, s:s, s:s, s:b}]", "apiVersion", version, "kind", kind, "name", "tf",
                                      "uid", "o", "controller", 1));
    return json_pack("{s:o}", "metadata", meta);
}

START_TEST(the_owner_counts_more_than_labels)
{
    AUTO_FINI(pod_info) p = { .name = NULL };
    json_auto_t *pod = pod_of(PLACES[_i].owner, PLACES[_i].labels);
    ck_assert_str_eq(object_job_name(&KIND_TFJOB, pod), PLACES[_i].job);
    ck_assert_int_eq(pod_info_parse(&KIND_TFJOB, pod, &p) == 0, PLACES[_i].parsed);
    if (!PLACES[_i].parsed)
        return;
    ck_assert_int_eq(p.role, PLACES[_i].role);
    ck_assert_int_eq(p.index, PLACES[_i].index);
    ck_assert_int_eq(p.mislabelled, PLACES[_i].mislabelled);
}
END_TEST

START_TEST(a_pod_with_values_of_wrong_types_does_no_harm)
{
    static const char TEXT[] =
        "{\"metadata\": {\"labels\": {\"trainyard.dev/replica-type\": \"PS\", \"trainyard.dev/replica-index\": \"7\"}, "
        "\"ownerReferences\": [1, {\"controller\": true, \"uid\": 2}, null], \"annotations\": [], \"resourceVersion\": "
        "5}, \"spec\": [], \"status\": {\"phase\": 3, \"conditions\": [1, {\"type\": 2}], \"reason\": {}, "
        "\"containerStatuses\": [1, {\"name\": \"trainer\", \"state\": {\"terminated\": {\"exitCode\": -99999999999, "
        "\"finishedAt\": 7}}, \"restartCount\": -4}, {\"state\": []}], \"initContainerStatuses\": 5}}";
    AUTO_FINI(pod_info) p = { .name = NULL };
    json_auto_t *object = json_loads(TEXT, 0, NULL);
    ck_assert_ptr_nonnull(object);
    ck_assert_int_eq(pod_info_parse(&KIND_TRAINJOB, object, &p), 0);
    ck_assert_int_eq(p.role, ROLE_PS);
    ck_assert_int_eq(p.index, 7);
    ck_assert_int_eq(p.exit_code, -1);
    ck_assert_int_eq(p.container_restarts, 0);
    ck_assert_ptr_null(p.owner_uid);
}
END_TEST

/* ---- messages ---- */

static char *message_after(const char *path, const char *message)
{
    AUTO_FINI(pod_info) p = { .name = NULL };
    json_auto_t *object = api_load(path);

    json_object_set_new(json_at(object, "status.containerStatuses.0.state.terminated"), "message",
                        json_string(message));
    ck_assert_int_eq(pod_info_parse(kind_of(object), object, &p), 0);
    return TAKE(p.message);
}

START_TEST(of_a_long_farewell_the_last_words_are_kept)
{
    AUTO_FINI(buf) text = BUF_INIT;
    for (int i = 0; i < 300; i++)
        buf_str(&text, "h\xc3\xb6r zu "); /* umlauts, so that a cut may be inside one */
    buf_str(&text, "error: loss is NaN");
    for (int pad = 0; pad < 4; pad++, buf_char(&text, '!')) {
        auto_free char *got = message_after(TALKATIVE, text.data);
        json_auto_t *as_json = json_string(got);
        ck_assert_ptr_nonnull(as_json); /* still UTF-8 */
        ck_assert_uint_le(strlen(got), 500);
        ck_assert_uint_ge(strlen(got), 497);
        ck_assert(str_starts(got, "..."));
        ck_assert(strstr(got, "error: loss is NaN") != NULL);
    }
}
END_TEST

START_TEST(messages_are_trimmed)
{
    auto_free char *one = message_after(TALKATIVE, " indented\n\n \t\n"), *none = message_after(TALKATIVE, "\n \n");
    ck_assert_str_eq(one, " indented");
    ck_assert_ptr_null(none);
}
END_TEST

/* ---- services ---- */

static json_t *service(const char *labels)
{
    json_t *s = json_loads(
        "{\"kind\": \"PartialObjectMetadata\", \"apiVersion\": \"meta.k8s.io/v1\", \"metadata\": {\"name\": \"mnist\", "
        "\"uid\": \"u\", \"ownerReferences\": [{\"uid\": \"x\"}, {\"uid\": \"o\", \"controller\": true}]}}",
        0, NULL);
    json_object_set_new(json_object_get(s, "metadata"), "labels", json_loads(labels, 0, NULL));
    return s;
}

START_TEST(services_are_of_a_replica_or_of_the_job)
{
    AUTO_FINI(service_info) replica = { .name = NULL };
    AUTO_FINI(service_info) job = { .name = NULL };
    json_auto_t *of_replica =
                    service("{\"training.kubeflow.org/job-name\": \"mnist\", \"training.kubeflow.org/replica-type\": "
                            "\"worker\", \"training.kubeflow.org/replica-index\": \"12\"}"),
                *of_job = service("{\"trainyard.dev/job-name\": \"mnist\"}"),
                *of_board =
                    service("{\"trainyard.dev/job-name\": \"mnist\", \"trainyard.dev/replica-type\": \"tensorboard\"}");

    ck_assert_int_eq(service_info_parse(&KIND_TFJOB, of_replica, &replica), 0);
    ck_assert_int_eq(replica.role, ROLE_WORKER);
    ck_assert_int_eq(replica.index, 12);
    ck_assert_str_eq(replica.name, "mnist");
    ck_assert_str_eq(replica.uid, "u");
    ck_assert_str_eq(replica.owner_uid, "o");

    ck_assert_int_eq(service_info_parse(&KIND_TRAINJOB, of_job, &job), 0);
    ck_assert_int_eq(job.index, -1);
    struct service_info none = { .index = 77 };
    ck_assert_int_eq(service_info_parse(&KIND_TFJOB, of_job, &none), -1);
    ck_assert_int_eq(service_info_parse(&KIND_TRAINJOB, of_board, &none), -1);
    ck_assert_int_eq(none.index, 77);
    ck_assert(service_is_tensorboard(&KIND_TRAINJOB, of_board));
    ck_assert(!service_is_tensorboard(&KIND_TFJOB, of_board) && !service_is_tensorboard(&KIND_TRAINJOB, of_job));
}
END_TEST

/* ---- costs ---- */

static void weigh(const char *path, const char *what, size_t most)
{
    enum { PODS = 1000 };
    struct pod_info **pods = xcalloc(PODS, sizeof(struct pod_info *));
    json_auto_t *object = api_load(path);
    size_t before = heap_used();
    double begin = cpu_us();

    for (int i = 0; i < PODS; i++) {
        pods[i] = xcalloc(1, sizeof(struct pod_info));
        ck_assert_int_eq(pod_info_parse(kind_of(object), object, pods[i]), 0);
    }
    double us = (cpu_us() - begin) / PODS;
    size_t bytes = (heap_used() - before) / PODS;
    printf("facts of %s: %zu bytes (struct %zu), %.1f us%s\n", what, bytes, sizeof(struct pod_info), us,
           before == 0 ? "; a sanitizer's heap is not measured" : "");
    for (int i = 0; i < PODS; i++) {
        pod_info_fini(pods[i]);
        free(pods[i]);
    }
    free(pods);
    ck_assert_uint_le(bytes, most);
}

START_TEST(facts_are_small)
{
    weigh(WHOLE, "a running pod", 512);
    weigh(TALKATIVE, "a pod that failed with many words", 512 + 512);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("facts");
    TCase *t = tcase_create("all");

    tcase_add_test(t, every_pod_is_understood);
    tcase_add_test(t, a_pod_names_its_job);
    tcase_add_test(t, a_pod_of_another_kind_or_without_place_is_none_of_ours);
    tcase_add_loop_test(t, the_owner_counts_more_than_labels, 0, COUNT_OF(PLACES));
    tcase_add_test(t, a_pod_with_values_of_wrong_types_does_no_harm);
    tcase_add_test(t, of_a_long_farewell_the_last_words_are_kept);
    tcase_add_test(t, messages_are_trimmed);
    tcase_add_test(t, services_are_of_a_replica_or_of_the_job);
    tcase_add_test(t, facts_are_small);
    suite_add_tcase(s, t);
    return s;
}
