#include "operator/controller_case.h"

#define SECRET_POSTS  "/api/v1/namespaces/a/secrets[?]*"
#define SECRET_CHANGE "/api/v1/namespaces/a/secrets/j-identity-*"
#define EVENT_POSTS   "/api/v1/namespaces/a/events[?]*"
#define STATUS        "/apis/trainyard.dev/v1alpha1/namespaces/a/trainjobs/j/status*"
#define JOB_WATCH     "*/trainjobs[?]watch=true*"
#define KEYS_B        "{\"data\":{\"20200201T000000Z\":\"QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI=\"}}"

static void begin_trainjobs(struct world *w, bool insecure)
{
    issue(w, insecure);
    begin(w, &KIND_TRAINJOB);
}

/* The operator ends, and another begins. */
static void restart(struct world *w)
{
    end(w);
    fake_api_break(w->api, "*[?]watch=true*");
    begin_trainjobs(w, false);
}

static void push_job(struct world *w, const char *type, int generation, int workers, const char *status)
{
    auto_free char *job = xasprintf(
        "{\"apiVersion\":\"trainyard.dev/v1alpha1\",\"kind\":\"TrainJob\",\"metadata\":"
        "{\"namespace\":\"a\",\"name\":\"j\",\"uid\":\"job-1\",\"resourceVersion\":\"2%d\",\"generation\":%d,"
        "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"model\":{\"inputShape\":[2],\"layers\":[{"
        "\"Dense\":"
        "{\"units\":1}}]},\"compile\":{\"optimizer\":\"SGD\",\"loss\":\"mse\"},\"data\":{\"train\":{\"format\":\"idx\","
        "\"features\":\"x\",\"labels\":\"y\"}},\"fit\":{\"epochs\":1,\"batchSize\":1},\"replicaSpecs\":{\"Chief\":{},"
        "\"PS\":{"
        "\"replicas\":1},\"Worker\":{\"replicas\":%d}}}%s%s}",
        generation, generation, workers, status[0] != '\0' ? ",\"status\":" : "", status);
    push(w, JOB_WATCH, type, job);
}

/* The i-th request of this kind, as JSON. */
static json_t *body_of(struct world *w, const char *method, const char *pattern, size_t i)
{
    struct fake_request r;
    json_t *v = NULL;
    ck_assert(fake_api_request(w->api, method, pattern, i, &r));
    ck_assert_int_eq(json_parse(r.body, r.body_len, "body", &v, NULL), 0);
    return v;
}

static size_t count(struct world *w, const char *method, const char *pattern)
{
    return fake_api_count(w->api, method, pattern);
}

/* Whether some request of this kind has the text in its body. */
struct search {
    struct world *w;
    const char *method, *pattern, *text;
};
static bool was_sent(void *user)
{
    const struct search *s = user;
    struct fake_request r;
    for (size_t i = 0; fake_api_request(s->w->api, s->method, s->pattern, i, &r); i++)
        if (strstr(r.body, s->text) != NULL)
            return true;
    return false;
}
static void wait_for_text(struct world *w, const char *method, const char *pattern, const char *text)
{
    fake_until(w->loop, was_sent, &(struct search){ w, method, pattern, text });
}

static const char *text_at(const json_t *v, const char *path)
{
    const char *s = json_string_value(json_at(v, path));
    return s != NULL ? s : "";
}

/* A certificate of a Secret is valid for its CA and names the replica. */
static void assert_leaf(const json_t *data, const char *name, int role, int index)
{
    struct err e = { .code = ERR_NONE };
    struct certificate_info info;
    char certificate[32], key[32];
    str_fmt(certificate, sizeof(certificate), "%s.crt", name);
    str_fmt(key, sizeof(key), "%s.key", name);
    const char *pem = json_string_value(json_object_get(data, certificate));
    ck_assert_msg(pem != NULL, "%s", name);
    ck_ok_e(certificate_check(json_string_value(json_object_get(data, "ca.crt")), pem,
                              json_string_value(json_object_get(data, key)), &e));
    ck_ok_e(certificate_read(pem, &info, &e));
    ck_assert_str_eq(info.identity.ns, "a");
    ck_assert_str_eq(info.identity.job_uid, "job-1");
    ck_assert_int_eq(info.identity.role, role);
    ck_assert_int_eq(info.identity.index, index);
    ck_assert_int_eq(info.not_after_s - info.not_before_s, 3600 + LEAF_EARLY_SECONDS);
}

