/* Whether a job's replicas have certificates, and which pods may be created with those that exist. All pods of a job
 * that run at the same time are of one kind, because the others could not talk to them. */
#include "plan/plan_internal.h"

enum { QUIET_MS = 3000 }; /* waiting for certificates is not worth a message sooner */

static bool any_pod(const struct reconcile *rec)
{
    for (size_t i = 0; i < rec->observed->npods; i++)
        if (reconcile_ours(rec, rec->observed->pods[i]))
            return true;
    return false;
}

static void tell_insecure(struct reconcile *rec, const char *why)
{
    auto_free char *text = xasprintf("the replicas have no certificates, and nothing that they send is encrypted or "
                                     "authenticated: %s",
                                     why);
    rec->status->identity.insecure = true;
    plan_add_event(rec, true, "Insecure", ROLE_COUNT, "%s", text);
    if (rec->kind->own_processes) /* a TFJob's conditions are training-operator's */
        plan_set_condition(rec, COND_INSECURE, true, plan_reason(rec, COND_INSECURE), text);
}

/* A job keeps what it started with until none of its pods exist. spec_hash shows that an operator has created pods, and
 * that the status is complete: an older release made no certificates. */
static void choose(struct reconcile *rec)
{
    struct job_identity *id = &rec->status->identity;
    bool older = rec->kind->own_processes && rec->prev->spec_hash[0] != '\0' && any_pod(rec);
    if (id->nsecrets > 0)
        return;
    if (rec->observed->identity->insecure) {
        if (!id->insecure)
            tell_insecure(rec, "the operator runs with --insecure");
    } else if (id->insecure) {
        id->insecure = any_pod(rec);
    } else if (older) {
        tell_insecure(rec, "an older release of the operator started the job; suspend and resume it to change that");
    }
}

void plan_identity(struct reconcile *rec)
{
    const struct identity_facts *f = rec->observed->identity;
    int64_t next_ms;

    if (f == NULL || !rec->spec->identity)
        return;
    choose(rec);
    if (rec->status->identity.insecure)
        return;
    job_status_drop(rec->status, COND_INSECURE);
    AUTO_FINI(identity_step) step = { 0 };
    identity_plan(rec->spec->roles, &rec->status->identity, f, rec->now, &step, &next_ms);
    if (step.kind != IDENTITY_NOTHING)
        plan_add_action(rec, ACT_IDENTITY, ROLE_COUNT, -1);
    if (next_ms > 0)
        plan_requeue_at(rec, next_ms);
}

static void wait_for_identity(struct reconcile *rec, enum role r, int index)
{
    const struct job_identity *id = &rec->status->identity;
    const char *fault = rec->observed->identity->fault, *secret = job_identity_secret(id, r, index);
    const struct refusal *refused = rec->observed->refused;
    char name[128];
    auto_free char *key = NULL, *note = NULL;

    if (refused != NULL && refused->kind == ACT_IDENTITY) /* that says more */
        return;
    job_spec_pod_name(rec->spec, r, index, name);
    if (fault == NULL && rec->now < rec->status->start_ms + QUIET_MS) {
        plan_requeue_at(rec, rec->status->start_ms + QUIET_MS);
        return;
    }
    if (id->insecure)
        key = xstrdup("the status to be written, which says that there are no certificates");
    else if (secret != NULL)
        key = xasprintf("the Secret %s with the certificate of %s", secret, name);
    else
        key = xasprintf("the Secret with the certificate of %s", name);
    if (fault != NULL && !rec->observed->identity->fault_told)
        note = xasprintf("no certificate for %s: %s", name, fault);
    plan_set_waiting(rec, "IdentityPending", r, key, fault, note);
}

bool plan_identity_admits(struct reconcile *rec, enum role r, int index)
{
    const struct identity_facts *f = rec->observed->identity;
    if (f == NULL || !rec->spec->identity || identity_ready(&rec->status->identity, f, r, index, rec->now))
        return true;
    wait_for_identity(rec, r, index);
    return false;
}
