/* The part of a TrainJob that replicas read. It does not depend on the number of replicas or pod templates, so its
 * hash changes only with the training itself. */
#include "job/replica_file.h"

#include "job/job.h"

static bool wanted(const char *key)
{
    static const char *const OPERATORS[] = { "storage",     "podDefaults",  "runPolicy", "managedBy",
                                             "tensorboard", "replicaSpecs", "strategy" };

    for (size_t i = 0; i < COUNT_OF(OPERATORS); i++)
        if (str_eq(key, OPERATORS[i]))
            return false;
    return true;
}

static json_t *metadata(const json_t *from)
{
    static const char *const KEYS[] = { "name", "namespace", "uid" };
    json_t *to = json_object();

    for (size_t i = 0; i < COUNT_OF(KEYS); i++)
        if (json_is_string(json_object_get(from, KEYS[i])))
            json_object_set_new(to, KEYS[i], json_deep_copy(json_object_get(from, KEYS[i])));
    return to;
}

static bool has_replicas(const json_t *specs, const char *role)
{
    const json_t *r = json_object_get(specs, role), *count = json_object_get(r, "replicas");
    return json_is_object(r) && (!json_is_number(count) || json_number_value(count) > 0);
}

static bool is_all_reduce(const json_t *strategy)
{
    return str_eq(json_string_value(json_object_get(strategy, "name")), strategy_name(STRATEGY_MULTI_WORKER_MIRRORED));
}

/* Workers come and go, unless one is the whole job: it has the role also while it has none of them. With
 * strategy.minReplicas it has so many, because it may not have fewer. */
static json_t *workers(const json_t *strategy)
{
    json_t *least = json_object_get(strategy, "minReplicas");
    return is_all_reduce(strategy) && json_is_integer(least) ? json_pack("{s:O}", "replicas", least) : json_object();
}

static json_t *roles(const json_t *strategy, const json_t *specs)
{
    json_t *to = json_object();

    for (int i = 0; i < ROLE_COUNT; i++) {
        const char *key = role_key((enum role)i);
        bool scaled = i == ROLE_WORKER && json_is_object(json_object_get(specs, key)) &&
                      (has_replicas(specs, "PS") || is_all_reduce(strategy));
        if (scaled || has_replicas(specs, key) || (i == ROLE_CHIEF && has_replicas(specs, "Master")))
            json_object_set_new(to, key, i == ROLE_WORKER ? workers(strategy) : json_object());
    }
    return to;
}

static json_t *strategy(const json_t *from, const json_t *specs)
{
    json_t *to = json_is_object(from) ? json_deep_copy(from) : json_object();

    if (!json_is_string(json_object_get(to, "name")))
        json_object_set_new(to, "name", json_string(has_replicas(specs, "PS") ? "ParameterServer" : "Single"));
    return to;
}

json_t *job_replica_file(const json_t *doc)
{
    json_t *from = json_object_get(doc, "spec"), *specs = json_object_get(from, "replicaSpecs"), *v;
    json_t *spec = json_object();
    const char *key;

    json_object_foreach(from, key, v) if (wanted(key)) json_object_set_new(spec, key, json_deep_copy(v));
    json_object_set_new(spec, "strategy", strategy(json_object_get(from, "strategy"), specs));
    if (json_is_object(specs))
        json_object_set_new(spec, "replicaSpecs", roles(json_object_get(from, "strategy"), specs));
    return json_pack("{s:O, s:O, s:o, s:o}", "apiVersion", json_object_get(doc, "apiVersion"), "kind",
                     json_object_get(doc, "kind"), "metadata", metadata(json_object_get(doc, "metadata")), "spec",
                     spec);
}

int job_replica_file_fits(const json_t *doc, struct err *e)
{
    enum { CONFIG_MAP_MAX = 1 << 20 /* bytes of keys and values */ };
    json_auto_t *file = job_replica_file(doc);
    AUTO_FINI(buf) text = BUF_INIT;
    json_emit(file, &text);
    if (text.len + sizeof("job.yaml\n") <= CONFIG_MAP_MAX)
        return 0;
    return err_set(
        e, ERR_INPUT,
        "spec: has %zu KiB for the replicas, and a ConfigMap at most %d: put the model into a file on the data "
        "volume, with 'kerasFile'",
        (text.len + 1023) >> 10, CONFIG_MAP_MAX >> 10);
}