static double metric(struct world *w, const char *name)
{
    AUTO_FINI(buf) text = BUF_INIT;
    auto_free char *line = xasprintf("\n%s ", name);
    registry_emit(w->registry, &text);
    const char *at = strstr(text.data, line);
    ck_assert_msg(at != NULL, "%s in %s", name, text.data);
    return atof(at + strlen(line));
}

static const struct job_identity *identity(struct world *w)
{
    return &cache_find(&w->controller->env.cache, "a/j")->status.identity;
}

/* ---- the usual ---- */

START_TEST(the_secret_and_the_status_come_before_the_pods)
{
    AUTO_FINI(world) w;
    world_init(&w);
    on(&w, "POST", SECRET_POSTS, (struct fake_answer){ .handle = take_create, .user = &w, .held = true });
    begin_trainjobs(&w, false);
    push_job(&w, "ADDED", 1, 2, "");
    wait_for(&w, "POST", SECRET_POSTS, 1);
    wait_for(&w, "PATCH", STATUS, 1); /* that it was created */
    ck_assert_uint_eq(count(&w, "POST", POD_POSTS), 0);
    fake_api_release(w.api);
    on(&w, "PATCH", STATUS, (struct fake_answer){ .body = "{}", .held = true });
    wait_for_text(&w, "PATCH", STATUS, "\"identity\"");
    ck_assert_uint_eq(count(&w, "POST", POD_POSTS), 0);
    fake_api_release(w.api);
    wait_for(&w, "POST", POD_POSTS, 4);
    ck_assert_uint_eq(count(&w, "POST", SECRET_POSTS), 1);

    json_auto_t *secret = body_of(&w, "POST", SECRET_POSTS, 0);
    const json_t *data = json_object_get(secret, "stringData");
    ck_assert_uint_eq(json_object_size(data), 9);
    assert_leaf(data, "chief-0", ROLE_CHIEF, 0);
    assert_leaf(data, "ps-0", ROLE_PS, 0);
    assert_leaf(data, "worker-0", ROLE_WORKER, 0);
    assert_leaf(data, "worker-1", ROLE_WORKER, 1);
    ck_assert_str_eq(text_at(secret, "metadata.generateName"), "j-identity-");
    ck_assert_str_eq(text_at(secret, "type"), "Opaque");
    ck_assert_ptr_null(json_object_get(secret, "immutable"));
    const json_t *owner = json_array_get(json_at(secret, "metadata.ownerReferences"), 0);
    ck_assert_str_eq(text_at(owner, "uid"), "job-1");
    ck_assert(json_is_true(json_object_get(owner, "controller")));
    ck_assert_str_eq(json_string_value(json_object_get(json_at(secret, "metadata.labels"), "trainyard.dev/job-name")),
                     "j");
    ck_assert_str_eq(job_identity_secret(identity(&w), ROLE_WORKER, 1), identity(&w)->secrets[0].name);
    ck_assert_int_eq((int)metric(&w, "trainyard_operator_certificates_issued_total"), 4);
    ck_assert_int_eq((int)metric(&w, "trainyard_operator_certificate_renewals_total"), 0);
    ck_assert_int_eq((int)metric(&w, "trainyard_operator_insecure"), 0);
}
END_TEST

