/* Views of jobs: test/data/api/view/valid/<case>/{input.yaml,expected.json}, invalid/<case>/{input.yaml,error}. */
#include "operator/api_case.h"

#include "api/deflate.h"
#include "api/job_spec.h"

#define MNIST    API_CASES "view/valid/train_mnist/input.yaml"
#define ANY_CASE API_CASES "view/valid/tf_keys_of_any_case/input.yaml"
#define AS_KEPT  API_CASES "view/valid/train_as_the_server_keeps_it/input.yaml"

static void parse(const json_t *object, struct job_spec *ret)
{
    bool tf = str_eq(json_string_value(json_object_get(object, "kind")), "TFJob");
    job_spec_parse(tf ? &KIND_TFJOB : &KIND_TRAINJOB, object, CLEAN_NONE, ret);
}

static void load(const char *path, struct job_spec *ret)
{
    json_auto_t *object = api_load(path);
    parse(object, ret); /* the object is freed before the view */
}

/* ---- a view as JSON ---- */

static json_t *roles_json(const struct job_spec *v)
{
    json_t *roles = json_object();
    char name[128];

    for (int r = 0; r < ROLE_COUNT; r++) {
        const struct role_spec *one = &v->roles[r];
        if (one->present)
            json_object_set_new(roles, job_spec_role_key(v, (enum role)r),
                                json_pack("[i, s, i, i, s]", one->replicas, restart_policy_name(one->restart),
                                          one->port, one->grace_s, job_spec_pod_name(v, (enum role)r, 0, name)));
        else
            ck_assert_int_eq(one->replicas, 0);
    }
    return roles;
}

static json_t *claims_json(const struct job_spec *v)
{
    json_t *claims = json_array();
    for (size_t i = 0; i < v->nclaims; i++)
        json_array_append_new(claims, json_pack("[s, s, s]", v->claims[i].name, v->claims[i].chief ? "chief" : "",
                                                v->claims[i].workers ? "workers" : ""));
    return claims;
}

static json_t *view_json(const struct job_spec *v)
{
    static const char *const CLEAN[] = { "Running", "All", "None" }, *const STALL[] = { "Notify", "Restart", "Fail" };
    json_t *j = json_pack("{s:s, s:[s, s, s], s:I, s:I, s:o, s:s, s:i}", "kind", v->kind->resource.kind, "names", v->ns,
                          v->name, v->uid, "generation", (json_int_t)v->generation, "created_ms",
                          (json_int_t)v->created_ms, "roles", roles_json(v), "leader",
                          job_spec_role_name(v, job_spec_leader(v)), "replicas", job_spec_replicas(v));
    json_t *flags =
        json_pack("{s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b}", "deleting", v->deleting, "has_model", v->has_model,
                  "master", v->master, "all_workers", v->all_workers, "dynamic", v->dynamic, "managed_elsewhere",
                  v->managed_elsewhere, "suspend", v->suspend, "tensorboard", v->tensorboard);
    json_t *policy =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:s}", "clean", CLEAN[v->clean], "ttl_s", (json_int_t)v->ttl_s,
                  "deadline_s", (json_int_t)v->deadline_s, "backoff_limit", (json_int_t)v->backoff_limit, "stall_s",
                  (json_int_t)v->stall_s, "stall", STALL[v->stall]);

    json_object_set_new(j, "flags", flags);
    if (v->scope == SCOPE_JOB)
        json_object_set_new(policy, "scope", json_string("Job"));
    json_object_set_new(j, "policy", policy);
    json_object_set_new(j, "gang",
                        json_pack("[i, o, o, i]", v->gang.min_available, text_or_null(v->gang.queue),
                                  text_or_null(v->gang.priority_class), v->gang.timeout_s));
    json_object_set_new(j, "claims", claims_json(v));
    json_object_set_new(j, "hashed", json_boolean(v->spec_hash[0] != '\0'));
    return j;
}

/* ---- cases ---- */

