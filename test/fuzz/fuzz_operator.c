/* A job and its pods as the API server may send them ({"job": {...}, "pods": [...]}). They are read and planned for at
 * several times, all objects are built, and the status is written and read again. Schemas accept much, and TFJob's
 * accepts nearly everything. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "build/objects.h"
#include "plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PODS_MAX = 8, BUILT_MAX = 3 };

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* It can be sent. */
static void built(json_t *object)
{
    AUTO_FINI(buf) text = BUF_INIT;
    json_auto_t *owned = object;
    if (object == NULL)
        return;
    json_emit(owned, &text);
    must(text.len > 1 && text.data[0] == '{');
}

static void build_all(const struct job_spec *v, const struct claim_info *claims)
{
    struct strlist none = { 0 };
    const struct build_settings settings[] = {
        { .trainer_image = "i",
          .pull_policy = "",
          .tensorboard_image = "t",
          .cluster_domain = "",
          .gang_scheduler = "",
          .operator_ns = "o",
          .scraper_namespaces = &none },
        { .trainer_image = "i",
          .pull_policy = "Always",
          .tensorboard_image = "t",
          .cluster_domain = "cluster.local",
          .gang_scheduler = "volcano",
          .operator_ns = "o",
          .scraper_namespaces = &none,
          .lost_after_s = 30 },
    };
    struct job_identity identities[COUNT_OF(settings)] = { { .insecure = true } };
    size_t secret = job_identity_add_secret(&identities[1], "s", "u");
    for (int r = 0; r < ROLE_COUNT; r++)
        job_identity_put(&identities[1], (enum role)r, 0, secret, 1767225600000, "00");
    json_auto_t *spec = job_spec_json(v);
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        const struct build_settings *s = &settings[i];
        for (int r = 0; r < ROLE_COUNT; r++)
            for (int n = 0; n < MIN(v->roles[r].replicas, BUILT_MAX); n++) {
                AUTO_FINI(buf) warn = BUF_INIT;
                json_t *pod = build_pod(v, spec, (enum role)r, n, n, claims, claims != NULL ? v->nclaims : 0,
                                        &identities[i], s, &warn);
                must(pod != NULL);
                built(pod);
                if (v->kind->service_per_replica)
                    built(build_service(v, spec, (enum role)r, n));
            }
        built(build_service(v, spec, ROLE_CHIEF, v->kind->service_per_replica ? 0 : -1));
        for (int done = 0; s->gang_scheduler[0] != '\0' && done <= 3; done += 3)
            built(build_pod_group(v, spec, done, s));
        if (v->kind->own_processes) {
            built(build_config_map(v, spec, s));
            built(build_network_policy(v, s));
            built(build_tensorboard(v, spec, claims, claims != NULL ? v->nclaims : 0, s));
            built(build_tensorboard_service(v));
        }
    }
    built(build_adoption_patch(v, "u", 1));
    job_identity_fini(&identities[1]);
}

static void plan_all(const struct job_spec *v, struct observed *o, const json_t *status)
{
    static const int64_t TIMES[] = { 1767225600000, 1767225601000, 1767225600000 + 86400000, INT64_C(253402300800000) };
    const struct plan_settings s = {
        .network_policy = true, .gang = true, .gang_waits = true, .force_delete_ms = 60000
    };
    AUTO_FINI(job_status) at = { 0 }, none = { 0 };
    job_status_parse(status, &at);
    for (size_t i = 0; i < COUNT_OF(TIMES); i++) {
        AUTO_FINI(job_plan) p = { 0 };
        plan_job(v, &at, o, &s, TIMES[i], &p);
        must(p.next_ms == 0 || p.next_ms > TIMES[i]); /* else the operator would reconcile without end */
        built(job_status_patch(v->kind, "u", 0, &at, &p.status));
        built(job_status_patch(v->kind, "u", 0, &none, &p.status));
        job_status_fini(&at);
        at = p.status;
        memset(&p.status, 0, sizeof(p.status));
        o->group = GROUP_ADMITTED;
        o->config_ensured = o->policy_ensured = o->claims_known = true;
    }
}

static void one(const struct job_kind *k, const json_t *job, const json_t *pods)
{
    AUTO_FINI(job_spec) v = { 0 };
    struct pod_info facts[PODS_MAX];
    const struct pod_info *list[PODS_MAX];
    struct claim_info claims[CLAIMS_MAX] = { 0 };
    struct observed o = { .pods = list, .claims = claims };
    const json_t *pod;
    size_t i;

    job_spec_parse(k, job, CLEAN_NONE, &v);
    must(v.name != NULL && v.ns != NULL && v.uid != NULL && v.nclaims <= CLAIMS_MAX);
    json_array_foreach((json_t *)(uintptr_t)pods, i,
                       pod) if (o.npods < PODS_MAX && pod_info_parse(k, pod, &facts[o.npods]) == 0)
    {
        list[o.npods] = &facts[o.npods];
        if (facts[o.npods].name != NULL)
            o.npods++;
        else
            pod_info_fini(&facts[o.npods]);
    }
    for (i = 0; i < v.nclaims; i++)
        claims[i] = (struct claim_info){ .name = v.claims[i].name, .found = true, .read_write_once = true };
    plan_all(&v, &o, json_object_get(job, "status"));
    free(build_claims_fault(&v, claims, v.nclaims));
    if (v.invalid == NULL) {
        build_all(&v, claims);
        job_spec_drop_model(&v);
        build_all(&v, NULL);
    }
    for (i = 0; i < o.npods; i++)
        pod_info_fini(&facts[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_auto_t *v = NULL;

    if (json_parse((const char *)data, size, "job", &v, NULL) < 0)
        return 0;
    const json_t *job = json_object_get(v, "job");
    bool tf = str_eq(json_string_value(json_object_get(job, "kind")), "TFJob");
    if (json_is_object(job))
        one(tf ? &KIND_TFJOB : &KIND_TRAINJOB, job, json_object_get(v, "pods"));
    return 0;
}
