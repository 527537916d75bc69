#include "check_main.h"

#include <string.h>

#include "job/device.h"
#include "job/job.h"

enum { PS = 3, OWN = -2 };

/* error NULL: it is this ps. */
static const struct {
    const char *text;
    int ps;
    const char *error;
} NAMES[] = {
    { "ps:1", 1, NULL },
    { "ps:0", 0, NULL },
    { "PS:2", 2, NULL },
    { "/job:ps/task:1", 1, NULL },
    { "/job:ps/replica:0/task:2", 2, NULL },
    { "/job:ps/task:1/cpu:0", 1, NULL },
    { "/job:ps/replica:0/task:1/device:CPU:0", 1, NULL },
    { "ps:3", 0, "device: 'ps:3' does not exist: the job has 3 PS, ps:0 to ps:2" },
    { "/job:ps/task:3", 0, "device: '/job:ps/task:3' does not exist: the job has 3 PS, ps:0 to ps:2" },
    { "ps:999999", 0, "device: 'ps:999999' does not exist: the job has 3 PS, ps:0 to ps:2" },
    { "ps:4294967296", 0, "device: 'ps:4294967296' is not a valid device; use a name like ps:1 or /job:ps/task:1" },
    { "ps:-1", 0, "device: 'ps:-1' is not a valid device; use a name like ps:1 or /job:ps/task:1" },
    { "ps:", 0, "device: 'ps:' is not a valid device; use a name like ps:1 or /job:ps/task:1" },
    { "ps", 0, "device: 'ps' is not a valid device; use a name like ps:1 or /job:ps/task:1" },
    { "ps:1 ", 0, "device: 'ps:1 ' is not a valid device; use a name like ps:1 or /job:ps/task:1" },
    { "ps:1/cpu:1", 0, "device: 'ps:1/cpu:1' is not a valid device; use a name like ps:1 or /job:ps/task:1" },
    { "/job:ps", 0, "device: '/job:ps' is not a valid device; use a name like ps:1 or /job:ps/task:1" },
    { "/job:ps:1", 0, "device: '/job:ps:1' is not a valid device; use a name like ps:1 or /job:ps/task:1" },
    { "ps/task:1", 0, "device: 'ps/task:1' is not a valid device; use a name like ps:1 or /job:ps/task:1" },
    { "", 0, "device: '' is not a valid device; use a name like ps:1 or /job:ps/task:1" },
    { "banana", 0, "device: 'banana' is not a valid device; use a name like ps:1 or /job:ps/task:1" },
    { "/job:ps/task:1/gpu:0", 0, "device: '/job:ps/task:1/gpu:0': GPUs are not supported yet; remove 'device'" },
    { "TPU:0", 0, "device: 'TPU:0': GPUs are not supported yet; remove 'device'" },
    { "worker:1", 0,
      "device: 'worker:1': layers that compute on different workers (pipelines) are not available in this release; "
      "'device: ps:0' places only the variables" },
};
START_TEST(names_of_devices)
{
    json_auto_t *v = json_string(NAMES[_i].text);
    struct node n = { .v = v, .path = "device" };
    struct err e = { 0 };
    int ps = -1;
    if (NAMES[_i].error != NULL) {
        ck_fails(device_check(&n, PS, &e), ERR_INPUT, NAMES[_i].error);
        return;
    }
    ck_ok_e(device_check(&n, PS, &e));
    ck_ok_e(device_parse(&n, &ps, &e));
    ck_assert_int_eq(ps, NAMES[_i].ps);
}
END_TEST

/* %s: the model, and what follows the rest. */
static struct job *job_of(const char *model, const char *rest)
{
    auto_free char *text = xasprintf("apiVersion: trainyard.dev/v1alpha1\n"
                                     "kind: TrainJob\n"
                                     "metadata: {name: pin}\n"
                                     "spec:\n"
                                     "  model: %s\n"
                                     "  compile: {optimizer: Adam, loss: mse}\n"
                                     "  data: {train: {format: csv, files: train.csv}}\n"
                                     "  fit: {epochs: 2}\n"
                                     "%s",
                                     model, rest);
    struct job *j = NULL;
    struct err e = { 0 };
    ck_ok_e(job_parse(text, strlen(text), "input.yaml", &j, &e));
    return j;
}

#define SHORT "{inputShape: [4], layers: [Dense: {units: 1, device: ps:1}]}"
#define OPEN  "{layers: [Dense: {units: 1, device: ps:1}]}"
#define KERAS                                                                                                          \
    "{keras: {class_name: Sequential, config: {layers: [{class_name: Dense, config: {units: 1, device: ps:1}}]}}}"
/* nps OWN: what the manifest says. error NULL: there is such a ps, or nobody knows yet. */
static const struct {
    const char *model, *rest;
    int nps;
    const char *error;
} JOBS[] = {
    { SHORT, "  replicaSpecs: {PS: {replicas: 2}, Worker: {}}\n", OWN, NULL },
    { SHORT, "  replicaSpecs: {PS: {}, Worker: {}}\n", OWN,
      "input.yaml:5:63: spec.model.layers[0].Dense.device: 'ps:1' does not exist: the job has one PS, ps:0" },
    { OPEN, "  replicaSpecs: {PS: {}, Worker: {}}\n", OWN,
      "input.yaml:5:46: spec.model.layers[0].Dense.device: 'ps:1' does not exist: the job has one PS, ps:0" },
    { KERAS, "  replicaSpecs: {PS: {}, Worker: {}}\n", OWN,
      "input.yaml:5:108: spec.model.keras.config.layers[0].config.device: 'ps:1' does not exist: the job has one PS, "
      "ps:0" },
    { SHORT, "", OWN,
      "input.yaml:5:63: spec.model.layers[0].Dense.device: 'ps:1': the job has no PS; remove 'device', or add PS to "
      "replicaSpecs" },
    { SHORT, "  strategy: {name: ParameterServer}\n", OWN, NULL },
    { SHORT, "  replicaSpecs: {PS: {}, Worker: {}}\n", 2, NULL }, /* the file of a replica has no counts */
    { SHORT, "  replicaSpecs: {PS: {replicas: 2}, Worker: {}}\n", 1,
      "input.yaml:5:63: spec.model.layers[0].Dense.device: 'ps:1' does not exist: the job has one PS, ps:0" },
};
START_TEST(the_job_has_the_ps)
{
    AUTO(job) *j = job_of(JOBS[_i].model, JOBS[_i].rest);
    struct err e = { 0 };
    int nps = JOBS[_i].nps == OWN ? job_ps_count(j) : JOBS[_i].nps;
    if (JOBS[_i].error == NULL)
        ck_ok_e(job_check_devices(j, nps, &e));
    else
        ck_fails(job_check_devices(j, nps, &e), ERR_INPUT, JOBS[_i].error);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("device");
    TCase *c = tcase_create("all");
    tcase_add_loop_test(c, names_of_devices, 0, COUNT_OF(NAMES));
    tcase_add_loop_test(c, the_job_has_the_ps, 0, COUNT_OF(JOBS));
    suite_add_tcase(s, c);
    return s;
}