/* What pods are created from is kept, and the roles have the view's names. */
static void check_spec(const char *path, const json_t *object, const struct job_spec *v)
{
    json_auto_t *kept = job_spec_json(v);
    const json_t *was = json_object_get(object, "spec"), *is = json_object_get(kept, "spec");
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)was, key, value) if (strcmp(key, v->kind->replica_specs) != 0)
        ck_assert_msg(json_equal(value, json_object_get(is, key)), "%s: spec.%s is not kept", path, key);
    for (int r = 0; r < ROLE_COUNT && json_object_get(was, v->kind->replica_specs) != NULL; r++) {
        const json_t *role =
            json_object_get(json_object_get(is, v->kind->replica_specs), job_spec_role_key(v, (enum role)r));
        ck_assert_msg((role != NULL) == v->roles[r].present, "%s: %s", path, role_key((enum role)r));
    }
    ck_assert_str_eq(json_string_value(json_at(kept, "metadata.uid")), v->uid);
}

static void check_valid(const char *path)
{
    AUTO_FINI(job_spec) v = { .kind = NULL };
    auto_free char *input = path_join(path, "input.yaml");
    json_auto_t *object = api_load(input);

    parse(object, &v);
    ck_assert_msg(v.invalid == NULL, "%s: %s", path, v.invalid);
    json_auto_t *got = view_json(&v);
    ck_assert_ptr_nonnull(got);
    api_expect(path, got);
    check_spec(path, object, &v);
}

START_TEST(every_valid_job_is_read_with_its_defaults)
{
    api_each(API_CASES "view/valid", check_valid);
}
END_TEST

static void check_invalid(const char *path)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(job_spec) v = { .kind = NULL };
    AUTO_FINI(buf) error = BUF_INIT;
    auto_free char *input = path_join(path, "input.yaml"), *expected = path_join(path, "error");

    load(input, &v);
    if (getenv("TRAINYARD_SHOW") != NULL) {
        printf("%s\n%s\n", expected, v.invalid != NULL ? v.invalid : "(valid)");
        return;
    }
    ck_assert_msg(v.invalid != NULL, "%s: is accepted", path);
    ck_assert_str_eq(v.ns, "team"); /* the job can still be named, and its status written */
    ck_assert_str_eq(v.uid, "6f1c0a52-3d3e-4d0e-9f0a-1d6f0c9b7a11");
    ck_ok_e(file_read(expected, API_CASE_MAX, &error, &e));
    error.data[strcspn(error.data, "\n")] = '\0';
    ck_assert_msg(strcmp(v.invalid, error.data) == 0, "%s: '%s', expected '%s'", path, v.invalid, error.data);
}

START_TEST(every_impossible_spec_is_explained)
{
    api_each(API_CASES "view/invalid", check_invalid);
}
END_TEST

static bool is_job(void *user UNUSED, const json_t *v)
{
    const char *kind = json_string_value(json_object_get(v, "kind"));
    return str_eq(kind, "TrainJob") || str_eq(kind, "TFJob");
}

/* Examples hold other objects besides the job: claims, configuration. */
static void check_example(const char *path)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(job_spec) v = { .kind = NULL };
    AUTO_FINI(buf) text = BUF_INIT;
    AUTO(source) *src = NULL;
    json_auto_t *object = NULL;

    if (!str_ends(path, ".yaml"))
        return;
    ck_ok_e(file_read(path, API_CASE_MAX, &text, &e));
    ck_ok_e(yaml_parse_wanted(text.data, text.len, path, is_job, NULL, &object, &src, &e));
    if (object == NULL)
        return;
    parse(object, &v);
    ck_assert_msg(v.invalid == NULL, "%s: %s", path, v.invalid);
    ck_assert_int_ge(job_spec_replicas(&v), 1);
}

START_TEST(every_example_can_be_run)
{
    api_each("deploy/examples", check_example);
}
END_TEST

/* ---- arbitrary input ---- */

