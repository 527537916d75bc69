/* Manifests are folders of test/data/job: valid/<case>/{input.yaml,expected.json} and
 * invalid/<case>/{input.yaml,error}; an optional file `sets` holds one --set a line. */
#include "check_main.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "job/job.h"

#define CASES "test/data/job/"
enum { CASE_MAX = 1 << 20 };

/* ---- the job as JSON, as expected.json holds it ---- */

static json_t *text_or_null(const char *s)
{
    return s != NULL ? json_string(s) : json_null();
}

/* The only label as a text, several as a list. */
static json_t *label_json(const struct data_spec *d)
{
    json_t *list = json_array();
    if (d->label.n <= 1) {
        json_decref(list);
        return text_or_null(d->label.n > 0 ? d->label.items[0] : NULL);
    }
    for (size_t i = 0; i < d->label.n; i++)
        json_array_append_new(list, json_string(d->label.items[i]));
    return list;
}

static json_t *dialect_json(const struct data_spec *d)
{
    char decimal[2] = { d->decimal, '\0' }, thousands[2] = { d->thousands, '\0' };
    json_t *values = json_array();
    for (size_t i = 0; i < d->na_values.n; i++)
        json_array_append_new(values, json_string(d->na_values.items[i]));
    return json_pack("{s:s, s:s, s:I, s:o, s:b}", "decimal", decimal, "thousands", thousands, "skipRows",
                     (json_int_t)d->skip_rows, "naValues", values, "drop", d->missing == MISSING_DROP);
}

/* [[name, column, ...], ...]: in the order of the manifest. */
static json_t *parts_json(const struct data_parts *parts)
{
    json_t *v = json_array();
    for (size_t i = 0; i < parts->n; i++) {
        json_t *one = json_array();
        json_array_append_new(one, json_string(parts->v[i].name));
        for (size_t k = 0; k < parts->v[i].from.n; k++)
            json_array_append_new(one, json_string(parts->v[i].from.items[k]));
        json_array_append_new(v, one);
    }
    return v;
}

static json_t *data_json(const struct data_spec *d)
{
    static const char *const FORMATS[] = { "idx", "csv", "npy", "tfrecord", "npz" };
    json_t *files = json_array();
    char delimiter[2] = { d->delimiter, '\0' };

    if (!d->present) {
        json_decref(files);
        return json_null();
    }
    for (size_t i = 0; i < d->files.n; i++)
        json_array_append_new(files, json_string(d->files.items[i]));
    json_t *v = json_pack("{s:s, s:o, s:o, s:o, s:b, s:s, s:I, s:o, s:b}", "format", FORMATS[d->format], "features",
                          text_or_null(d->features), "labels", text_or_null(d->labels), "files", files, "header",
                          d->header, "delimiter", delimiter, "columns", (json_int_t)node_size(&d->columns), "label",
                          label_json(d), "shuffle", d->shuffle);
    bool plain = d->decimal == '.' && d->thousands == '\0' && d->skip_rows == 0 && !d->own_na_values;
    if (!plain || d->missing != MISSING_ERROR) /* the others' cases say nothing of how a csv is written */
        json_object_set_new(v, "dialect", dialect_json(d));
    if (d->inputs.n > 0)
        json_object_set_new(v, "inputs", parts_json(&d->inputs));
    if (d->outputs.n > 0)
        json_object_set_new(v, "outputs", parts_json(&d->outputs));
    return v;
}

static json_t *fit_json(const struct job *j)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:I, s:f, s:f, s:f}", "epochs", (json_int_t)j->fit.epochs,
                     "steps", (json_int_t)j->fit.steps, "batchSize", (json_int_t)j->fit.batch_size,
                     "validationBatchSize", (json_int_t)j->fit.validation_batch_size, "seed", (json_int_t)j->fit.seed,
                     "hasSeed", j->fit.has_seed, "chiefTrains", j->fit.chief_trains, "logEverySteps",
                     (json_int_t)j->fit.log_every_steps, "maxWaitSeconds", j->limits.max_wait_seconds,
                     "stopGraceSeconds", j->limits.stop_grace_seconds, "evaluationGraceSeconds",
                     j->limits.evaluation_grace_seconds);
}

