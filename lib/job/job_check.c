/* Rules of a manifest that need more than one field, checked once all fields are read. */
#include <ctype.h>
#include <string.h>

#include "job/fields.h"

/* The node at a path of keys below the top, "spec.fit.seed"; v NULL when absent. */
static struct node at(const struct job *j, const char *path)
{
    struct node n = node_root(j->doc, j->source);
    auto_free char *copy = xstrdup(path);
    char *rest = copy;

    for (char *key; (key = strsep(&rest, ".")) != NULL;)
        n = node_get(&n, key);
    return n;
}

static bool given(const struct job *j, const char *path)
{
    struct node n = at(j, path);
    return node_present(&n);
}

/* ---- name ---- */

/* A replica's host name is NAME-evaluator-0 or NAME-worker-9999 and must be a DNS label (63). A service's name must
 * begin with a letter (RFC 1035). */
enum { DNS_LABEL_MAX = 63, SUFFIX_MAX = sizeof("-worker-9999") - 1, NAME_MAX_LEN = DNS_LABEL_MAX - SUFFIX_MAX };

int job_check_name(const char *name, struct err *e)
{
    size_t n = strlen(name);

    if (n == 0)
        return err_set(e, ERR_INPUT, "the name is empty");
    if (n > NAME_MAX_LEN)
        return err_set(e, ERR_INPUT, "'%.20s...' has %zu characters; at most %d, so that its replicas' names fit", name, n,
                       NAME_MAX_LEN);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)name[i];
        if (!islower(c) && !isdigit(c) && c != '-')
            return err_set(e, ERR_INPUT, "'%s' is no name of a job: only a-z, 0-9 and '-'", name);
    }
    if (!islower((unsigned char)name[0]) || name[n - 1] == '-')
        return err_set(e, ERR_INPUT, "'%s' is no name of a job: it begins with a letter and does not end with '-'", name);
    return 0;
}

static int check_name(struct job *j, struct err *e)
{
    struct node name = at(j, "metadata.name");
    struct err why = { .code = ERR_NONE };

    if (job_check_name(j->name, &why) < 0)
        return node_error(&name, e, "%s", why.msg);
    if (j->uid == NULL)
        j->uid = "";
    return 0;
}

/* ---- model ---- */

static bool is_about(const char *device, const char *word)
{
    return strcasestr(device, word) != NULL;
}

/* `device: ps:1`, `/job:ps/task:1`, `gpu:0`: known words, none of which this release can obey. */
static int refuse_device(const struct node *device, struct err *e)
{
    const char *text;

    if (!node_present(device))
        return 0;
    if (node_str(device, &text, e) < 0)
        return -1;
    if (is_about(text, "gpu") || is_about(text, "tpu"))
        return node_error(device, e, "'%.60s': GPUs come with a later release; this one computes on CPUs; remove 'device'",
                          text);
    if (str_starts(text, "ps:") || str_starts(text, "worker:") || str_starts(text, "/job:") || is_about(text, "cpu"))
        return node_error(device, e, "'%.60s': placing a layer by hand comes with a later release; this one places "
                                     "variables by spec.strategy.placement; remove 'device'", text);
    return node_error(device, e, "'%.60s' is no device; one looks like ps:1, worker:3 or /job:ps/task:1", text);
}

/* Beside a layer's name or among its arguments. */
static int refuse_devices(const struct job *j, struct err *e)
{
    struct node layers = at(j, "spec.model.layers");

    for (size_t i = 0; json_is_array(layers.v) && i < node_size(&layers); i++) {
        struct node layer = node_item(&layers, i), beside = node_get(&layer, "device");
        if (refuse_device(&beside, e) < 0)
            return -1;
        for (size_t k = 0; json_is_object(layer.v) && k < node_size(&layer); k++) {
            struct node arguments = node_get(&layer, node_key(&layer, k)), inside = node_get(&arguments, "device");
            if (refuse_device(&inside, e) < 0)
                return -1;
        }
    }
    return 0;
}

/* Every container of the role's pod names an image. */
static bool has_image(const struct replica_spec *r)
{
    struct node n = node_get(&r->node, "template");
    n = node_get(&n, "spec");
    n = node_get(&n, "containers");
    for (size_t i = 0; i < node_size(&n); i++) {
        struct node container = node_item(&n, i), image = node_get(&container, "image");
        if (!json_is_string(image.v))
            return false;
    }
    return json_is_array(n.v) && node_size(&n) > 0;
}

