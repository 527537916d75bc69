/* The claims of a job: which of them exist, and whether their access modes allow replicas on several nodes.
 */
#include "base/log.h"
#include "base/str.h"
#include "control/apply_internal.h"

static bool has_mode(const json_t *claim, const char *mode)
{
    const json_t *list = json_at(claim, "spec.accessModes"), *one;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)list, i, one) if (str_eq(json_string_value(one), mode)) return true;
    return false;
}

static void on_claim(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL || entry->claims == NULL || entry->claims_in_flight == 0 ||
        req->claims_generation != entry->claims_generation || req->claim >= entry->spec.nclaims)
        return;
    struct claim_info *f = &entry->claims[req->claim];
    f->found = kube_ok(a);
    f->refused = f->found || a->status == 404 ? 0 : a->status != 0 ? a->status : -1;
    if (f->found) {
        f->read_write_many = has_mode(a->body, "ReadWriteMany");
        f->read_write_once = has_mode(a->body, "ReadWriteOnce");
        f->read_write_once_pod = has_mode(a->body, "ReadWriteOncePod");
        f->read_only_many = has_mode(a->body, "ReadOnlyMany");
    } else if (f->refused != 0) {
        log_warning("%s %s: PersistentVolumeClaim %s: %s", req->env->kind->resource.kind, entry->key, f->name,
                    a->message);
    }
    if (--entry->claims_in_flight > 0)
        return;
    entry->claims_known = true;
    entry->claims_ms = env_clock(req->env);
    free(entry->claims_fault);
    entry->claims_fault = build_claims_fault(&entry->spec, entry->claims, entry->spec.nclaims);
    env_enqueue(req->env, entry);
}

void apply_claims(struct apply_context *ctx, const struct action *a)
{
    struct cache_entry *entry = ctx->entry;
    if (entry->claims_in_flight > 0 || !apply_may_send(ctx, a->kind))
        return;
    if (entry->claims == NULL)
        entry->claims = xcalloc(entry->spec.nclaims, sizeof(*entry->claims));
    entry->claims_in_flight = entry->spec.nclaims;
    for (size_t i = 0; i < entry->spec.nclaims; i++) {
        if (entry->claims[i].name == NULL)
            entry->claims[i].name = xstrdup(entry->spec.claims[i].name);
        apply_send(ctx, a, KUBE_GET, &RESOURCE_CLAIMS, entry->spec.claims[i].name, NULL, on_claim);
        in_flight_last(ctx->env)->claim = i;
        in_flight_last(ctx->env)->claims_generation = entry->claims_generation;
    }
}
