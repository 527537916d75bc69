/* Rules of a manifest that need more than one field, checked once all fields are read. */
#include <ctype.h>
#include <string.h>

#include "job/cluster.h"
#include "job/columns_check.h"
#include "job/device.h"
#include "job/fields.h"
#include "job/pod_template.h"
#include "job/quantity.h"

struct node job_at(const struct job *j, const char *path)
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
    struct node n = job_at(j, path);
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
        return err_set(e, ERR_INPUT, "'%.20s...' has %zu characters; at most %d, so that its replicas' names fit", name,
                       n, NAME_MAX_LEN);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)name[i];
        if (!islower(c) && !isdigit(c) && c != '-')
            return err_set(e, ERR_INPUT, "'%s' is not a valid job name: only a-z, 0-9 and '-'", name);
    }
    if (!islower((unsigned char)name[0]) || name[n - 1] == '-')
        return err_set(e, ERR_INPUT,
                       "'%s' is not a valid job name: it must begin with a letter and must not end with '-'", name);
    return 0;
}

bool job_is_object_name(const char *name)
{
    enum { SUBDOMAIN_MAX = 253 };
    size_t n = strlen(name);
    bool begins = true; /* a part */

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)name[i];
        bool edge = begins || i + 1 == n || name[i + 1] == '.';
        if (!islower(c) && !isdigit(c) && (edge || (c != '-' && c != '.')))
            return false;
        begins = c == '.';
    }
    return n > 0 && n <= SUBDOMAIN_MAX;
}