START_TEST(a_larger_job_gets_more_leaves_in_its_secret)
{
    AUTO_FINI(world) w;
    world_init(&w);
    begin_trainjobs(&w, false);
    push_job(&w, "ADDED", 1, 1, "");
    wait_for(&w, "POST", POD_POSTS, 3);
    push_job(&w, "MODIFIED", 2, 3, "");
    wait_for(&w, "POST", POD_POSTS, 5);
    ck_assert_uint_eq(count(&w, "POST", SECRET_POSTS), 1);
    ck_assert_uint_eq(count(&w, "PATCH", SECRET_CHANGE), 1);
    struct fake_request r;
    char type[256];
    ck_assert(fake_api_request(w.api, "PATCH", SECRET_CHANGE, 0, &r));
    ck_assert_str_eq(fake_header(&r, "Content-Type", type), "application/json-patch+json");
    json_auto_t *patch = body_of(&w, "PATCH", SECRET_CHANGE, 0);
    ck_assert_uint_eq(json_array_size(patch), 2);
    ck_assert_str_eq(text_at(json_array_get(patch, 0), "op"), "test");
    ck_assert_str_eq(text_at(json_array_get(patch, 0), "path"), "/metadata/uid");
    ck_assert_str_eq(text_at(json_array_get(patch, 0), "value"), identity(&w)->secrets[0].uid);
    const json_t *data = json_object_get(json_array_get(patch, 1), "value");
    ck_assert_uint_eq(json_object_size(data), 5); /* ca.crt and two leaves */
    assert_leaf(data, "worker-1", ROLE_WORKER, 1);
    assert_leaf(data, "worker-2", ROLE_WORKER, 2);
    ck_assert_uint_eq(count(&w, "GET", "/api/v1/namespaces/a/secrets*"), 0);
}
END_TEST

/* More leaves than one turn issues. */
START_TEST(many_leaves_are_issued_in_turns)
{
    AUTO_FINI(world) w;
    world_init(&w);
    begin_trainjobs(&w, false);
    push_job(&w, "ADDED", 1, 130, "");
    wait_for(&w, "POST", SECRET_POSTS, 1);
    json_auto_t *secret = body_of(&w, "POST", SECRET_POSTS, 0);
    ck_assert_uint_eq(json_object_size(json_object_get(secret, "stringData")), 1 + 2 * 132);
    assert_leaf(json_object_get(secret, "stringData"), "worker-129", ROLE_WORKER, 129);
    wait_for_text(&w, "PATCH", STATUS, "\"0-129\"");
}
END_TEST

/* An operator that has just started knows only the status. */
#define STATUS_OF(uid, end, ca)                                                                                        \
    "{\"identity\":{\"secrets\":[{\"name\":\"j-identity-old\",\"uid\":\"" uid "\",\"cas\":[\"" ca "\"]}],\"leaves\":[" \
    "{\"role\":\"chief\",\"indexes\":\"0\",\"secret\":\"j-identity-old\",\"notAfter\":\"" end "\",\"ca\":\"" ca        \
    "\"},{\"role\":\"ps\",\"indexes\":\"0\",\"secret\":\"j-identity-old\",\"notAfter\":\"" end "\",\"ca\":\"" ca       \
    "\"},{\"role\":\"worker\",\"indexes\":\"0\",\"secret\":\"j-identity-old\",\"notAfter\":\"" end "\",\"ca\":\"" ca   \
    "\"}]}}"
#define OTHER_CA STATUS_OF("s-1", "2090-01-01T00:00:00Z", "0123456789abcdef")

START_TEST(leaves_of_an_unknown_ca_are_made_again)
{
    AUTO_FINI(world) w;
    world_init(&w);
    begin_trainjobs(&w, false);
    push_job(&w, "ADDED", 1, 1, OTHER_CA);
    wait_for(&w, "PATCH", SECRET_CHANGE, 1);
    json_auto_t *patch = body_of(&w, "PATCH", SECRET_CHANGE, 0);
    ck_assert_str_eq(text_at(json_array_get(patch, 0), "value"), "s-1");
    ck_assert_uint_eq(json_object_size(json_object_get(json_array_get(patch, 1), "value")), 7);
    wait_for(&w, "POST", POD_POSTS, 3);
    ck_assert_uint_eq(count(&w, "POST", SECRET_POSTS), 0);
    ck_assert_int_eq((int)metric(&w, "trainyard_operator_certificate_renewals_total"), 3);
}
END_TEST

/* Of a job whose Secret the operator has made, as the API server keeps it. */
static char *written_status(struct world *w)
{
    json_auto_t *status = json_object();
    AUTO_FINI(buf) text = BUF_INIT;
    push_job(w, "ADDED", 1, 1, "");
    wait_for_text(w, "PATCH", STATUS, "\"identity\"");
    json_object_set_new(status, "identity", job_identity_json(identity(w)));
    json_emit(status, &text);
    return xstrdup(text.data);
}

