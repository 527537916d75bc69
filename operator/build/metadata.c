/* Metadata that all objects of a job share. Labels of a TFJob are training-operator's, so that its tools still work. */
#include "build/metadata.h"

#include "build/json_fill.h"
#include "build/objects.h"

void set_label(json_t *labels, const struct job_spec *v, const char *name, const char *value)
{
    char key[128];
    str_fmt(key, sizeof(key), "%s%s", v->kind->label_prefix, name);
    json_object_set_new(labels, key, json_string(value));
}

json_t *job_labels(const struct job_spec *v)
{
    json_t *labels = json_object();
    set_label(labels, v, "operator-name", v->kind->controller);
    set_label(labels, v, "job-name", v->name);
    return labels;
}

json_t *replica_labels(const struct job_spec *v, enum role r, int index)
{
    json_t *labels = job_labels(v);
    char number[16];

    str_fmt(number, sizeof(number), "%d", index);
    set_label(labels, v, "replica-type", job_spec_role_name(v, r));
    set_label(labels, v, "replica-index", number);
    return labels;
}

void fill_app_labels(json_t *labels)
{
    json_fill(labels, "app.kubernetes.io/name", json_string("trainyard"));
    json_fill(labels, "app.kubernetes.io/managed-by", json_string("trainyard-operator"));
}

json_t *build_owner_reference(const struct job_spec *v)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:b}", "apiVersion", v->kind->api_version, "kind",
                     v->kind->resource.kind, "name", v->name, "uid", v->uid, "controller", 1, "blockOwnerDeletion", 1);
}

json_t *object_with_metadata(const struct job_spec *v, const char *api_version, const char *kind, const char *name,
                             json_t *labels)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:o, s:[o]}}", "apiVersion", api_version, "kind", kind, "metadata",
                     "name", name, "namespace", v->ns, "labels", labels, "ownerReferences", build_owner_reference(v));
}

json_t *build_adoption_patch(const struct job_spec *v, const char *uid, int64_t version)
{
    return json_pack("{s:{s:s, s:o, s:[o]}}", "metadata", "uid", uid, "resourceVersion",
                     json_sprintf("%lld", (long long)version), "ownerReferences", build_owner_reference(v));
}

const char *build_config_map_name(const struct job_spec *v, char out[128])
{
    str_fmt(out, 128, "%s-job", v->name);
    return out;
}

const char *build_tensorboard_name(const struct job_spec *v, char out[128])
{
    str_fmt(out, 128, "%s-tensorboard", v->name);
    return out;
}