START_TEST(what_is_no_job_does_no_harm)
{
    static const char *const TEXTS[] = {
        "{}",
        "{\"metadata\": 1, \"spec\": 2}",
        "{\"metadata\": {\"name\": []}, \"spec\": {}}",
        "{\"spec\": {\"tfReplicaSpecs\": {\"Worker\": [[]]}, \"replicaSpecs\": {\"Worker\": 7}}}",
        "{\"spec\": {\"runPolicy\": [], \"storage\": {\"data\": 1}, \"model\": 5}}",
        ("{\"spec\": {\"tfReplicaSpecs\": {\"\": {}, \"Worker\": {\"template\": {\"spec\": {\"containers\": [1, [], "
         "{}]}}}}}}")
    };
    static const struct job_kind *const KINDS[] = { &KIND_TRAINJOB, &KIND_TFJOB };

    for (size_t i = 0; i < COUNT_OF(TEXTS) * COUNT_OF(KINDS); i++) {
        AUTO_FINI(job_spec) v = { .kind = NULL };
        json_auto_t *object = json_loads(TEXTS[i / COUNT_OF(KINDS)], 0, NULL);
        ck_assert_ptr_nonnull(object);
        job_spec_parse(KINDS[i % COUNT_OF(KINDS)], object, CLEAN_NONE, &v);
        ck_assert_ptr_nonnull(v.invalid);
        json_auto_t *spec = job_spec_json(&v);
        ck_assert_ptr_nonnull(spec);
        job_spec_drop_model(&v);
    }
}
END_TEST

/* ---- an earlier verdict ---- */

/* A model that is not valid, with the status that an operator wrote for generation `observed`. */
static void parse_judged(int observed, json_t *conditions, struct job_spec *ret)
{
    json_auto_t *object = api_load(MNIST);
    json_object_set_new(json_object_get(object, "metadata"), "generation", json_integer(2));
    json_object_set_new(json_object_get(object, "spec"), "compile", json_pack("{s:s}", "loss", "no loss"));
    json_object_set_new(object, "status",
                        json_pack("{s:i, s:o}", "observedGeneration", observed, "conditions", conditions));
    parse(object, ret);
}

static json_t *condition(const char *type, const char *reason, const char *message)
{
    return json_pack("[{s:s, s:s, s:s, s:s}]", "type", type, "status", "True", "reason", reason, "message", message);
}

/* A ConfigMap has at most 1 MiB. */
START_TEST(a_model_that_no_config_map_can_have_is_refused)
{
    static const size_t SIZES[] = { 1000, 900 << 10, (1 << 20) + 1, 3 << 20 };
    for (size_t i = 0; i < COUNT_OF(SIZES); i++) {
        json_auto_t *object = api_load(MNIST);
        auto_free char *text = xmalloc(SIZES[i] + 1);
        AUTO_FINI(job_spec) v = { .kind = NULL };
        memset(text, ' ', SIZES[i]);
        text[SIZES[i]] = '\0';
        json_object_set_new(json_object_get(object, "spec"), "model", json_pack("{s:s}", "keras", text));
        parse(object, &v);
        ck_assert_ptr_nonnull(v.invalid); /* spaces are no model */
        ck_assert_msg((strstr(v.invalid, "kerasFile") != NULL) == (SIZES[i] > 1 << 20), "%zu: %s", SIZES[i], v.invalid);
        ck_assert_msg(strstr(v.invalid, "has 1024 KiB") == NULL, "%s", v.invalid); /* with a limit of 1024 */
    }
}
END_TEST

START_TEST(the_verdict_on_a_generation_is_remembered)
{
    AUTO_FINI(job_spec)
    good = { .kind = NULL }, bad = { .kind = NULL }, other = { .kind = NULL }, refused = { .kind = NULL },
    fresh = { .kind = NULL };

    parse_judged(2, condition("Created", "TrainJobCreated", ""), &good);
    ck_assert_ptr_null(good.invalid);
    parse_judged(2, condition("Failed", "InvalidSpec", "as it was said then"), &bad);
    ck_assert_str_eq(bad.invalid, "as it was said then");
    parse_judged(1, condition("Created", "TrainJobCreated", ""), &other);
    ck_assert_ptr_nonnull(strstr(other.invalid, "no loss"));
    parse_judged(2, condition("SpecChangeRefused", "InvalidSpec", "a sentence around it"), &refused);
    ck_assert_ptr_nonnull(strstr(refused.invalid, "no loss"));
    parse_judged(2, json_array(), &fresh);
    ck_assert_ptr_nonnull(strstr(fresh.invalid, "no loss"));
}
END_TEST