START_TEST(another_operator_continues)
{
    AUTO_FINI(world) w;
    world_init(&w);
    begin_trainjobs(&w, false);
    auto_free char *status = written_status(&w);
    size_t pods = count(&w, "POST", POD_POSTS);
    restart(&w);
    push_job(&w, "ADDED", 1, 1, status);
    wait_for(&w, "POST", POD_POSTS, pods + 3);
    ck_assert_uint_eq(count(&w, "POST", SECRET_POSTS), 1);
    ck_assert_uint_eq(count(&w, "PATCH", SECRET_CHANGE), 0);
}
END_TEST

/* ---- faults ---- */

START_TEST(a_secret_that_is_refused_is_reported_and_no_pod_is_made)
{
    AUTO_FINI(world) w;
    world_init(&w);
    on(&w, "POST", SECRET_POSTS,
       (struct fake_answer){
           .status = 403, .body = "{\"reason\":\"Forbidden\",\"message\":\"exceeded quota\"}", .times = 2 });
    begin_trainjobs(&w, false);
    push_job(&w, "ADDED", 1, 1, "");
    wait_for(&w, "POST", SECRET_POSTS, 2); /* after the back-off */
    ck_assert_uint_eq(count(&w, "POST", POD_POSTS), 0);
    wait_for_text(&w, "POST", EVENT_POSTS, "FailedCreateSecret");
    wait_for_text(&w, "PATCH", STATUS, "Secret j-identity: exceeded quota");
    wait_for(&w, "POST", POD_POSTS, 3);
}
END_TEST

START_TEST(a_deleted_secret_is_made_again_under_its_name)
{
    AUTO_FINI(world) w;
    world_init(&w);
    on(&w, "PATCH", SECRET_CHANGE, (struct fake_answer){ .status = 404, .times = 1 });
    begin_trainjobs(&w, false);
    push_job(&w, "ADDED", 1, 1, OTHER_CA);
    wait_for(&w, "POST", SECRET_POSTS, 1);
    json_auto_t *secret = body_of(&w, "POST", SECRET_POSTS, 0);
    ck_assert_str_eq(text_at(secret, "metadata.name"), "j-identity-old");
    ck_assert_uint_eq(json_object_size(json_object_get(secret, "stringData")), 7);
    wait_for(&w, "POST", POD_POSTS, 3);
    ck_assert_str_ne(identity(&w)->secrets[0].uid, "s-1");
}
END_TEST

/* Its pod is on a node and does not start; the leaves are not due for long. */
#define WAITING_POD                                                                                                    \
    "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{\"metadata\":{\"namespace\":\"a\",\"name\":\"j-ps-0\","     \
    "\"uid\":\"p-1\",\"resourceVersion\":\"5\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"labels\":{"            \
    "\"trainyard.dev/"                                                                                                 \
    "operator-name\":\"trainjob-controller\",\"trainyard.dev/job-name\":\"j\",\"trainyard.dev/replica-type\":\"ps\","  \
    "\"trainyard.dev/replica-index\":\"0\"},\"ownerReferences\":[{\"uid\":\"job-1\",\"controller\":true}]},\"spec\":{" \
    "\"nodeName\":\"n\"},\"status\":{\"phase\":\"Pending\"}}]}"

START_TEST(a_secret_that_is_deleted_while_a_pod_waits_is_made_again)
{
    AUTO_FINI(world) w;
    world_init(&w);
    begin_trainjobs(&w, false);
    auto_free char *status = written_status(&w), *name = xstrdup(identity(&w)->secrets[0].name);
    on(&w, "GET", "/api/v1/pods[?]limit=*", (struct fake_answer){ .body = WAITING_POD });
    on(&w, "PATCH", SECRET_CHANGE, (struct fake_answer){ .status = 404, .times = 1 });
    restart(&w);
    push_job(&w, "ADDED", 1, 1, status);
    wait_for(&w, "POST", SECRET_POSTS, 2);
    json_auto_t *patch = body_of(&w, "PATCH", SECRET_CHANGE, 0), *secret = body_of(&w, "POST", SECRET_POSTS, 1);
    ck_assert_uint_eq(json_object_size(json_object_get(json_array_get(patch, 1), "value")), 1); /* ca.crt */
    ck_assert_str_eq(text_at(secret, "metadata.name"), name);
    ck_assert_uint_eq(json_object_size(json_object_get(secret, "stringData")), 7);
}
END_TEST