int job_check_uid(const char *uid, struct err *e)
{
    static const char GOOD[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    enum { UID_MAX_LEN = 128 };
    size_t n = strlen(uid);

    if (n == 0 || n > UID_MAX_LEN || strspn(uid, GOOD) != n)
        return err_set(e, ERR_INPUT, "the job's uid must be 1 to %d letters, digits, '-', '_' and '.'", UID_MAX_LEN);
    return 0;
}

static int check_name(struct job *j, struct err *e)
{
    struct node name = job_at(j, "metadata.name"), uid = job_at(j, "metadata.uid");
    struct err why = { .code = ERR_NONE };

    if (job_check_name(j->name, &why) < 0)
        return node_error(&name, e, "%s", why.msg);
    if (j->uid == NULL)
        j->uid = "";
    if (j->uid[0] != '\0' && job_check_uid(j->uid, &why) < 0)
        return node_error(&uid, e, "%s", why.msg);
    return 0;
}

/* ---- model ---- */

static int check_layer_device(const struct node *layer, int nps, struct err *e)
{
    const char *key;
    json_t *arguments;
    bool failed = false;
    int ps;

    json_object_foreach((json_t *)(uintptr_t)layer->v, key, arguments)
    {
        struct node map = node_get(layer, key), device = node_get(&map, "device");
        if (node_present(&device))
            failed |= (nps == JOB_PS_UNKNOWN ? device_parse(&device, &ps, e) : device_check(&device, nps, e)) < 0;
    }
    return failed ? -1 : 0;
}

/* Of both forms of layers that a manifest has. */
int job_check_devices(const struct job *j, int nps, struct err *e)
{
    static const char *const LISTS[] = { "spec.model.layers", "spec.model.keras.config.layers" };
    bool failed = false;

    for (size_t k = 0; k < COUNT_OF(LISTS); k++) {
        struct node layers = job_at(j, LISTS[k]);
        for (size_t i = 0; json_is_array(layers.v) && i < node_size(&layers); i++) {
            struct node layer = node_item(&layers, i);
            failed |= check_layer_device(&layer, nps, e) < 0;
            if (failed && !source_collects(j->source))
                return -1;
        }
    }
    return failed ? -1 : 0;
}

int job_ps_count(const struct job *j)
{
    bool unknown = !given(j, "spec.replicaSpecs") && j->strategy.name == STRATEGY_PARAMETER_SERVER;
    return unknown ? JOB_PS_UNKNOWN : j->replicas[ROLE_PS].count;
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
    struct node spec = job_at(j, "spec");
    bool any = false;

    if (given(j, "spec.compile") || given(j, "spec.data"))
        return node_error(&spec, e, "'model' is missing");
    for (int r = 0; r < ROLE_COUNT; r++) {
        if (!j->replicas[r].present)
            continue;
        any = true;
        if (!has_image(&j->replicas[r]))
            return node_error(&spec, e, "'model' is missing, and %s has no image", role_key((enum role)r));
    }
    return any ? 0 : node_error(&spec, e, "'model' is missing");
}

static int check_model(struct job *j, struct err *e)
{
    static const char *const NEEDED[] = { "compile", "data", "fit" };
    struct node spec = job_at(j, "spec");

    j->model = job_at(j, "spec.model");
    j->compile = job_at(j, "spec.compile");
    j->has_model = node_present(&j->model);
    if (!j->has_model)
        return check_own_images(j, e);
    bool of_keras = given(j, "spec.model.keras") || given(j, "spec.model.kerasFile"); /* may have a compile_config */
    for (size_t i = 0; i < COUNT_OF(NEEDED); i++) {
        struct node n = node_get(&spec, NEEDED[i]);
        if (!node_present(&n) && !(of_keras && str_eq(NEEDED[i], "compile")))
            return node_error(&spec, e, "'%s' is missing", NEEDED[i]);
    }
    struct node compile = node_get(&spec, "compile"), loss = node_get(&compile, "loss");
    if (!of_keras && !node_present(&loss))
        return node_error(&compile, e, "'loss' is missing");
    return job_check_devices(j, JOB_PS_UNKNOWN, e);
}

/* The first layer looks up the numbers of words, so columns of words are numbers. */
static bool takes_categories(const struct job *j)
{
    struct node layers = job_at(j, "spec.model.layers"), first = node_item(&layers, 0);
    return json_object_get(first.v, "Embedding") != NULL || json_object_get(first.v, "CategoryEncoding") != NULL;
}

static int check_encodings(struct job *j, struct err *e)
{
    if (!j->has_model)
        return 0;
    j->train.categories_are_int = j->validation.categories_are_int = takes_categories(j);
    if (columns_check_encodings(&j->train, e) < 0)
        return -1;
    return j->validation.present ? columns_check_encodings(&j->validation, e) : 0;
}

void job_keep_sound(struct job *j)
{
    struct data_spec *const SETS[] = { &j->train, &j->validation };

    j->model = job_at(j, "spec.model");
    j->compile = job_at(j, "spec.compile");
    j->has_model = json_is_object(j->model.v);
    for (size_t i = 0; i < COUNT_OF(SETS); i++) {
        struct err ignored;
        SETS[i]->categories_are_int = takes_categories(j);
        if (j->has_model && SETS[i]->sound && columns_check_encodings(SETS[i], &ignored) < 0)
            SETS[i]->sound = false;
        SETS[i]->present = SETS[i]->sound;
    }
}

/* ---- fit, checkpoint, summaries ---- */

/* Two fields that exclude each other are both given; the one that a flag brought is named. */
static int not_both(const struct job *j, const char *first, const char *second, struct err *e)
{
    bool flag = source_origin(j->source, first) != NULL;
    struct node one = job_at(j, flag ? first : second);
    const char *other = strrchr(flag ? second : first, '.') + 1, *mine = strrchr(one.path, '.') + 1;

    if (source_origin(j->source, one.path) == NULL)
        return node_error(&one, e, "give %s or %s, not both", other, mine);
    return node_error(&one, e, "give %s or %s, not both; '--set %s=null' removes the other", other, mine,
                      (flag ? second : first) + strlen("spec."));
}

static int check_fit(struct job *j, struct err *e)
{
    struct node fit = job_at(j, "spec.fit"), split = job_at(j, "spec.fit.validationSplit");

    j->fit.has_seed = given(j, "spec.fit.seed");
    if (j->fit.validation_batch_size == 0)
        j->fit.validation_batch_size = j->fit.batch_size;
    if (!given(j, "spec.data.train.shuffle"))
        j->train.shuffle = true;
    j->train.images.mixed = j->fit.validation_split > 0;
    if (j->fit.validation_split > 0 && j->validation.present)
        return node_error(&split, e, "conflicts with data.validation; remove one of them");
    if (j->fit.epochs > 0 && j->fit.steps > 0)
        return not_both(j, "spec.fit.epochs", "spec.fit.steps", e);
    if (j->has_model && j->fit.epochs == 0 && j->fit.steps == 0)
        return node_error(&fit, e, "'epochs' is missing (or 'steps': the global step to stop at)");
    return 0;
}

/* A job may write only to its output folder, and not to other folders on the volume. */
static bool stays_inside(const char *path)
{
    if (path[0] == '/')
        return false;
    for (const char *part = path;; part++) {
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return false;
        if ((part = strchr(part, '/')) == NULL)
            return true;
    }
}

static int check_summaries(struct job *j, struct err *e)
{
    struct node directory = job_at(j, "spec.summaries.directory");

    if (stays_inside(j->summaries.directory))
        return 0;
    return node_error(
        &directory, e,
        "'%.80s' must be a folder within the output folder: a path without '..' that does not begin with '/'",
        j->summaries.directory);
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
    return strategy_check(j, e);
}

/* ---- what concerns a cluster only ---- */

/* Kubernetes takes a volume whose kind it does not know for an emptyDir. */
static int check_volume(const struct node *volume, struct err *e)
{
    static const char *const KINDS[] = {
        "persistentVolumeClaim",
        "emptyDir",
        "hostPath",
        "nfs",
        "csi",
        "ephemeral",
        "configMap",
        "secret",
        "projected",
        "downwardAPI",
        "image",
        "iscsi",
        "fc",
        "rbd",
        "cephfs",
        "glusterfs",
        "cinder",
        "flexVolume",
        "flocker",
        "quobyte",
        "scaleIO",
        "storageos",
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "gcePersistentDisk",
        "gitRepo",
        "photonPersistentDisk",
        "portworxVolume",
        "vsphereVolume",
    };
    static const char *const CLAIM[] = { "claimName", "readOnly" };
    struct node claim = node_get(volume, "persistentVolumeClaim"), name = node_get(&claim, "claimName");

    if (!node_present(volume))
        return 0;
    if (node_object(volume, e) < 0)
        return -1;
    if (node_size(volume) != 1)
        return node_error(volume, e,
                          "must have exactly one volume, such as 'persistentVolumeClaim: {claimName: NAME}'");
    if (node_only(volume, KINDS, COUNT_OF(KINDS), e) < 0)
        return strstr(e->msg, "did you mean") != NULL
                   ? -1
                   : node_error(volume, e, "unknown volume type '%s'; use 'persistentVolumeClaim: {claimName: NAME}'",
                                node_key(volume, 0));
    if (claim.v == NULL)
        return 0;
    if (node_object(&claim, e) < 0 || node_only(&claim, CLAIM, COUNT_OF(CLAIM), e) < 0)
        return -1;
    const char *text;
    if (name.v == NULL)
        return node_error(&claim, e, "'claimName' is missing");
    if (node_str(&name, &text, e) < 0)
        return -1;
    if (!job_is_object_name(text))
        return node_error(
            &name, e,
            "'%.80s' is not a valid claim name: only a-z, 0-9, '-' and '.', with a letter or digit at both ends", text);
    return 0;
}

/* The API server checks the rest of metadata and spec when the pod is created. */
static int check_templates(const struct job *j, struct err *e)
{
    static const char *const KEYS[] = { "metadata", "spec" };

    for (int r = 0; r < ROLE_COUNT; r++) {
        struct node template = node_get(&j->replicas[r].node, "template");
        if (node_present(&template) && node_only(&template, KEYS, COUNT_OF(KEYS), e) < 0)
            return -1;
        if (pod_template_check_resources(&template, e) < 0 ||
            (j->has_model && pod_template_check_names(&template, e) < 0))
            return -1;
    }
    return 0;
}

/* The operator finds its pods by these. */
static int check_pod_labels(const struct job *j, struct err *e)
{
    struct node labels = job_at(j, "spec.podDefaults.labels");
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)(uintptr_t)labels.v, key, v)
    {
        struct node label = node_get(&labels, key);
        if (str_starts(key, "trainyard.dev/"))
            return node_error(&label, e,
                              "labels with the prefix 'trainyard.dev/' are reserved for the operator; remove it");
    }
    return 0;
}

