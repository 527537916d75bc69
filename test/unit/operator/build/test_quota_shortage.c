/* What the API server's message about a quota means for a job that needs a chief, a ps and one of its workers to train.
 */
#include "operator/api_case.h"

#include "build/quota_shortage.h"

static const char JOB[] =
    "apiVersion: trainyard.dev/v1alpha1\n"
    "kind: TrainJob\n"
    "metadata: {name: j, namespace: n, uid: u}\n"
    "spec:\n"
    "  model: {inputShape: [2], layers: [{Dense: {units: 1}}]}\n"
    "  compile: {optimizer: sgd, loss: mse}\n"
    "  data: {train: {format: csv, files: a.csv}}\n"
    "  fit: {epochs: 1}\n"
    "  storage: {output: {emptyDir: {}}}\n"
    "  replicaSpecs:\n"
    "    Chief: {}\n"
    "    PS: {}\n"
    "    Worker:\n"
    "      replicas: 4\n"
    "      template:\n"
    "        spec:\n"
    "          containers:\n"
    "            - {name: trainer, resources: {requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 4}}}\n";

#define REFUSED "pods \"j-worker-0\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2"

static const struct {
    const char *message, *want; /* NULL: it can train, or nothing is known */
} ROWS[] = {
    { REFUSED ", limited: pods=2", "the job needs pods=3 to train, and the quota has pods=2" },
    { REFUSED ", limited: pods=3", NULL },
    { REFUSED ", limited: count/pods=2", "the job needs count/pods=3 to train, and the quota has count/pods=2" },
    { REFUSED ", limited: requests.cpu=1",
      "the job needs requests.cpu=2200m to train, and the quota has requests.cpu=1" },
    { REFUSED ", limited: requests.cpu=2",
      "the job needs requests.cpu=2200m to train, and the quota has requests.cpu=2" },
    { REFUSED ", limited: requests.cpu=2200m", NULL },
    { REFUSED ", limited: cpu=1500m", "the job needs cpu=2200m to train, and the quota has cpu=1500m" },
    { REFUSED ", limited: limits.cpu=3", "the job needs limits.cpu=4 to train, and the quota has limits.cpu=3" },
    { REFUSED ", limited: requests.memory=512Mi",
      "the job needs requests.memory=1280Mi to train, and the quota has requests.memory=512Mi" },
    { REFUSED ", limited: cpu=4,pods=2", "the job needs pods=3 to train, and the quota has pods=2" },
    { REFUSED ", limited: requests.nvidia.com/gpu=0", NULL }, /* no container asks for it */
    { REFUSED ", limited: pods", NULL },
    { REFUSED ", limited: pods=many", NULL },
    { REFUSED ", limited: ", NULL },
    { REFUSED, NULL },
    { "pods \"j-worker-0\" is forbidden: limited: pods=2", NULL },
    { "", NULL },
};

START_TEST(a_quota_that_can_never_admit_a_job_is_named)
{
    struct err e = { .code = ERR_NONE };
    AUTO(source) *source = NULL;
    AUTO_FINI(job_spec) view;
    json_t *object = NULL;
    const struct build_settings settings = { .trainer_image = "trainer", .pull_policy = "" };
    ck_ok_e(yaml_parse(JOB, sizeof(JOB) - 1, "job", &object, &source, &e));
    job_spec_parse(&KIND_TRAINJOB, object, CLEAN_NONE, &view);
    json_decref(object);
    ck_assert_msg(view.invalid == NULL, "%s", view.invalid);
    json_auto_t *spec = job_spec_json(&view);
    auto_free char *text = quota_shortage(&view, spec, &settings, ROWS[_i].message);
    if (ROWS[_i].want == NULL)
        ck_assert_msg(text == NULL, "%s: %s", ROWS[_i].message, text);
    else
        ck_assert_msg(text != NULL && str_eq(text, ROWS[_i].want), "%s: %s", ROWS[_i].message, text);
}
END_TEST

START_TEST(a_used_up_quota_is_told_from_other_refusals)
{
    ck_assert(is_over_quota(REFUSED ", limited: pods=2"));
    ck_assert(!is_over_quota("pods \"j-worker-0\" is forbidden: violates PodSecurity \"restricted:latest\""));
    ck_assert(!is_over_quota(""));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("quota_shortage");
    TCase *t = tcase_create("quota_shortage");
    tcase_add_loop_test(t, a_quota_that_can_never_admit_a_job_is_named, 0, COUNT_OF(ROWS));
    tcase_add_test(t, a_used_up_quota_is_told_from_other_refusals);
    suite_add_tcase(s, t);
    return s;
}