START_TEST(a_secret_of_another_is_not_changed)
{
    AUTO_FINI(world) w;
    world_init(&w);
    on(&w, "PATCH", SECRET_CHANGE,
       (struct fake_answer){ .status = 422, .body = "{\"reason\":\"Invalid\",\"message\":\"the test failed\"}" });
    begin_trainjobs(&w, false);
    push_job(&w, "ADDED", 1, 1, OTHER_CA);
    wait_for_text(&w, "POST", EVENT_POSTS, "IdentitySecretReplaced");
    wait_for_text(&w, "POST", EVENT_POSTS, "kubectl delete secret j-identity-old -n a");
    ck_assert_uint_eq(count(&w, "POST", SECRET_POSTS), 0);
    ck_assert_uint_eq(count(&w, "PATCH", SECRET_CHANGE), 1); /* not again for a minute */
    ck_assert_int_eq((int)metric(&w, "trainyard_operator_certificate_failures_total"), 1);
}
END_TEST

START_TEST(a_name_that_was_taken_meanwhile)
{
    AUTO_FINI(world) w;
    world_init(&w);
    on(&w, "PATCH", SECRET_CHANGE, (struct fake_answer){ .status = 404 });
    on(&w, "POST", SECRET_POSTS,
       (struct fake_answer){ .status = 409, .body = "{\"reason\":\"AlreadyExists\",\"message\":\"it exists\"}" });
    begin_trainjobs(&w, false);
    push_job(&w, "ADDED", 1, 1, OTHER_CA);
    wait_for_text(&w, "POST", EVENT_POSTS, "IdentitySecretReplaced");
    ck_assert_uint_eq(count(&w, "POST", SECRET_POSTS), 1);
    ck_assert_uint_eq(count(&w, "POST", POD_POSTS), 0);
}
END_TEST

START_TEST(without_master_keys_the_job_says_what_it_waits_for)
{
    AUTO_FINI(world) w;
    world_init(&w);
    on(&w, "GET", MASTER, (struct fake_answer){ .status = 403, .body = "{\"message\":\"forbidden\"}" });
    begin_trainjobs(&w, false);
    push_job(&w, "ADDED", 1, 1, "");
    wait_for_text(&w, "PATCH", STATUS, "cannot read Secret default/trainyard-master-key with the master keys");
    wait_for_text(&w, "POST", EVENT_POSTS, "IdentityPending");
    ck_assert_uint_eq(count(&w, "POST", POD_POSTS), 0);
    on(&w, "GET", MASTER, (struct fake_answer){ .body = KEYS_A });
    wait_for(&w, "POST", POD_POSTS, 3);
}
END_TEST

/* A status that cannot be written: the pods wait. */
START_TEST(pods_wait_for_the_status)
{
    AUTO_FINI(world) w;
    world_init(&w);
    on(&w, "PATCH", STATUS, (struct fake_answer){ .status = 500, .body = "{}", .times = 3 });
    begin_trainjobs(&w, false);
    push_job(&w, "ADDED", 1, 1, "");
    wait_for(&w, "POST", SECRET_POSTS, 1);
    wait_for(&w, "PATCH", STATUS, 3); /* the first was perhaps before the Secret */
    ck_assert_uint_eq(count(&w, "POST", POD_POSTS), 0);
    wait_for(&w, "POST", POD_POSTS, 3);
    ck_assert_uint_eq(count(&w, "POST", SECRET_POSTS), 1);
}
END_TEST

/* ---- --insecure ---- */

START_TEST(insecure_is_loud)
{
    AUTO_FINI(world) w;
    world_init(&w);
    begin_trainjobs(&w, true);
    push_job(&w, "ADDED", 1, 1, "");
    wait_for_text(&w, "PATCH", STATUS, "\"insecure\":true");
    wait_for_text(&w, "PATCH", STATUS, "\"type\":\"Insecure\",\"status\":\"True\",\"reason\":\"NoCertificates\"");
    wait_for_text(&w, "POST", EVENT_POSTS, "\"reason\":\"Insecure\"");
    wait_for_text(&w, "POST", POD_POSTS, "TRAINYARD_INSECURE");
    ck_assert_uint_eq(count(&w, "POST", SECRET_POSTS), 0);
    ck_assert_uint_eq(count(&w, "GET", MASTER), 0);
    ck_assert_int_eq((int)metric(&w, "trainyard_operator_insecure"), 1);
}
END_TEST

