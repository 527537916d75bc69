/* The Service and the Deployment of TensorBoard: made, changed and deleted with what the job says. */
#include "base/log.h"
#include "control/apply_internal.h"

static const struct child BOARD;

static void board_over(struct task *t, struct record *r, const json_t *object)
{
    (void)t;
    r->tensorboard_in_flight = false;
    r->tensorboard_ensured = object != NULL;
}

/* The service comes first, then the Deployment. */
static void board_service_over(struct task *t, struct record *r, const json_t *object)
{
    struct context x = { .c = t->c, .r = r };
    r->tensorboard_in_flight = object != NULL && r->view.tensorboard;
    if (r->tensorboard_in_flight)
        child_ensure(&x, &t->action, &BOARD);
    json_decref(x.spec);
}

static json_t *board_build(struct context *x, const struct action *a)
{
    (void)a;
    return build_tensorboard(&x->r->view, apply_spec(x), x->r->claims, x->r->claims_known ? x->r->view.nclaims : 0,
                             &x->c->settings.build);
}

static json_t *board_service_build(struct context *x, const struct action *a)
{
    (void)a;
    return build_tensorboard_service(&x->r->view);
}

static void board_gone(struct task *t, struct record *r, const struct kube_answer *a, bool deleted)
{
    if (deleted || kube_ok(a) || a->status == 404)
        return;
    log_warning("%s %s: deleting %s: %s", t->c->kind->resource.kind, r->key, t->name, a->message);
    r->tensorboard_ensured = true; /* it is still there */
    apply_block(t->c, r, t->action.kind, 0);
}

static const struct child BOARD_SERVICE = { .resource = &SERVICES,
                                            .adopts = true,
                                            .follows = true,
                                            .rules = { .whole = { "spec.selector" } },
                                            .build = board_service_build,
                                            .over = board_service_over,
                                            .gone = board_gone };
static const struct child BOARD = { .resource = &DEPLOYMENTS,
                                    .follows = true,
                                    .rules = { .whole = { "spec.template.spec.affinity",
                                                          "spec.template.metadata.labels" } },
                                    .build = board_build,
                                    .over = board_over,
                                    .gone = board_gone };

void apply_board(struct context *x, const struct action *a)
{
    if (x->r->tensorboard_in_flight || !apply_may_send(x, a->kind))
        return;
    x->r->tensorboard_in_flight = true;
    child_ensure(x, a, &BOARD_SERVICE);
}

void apply_delete_board(struct context *x, const struct action *a)
{
    char name[128];
    if (!apply_may_send(x, a->kind))
        return;
    build_tensorboard_name(&x->r->view, name);
    child_delete(x, a, name, &BOARD);
    child_delete(x, a, name, &BOARD_SERVICE);
    x->r->tensorboard_ensured = x->r->tensorboard_found = false;
}
