/* The claims of a job: which of them are there, and whether their access mode lets replicas of several nodes use them.
 */
#include "base/clock.h"
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

static void on_claim(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL || r->claims == NULL || r->claims_asked == 0 || t->round != r->claims_round ||
        t->claim >= r->view.nclaims)
        return;
    struct claim_info *f = &r->claims[t->claim];
    f->found = kube_ok(a);
    f->refused = f->found || a->status == 404 ? 0 : a->status != 0 ? a->status : -1;
    if (f->found) {
        f->read_write_many = has_mode(a->body, "ReadWriteMany");
        f->read_write_once = has_mode(a->body, "ReadWriteOnce");
        f->read_write_once_pod = has_mode(a->body, "ReadWriteOncePod");
        f->read_only_many = has_mode(a->body, "ReadOnlyMany");
    } else if (f->refused != 0) {
        log_warning("%s %s: PersistentVolumeClaim %s: %s", t->c->kind->resource.kind, r->key, f->name, a->message);
    }
    if (--r->claims_asked > 0)
        return;
    r->claims_known = true;
    r->claims_ms = clock_ms();
    free(r->claims_fault);
    r->claims_fault = build_claims_fault(&r->view, r->claims, r->view.nclaims);
    controller_wake(t->c, r);
}

void apply_claims(struct context *x, const struct action *a)
{
    struct record *r = x->r;
    if (r->claims_asked > 0 || !apply_may_send(x, a->kind))
        return;
    if (r->claims == NULL)
        r->claims = xcalloc(r->view.nclaims, sizeof(*r->claims));
    r->claims_asked = r->view.nclaims;
    for (size_t i = 0; i < r->view.nclaims; i++) {
        if (r->claims[i].name == NULL)
            r->claims[i].name = xstrdup(r->view.claims[i].name);
        apply_send(x, a, KUBE_GET, &CLAIMS, r->view.claims[i].name, NULL, on_claim);
        task_last(x->c)->claim = i;
        task_last(x->c)->round = r->claims_round;
    }
}