static json_t *replicas_json(const struct job *j)
{
    json_t *v = json_object();
    for (int r = 0; r < ROLE_COUNT; r++) {
        const struct replica_spec *s = &j->replicas[r];
        if (s->present)
            json_object_set_new(v, role_key((enum role)r),
                                json_pack("[i, s]", s->count, restart_policy_name(s->restart)));
        else
            ck_assert_int_eq(s->count, 0);
    }
    return v;
}

static json_t *node_json(const struct node *n)
{
    return n->v != NULL ? json_deep_copy(n->v) : json_null();
}

static json_t *run_policy_json(const struct job *j)
{
    static const char *const STALLS[] = { "Notify", "Restart", "Fail" }, *const CLEANS[] = { "Running", "All", "None" };
    json_t *v =
        json_pack("{s:s, s:I, s:I, s:o, s:[I, s], s:b, s:o}", "cleanPodPolicy", CLEANS[j->run_policy.clean_pod_policy],
                  "backoffLimit", (json_int_t)j->run_policy.backoff_limit, "activeDeadlineSeconds",
                  (json_int_t)j->run_policy.active_deadline_seconds, "ttlSecondsAfterFinished",
                  j->run_policy.has_ttl ? json_integer(j->run_policy.ttl_seconds_after_finished) : json_null(), "stall",
                  (json_int_t)j->run_policy.stall_seconds, STALLS[j->run_policy.stall_policy], "suspend",
                  j->run_policy.suspend, "managedBy", text_or_null(j->run_policy.managed_by));

    if (j->run_policy.restart_scope == SCOPE_JOB)
        json_object_set_new(v, "restartScope", json_string("Job"));
    if (j->run_policy.scheduling.present)
        json_object_set_new(v, "schedulingPolicy",
                            json_pack("[I, o, o, o, I]", (json_int_t)j->run_policy.scheduling.min_available,
                                      text_or_null(j->run_policy.scheduling.queue),
                                      node_json(&j->run_policy.scheduling.min_resources),
                                      text_or_null(j->run_policy.scheduling.priority_class),
                                      (json_int_t)j->run_policy.scheduling.schedule_timeout_seconds));
    return v;
}

static json_t *job_json(const struct job *j)
{
    static const char *const STRATEGIES[] = { "ParameterServer", "Single", "Mirrored", "Hogwild",
                                              "MultiWorkerMirrored" };
    static const char *const PLACEMENTS[] = { "greedy", "round_robin" };
    json_t *v = json_pack("{s:s, s:s, s:b, s:o, s:o, s:o}", "name", j->name, "uid", j->uid, "model", j->has_model,
                          "train", data_json(&j->train), "validation", data_json(&j->validation), "fit", fit_json(j));

    json_object_set_new(v, "strategy",
                        json_pack("[s, i, s, b]", STRATEGIES[j->strategy.name], (int)j->strategy.updates,
                                  PLACEMENTS[j->strategy.placement], (int)j->strategy.overlap));
    if (j->strategy.updates == UPDATES_SYNC)
        json_object_set_new(
            v, "synchronous",
            json_pack("[I, b]", (json_int_t)j->strategy.replicas_to_aggregate, (int)j->strategy.deterministic));
    if (j->strategy.name == STRATEGY_MULTI_WORKER_MIRRORED) /* and the groups of 7 workers, and of none */
        json_object_set_new(v, "allReduce",
                            json_pack("[I, I, I]", (json_int_t)j->strategy.min_replicas,
                                      (json_int_t)job_default_group(j, 7), (json_int_t)job_default_group(j, 0)));
    if (job_towers(j) > 0)
        json_object_set_new(v, "towers", json_pack("[i, I]", job_towers(j), (json_int_t)job_default_group(j, 7)));
    json_object_set_new(v, "checkpoint",
                        json_pack("{s:f, s:I, s:I}", "everySeconds", j->checkpoint.every_seconds, "everySteps",
                                  (json_int_t)j->checkpoint.every_steps, "keep", (json_int_t)j->checkpoint.keep));
    json_object_set_new(v, "summaries",
                        json_pack("{s:f, s:I, s:b, s:s}", "everySeconds", j->summaries.every_seconds, "everySteps",
                                  (json_int_t)j->summaries.every_steps, "histograms", j->summaries.histograms,
                                  "directory", j->summaries.directory));
    json_object_set_new(v, "replicas", replicas_json(j));
    json_object_set_new(v, "runPolicy", run_policy_json(j));
    json_object_set_new(v, "storage", json_pack("[o, o]", node_json(&j->storage.data), node_json(&j->storage.output)));
    if (j->tensorboard.present)
        json_object_set_new(
            v, "tensorboard",
            json_pack("[o, o]", text_or_null(j->tensorboard.image), node_json(&j->tensorboard.resources)));
    return v;
}

