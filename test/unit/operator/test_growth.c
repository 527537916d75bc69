/* What the operator reads from the API server, from kubeconfigs and from chiefs takes time that grows with its size,
 * not with its square. Most of it is read in the thread that renews the leader's lease. */
#include "../growth.h"

#include "api/job_spec.h"
#include "api/job_status.h"
#include "api/pod_info.h"
#include "codec/json.h"
#include "control/training_progress.h"
#include "kube/kubeconfig_parse.h"
#include "kube/reflector_internal.h"

static json_t *object_of(const char *text, size_t len)
{
    struct err e = { .code = ERR_NONE };
    json_t *v = NULL;
    ck_ok_e(json_parse(text, len, "growth", &v, &e));
    return v;
}

static void view_of(const struct job_kind *k, const char *text, size_t len, bool valid)
{
    json_auto_t *object = object_of(text, len);
    AUTO_FINI(job_spec) v = { 0 };
    job_spec_parse(k, object, CLEAN_NONE, &v);
    ck_assert_msg(valid == (v.invalid == NULL), "%s", v.invalid);
}

static void judge(const char *text, size_t len)
{
    view_of(&KIND_TRAINJOB, text, len, true);
}

static void refuse(const char *text, size_t len)
{
    view_of(&KIND_TRAINJOB, text, len, false);
}

static void judge_tf(const char *text, size_t len)
{
    view_of(&KIND_TFJOB, text, len, true);
}

#define OBJECT_HEAD                                                                                                    \
    "{\"apiVersion\": \"trainyard.dev/v1alpha1\", \"kind\": \"TrainJob\", "                                            \
    "\"metadata\": {\"name\": \"a\", \"namespace\": \"n\", \"uid\": \"u\", \"generation\": 1}, "                       \
    "\"spec\": {\"compile\": {\"loss\": \"mse\"}, \"data\": {\"train\": {\"format\": \"idx\", \"features\": \"x\"}}, "
#define OBJECT                                                                                                         \
    OBJECT_HEAD "\"fit\": {\"epochs\": 1}, \"replicaSpecs\": {\"PS\": {\"replicas\": 1}, \"Worker\": {\"replicas\": 1"

static void layers(size_t n, struct buf *out)
{
    buf_str(out, OBJECT "}}, \"model\": {\"inputShape\": [1], \"layers\": [{\"Flatten\": {}}");
    for (size_t i = 1; i < n; i++)
        buf_str(out, ", {\"Dense\": {\"units\": 1}}");
    buf_str(out, "]}}}");
}

static void strange_keys(size_t n, struct buf *out)
{
    buf_str(out, OBJECT "}}, \"model\": {\"inputShape\": [1], \"layers\": [{\"Flatten\": {}");
    number(out, n, ", \"k", "\": {}");
    buf_str(out, "}]}}}");
}

/* of a model that is unknown here; a known model would bound them */
static void class_weights(size_t n, struct buf *out)
{
    buf_str(out, OBJECT_HEAD "\"replicaSpecs\": {\"Worker\": {}}, \"model\": {\"kerasFile\": \"m.json\"}, "
                             "\"fit\": {\"epochs\": 1, \"classWeight\": {\"0\": 1");
    number(out, n, ", \"1", "\": 2");
    buf_str(out, "}}}}");
}

static void containers(size_t n, struct buf *out)
{
    buf_str(out, OBJECT ", \"template\": {\"spec\": {\"containers\": [{\"name\": \"trainer\"}");
    number(out, n, ", {\"image\": \"i\", \"name\": \"c", "\", \"ports\": [{\"containerPort\": 1}]}");
    buf_str(out, "]}}}}, \"model\": {\"inputShape\": [1], \"layers\": [{\"Flatten\": {}}]}}}");
}

static void tf_containers(size_t n, struct buf *out)
{
    buf_str(out, "{\"apiVersion\": \"kubeflow.org/v1\", \"kind\": \"TFJob\", \"metadata\": {\"name\": \"a\", "
                 "\"labels\": {\"b\": \"c\"");
    number(out, n, ", \"l", "\": \"v\"");
    buf_str(out, "}}, \"spec\": {\"tfReplicaSpecs\": {\"Worker\": {\"template\": {\"spec\": {\"containers\": "
                 "[{\"name\": \"tensorflow\", \"image\": \"i\"}");
    number(out, n, ", {\"image\": \"i\", \"name\": \"c", "\"}");
    buf_str(out, "]}}}}}}");
}

static void read_status(const char *text, size_t len)
{
    json_auto_t *object = object_of(text, len);
    AUTO_FINI(job_status) st = { 0 };
    job_status_parse(object, &st);
    ck_assert_uint_eq(st.nconds, 1);
}

