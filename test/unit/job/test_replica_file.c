#include "check_main.h"

#include <string.h>

#include "base/file.h"
#include "job/job.h"
#include "job/replica_file.h"

static const char HEAD[] =
    "apiVersion: trainyard.dev/v1alpha1\n"
    "kind: TrainJob\n"
    "metadata: {name: digits, namespace: vision, uid: 0c5f, labels: {a: b}, resourceVersion: \"7\"}\n"
    "status: {state: Running}\n"
    "spec:\n"
    "  model: {inputShape: [4], layers: [{Dense: {units: 1}}]}\n"
    "  compile: {loss: mse}\n"
    "  data: {train: {format: csv, files: a.csv}}\n"
    "  fit: {epochs: 3, maxWaitSeconds: 60}\n";

static json_t *file_of(const char *rest)
{
    struct err e = { .code = ERR_NONE };
    AUTO(job) *j = NULL;
    auto_free char *text = xasprintf("%s%s", HEAD, rest);
    ck_ok_e(job_parse(text, strlen(text), "job.yaml", &j, &e));
    return job_replica_file(j->doc);
}

static struct job *read_back(const json_t *file)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) text = BUF_INIT;
    struct job *j = NULL;
    json_emit(file, &text);
    ck_ok_e(job_parse(text.data, text.len, "/etc/trainyard/job.yaml", &j, &e));
    return j;
}

static void text_of(const json_t *v, struct buf *out)
{
    json_emit(v, out);
}

START_TEST(it_holds_what_a_replica_needs_and_nothing_else)
{
    json_auto_t *file =
        file_of("  storage: {output: {emptyDir: {}}}\n"
                "  tensorboard: {}\n"
                "  runPolicy: {suspend: true}\n"
                "  checkpoint: {keep: 2}\n"
                "  replicaSpecs: {Chief: {}, PS: {replicas: 2, template: {spec: {}}}, Worker: {replicas: 3}}\n");
    AUTO_FINI(buf) text = BUF_INIT;
    text_of(file, &text);
    ck_assert_str_eq(text.data,
                     "{\"apiVersion\":\"trainyard.dev/v1alpha1\",\"kind\":\"TrainJob\","
                     "\"metadata\":{\"name\":\"digits\",\"namespace\":\"vision\",\"uid\":\"0c5f\"},"
                     "\"spec\":{\"model\":{\"inputShape\":[4],\"layers\":[{\"Dense\":{\"units\":1}}]},"
                     "\"compile\":{\"loss\":\"mse\"},\"data\":{\"train\":{\"format\":\"csv\",\"files\":\"a.csv\"}},"
                     "\"fit\":{\"epochs\":3,\"maxWaitSeconds\":60},\"checkpoint\":{\"keep\":2},"
                     "\"strategy\":{\"name\":\"ParameterServer\"},"
                     "\"replicaSpecs\":{\"PS\":{},\"Worker\":{},\"Chief\":{}}}}");
}
END_TEST

START_TEST(a_replica_reads_it)
{
    json_auto_t *file =
        file_of("  strategy: {placement: round_robin}\n"
                "  replicaSpecs: {Master: {}, PS: {replicas: 2}, Worker: {replicas: 3}, Evaluator: {}}\n");
    AUTO(job) *j = read_back(file);
    ck_assert_str_eq(j->name, "digits");
    ck_assert_str_eq(j->uid, "0c5f");
    ck_assert_int_eq(j->strategy.name, STRATEGY_PARAMETER_SERVER);
    ck_assert_int_eq(j->strategy.placement, PLACEMENT_ROUND_ROBIN);
    ck_assert_int_eq(j->fit.epochs, 3);
    for (int r = 0; r < ROLE_COUNT; r++)
        ck_assert(j->replicas[r].present);
}
END_TEST

START_TEST(scaling_and_suspending_do_not_change_it)
{
    static const char *const SAME[] = {
        "  replicaSpecs: {Chief: {}, PS: {}, Worker: {replicas: 2}}\n",
        "  replicaSpecs: {Chief: {}, PS: {}, Worker: {replicas: 40}}\n",
        "  replicaSpecs: {Chief: {}, PS: {}, Worker: {replicas: 0}}\n",
        "  replicaSpecs: {Worker: {restartPolicy: Never}, PS: {replicas: 3}, Master: {replicas: 1}}\n",
        "  replicaSpecs: {Chief: {}, PS: {}, Worker: {}, Evaluator: {replicas: 0}}\n  runPolicy: {suspend: true}\n",
        "  replicaSpecs: {Chief: {}, PS: {}, Worker: {}}\n  strategy: {name: ParameterServer}\n",
    };
    json_auto_t *first = file_of(SAME[0]);
    for (size_t i = 1; i < COUNT_OF(SAME); i++) {
        json_auto_t *other = file_of(SAME[i]);
        AUTO_FINI(buf) a = BUF_INIT, b = BUF_INIT;
        text_of(first, &a);
        text_of(other, &b);
        ck_assert_str_eq(a.data, b.data);
    }
}
END_TEST