/* ---- cases ---- */

static void read_case(const char *kind, const char *name, const char *file, struct buf *ret)
{
    struct err e = { .code = ERR_NONE };
    auto_free char *path = xasprintf(CASES "%s/%s/%s", kind, name, file);
    ck_ok_e(file_read(path, CASE_MAX, ret, &e));
}

static int load_case(const char *kind, const char *name, struct job **ret, struct err *e)
{
    AUTO_FINI(buf) input = BUF_INIT;
    AUTO_FINI(buf) lines = BUF_INIT;
    AUTO_FINI(strlist) sets = { .n = 0 };
    auto_free char *sets_path = xasprintf(CASES "%s/%s/sets", kind, name);
    auto_free char *path = xasprintf(CASES "%s/%s/input.yaml", kind, name);

    if (!file_exists(sets_path)) {
        read_case(kind, name, "input.yaml", &input);
        return job_parse(input.data, input.len, "input.yaml", ret, e);
    }
    read_case(kind, name, "sets", &lines);
    strlist_split(&sets, lines.data, '\n');
    return job_load_with(path, &sets, ret, e);
}

static void check_valid(const char *name)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) expected = BUF_INIT;
    AUTO(job) *j = NULL;
    json_auto_t *want = NULL, *got = NULL;

    ck_assert_msg(load_case("valid", name, &j, &e) == 0, "%s: %s", name, e.msg);
    got = job_json(j);
    ck_assert_ptr_nonnull(got);
    if (getenv("TRAINYARD_SHOW") != NULL) {
        AUTO_FINI(buf) text = BUF_INIT;
        json_emit_pretty(got, &text);
        printf("%s\n%s", name, text.data);
        return;
    }
    read_case("valid", name, "expected.json", &expected);
    ck_ok_e(json_parse(expected.data, expected.len, "expected.json", &want, &e));
    if (!json_equal(got, want)) {
        AUTO_FINI(buf) text = BUF_INIT;
        json_emit_pretty(got, &text);
        ck_abort_msg("%s: reads as\n%s", name, text.data);
    }
}

static void check_invalid(const char *name)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) error = BUF_INIT;
    AUTO(job) *j = NULL;
    auto_free char *folder = xasprintf(CASES "invalid/%s/", name);

    ck_assert_msg(load_case("invalid", name, &j, &e) == -1, "%s: is accepted", name);
    ck_assert_ptr_null(j);
    ck_assert_int_eq(e.code, ERR_INPUT);
    const char *msg = str_starts(e.msg, folder) ? e.msg + strlen(folder) : e.msg; /* loaded by path, with sets */
    if (getenv("TRAINYARD_SHOW") != NULL) {
        printf("%s\t%s\n", name, msg);
        return;
    }
    read_case("invalid", name, "error", &error);
    error.data[strcspn(error.data, "\n")] = '\0';
    ck_assert_msg(strcmp(msg, error.data) == 0, "%s: '%s', expected '%s'", name, msg, error.data);
}

static void for_each_case(const char *folder, void (*check)(const char *name))
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(strlist) names = { .n = 0 };
    ck_ok_e(dir_list(folder, &names, &e));
    ck_assert_uint_gt(names.n, 0);
    for (size_t i = 0; i < names.n; i++)
        check(names.items[i]);
}

START_TEST(reads_every_valid_manifest)
{
    for_each_case(CASES "valid", check_valid);
}
END_TEST