START_TEST(a_job_that_goes_or_is_anothers_is_not_judged)
{
    AUTO_FINI(job_spec) going = { .kind = NULL }, anothers = { .kind = NULL };
    json_auto_t *object = api_load(MNIST);
    json_t *spec = json_object_get(object, "spec"), *metadata = json_object_get(object, "metadata");

    json_object_set_new(spec, "compile", json_pack("{s:s}", "loss", "no loss"));
    json_object_set_new(metadata, "deletionTimestamp", json_string("2026-01-01T00:00:00Z"));
    parse(object, &going);
    ck_assert_ptr_null(going.invalid);
    json_object_del(metadata, "deletionTimestamp");
    json_object_set_new(spec, "runPolicy", json_pack("{s:s}", "managedBy", "example.com/other"));
    parse(object, &anothers);
    ck_assert(anothers.managed_elsewhere);
    ck_assert_ptr_null(anothers.invalid);
}
END_TEST

/* ---- defaults by flag ---- */

START_TEST(the_clean_pod_policy_of_tf_jobs_has_a_default_by_flag)
{
    AUTO_FINI(job_spec) tf = { .kind = NULL };
    AUTO_FINI(job_spec) train = { .kind = NULL };
    json_auto_t *tf_object = api_load(ANY_CASE), *train_object = api_load(MNIST);

    job_spec_parse(&KIND_TFJOB, tf_object, CLEAN_RUNNING, &tf);
    job_spec_parse(&KIND_TRAINJOB, train_object, CLEAN_NONE, &train);
    ck_assert_int_eq(tf.clean, CLEAN_RUNNING);
    ck_assert_int_eq(train.clean, CLEAN_RUNNING);
}
END_TEST

/* ---- the deflated spec ---- */

START_TEST(metadata_keeps_what_pods_and_groups_take_over)
{
    AUTO_FINI(job_spec) v = { .kind = NULL };
    load(AS_KEPT, &v);
    json_auto_t *kept = job_spec_json(&v);
    json_auto_t *want =
        json_pack("{s:s, s:s, s:s, s:{s:s}, s:{s:s}}", "name", "mnist", "namespace", "team", "uid", v.uid, "labels",
                  "kueue.x-k8s.io/queue-name", "research", "annotations", "example.com/owner", "ann");
    ck_assert(json_equal(json_object_get(kept, "metadata"), want));
    ck_assert_uint_eq(json_object_size(kept), 2); /* no status */
}
END_TEST

START_TEST(parsing_leaves_the_object_alone)
{
    AUTO_FINI(job_spec) v = { .kind = NULL };
    json_auto_t *object = api_load(AS_KEPT), *before = json_deep_copy(object);
    parse(object, &v);
    job_spec_drop_model(&v);
    ck_assert(json_equal(object, before));
}
END_TEST

START_TEST(a_shrunk_spec_has_no_model_and_all_else)
{
    AUTO_FINI(job_spec) v = { .kind = NULL };
    load(MNIST, &v);
    json_auto_t *before = job_spec_json(&v);
    uint32_t deflated = v.deflated_len;
    ck_assert(v.whole);

    job_spec_drop_model(&v);
    ck_assert(!v.whole && v.deflated_len < deflated);
    ck_assert_uint_eq(strlen(v.spec_hash), 18);
    json_auto_t *after = job_spec_json(&v);
    json_object_del(json_object_get(before, "spec"), "model");
    json_object_del(json_object_get(before, "spec"), "compile");
    json_object_del(json_object_get(before, "spec"), "data");
    ck_assert(json_equal(before, after));
    job_spec_drop_model(&v); /* again: nothing to do */
    json_auto_t *again = job_spec_json(&v);
    ck_assert(json_equal(again, after));
}
END_TEST