/* For a job with a model TF_CONFIG lists the ps and the leader, else all replicas. The domain of the cluster is not
 * known here. */
static int check_addresses(const struct job *j, struct err *e)
{
    struct node ns = job_at(j, "metadata.namespace"), specs = job_at(j, "spec.replicaSpecs");
    const char *given = json_string_value(ns.v);
    struct cluster_names n = { .job = j->name, .ns = given != NULL ? given : "default", .domain = "" };

    for (int r = 0; r < ROLE_COUNT; r++)
        n.replicas[r] = !j->has_model || r == ROLE_PS ? j->replicas[r].count : MIN(j->replicas[r].count, 1);
    auto_free char *text = cluster_too_large(&n);
    return text != NULL ? node_error(&specs, e, "%s", text) : 0;
}

/* Always means again after success too: with that a restart of all would have no end. */
static int check_restart_scope(const struct job *j, struct err *e)
{
    for (int r = 0; j->run_policy.restart_scope == SCOPE_JOB && r < ROLE_COUNT; r++) {
        struct node policy = node_get(&j->replicas[r].node, "restartPolicy");
        if (j->replicas[r].present && r != ROLE_EVALUATOR && j->replicas[r].restart == RESTART_ALWAYS)
            return node_error(&policy, e, "with 'runPolicy.restartScope: Job' it cannot be Always; use OnFailure");
    }
    return 0;
}