START_TEST(names_what_is_wrong_with_every_invalid_manifest)
{
    for_each_case(CASES "invalid", check_invalid);
}
END_TEST

START_TEST(nodes_keep_their_place_for_those_who_judge_them)
{
    struct err e = { .code = ERR_NONE };
    AUTO(job) *j = NULL;
    ck_ok_e(job_load(CASES "valid/design/input.yaml", &j, &e));
    struct node optimizer = node_get(&j->compile, "optimizer");
    ck_assert_int_eq(node_error(&optimizer, &e, "is bad"), -1);
    ck_assert_str_eq(e.msg, CASES "valid/design/input.yaml:13:16: spec.compile.optimizer: is bad");
}
END_TEST

START_TEST(a_set_is_named_by_those_who_judge_its_value)
{
    struct err e = { .code = ERR_NONE };
    AUTO(job) *j = NULL;
    AUTO_FINI(strlist) sets = { .n = 0 };
    strlist_add(&sets, "compile.optimizer.Adam.learning_rate=fast");
    ck_ok_e(job_load_with(CASES "valid/design/input.yaml", &sets, &j, &e));
    struct node rate = node_get(&j->compile, "optimizer");
    rate = node_get(&rate, "Adam");
    rate = node_get(&rate, "learning_rate");
    ck_assert_int_eq(node_error(&rate, &e, "is bad"), -1);
    ck_assert_str_eq(
        e.msg, "--set compile.optimizer.Adam.learning_rate=fast: spec.compile.optimizer.Adam.learning_rate: is bad");
}
END_TEST

START_TEST(a_missing_file_is_named)
{
    struct err e = { .code = ERR_NONE };
    AUTO(job) *j = NULL;
    ck_assert_int_eq(job_load("/nowhere/job.yaml", &j, &e), -1);
    ck_assert_str_eq(e.msg, "job file: /nowhere/job.yaml: No such file or directory");
    ck_assert_int_eq(err_exit_code(&e), 2);
}
END_TEST

START_TEST(every_example_is_a_manifest)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(strlist) names = { .n = 0 };
    int examples = 0, distributed = 0;
    ck_ok_e(dir_list("deploy/examples", &names, &e));
    for (size_t i = 0; i < names.n; i++) {
        AUTO(job) *j = NULL;
        if (!str_ends(names.items[i], ".yaml"))
            continue;
        auto_free char *path = path_join("deploy/examples", names.items[i]);
        ck_ok_e(job_load(path, &j, &e));
        ck_assert(j->has_model && (j->validation.present || j->fit.validation_split > 0));
        distributed += j->strategy.name == STRATEGY_PARAMETER_SERVER;
        examples++;
    }
    ck_assert_int_ge(distributed, 4);
    ck_assert_int_ge(examples, distributed + 1); /* a single machine, too */
}
END_TEST

START_TEST(json_is_a_manifest_too)
{
    static const char TEXT[] = "{\"apiVersion\": \"trainyard.dev/v1alpha1\", \"kind\": \"TrainJob\",\n"
                               " \"metadata\": {\"name\": \"a\"},\n"
                               " \"spec\": {\"model\": {\"layers\": []}, \"compile\": {\"loss\": \"mse\"},\n"
                               "  \"data\": {\"train\": {\"format\": \"csv\", \"files\": \"a.csv\"}},\n"
                               "  \"fit\": {\"epoch\": 1}}}\n";
    struct err e = { .code = ERR_NONE };
    AUTO(job) *j = NULL;
    ck_assert_int_eq(job_parse(TEXT, strlen(TEXT), "a.json", &j, &e), -1);
    ck_assert_str_eq(e.msg, "a.json:5:11: spec.fit: key 'epoch' is not known; did you mean 'epochs'?");
}
END_TEST

/* ---- what the API server holds ---- */

static json_t *load_json(const char *kind, const char *name)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) text = BUF_INIT;
    AUTO(source) *src = NULL;
    json_t *v = NULL;
    read_case(kind, name, "input.yaml", &text);
    ck_ok_e(yaml_parse(text.data, text.len, "input.yaml", &v, &src, &e));
    return v;
}