static int check_own_images(const struct job *j, struct err *e)
{
    struct node spec = at(j, "spec");
    bool any = false;

    if (given(j, "spec.compile") || given(j, "spec.data"))
        return node_error(&spec, e, "'model' is missing");
    for (int r = 0; r < ROLE_COUNT; r++) {
        if (!j->replicas[r].present)
            continue;
        any = true;
        if (!has_image(&j->replicas[r]))
            return node_error(&spec, e, "'model' is missing, and %s brings no image of its own", role_key((enum role)r));
    }
    return any ? 0 : node_error(&spec, e, "'model' is missing");
}

static int check_model(struct job *j, struct err *e)
{
    static const char *const NEEDED[] = { "compile", "data", "fit" };
    struct node spec = at(j, "spec");

    j->model = at(j, "spec.model");
    j->compile = at(j, "spec.compile");
    j->has_model = node_present(&j->model);
    if (!j->has_model)
        return check_own_images(j, e);
    for (size_t i = 0; i < COUNT_OF(NEEDED); i++) {
        struct node n = node_get(&spec, NEEDED[i]);
        if (!node_present(&n))
            return node_error(&spec, e, "'%s' is missing", NEEDED[i]);
    }
    return refuse_devices(j, e);
}

/* ---- fit, checkpoint, summaries ---- */

/* Two fields that exclude each other are both given; the one that a flag brought is named. */
static int not_both(const struct job *j, const char *first, const char *second, struct err *e)
{
    bool flag = source_origin(j->source, first) != NULL;
    struct node one = at(j, flag ? first : second);
    const char *other = strrchr(flag ? second : first, '.') + 1, *mine = strrchr(one.path, '.') + 1;

    if (source_origin(j->source, one.path) == NULL)
        return node_error(&one, e, "give %s or %s, not both", other, mine);
    return node_error(&one, e, "give %s or %s, not both; '--set %s=null' takes the other away", other, mine,
                      (flag ? second : first) + strlen("spec."));
}

static int check_fit(struct job *j, struct err *e)
{
    struct node fit = at(j, "spec.fit");

    j->fit.has_seed = given(j, "spec.fit.seed");
    if (j->fit.validation_batch_size == 0)
        j->fit.validation_batch_size = j->fit.batch_size;
    if (!given(j, "spec.data.train.shuffle"))
        j->train.shuffle = true;
    if (j->fit.epochs > 0 && j->fit.steps > 0)
        return not_both(j, "spec.fit.epochs", "spec.fit.steps", e);
    if (j->has_model && j->fit.epochs == 0 && j->fit.steps == 0)
        return node_error(&fit, e, "'epochs' is missing (or 'steps': the global step to stop at)");
    return 0;
}

static int check_intervals(struct job *j, struct err *e)
{
    static const double CHECKPOINT_SECONDS = 600;
    enum { SUMMARY_STEPS = 100 };

    if (j->checkpoint.every_seconds > 0 && j->checkpoint.every_steps > 0)
        return not_both(j, "spec.checkpoint.everySeconds", "spec.checkpoint.everySteps", e);
    if (j->summaries.every_seconds > 0 && j->summaries.every_steps > 0)
        return not_both(j, "spec.summaries.everySteps", "spec.summaries.everySeconds", e);
    if (j->checkpoint.every_steps == 0 && !(j->checkpoint.every_seconds > 0))
        j->checkpoint.every_seconds = CHECKPOINT_SECONDS;
    if (j->summaries.every_steps == 0 && !(j->summaries.every_seconds > 0))
        j->summaries.every_steps = SUMMARY_STEPS;
    return 0;
}

/* ---- replicas ---- */

static int check_at_most_one(const struct job *j, enum role r, struct err *e)
{
    struct node count = node_get(&j->replicas[r].node, "replicas");
    if (j->replicas[r].count <= 1)
        return 0;
    return node_error(&count, e, "at most one %s", role_key(r));
}

static int check_parameter_server(const struct job *j, int trainers, struct err *e)
{
    struct node specs = at(j, "spec.replicaSpecs");

    if (node_present(&specs) && j->replicas[ROLE_PS].count == 0)
        return node_error(&specs, e, "strategy ParameterServer needs parameter servers; add 'PS: {replicas: 1}'");
    if (node_present(&specs) && trainers == 0)
        return node_error(&specs, e, "nobody trains; add 'Worker: {replicas: 1}' or 'Chief: {}'");
    return 0;
}

static int check_single(const struct job *j, int trainers, struct err *e)
{
    struct node specs = at(j, "spec.replicaSpecs");

    struct node overlap = at(j, "spec.strategy.overlap");

    if (j->strategy.overlap)
        return node_error(&overlap, e, "strategy Single has no pushes to overlap with; remove 'overlap'");
    if (j->replicas[ROLE_PS].count > 0)
        return node_error(&j->replicas[ROLE_PS].node, e, "strategy Single has no parameter servers; remove PS, or the strategy");
    if (trainers > 1)
        return node_error(&specs, e, "%d processes train, but no PS holds the variables; add 'PS: {replicas: 1}'", trainers);
    if (node_present(&specs) && trainers == 0)
        return node_error(&specs, e, "nobody trains; add 'Worker: {replicas: 1}'");
    return 0;
}