START_TEST(a_job_with_certificates_keeps_them)
{
    AUTO_FINI(world) w;
    world_init(&w);
    begin_trainjobs(&w, true);
    push_job(&w, "ADDED", 1, 1, OTHER_CA);
    wait_for(&w, "PATCH", SECRET_CHANGE, 1);
    wait_for_text(&w, "POST", POD_POSTS, "TRAINYARD_TLS_DIR");
    ck_assert(!identity(&w)->insecure);
}
END_TEST

START_TEST(a_job_without_pods_gets_certificates_when_the_flag_is_gone)
{
    AUTO_FINI(world) w;
    world_init(&w);
    begin_trainjobs(&w, false);
    push_job(&w, "ADDED", 1, 1, "{\"identity\":{\"insecure\":true}}");
    wait_for_text(&w, "POST", POD_POSTS, "TRAINYARD_TLS_DIR");
    wait_for_text(&w, "PATCH", STATUS, "\"insecure\":null");
    ck_assert_uint_eq(count(&w, "POST", SECRET_POSTS), 1);
}
END_TEST

/* An older release made its pods, which could not talk to others with certificates. */
START_TEST(a_job_of_an_older_release_continues_without)
{
    AUTO_FINI(world) w;
    world_init(&w);
    on(&w, "GET", "/api/v1/pods[?]limit=*",
       (struct fake_answer){
           .body =
               "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{\"metadata\":{\"namespace\":\"a\",\"name\":"
               "\"j-ps-0\",\"uid\":\"p-1\",\"resourceVersion\":\"5\",\"labels\":{\"trainyard.dev/operator-name\":"
               "\"trainjob-controller\",\"trainyard.dev/job-name\":\"j\",\"trainyard.dev/replica-type\":\"ps\","
               "\"trainyard.dev/replica-index\":\"0\"},\"ownerReferences\":[{\"uid\":\"job-1\",\"controller\":true}]},"
               "\"status\":{\"phase\":\"Running\"}}]}" });
    begin_trainjobs(&w, false);
    push_job(&w, "ADDED", 1, 1, "{\"specHash\":\"m:0\"}");
    wait_for_text(&w, "PATCH", STATUS, "an older release of the operator started the job");
    wait_for_text(&w, "POST", POD_POSTS, "TRAINYARD_INSECURE");
    ck_assert_uint_eq(count(&w, "POST", SECRET_POSTS), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("apply_identity");
    TCase *t = tcase_create("apply_identity");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, the_secret_and_the_status_come_before_the_pods);
    tcase_add_test(t, a_larger_job_gets_more_leaves_in_its_secret);
    tcase_add_test(t, many_leaves_are_issued_in_turns);
    tcase_add_test(t, leaves_of_an_unknown_ca_are_made_again);
    tcase_add_test(t, another_operator_continues);
    tcase_add_test(t, a_secret_that_is_refused_is_reported_and_no_pod_is_made);
    tcase_add_test(t, a_deleted_secret_is_made_again_under_its_name);
    tcase_add_test(t, a_secret_that_is_deleted_while_a_pod_waits_is_made_again);
    tcase_add_test(t, a_secret_of_another_is_not_changed);
    tcase_add_test(t, a_name_that_was_taken_meanwhile);
    tcase_add_test(t, without_master_keys_the_job_says_what_it_waits_for);
    tcase_add_test(t, pods_wait_for_the_status);
    tcase_add_test(t, insecure_is_loud);
    tcase_add_test(t, a_job_with_certificates_keeps_them);
    tcase_add_test(t, a_job_without_pods_gets_certificates_when_the_flag_is_gone);
    tcase_add_test(t, a_job_of_an_older_release_continues_without);
    suite_add_tcase(s, t);
    return s;
}