/* Indexes from the last to the first, each of which is inserted before all others. */
static void status(size_t n, struct buf *out)
{
    buf_str(out, "{\"conditions\": [{\"type\": \"Created\", \"status\": \"True\"}");
    number(out, n, ", {\"type\": \"Other", "\", \"status\": \"True\"}");
    buf_str(out, "], \"replicaStatuses\": {\"Worker\": {\"restartsByIndex\": \"");
    for (size_t i = n; i > 0; i--)
        buf_printf(out, "%zu:1%s", 2 * i, i > 1 ? "," : "");
    buf_str(out, "\", \"completedIndexes\": \"");
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%zu%s", 2 * i, i + 1 < n ? "," : "");
    buf_str(out, "\"}}, \"identity\": {\"secrets\": [{\"name\": \"s\", \"uid\": \"u\", \"cas\": [\"0\"");
    number(out, n, ", \"", "\"");
    buf_str(out, "]}], \"leaves\": [{\"role\": \"ps\", \"secret\": \"s\", \"ca\": \"0\", \"notAfter\": "
                 "\"2026-01-01T00:00:00Z\", \"indexes\": \"");
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%zu%s", 2 * i, i + 1 < n ? "," : "");
    buf_str(out, "\"}");
    number(out, n,
           ", {\"role\": \"worker\", \"secret\": \"s\", \"ca\": \"0\", \"notAfter\": "
           "\"2026-01-01T00:00:00Z\", \"indexes\": \"",
           "\"}");
    buf_str(out, "]}}");
}

static void read_pod(const char *text, size_t len)
{
    json_auto_t *object = object_of(text, len);
    struct pod_info p;
    ck_assert_int_eq(pod_info_parse(&KIND_TRAINJOB, object, &p), 0);
    pod_info_fini(&p);
}

static void pod(size_t n, struct buf *out)
{
    buf_str(out, "{\"metadata\": {\"name\": \"a-worker-0\", \"labels\": {\"trainyard.dev/replica-type\": \"worker\", "
                 "\"trainyard.dev/replica-index\": \"0\"}, \"ownerReferences\": [{\"uid\": \"x\"}");
    number(out, n, ", {\"uid\": \"o", "\"}");
    buf_str(out, "]}, \"spec\": {\"containers\": [{\"name\": \"trainer\"}");
    number(out, n, ", {\"name\": \"c", "\"}");
    buf_str(out, "]}, \"status\": {\"phase\": \"Running\", \"conditions\": [{\"type\": \"Ready\"}");
    number(out, n, ", {\"type\": \"c", "\", \"status\": \"True\"}");
    buf_str(out, "], \"containerStatuses\": [{\"name\": \"trainer\", \"restartCount\": 1}");
    number(out, n, ", {\"name\": \"c", "\", \"restartCount\": 1, \"state\": {\"running\": {}}}");
    buf_str(out, "]}}");
}

static void read_progress(const char *text, size_t len)
{
    AUTO_FINI(training_progress) p = { 0 };
    (void)!training_progress_parse(text, len, &p);
}

static void progress(size_t n, struct buf *out)
{
    buf_str(out, "{\"state\": \"training\", \"step\": 1, \"epoch\": 1, \"loss\": 0.5, \"metrics\": {\"m\": 1");
    number(out, n, ", \"metric", "\": 0.5");
    buf_str(out, "}}");
}

static void read_kubeconfig(const char *text, size_t len)
{
    struct err e = { .code = ERR_NONE };
    AUTO(kubeconfig) *c = NULL;
    ck_ok_e(kubeconfig_parse(text, len, "config", "/nowhere", NULL, &c, &e));
}

static void kubeconfig(size_t n, struct buf *out)
{
    buf_str(out, "apiVersion: v1\nkind: Config\ncurrent-context: last\nclusters:\n");
    number(out, n, "- {name: c", ", cluster: {server: 'https://h'}}\n");
    buf_str(out, "- {name: last, cluster: {server: 'https://h'}}\nusers:\n");
    number(out, n, "- {name: u", ", user: {token: t}}\n");
    buf_str(out, "- {name: last, user: {token: t}}\ncontexts:\n");
    number(out, n, "- {name: x", ", context: {cluster: c, user: u}}\n");
    buf_str(out, "- {name: last, context: {cluster: last, user: last}}\n");
}

static void read_watch(const char *text, size_t len)
{
    AUTO_FINI(watch_event) w = { 0 };
    struct err e = { .code = ERR_NONE };
    ck_ok_e(watch_parse(text, len, &w, &e));
}

static void watch_line(size_t n, struct buf *out)
{
    buf_str(out, "{\"type\": \"ADDED\", \"object\": {\"kind\": \"Pod\", \"metadata\": {\"name\": \"a\", \"namespace\": "
                 "\"n\", \"uid\": \"u\", \"resourceVersion\": \"1\", \"labels\": {\"b\": \"c\"");
    number(out, n, ", \"l", "\": \"v\"");
    buf_str(out, "}}}}");
}

static const struct growth GROWTH[] = {
    { "TrainJob layers", MODEL_LAYERS_MAX / 4, layers, judge },
    { "TrainJob strange keys", 8000, strange_keys, refuse },
    { "TrainJob class weights", 16000, class_weights, judge },
    { "TrainJob containers", 4000, containers, judge },
    { "TFJob containers and labels", 4000, tf_containers, judge_tf },
    { "status", 20000, status, read_status },
    { "pod", 4000, pod, read_pod },
    { "progress", 500, progress, read_progress },
    { "kubeconfig", 2000, kubeconfig, read_kubeconfig },
    { "watch", 8000, watch_line, read_watch },
};

GROWTH_SUITE("growth")