static int check_replicas(struct job *j, struct err *e)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        if (!j->replicas[r].present)
            j->replicas[r].count = 0;
    if (check_at_most_one(j, ROLE_CHIEF, e) < 0 || check_at_most_one(j, ROLE_EVALUATOR, e) < 0)
        return -1;
    if (!j->has_model) /* what its images do is their business */
        return 0;
    if (!given(j, "spec.strategy.name"))
        j->strategy.name = j->replicas[ROLE_PS].count > 0 ? STRATEGY_PARAMETER_SERVER : STRATEGY_SINGLE;
    int trainers = j->replicas[ROLE_CHIEF].count + j->replicas[ROLE_WORKER].count;
    return j->strategy.name == STRATEGY_SINGLE ? check_single(j, trainers, e) : check_parameter_server(j, trainers, e);
}

/* ---- what concerns a cluster only ---- */

/* Kubernetes takes a volume whose kind it does not know for an emptyDir. */
static int check_volume(const struct node *volume, struct err *e)
{
    static const char *const KINDS[] = {
        "persistentVolumeClaim", "emptyDir", "hostPath", "nfs", "csi", "ephemeral", "configMap", "secret", "projected", "downwardAPI",
        "image", "iscsi", "fc", "rbd", "cephfs", "glusterfs", "cinder", "flexVolume", "flocker", "quobyte", "scaleIO", "storageos",
        "awsElasticBlockStore", "azureDisk", "azureFile", "gcePersistentDisk", "gitRepo", "photonPersistentDisk", "portworxVolume",
        "vsphereVolume",
    };
    static const char *const CLAIM[] = { "claimName", "readOnly" };
    struct node claim = node_get(volume, "persistentVolumeClaim"), name = node_get(&claim, "claimName");

    if (!node_present(volume))
        return 0;
    if (node_object(volume, e) < 0)
        return -1;
    if (node_size(volume) != 1)
        return node_error(volume, e, "one volume is wanted, as in 'persistentVolumeClaim: {claimName: NAME}'");
    if (node_only(volume, KINDS, COUNT_OF(KINDS), e) < 0)
        return strstr(e->msg, "did you mean") != NULL ? -1 :
            node_error(volume, e, "'%s' is no kind of volume; write 'persistentVolumeClaim: {claimName: NAME}'", node_key(volume, 0));
    if (claim.v == NULL)
        return 0;
    if (node_object(&claim, e) < 0 || node_only(&claim, CLAIM, COUNT_OF(CLAIM), e) < 0)
        return -1;
    return name.v != NULL ? 0 : node_error(&claim, e, "'claimName' is missing");
}

/* What is within metadata and spec the API server judges when it is to make the pod. */
static int check_templates(const struct job *j, struct err *e)
{
    static const char *const KEYS[] = { "metadata", "spec" };

    for (int r = 0; r < ROLE_COUNT; r++) {
        struct node template = node_get(&j->replicas[r].node, "template");
        if (node_present(&template) && node_only(&template, KEYS, COUNT_OF(KEYS), e) < 0)
            return -1;
    }
    return 0;
}

static int check_cluster_fields(struct job *j, struct err *e)
{
    struct node policy = at(j, "spec.runPolicy.stallPolicy"), tensorboard = at(j, "spec.tensorboard");
    struct node data = at(j, "spec.storage.data"), output = at(j, "spec.storage.output");
    struct node output_read_only = at(j, "spec.storage.output.persistentVolumeClaim.readOnly");

    j->run_policy.has_ttl = given(j, "spec.runPolicy.ttlSecondsAfterFinished");
    if (j->run_policy.stall_policy != STALL_NOTIFY && j->run_policy.stall_seconds == 0)
        return node_error(&policy, e, "without 'stallSeconds' no job is called stalled; add it");
    if (j->tensorboard.present && j->storage.output.v == NULL)
        return node_error(&tensorboard, e, "TensorBoard reads the output volume, but 'storage.output' is missing");
    if (check_volume(&data, e) < 0 || check_volume(&output, e) < 0)
        return -1;
    if (json_is_true(output_read_only.v))
        return node_error(&output_read_only, e, "the output is written to; remove it");
    return check_templates(j, e);
}

int job_check(struct job *j, struct err *e)
{
    if (check_name(j, e) < 0 || check_model(j, e) < 0 || check_fit(j, e) < 0 || check_intervals(j, e) < 0)
        return -1;
    return check_replicas(j, e) < 0 ? -1 : check_cluster_fields(j, e);
}
