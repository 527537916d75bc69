/* The ConfigMap with the job file and the addresses, and the NetworkPolicy: made, adopted, kept as the job says. */
#include "base/clock.h"
#include "base/str.h"
#include "control/apply_internal.h"

enum { FOREIGN_RETRY_MS = 1000 };

static bool *asked(struct record *r, enum action_kind k)
{
    return k == ACT_ENSURE_CONFIG ? &r->config_asked : &r->policy_asked;
}

static void config_over(struct task *t, struct record *r, const json_t *object)
{
    *asked(r, t->action.kind) = false;
    if (object == NULL)
        return;
    *(t->action.kind == ACT_ENSURE_CONFIG ? &r->config_ensured : &r->policy_ensured) = true;
    r->ensured_ms = clock_ms();
    if (t->action.kind == ACT_ENSURE_CONFIG)
        job_spec_drop_model(&r->view);
}

static json_t *config_build(struct context *x, const struct action *a)
{
    (void)a;
    return x->r->view.whole ? build_config_map(&x->r->view, apply_spec(x), &x->c->settings.build) : NULL;
}

static json_t *policy_build(struct context *x, const struct action *a)
{
    (void)a;
    return build_network_policy(&x->r->view, &x->c->settings.build);
}

static const struct child CONFIG = { .resource = &CONFIG_MAPS,
                                     .adopts = true,
                                     .rules = { .whole = { "data", "binaryData" } },
                                     .build = config_build,
                                     .over = config_over };
/* Addresses change with the number of replicas; a job file stays what the job began with. */
static const struct child ADDRESSES = { .resource = &CONFIG_MAPS,
                                        .adopts = true,
                                        .follows = true,
                                        .rules = { .whole = { "data", "binaryData" } },
                                        .build = config_build,
                                        .over = config_over };
static const struct child POLICY = { .resource = &NETWORK_POLICIES,
                                     .adopts = true,
                                     .rules = { .whole = { "spec" } },
                                     .build = policy_build,
                                     .over = config_over };

static void ensure(struct context *x, const struct action *a, const struct child *ch)
{
    if (*asked(x->r, a->kind) || !apply_may_send(x, a->kind))
        return;
    *asked(x->r, a->kind) = true;
    child_ensure(x, a, ch);
}

static void on_whole(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    r->config_asked = false;
    if (kube_ok(a) && str_eq(json_string_value(json_at(a->body, "metadata.uid")), r->view.uid))
        watch_new_spec(t->c, r, a->body);
    else /* it is gone, and the watch will say so; or it may not be read now */
        apply_block(t->c, r, ACT_ENSURE_CONFIG, FOREIGN_RETRY_MS);
    controller_wake(t->c, r);
}

/* The model is not kept once the job file exists: when that must be made again, the object is read again. */
void apply_config(struct context *x, const struct action *a)
{
    if (x->r->view.whole) {
        ensure(x, a, x->r->view.has_model ? &CONFIG : &ADDRESSES);
    } else if (!x->r->config_asked && apply_may_send(x, a->kind)) {
        x->r->config_asked = true;
        apply_send(x, a, KUBE_GET, &x->c->kind->resource, x->r->view.name, NULL, on_whole);
    }
}

void apply_policy(struct context *x, const struct action *a)
{
    ensure(x, a, &POLICY);
}
