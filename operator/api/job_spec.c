/* The spec in the cache: read and validated once per generation, kept as deflated JSON, with a hash over the fields
 * that must not change while a model is trained. */
#include "api/job_spec.h"

#include <inttypes.h>
#include <string.h>

#include "api/deflate.h"
#include "api/job_spec_internal.h"

/* ---- the hash of the spec with which training starts ---- */

static int hash_bytes(const char *data, size_t n, void *user)
{
    uint64_t *h = user;
    for (size_t i = 0; i < n; i++)
        *h = (*h ^ (unsigned char)data[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
    return 0;
}

/* The prefix "m:" distinguishes it from the hashes of releases that hashed the text. */
static void hash_spec(const json_t *spec, char out[20])
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    json_auto_t *meaning = job_canonical(spec);

    json_dump_callback(meaning, hash_bytes, &h, JSON_COMPACT | JSON_SORT_KEYS);
    str_fmt(out, 20, "m:%016" PRIx64, h);
}

/* ---- the spec, deflated ---- */

static void share(const json_t *from, const char *key, json_t *to)
{
    json_t *v = json_object_get(from, key);
    if (v != NULL)
        json_object_set(to, key, v);
}

/* kubectl's last-applied-configuration annotation is as long as the spec, and pods do not need it. */
static json_t *metadata_to_keep(const json_t *metadata)
{
    static const char *const KEYS[] = { "name", "namespace", "uid", "labels" };
    const json_t *annotations = json_object_get(metadata, "annotations");
    json_t *keep = json_object();

    for (size_t i = 0; i < COUNT_OF(KEYS); i++)
        share(metadata, KEYS[i], keep);
    if (json_is_object(annotations)) {
        json_t *copy = json_copy((json_t *)(uintptr_t)annotations);
        json_object_del(copy, "kubectl.kubernetes.io/last-applied-configuration");
        json_object_set_new(keep, "annotations", copy);
    }
    return keep;
}

/* The spec with the keys of its roles in CamelCase, so that all readers find them. */
static json_t *spec_to_keep(const struct job_spec *v, const json_t *spec)
{
    const char *key;
    json_t *role, *keep = json_is_object(spec) ? json_copy((json_t *)(uintptr_t)spec) : json_object();
    json_t *roles = json_object_get(keep, v->kind->replica_specs);
    bool master;

    if (!v->kind->any_case || !json_is_object(roles))
        return keep;
    json_t *renamed = json_object();
    json_object_foreach(roles, key, role)
    {
        int r = job_spec_role_of(v->kind, key, &master);
        json_object_set(renamed, r < 0 ? key : master ? "Master" : role_key((enum role)r), role);
    }
    json_object_set_new(keep, v->kind->replica_specs, renamed);
    return keep;
}

static void deflate_spec(struct job_spec *v, const json_t *whole)
{
    AUTO_FINI(buf) text = BUF_INIT;
    size_t len;

    json_emit(whole, &text);
    free(v->deflated);
    v->deflated = deflate_text(text.data, text.len, &len);
    v->deflated_len = (uint32_t)len;
    v->spec_len = (uint32_t)text.len;
}

json_t *job_spec_json(const struct job_spec *v)
{
    auto_free char *text = v->deflated != NULL ? inflate_text(v->deflated, v->deflated_len, v->spec_len) : NULL;
    json_t *spec = NULL;

    if (text == NULL || json_parse_any(text, v->spec_len, v->name, &spec, NULL) < 0)
        return json_object();
    return spec;
}

void job_spec_drop_model(struct job_spec *v)
{
    static const char *const KEYS[] = { "model", "compile", "data" };

    if (!v->whole || !v->has_model)
        return;
    json_auto_t *whole = job_spec_json(v);
    json_t *spec = json_object_get(whole, "spec");
    for (size_t i = 0; i < COUNT_OF(KEYS); i++)
        json_object_del(spec, KEYS[i]);
    deflate_spec(v, whole);
    v->whole = false;
}

/* ---- the spec as the operator keeps it ---- */

void job_spec_parse(const struct job_kind *k, const json_t *object, enum clean_pod_policy default_clean,
                    struct job_spec *ret)
{
    struct job_spec v = { .kind = k, .whole = true };
    struct spec_reader r = { .v = &v, .object = object };

    job_spec_read(&r, default_clean);
    job_spec_validate(&r);
    if (r.fault.code != ERR_NONE)
        v.invalid = xstrdup(r.fault.msg);
    if (v.has_model)
        hash_spec(r.spec.v, v.spec_hash);

    json_auto_t *whole = json_object();
    json_object_set_new(whole, "metadata", metadata_to_keep(r.metadata.v));
    json_object_set_new(whole, "spec", spec_to_keep(&v, r.spec.v));
    deflate_spec(&v, whole);
    *ret = v;
}

void job_spec_fini(struct job_spec *v)
{
    free(v->ns);
    free(v->name);
    free(v->uid);
    free(v->gang.queue);
    free(v->gang.priority_class);
    for (size_t i = 0; i < v->nclaims; i++)
        free(v->claims[i].name);
    free(v->claims);
    free(v->invalid);
    free(v->deflated);
    *v = (struct job_spec){ .kind = v->kind };
}

int job_spec_replicas(const struct job_spec *v)
{
    int sum = 0;
    for (int r = 0; r < ROLE_COUNT; r++)
        sum += v->roles[r].replicas;
    return sum;
}

const enum role JOB_SPEC_ORDER[ROLE_COUNT] = { ROLE_CHIEF, ROLE_PS, ROLE_WORKER, ROLE_EVALUATOR };

void job_spec_first_members(const struct job_spec *v, int members, int ret[ROLE_COUNT])
{
    for (int i = 0; i < ROLE_COUNT; i++) {
        enum role r = JOB_SPEC_ORDER[i];
        ret[r] = MIN(members, MAX(v->roles[r].replicas, 0));
        members -= ret[r];
    }
}

void job_spec_minimum(const struct job_spec *v, int ret[ROLE_COUNT])
{
    bool elastic = v->kind->own_processes && v->has_model && (v->roles[ROLE_PS].replicas > 0 || v->all_reduce);
    job_spec_first_members(v, v->gang.min_available > 0 ? v->gang.min_available : job_spec_replicas(v), ret);
    if (v->gang.min_available > 0 || !elastic)
        return;
    ret[ROLE_WORKER] = MIN(ret[ROLE_WORKER], v->all_reduce ? MAX(v->min_workers, 1) : 1);
    ret[ROLE_EVALUATOR] = 0;
}

enum role job_spec_leader(const struct job_spec *v)
{
    return v->roles[ROLE_CHIEF].replicas > 0 ? ROLE_CHIEF : ROLE_WORKER;
}

const char *job_spec_role_name(const struct job_spec *v, enum role r)
{
    return r == ROLE_CHIEF && v->master ? "master" : role_name(r);
}

const char *job_spec_role_key(const struct job_spec *v, enum role r)
{
    return r == ROLE_CHIEF && v->master ? "Master" : role_key(r);
}

const char *job_spec_pod_name(const struct job_spec *v, enum role r, int index, char out[128])
{
    str_fmt(out, 128, "%s-%s-%d", v->name, job_spec_role_name(v, r), index);
    return out;
}