static int check_cluster_fields(struct job *j, struct err *e)
{
    struct node stall = job_at(j, "spec.runPolicy.stallSeconds");
    struct node policy = job_at(j, "spec.runPolicy.stallPolicy"), tensorboard = job_at(j, "spec.tensorboard");
    struct node data = job_at(j, "spec.storage.data"), output = job_at(j, "spec.storage.output");
    struct node manager = job_at(j, "spec.managedBy");
    struct node output_read_only = job_at(j, "spec.storage.output.persistentVolumeClaim.readOnly");

    j->run_policy.has_ttl = given(j, "spec.runPolicy.ttlSecondsAfterFinished");
    if (j->run_policy.stall_policy != STALL_NOTIFY && j->run_policy.stall_seconds == 0)
        return node_error(&policy, e, "stallPolicy needs 'stallSeconds', which is missing");
    if (j->run_policy.stall_seconds > 0 && !j->has_model)
        return node_error(&stall, e,
                          "needs a 'model': the steps of other images cannot be seen; use activeDeadlineSeconds");
    if (j->managed_by != NULL && j->run_policy.managed_by != NULL && !str_eq(j->managed_by, j->run_policy.managed_by))
        return node_error(&manager, e, "differs from 'runPolicy.managedBy' (%s); remove one of them",
                          j->run_policy.managed_by);
    if (j->tensorboard.present && j->storage.output.v == NULL)
        return node_error(&tensorboard, e, "TensorBoard reads the output volume, but 'storage.output' is missing");
    if (check_restart_scope(j, e) < 0)
        return -1;
    if (check_pod_labels(j, e) < 0 || check_volume(&data, e) < 0 || check_volume(&output, e) < 0)
        return -1;
    if (json_is_true(output_read_only.v))
        return node_error(&output_read_only, e, "the output must be writable; remove it");
    return check_addresses(j, e) < 0 ? -1 : check_templates(j, e);
}

/* Of a pod template, check_templates() does. */
static int check_resources(struct job *j, struct err *e)
{
    static const char *const PATHS[] = { "spec.tensorboard.resources.requests", "spec.tensorboard.resources.limits",
                                         "spec.runPolicy.schedulingPolicy.minResources" };
    for (size_t i = 0; i < COUNT_OF(PATHS); i++) {
        struct node map = job_at(j, PATHS[i]);
        if (quantity_check_map(&map, e) < 0)
            return -1;
    }
    return 0;
}

int job_check(struct job *j, struct err *e)
{
    static int (*const CHECKS[])(struct job *, struct err *) = {
        check_name,      check_model,    check_encodings,      check_fit,       check_intervals,
        check_summaries, check_replicas, check_cluster_fields, check_resources,
    };
    bool failed = false;

    for (size_t i = 0; i < COUNT_OF(CHECKS) && (!failed || source_collects(j->source)); i++)
        failed |= CHECKS[i](j, e) < 0;
    return failed ? -1 : 0;
}
