#include "build/parts.h"

/* ---- JSON ---- */

bool has(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    return v != NULL && !json_is_null(v);
}

void fill(json_t *object, const char *key, json_t *value)
{
    if (has(object, key))
        json_decref(value);
    else
        json_object_set_new(object, key, value);
}

json_t *object_in(json_t *parent, const char *key)
{
    fill(parent, key, json_object());
    json_t *v = json_object_get(parent, key);
    return json_is_object(v) ? v : NULL;
}

json_t *array_in(json_t *parent, const char *key)
{
    fill(parent, key, json_array());
    json_t *v = json_object_get(parent, key);
    return json_is_array(v) ? v : NULL;
}

json_t *named_in(const json_t *array, const char *name)
{
    size_t i;
    json_t *v;

    json_array_foreach(array, i, v) if (str_eq(json_string_value(json_object_get(v, "name")), name)) return v;
    return NULL;
}

/* ---- the job ---- */

json_t *replica_in(const struct job_spec *v, const json_t *spec, enum role r)
{
    const json_t *specs = json_object_get(json_object_get(spec, "spec"), v->kind->replica_specs);
    return json_object_get(specs, job_spec_role_key(v, r));
}

json_t *storage_in(const json_t *spec, const char *which)
{
    json_t *source = json_object_get(json_object_get(json_object_get(spec, "spec"), "storage"), which);
    return json_is_object(source) ? source : NULL;
}

bool leads(const struct job_spec *v, enum role r, int index)
{
    return r == job_spec_leader(v) && (r == ROLE_CHIEF || index == 0);
}

bool alone(const struct job_spec *v)
{
    return job_spec_replicas(v) == 1;
}

json_t *training_container(const struct job_kind *k, const json_t *pod_spec)
{
    json_t *containers = json_object_get(pod_spec, "containers"), *named = named_in(containers, k->container);
    return named != NULL ? named : json_array_get(containers, 0);
}

/* ---- metadata ---- */

void put_label(json_t *labels, const struct job_spec *v, const char *name, const char *value)
{
    char key[128];
    str_fmt(key, sizeof(key), "%s%s", v->kind->label_prefix, name);
    json_object_set_new(labels, key, json_string(value));
}

json_t *job_labels(const struct job_spec *v)
{
    json_t *labels = json_object();
    put_label(labels, v, "operator-name", v->kind->controller);
    put_label(labels, v, "job-name", v->name);
    return labels;
}

json_t *replica_labels(const struct job_spec *v, enum role r, int index)
{
    json_t *labels = job_labels(v);
    char number[16];

    str_fmt(number, sizeof(number), "%d", index);
    put_label(labels, v, "replica-type", job_spec_role_name(v, r));
    put_label(labels, v, "replica-index", number);
    return labels;
}

void put_app_labels(json_t *labels)
{
    fill(labels, "app.kubernetes.io/name", json_string("trainyard"));
    fill(labels, "app.kubernetes.io/managed-by", json_string("trainyard-operator"));
}

json_t *build_owner(const struct job_spec *v)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:b}", "apiVersion", v->kind->api_version, "kind",
                     v->kind->resource.kind, "name", v->name, "uid", v->uid, "controller", 1, "blockOwnerDeletion", 1);
}

json_t *object_head(const struct job_spec *v, const char *api_version, const char *kind, const char *name,
                    json_t *labels)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:o, s:[o]}}", "apiVersion", api_version, "kind", kind, "metadata",
                     "name", name, "namespace", v->ns, "labels", labels, "ownerReferences", build_owner(v));
}

json_t *build_adoption(const struct job_spec *v, const char *uid, int64_t version)
{
    return json_pack("{s:{s:s, s:o, s:[o]}}", "metadata", "uid", uid, "resourceVersion",
                     json_sprintf("%lld", (long long)version), "ownerReferences", build_owner(v));
}

const char *build_config_name(const struct job_spec *v, char out[128])
{
    str_fmt(out, 128, "%s-job", v->name);
    return out;
}

const char *build_tensorboard_name(const struct job_spec *v, char out[128])
{
    str_fmt(out, 128, "%s-tensorboard", v->name);
    return out;
}