START_TEST(text_of_any_kind_is_packed_and_unpacked)
{
    AUTO_FINI(buf) text = BUF_INIT;
    uint32_t x = 1;

    for (size_t n = 0; n < 70000; n = n * 2 + 1) {
        while (text.len < n) {
            x = x * 1664525 + 1013904223;
            buf_char(&text, (char)(n % 3 == 0 ? x >> 24 : 'a' + (x >> 30))); /* noise, or what can be shortened */
        }
        size_t len;
        auto_free void *deflated = deflate_text(text.data, n, &len);
        auto_free char *back = inflate_text(deflated, len, n);
        ck_assert_uint_le(len, n);
        ck_assert_ptr_nonnull(back);
        ck_assert_int_eq(memcmp(back, text.data, n), 0);
        ck_assert_int_eq(back[n], '\0');
    }
    ck_assert_ptr_null(inflate_text("not deflated", 10, 11));
}
END_TEST

/* ---- the hash of the model's side ---- */

static void hash_with(const char *path, json_t *value, char out[20])
{
    AUTO_FINI(job_spec) v = { .kind = NULL };
    json_auto_t *object = api_load(MNIST);
    auto_free char *folder = xstrdup(path);
    char *key = strrchr(folder, '.');

    *key++ = '\0';
    json_object_set_new(json_at(object, folder), key, value);
    parse(object, &v);
    str_fmt(out, 20, "%s", v.spec_hash);
}

START_TEST(the_hash_follows_what_a_model_begins_with)
{
    AUTO_FINI(job_spec) v = { .kind = NULL };
    char hash[20];
    load(MNIST, &v);

    hash_with("spec.fit.epochs", json_integer(6), hash);
    ck_assert_str_ne(hash, v.spec_hash);
    hash_with("spec.compile.loss", json_string("categorical_crossentropy"), hash);
    ck_assert_str_ne(hash, v.spec_hash);
    hash_with("spec.checkpoint.keep", json_integer(6), hash);
    ck_assert_str_ne(hash, v.spec_hash);

    hash_with("spec.replicaSpecs.Worker", json_pack("{s:i}", "replicas", 9), hash);
    ck_assert_str_eq(hash, v.spec_hash);
    hash_with("spec.runPolicy", json_pack("{s:b}", "suspend", true), hash);
    ck_assert_str_eq(hash, v.spec_hash);
    hash_with("metadata.generation", json_integer(9), hash);
    ck_assert_str_eq(hash, v.spec_hash);
}
END_TEST

/* A CRD may fill in a default, or a client may write one, without a refusal of the job. */
START_TEST(the_hash_is_of_the_meaning)
{
    AUTO_FINI(job_spec) v = { .kind = NULL };
    char hash[20];
    load(MNIST, &v);

    hash_with("spec.fit.logEverySteps", json_integer(100), hash);
    ck_assert_str_eq(hash, v.spec_hash);
    hash_with("spec.fit.maxWaitSeconds", json_real(7200.0), hash);
    ck_assert_str_eq(hash, v.spec_hash);
    hash_with("spec.fit.validationBatchSize", json_null(), hash);
    ck_assert_str_eq(hash, v.spec_hash);
    hash_with("spec.strategy", json_pack("{s:s, s:b}", "name", "ParameterServer", "overlap", 0), hash);
    ck_assert_str_eq(hash, v.spec_hash);
    hash_with("spec.fit.epochs", json_real(5.0), hash);
    ck_assert_str_eq(hash, v.spec_hash);
    hash_with("spec.fit.logEverySteps", json_integer(101), hash);
    ck_assert_str_ne(hash, v.spec_hash);
}
END_TEST

/* Running jobs have this hash in their status: with another value the next version of the operator would refuse their
 * spec. */
START_TEST(the_hash_is_the_same_in_every_version)
{
    AUTO_FINI(job_spec) v = { .kind = NULL };
    load(MNIST, &v);
    ck_assert_str_eq(v.spec_hash, "m:da03f1d64b793ad7");
}
END_TEST

START_TEST(the_hash_does_not_depend_on_the_order_of_keys)
{
    char hash[20], other[20];
    hash_with("spec.fit", json_pack("{s:i, s:i, s:i}", "epochs", 5, "batchSize", 64, "seed", 7), hash);
    hash_with("spec.fit", json_pack("{s:i, s:i, s:i}", "seed", 7, "epochs", 5, "batchSize", 64), other);
    ck_assert_str_eq(hash, other);
}
END_TEST

