/* TensorBoard of a job: a Deployment with one pod that reads the output volume. Its pods lack the label operator-name,
 * so that they do not count as replicas; its Service has the label, so that a restarted operator finds it. */
#include "build/pod_build.h"

static json_t *tensorboard_labels(const struct job_spec *v)
{
    json_t *labels = json_object();
    set_label(labels, v, "job-name", v->name);
    set_label(labels, v, "replica-type", "tensorboard");
    return labels;
}

/* The folder of the summaries. A user's program may write them anywhere. */
static char *log_folder(const struct job_spec *v, const json_t *spec)
{
    const json_t *summaries = json_object_get(json_object_get(spec, "spec"), "summaries");
    const char *given = json_string_value(json_object_get(summaries, "directory"));

    if (given == NULL)
        given = v->has_model ? "summaries" : "";
    return xasprintf("/logs%s%s", *given != '\0' ? "/" : "", given);
}

static json_t *tensorboard_container(const struct job_spec *v, const json_t *spec, const struct build_settings *s)
{
    const json_t *board = json_object_get(json_object_get(spec, "spec"), "tensorboard");
    const char *image = json_string_value(json_object_get(board, "image"));
    auto_free char *folder = log_folder(v, spec);
    json_t *c = json_pack("{s:s, s:s}", "name", "tensorboard", "image", image != NULL ? image : s->tensorboard_image);

    if (image == NULL && s->pull_policy != NULL && *s->pull_policy != '\0')
        json_object_set_new(c, "imagePullPolicy", json_string(s->pull_policy));
    json_object_set_new(c, "command", json_pack("[s]", "tensorboard"));
    json_object_set_new(c, "args",
                        json_pack("[s, s, s, s, o]", "--logdir", folder, "--bind_all", "--port",
                                  json_sprintf("%d", TENSORBOARD_PORT))); /* --bind_all: IPv4 and IPv6 */
    fill_env(c, "TMPDIR", "/tmp");
    fill_env(c, "HOME", "/tmp");
    json_object_set_new(c, "ports", json_pack("[{s:s, s:i}]", "name", "http", "containerPort", TENSORBOARD_PORT));
    json_object_set_new(
        c, "readinessProbe",
        json_pack("{s:{s:s, s:i}, s:i}", "httpGet", "path", "/", "port", TENSORBOARD_PORT, "periodSeconds", 5));
    if (json_has(board, "resources"))
        json_object_set_new(c, "resources", json_deep_copy(json_object_get(board, "resources")));
    json_fill(c, "resources", json_pack("{s:{s:s, s:s}}", "requests", "cpu", "100m", "memory", "256Mi"));
    fill_container_security(c);
    json_object_set_new(c, "volumeMounts",
                        json_pack("[{s:s, s:s, s:b}, {s:s, s:s}]", "name", "trainyard-output", "mountPath", "/logs",
                                  "readOnly", 1, "name", "trainyard-tmp", "mountPath", "/tmp"));
    return c;
}

static json_t *tensorboard_volumes(const json_t *spec)
{
    json_t *output = storage_source(spec, "output");
    json_t *first = json_pack("{s:s}", "name", "trainyard-output");

    if (output != NULL)
        json_object_update_missing(first, output);
    else
        json_object_set_new(first, "emptyDir", json_object());
    return json_pack("[o, {s:s, s:{}}]", first, "name", "trainyard-tmp", "emptyDir");
}

json_t *build_tensorboard(const struct job_spec *v, const json_t *spec, const struct claim_info *claims, size_t nclaims,
                          const struct build_settings *s)
{
    json_t *metadata = json_pack("{s:o}", "labels", tensorboard_labels(v)), *pod_spec,
           *container = tensorboard_container(v, spec, s), *head;
    char name[128];

    pod_spec = json_pack("{s:[o], s:b, s:b, s:o}", "containers", container, "automountServiceAccountToken", 0,
                         "enableServiceLinks", 0, "volumes", tensorboard_volumes(spec));
    apply_pod_defaults(spec, metadata, pod_spec);
    fill_pod_security(pod_spec, container, spec, s);
    fill_app_labels(json_object_get(metadata, "labels"));
    tensorboard_claims(v, spec, claims, nclaims, metadata, pod_spec);
    head = object_with_metadata(v, "apps/v1", "Deployment", build_tensorboard_name(v, name), tensorboard_labels(v));
    fill_app_labels(json_object_get(json_object_get(head, "metadata"), "labels"));
    json_object_set_new(head, "spec",
                        json_pack("{s:i, s:{s:s}, s:i, s:{s:o}, s:{s:o, s:o}}", "replicas", 1, "strategy", "type",
                                  "Recreate", "revisionHistoryLimit", 1, "selector", "matchLabels",
                                  tensorboard_labels(v), "template", "metadata", metadata, "spec", pod_spec));
    return head;
}

json_t *build_tensorboard_service(const struct job_spec *v)
{
    char name[128];
    json_t *head = object_with_metadata(v, "v1", "Service", build_tensorboard_name(v, name), tensorboard_labels(v));

    json_t *labels = json_object_get(json_object_get(head, "metadata"), "labels");
    fill_app_labels(labels);
    set_label(labels, v, "operator-name", v->kind->controller);
    json_object_set_new(head, "spec",
                        json_pack("{s:o, s:[{s:s, s:i}]}", "selector", tensorboard_labels(v), "ports", "name", "http",
                                  "port", TENSORBOARD_PORT));
    return head;
}