START_TEST(an_object_of_the_api_server_is_judged_like_a_file)
{
    struct err e = { .code = ERR_NONE };
    AUTO(job) *file = NULL, *object = NULL;
    json_auto_t *doc = load_json("valid", "every_field"), *as_file = NULL, *as_object = NULL;

    json_object_set_new(json_object_get(doc, "metadata"), "managedFields",
                        json_pack("[{s:s, s:{s:{}}}]", "manager", "kubectl", "fieldsV1", "f:spec"));
    json_object_set_new(json_object_get(doc, "metadata"), "somethingOfALaterServer", json_true());
    json_object_set_new(doc, "status", json_pack("{s:[{s:s}]}", "conditions", "type", "Created"));
    json_auto_t *before = json_deep_copy(doc);
    ck_ok_e(job_from_value(doc, "all-of-it", &object, &e));
    ck_assert_msg(json_equal(doc, before), "the object was changed");
    json_object_clear(doc); /* it may be freed before the job */
    ck_ok_e(load_case("valid", "every_field", &file, &e));
    as_file = job_json(file);
    as_object = job_json(object);
    ck_assert(json_equal(as_file, as_object));
}
END_TEST

START_TEST(messages_about_an_object_begin_with_its_name)
{
    static const struct {
        const char *name, *error;
    } CASES_[] = {
        { "epochs_text", "digits: spec.fit.epochs: must be a whole number, not the string '2'" },
        { "model_key", "digits: spec.model: key 'inputshape' is not known; did you mean 'inputShape'?" },
        { "epochs_and_steps", "digits: spec.fit.steps: give epochs or steps, not both" },
        { "api_version_kubeflow", "digits: apiVersion: this is a TrainJob of Kubeflow Trainer; Trainyard's have "
                                  "apiVersion trainyard.dev/v1alpha1" },
        { "spec_missing", "digits: 'spec' is missing" },
    };
    for (size_t i = 0; i < COUNT_OF(CASES_); i++) {
        struct err e = { .code = ERR_NONE };
        AUTO(job) *j = NULL;
        json_auto_t *doc = load_json("invalid", CASES_[i].name);
        ck_assert_int_eq(job_from_value(doc, "digits", &j, &e), -1);
        ck_assert_str_eq(e.msg, CASES_[i].error);
    }
}
END_TEST

START_TEST(what_is_no_object_is_refused_as_one)
{
    struct err e = { .code = ERR_NONE };
    AUTO(job) *j = NULL;
    json_auto_t *list = json_array(),
                *deep = json_pack("{s:s, s:s, s:{s:s}, s:{}}", "apiVersion", "trainyard.dev/v1alpha1", "kind",
                                  "TrainJob", "metadata", "name", "a", "spec");
    json_t *at = json_object_get(deep, "spec");
    ck_assert_int_eq(job_from_value(list, "a", &j, &e), -1);
    ck_assert_str_eq(e.msg,
                     "a: 'kind' is missing; a job begins with 'apiVersion: trainyard.dev/v1alpha1', 'kind: TrainJob'");
    for (int i = 0; i < 100; i++) {
        json_object_set_new(at, "model", json_object());
        at = json_object_get(at, "model");
    }
    ck_assert_int_eq(job_from_value(deep, "a", &j, &e), -1);
    ck_assert_str_eq(e.msg, "a: lists and maps are nested more than 64 deep");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("job");
    TCase *t = tcase_create("job");
    tcase_add_test(t, reads_every_valid_manifest);
    tcase_add_test(t, names_what_is_wrong_with_every_invalid_manifest);
    tcase_add_test(t, nodes_keep_their_place_for_those_who_judge_them);
    tcase_add_test(t, a_set_is_named_by_those_who_judge_its_value);
    tcase_add_test(t, a_missing_file_is_named);
    tcase_add_test(t, every_example_is_a_manifest);
    tcase_add_test(t, json_is_a_manifest_too);
    tcase_add_test(t, an_object_of_the_api_server_is_judged_like_a_file);
    tcase_add_test(t, messages_about_an_object_begin_with_its_name);
    tcase_add_test(t, what_is_no_object_is_refused_as_one);
    suite_add_tcase(s, t);
    return s;
}