/* ---- names ---- */

START_TEST(names_are_tf_jobs)
{
    AUTO_FINI(job_spec) v = { .kind = NULL };
    char name[128];
    load(API_CASES "view/valid/tf_master/input.yaml", &v);
    ck_assert_str_eq(job_spec_pod_name(&v, ROLE_CHIEF, 0, name), "dist-mnist-master-0");
    ck_assert_str_eq(job_spec_pod_name(&v, ROLE_WORKER, 1, name), "dist-mnist-worker-1");
    ck_assert_str_eq(job_spec_role_key(&v, ROLE_CHIEF), "Master");
    ck_assert_str_eq(job_spec_role_name(&v, ROLE_PS), "ps");
    ck_assert_str_eq(job_spec_role_key(&v, ROLE_PS), "PS");
}
END_TEST

/* ---- costs ---- */

static void weigh(const char *path, const char *what, size_t most)
{
    enum { JOBS = 200 };
    struct job_spec *views = xcalloc(JOBS, sizeof(*views));
    json_auto_t *object = api_load(path);
    AUTO_FINI(job_spec) warm = { .kind = NULL };

    parse(object, &warm);
    size_t before = heap_used();
    double begin = cpu_us();
    for (int i = 0; i < JOBS; i++)
        parse(object, &views[i]);
    double us = (cpu_us() - begin) / JOBS;
    size_t bytes = (heap_used() - before) / JOBS + sizeof(struct job_spec);
    begin = cpu_us();
    for (int i = 0; i < JOBS; i++)
        json_decref(job_spec_json(&views[i]));
    printf("a view of %s: %zu bytes (struct %zu, spec %u deflated to %u), parsed in %.0f us, unpacked in %.0f us%s\n",
           what, bytes, sizeof(struct job_spec), views[0].spec_len, views[0].deflated_len, us,
           (cpu_us() - begin) / JOBS, before == 0 ? "; a sanitizer's heap is not measured" : "");
    for (int i = 0; i < JOBS; i++)
        job_spec_fini(&views[i]);
    free(views);
    ck_assert_uint_le(bytes, most);
}

START_TEST(a_view_is_small)
{
    weigh(MNIST, "an MNIST job", 2500);
    weigh(API_CASES "view/valid/train_own_images/input.yaml", "a job of own images", 2500);
    weigh(API_CASES "view/valid/tf_every_field/input.yaml", "a TFJob", 2500);
    weigh(API_CASES "view/valid/tf_as_people_write_them/input.yaml", "a long TFJob", 2500);
}
END_TEST

/* The operator validates models with lib/nn, and must not link the libraries that compute and communicate with it. */
START_TEST(neither_blas_nor_grpc_is_linked)
{
    static const char *const HEAVY[] = { "openblas", "libblas", "libgrpc", "libgpr", "protobuf" };
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) maps = BUF_INIT;

    ck_ok_e(file_read("/proc/self/maps", API_CASE_MAX, &maps, &e));
    ck_assert_ptr_nonnull(strstr(maps.data, "libjansson")); /* maps does list the libraries */
    for (size_t i = 0; i < COUNT_OF(HEAVY); i++)
        ck_assert_msg(strstr(maps.data, HEAVY[i]) == NULL, "%s is linked", HEAVY[i]);
}
END_TEST