/* minReplicas is compared with the workers of the manifest, of which the file knows no number. */
START_TEST(workers_of_an_all_reduce_come_and_go)
{
#define ALL_REDUCE "  strategy: {name: MultiWorkerMirrored, minReplicas: 2}\n"
    static const char *const SAME[] = {
        ALL_REDUCE "  replicaSpecs: {Chief: {}, Worker: {replicas: 2}}\n",
        ALL_REDUCE "  replicaSpecs: {Chief: {}, Worker: {replicas: 40}}\n",
    };
    json_auto_t *first = file_of(SAME[0]), *second = file_of(SAME[1]),
                *none = file_of("  strategy: {name: MultiWorkerMirrored}\n"
                                "  replicaSpecs: {Chief: {}, Worker: {replicas: 0}}\n");
    ck_assert(json_equal(first, second));
    AUTO(job) *j = read_back(first), *scaled_down = read_back(none);
    ck_assert_int_eq(j->strategy.name, STRATEGY_MULTI_WORKER_MIRRORED);
    ck_assert_int_eq(j->strategy.min_replicas, 2);
    ck_assert(j->replicas[ROLE_WORKER].present && scaled_down->replicas[ROLE_WORKER].present);
}
END_TEST

START_TEST(a_job_without_ps_stays_one)
{
    static const char *const SINGLE[] = {
        "",
        "  replicaSpecs: {Chief: {}, PS: {replicas: 0}, Worker: {replicas: 0}}\n",
        "  replicaSpecs: {Worker: {replicas: 1}}\n",
    };
    for (size_t i = 0; i < COUNT_OF(SINGLE); i++) {
        json_auto_t *file = file_of(SINGLE[i]);
        AUTO(job) *j = read_back(file);
        ck_assert_int_eq(j->strategy.name, STRATEGY_SINGLE);
    }
}
END_TEST

/* A replica trains what the manifest describes. */
static void check_same(const struct job *a, const struct job *b, const char *name)
{
    ck_assert_msg(json_equal(a->model.v, b->model.v) && json_equal(a->compile.v, b->compile.v), "%s: another model",
                  name);
    ck_assert_msg(memcmp(&a->fit, &b->fit, sizeof(a->fit)) == 0, "%s: another fit", name);
    ck_assert_msg((a->callbacks.v == NULL && b->callbacks.v == NULL) || json_equal(a->callbacks.v, b->callbacks.v),
                  "%s: other callbacks", name);
    ck_assert_msg(memcmp(&a->limits, &b->limits, sizeof(a->limits)) == 0, "%s: other waits", name);
    ck_assert_msg(memcmp(&a->strategy, &b->strategy, sizeof(a->strategy)) == 0, "%s: another strategy", name);
    ck_assert_msg(memcmp(&a->checkpoint, &b->checkpoint, sizeof(a->checkpoint)) == 0, "%s: other checkpoints", name);
    ck_assert_str_eq(a->summaries.directory, b->summaries.directory);
    ck_assert_int_eq(a->train.shuffle, b->train.shuffle);
    ck_assert_int_eq(a->validation.present, b->validation.present);
}

START_TEST(every_valid_manifest_gives_one_that_means_the_same)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(strlist) names = { .n = 0 };
    int checked = 0;
    ck_ok_e(dir_list("test/data/job/valid", &names, &e));
    for (size_t i = 0; i < names.n; i++) {
        AUTO(job) *j = NULL;
        auto_free char *path = xasprintf("test/data/job/valid/%s/input.yaml", names.items[i]);
        ck_ok_e(job_load(path, &j, &e));
        if (!j->has_model)
            continue;
        json_auto_t *file = job_replica_file(j->doc);
        AUTO(job) *again = read_back(file);
        check_same(j, again, names.items[i]);
        checked++;
    }
    ck_assert_int_ge(checked, 8);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("replica_file");
    TCase *t = tcase_create("replica_file");
    tcase_add_test(t, it_holds_what_a_replica_needs_and_nothing_else);
    tcase_add_test(t, a_replica_reads_it);
    tcase_add_test(t, scaling_and_suspending_do_not_change_it);
    tcase_add_test(t, workers_of_an_all_reduce_come_and_go);
    tcase_add_test(t, a_job_without_ps_stays_one);
    tcase_add_test(t, every_valid_manifest_gives_one_that_means_the_same);
    suite_add_tcase(s, t);
    return s;
}
