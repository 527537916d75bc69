/* Who may call each method of a job, written out: docs/protocol.md has the same table. */
#include <string.h>

#include "check_main.h"
#include "coord/coordinator_service.h"
#include "params/parameters_codec.h"
#include "params/shard_service.h"
#include "small_model.h"

/* Index 0 of each role, and worker-1; the server's leader is the chief. Where worker 0 leads instead: the second text.
 */
static const struct row {
    const char *method, *callers, *without_chief;
} ROWS[] = {
    { "Parameters/Describe", "ps worker chief evaluator launcher worker-1", NULL },
    { "Parameters/Init", "chief", "worker" },
    { "Parameters/Restore", "chief", "worker" },
    { "Parameters/Snapshot", "chief", "worker" },
    { "Parameters/Finish", "chief", "worker" },
    { "Parameters/Pull", "worker chief worker-1", NULL },
    { "Parameters/Push", "worker chief worker-1", NULL },
    { "Parameters/Attach", "worker chief worker-1", NULL },
    { "Parameters/Reduce", "worker chief worker-1", NULL },
    { "Coordinator/Register", "worker evaluator worker-1", NULL },
    { "Coordinator/Heartbeat", "worker evaluator worker-1", NULL },
    { "Coordinator/Lease", "worker evaluator worker-1", NULL },
    { "Coordinator/Leave", "worker evaluator worker-1", NULL },
    { "Coordinator/ReportEvaluation", "evaluator", NULL },
    { "Coordinator/RequestStop", "evaluator launcher", NULL },
};

static int accept_call(void *user UNUSED, const struct rpc_caller *caller UNUSED, const struct rpc_message *q UNUSED,
                       struct rpc_reply *r UNUSED, struct err *e UNUSED)
{
    return 0;
}

/* Appends the name when this member may call. */
static void try(const struct rpc_method *method, int role, int index, enum role leader, struct buf *out)
{
    struct rpc_method m = *method;
    struct err e;
    struct rpc_reply reply = { .head = BUF_INIT };
    AUTO(rpc_message) *q = NULL;
    const struct identity who = { .ns = "n", .job_uid = "u", .role = role, .index = index };
    m.handle = accept_call;
    m.no_header = true; /* only the certificate counts */
    ck_ok_e(rpc_message_of("", 0, &q, &e));
    const struct rpc_connection from = { .identity = &who, .leader = leader };
    if (rpc_method_call(&m, &from, q, &reply, &e) == 0)
        buf_printf(out, index > 0 ? "%s%s-%d" : "%s%s", out->len > 0 ? " " : "", identity_role_name(role), index);
    else
        ck_assert_msg(e.code == ERR_REFUSED, "%s", e.msg);
}

static void check(const struct rpc_method *m, enum role leader, const char *expected)
{
    AUTO_FINI(buf) callers = BUF_INIT;
    for (int role = 0; role < IDENTITY_ROLES; role++)
        try(m, role, 0, leader, &callers);
    try(m, ROLE_WORKER, 1, leader, &callers);
    ck_assert_msg(strcmp(callers.data, expected) == 0, "%s: callers are '%s', not '%s'", m->path, callers.data,
                  expected);
}

static const struct row *find_row(const char *path)
{
    for (size_t i = 0; i < COUNT_OF(ROWS); i++)
        if (strcmp(path + strlen("/trainyard.v1."), ROWS[i].method) == 0)
            return &ROWS[i];
    ck_abort_msg("%s is not in the table of this test", path);
    return NULL;
}

START_TEST(each_method_has_exactly_these_callers)
{
    struct rpc_method methods[SHARD_METHODS + COORDINATOR_METHODS];
    AUTO(shard) *s = shard_new(1);
    AUTO(shard_service) *v = shard_service_new(s);
    shard_service_methods(v, methods);
    AUTO(model) *model = small_model(SMALL_DENSE, SMALL_COMPILE);
    AUTO(coordinator) *c = coordinator_new(
        &(struct coordinator_config){ .model = model, .job_uid = "u", .batches_per_epoch = 10, .total = 10 });
    coordinator_service_methods(c, methods + SHARD_METHODS);
    ck_assert_uint_eq(COUNT_OF(methods), COUNT_OF(ROWS));
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        const struct row *row = find_row(methods[i].path);
        check(&methods[i], ROLE_CHIEF, row->callers);
        check(&methods[i], ROLE_WORKER, row->without_chief != NULL ? row->without_chief : row->callers);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("callers");
    TCase *t = tcase_create("callers");
    tcase_add_test(t, each_method_has_exactly_these_callers);
    suite_add_tcase(s, t);
    return s;
}