/* Chief, ps, workers and evaluator without which a job cannot train. */
START_TEST(the_least_number_of_replicas)
{
#define TRAIN "kind: TrainJob\nmetadata: {name: j, namespace: n, uid: u}\nspec:\n"
#define MODEL                                                                                                          \
    TRAIN "  model: {inputShape: [2], layers: [{Dense: {units: 1}}]}\n  compile: {optimizer: sgd, loss: mse}\n"        \
          "  data: {train: {format: csv, path: t.csv, labels: {column: y}}}\n  storage: {output: {emptyDir: {}}}\n"
    static const struct {
        const char *job;
        int least[4];
    } ROWS[] = {
        { MODEL, { 0, 0, 1, 0 } },
        { MODEL "  replicaSpecs: {Chief: {}, PS: {replicas: 2}, Worker: {replicas: 5}, Evaluator: {}}",
          { 1, 2, 1, 0 } },
        { MODEL "  replicaSpecs: {Chief: {}, PS: {replicas: 2}}", { 1, 2, 0, 0 } },
        { MODEL "  replicaSpecs: {Chief: {}, PS: {replicas: 2}, Worker: {replicas: 5}, Evaluator: {}}\n"
                "  runPolicy: {schedulingPolicy: {minAvailable: 5}}",
          { 1, 2, 2, 0 } },
        { MODEL "  strategy: {name: MultiWorkerMirrored}\n"
                "  replicaSpecs: {Chief: {}, Worker: {replicas: 4}, Evaluator: {}}",
          { 1, 0, 1, 0 } },
        { MODEL "  strategy: {name: MultiWorkerMirrored, minReplicas: 3}\n"
                "  replicaSpecs: {Worker: {replicas: 4}}",
          { 0, 0, 3, 0 } },
        { TRAIN "  replicaSpecs: {Worker: {replicas: 3, template: {spec: {containers: [{name: trainer, image: x}]}}}}",
          { 0, 0, 3, 0 } }, /* a program of its own may need all */
        { "kind: TFJob\nmetadata: {name: j, namespace: n, uid: u}\nspec: {tfReplicaSpecs: {PS: {replicas: 1, template: "
          "&t {spec: {containers: [{name: tensorflow, image: x}]}}}, Worker: {replicas: 3, template: *t}}}",
          { 0, 1, 3, 0 } },
    };
    for (size_t i = 0; i < COUNT_OF(ROWS); i++) {
        struct err e = { .code = ERR_NONE };
        AUTO(source) *source = NULL;
        AUTO_FINI(job_spec) view;
        json_t *object = NULL;
        int n[ROLE_COUNT];
        ck_ok_e(yaml_parse(ROWS[i].job, strlen(ROWS[i].job), "job", &object, &source, &e));
        parse(object, &view);
        json_decref(object);
        job_spec_minimum(&view, n);
        ck_assert_msg(n[ROLE_CHIEF] == ROWS[i].least[0] && n[ROLE_PS] == ROWS[i].least[1] &&
                          n[ROLE_WORKER] == ROWS[i].least[2] && n[ROLE_EVALUATOR] == ROWS[i].least[3],
                      "row %zu: %d chief, %d ps, %d workers, %d evaluator", i, n[ROLE_CHIEF], n[ROLE_PS],
                      n[ROLE_WORKER], n[ROLE_EVALUATOR]);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("view");
    TCase *t = tcase_create("all");

    tcase_add_test(t, every_valid_job_is_read_with_its_defaults);
    tcase_add_test(t, every_impossible_spec_is_explained);
    tcase_add_test(t, every_example_can_be_run);
    tcase_add_test(t, what_is_no_job_does_no_harm);
    tcase_add_test(t, a_model_that_no_config_map_can_have_is_refused);
    tcase_add_test(t, the_verdict_on_a_generation_is_remembered);
    tcase_add_test(t, a_job_that_goes_or_is_anothers_is_not_judged);
    tcase_add_test(t, the_clean_pod_policy_of_tf_jobs_has_a_default_by_flag);
    tcase_add_test(t, metadata_keeps_what_pods_and_groups_take_over);
    tcase_add_test(t, parsing_leaves_the_object_alone);
    tcase_add_test(t, a_shrunk_spec_has_no_model_and_all_else);
    tcase_add_test(t, text_of_any_kind_is_packed_and_unpacked);
    tcase_add_test(t, the_hash_follows_what_a_model_begins_with);
    tcase_add_test(t, the_hash_is_of_the_meaning);
    tcase_add_test(t, the_hash_is_the_same_in_every_version);
    tcase_add_test(t, the_hash_does_not_depend_on_the_order_of_keys);
    tcase_add_test(t, names_are_tf_jobs);
    tcase_add_test(t, a_view_is_small);
    tcase_add_test(t, neither_blas_nor_grpc_is_linked);
    tcase_add_test(t, the_least_number_of_replicas);
    suite_add_tcase(s, t);
    return s;
}
