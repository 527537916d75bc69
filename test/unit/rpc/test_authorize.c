#include "base/mem.h"
#include "check_main.h"
#include "codec/pb.h"
#include "rpc/rpc.h"

#include <string.h>

static struct rpc_caller seen;

static int take(void *user UNUSED, const struct rpc_caller *caller, const struct rpc_message *q UNUSED,
                struct rpc_reply *r UNUSED, struct err *e UNUSED)
{
    seen = *caller;
    return 0;
}

static struct identity member(int role, int index)
{
    return (struct identity){ .ns = "local", .job_uid = "uid-1", .role = role, .index = index };
}

/* A call of a method that `callers` may call, whose header names the sender. */
static int call(unsigned callers, const struct rpc_connection *from, const char *sender, struct err *e)
{
    const struct rpc_method m = { .path = "/t.T/Take", .handle = take, .callers = callers };
    AUTO_FINI(buf) header = BUF_INIT;
    AUTO_FINI(buf) message = BUF_INIT;
    AUTO(rpc_message) *q = NULL;
    struct rpc_reply reply = { .head = BUF_INIT };
    pb_put_str(&header, 3, sender);
    pb_put_bytes(&message, 1, header.data, header.len);
    ck_assert_int_eq(rpc_message_of(message.data, message.len, &q, e), 0);
    return rpc_method_call(&m, from, q, &reply, e);
}

static int call_as(unsigned callers, int role, int index, enum role leader, struct err *e)
{
    char name[IDENTITY_NAME_SIZE];
    const struct identity who = member(role, index);
    return call(callers, &(struct rpc_connection){ .identity = &who, .leader = leader }, identity_name(&who, name), e);
}

START_TEST(a_role_in_the_mask_may_call_and_no_other)
{
    struct err e = { .code = ERR_NONE };
    for (int role = 0; role < IDENTITY_ROLES; role++) {
        ck_ok_e(call_as(IDENTITY_BIT(role), role, 0, ROLE_CHIEF, &e));
        ck_fails(call_as(~(IDENTITY_BIT(role) | RPC_LEADER), role, 0, ROLE_CHIEF, &e), ERR_REFUSED,
                 "may not call /t.T/Take");
        ck_fails(call_as(0, role, 0, ROLE_CHIEF, &e), ERR_REFUSED, "no permitted caller");
    }
}
END_TEST

START_TEST(the_leader_is_the_chief_or_worker_0_without_one)
{
    struct err e = { .code = ERR_NONE };
    ck_ok_e(call_as(RPC_LEADER, ROLE_CHIEF, 0, ROLE_CHIEF, &e));
    ck_fails(call_as(RPC_LEADER, ROLE_WORKER, 0, ROLE_CHIEF, &e), ERR_REFUSED, "only chief-0 may");
    ck_ok_e(call_as(RPC_LEADER, ROLE_WORKER, 0, ROLE_WORKER, &e));
    ck_fails(call_as(RPC_LEADER, ROLE_WORKER, 1, ROLE_WORKER, &e), ERR_REFUSED, "worker-1 may not");
    ck_fails(call_as(RPC_LEADER, ROLE_CHIEF, 0, ROLE_WORKER, &e), ERR_REFUSED, "only worker-0 may");
    ck_ok_e(call_as(RPC_LEADER, ROLE_CHIEF, 0, ROLE_COUNT, &e));
    ck_ok_e(call_as(RPC_LEADER, ROLE_WORKER, 0, ROLE_COUNT, &e));
    ck_fails(call_as(RPC_LEADER, ROLE_WORKER, 1, ROLE_COUNT, &e), ERR_REFUSED, "only chief-0 or worker-0 may");
    ck_fails(call_as(RPC_LEADER, ROLE_EVALUATOR, 0, ROLE_CHIEF, &e), ERR_REFUSED, "evaluator-0 may not");
}
END_TEST

START_TEST(the_sender_must_be_the_one_of_the_certificate)
{
    struct err e = { .code = ERR_NONE };
    const struct identity who = member(ROLE_WORKER, 1);
    const struct rpc_connection from = { .identity = &who };
    ck_ok_e(call(RPC_MEMBERS, &from, "worker-1", &e));
    ck_assert(seen.authenticated && seen.role == ROLE_WORKER && seen.index == 1);
    ck_assert_str_eq(seen.identity.job_uid, "uid-1");
    ck_fails(call(RPC_MEMBERS, &from, "worker-0", &e), ERR_REFUSED, "'worker-0'");
    ck_fails(call(RPC_MEMBERS, &from, "chief-0", &e), ERR_REFUSED, "that of worker-1");
    ck_fails(call(RPC_MEMBERS, &from, "", &e), ERR_REFUSED, "that of worker-1");
}
END_TEST

START_TEST(calls_of_one_identity_count_together)
{
    struct err e = { .code = ERR_NONE };
    ck_ok_e(call_as(RPC_MEMBERS, ROLE_WORKER, 1, ROLE_CHIEF, &e));
    uint64_t first = seen.client;
    ck_ok_e(call_as(RPC_MEMBERS, ROLE_WORKER, 1, ROLE_CHIEF, &e));
    ck_assert(first != 0 && seen.client == first);
    ck_ok_e(call_as(RPC_MEMBERS, ROLE_WORKER, 2, ROLE_CHIEF, &e));
    ck_assert(seen.client != 0 && seen.client != first);
    ck_ok_e(call_as(RPC_MEMBERS, ROLE_CHIEF, 1, ROLE_CHIEF, &e));
    ck_assert(seen.client != first);
}
END_TEST

START_TEST(in_plain_text_the_role_of_the_header_is_checked)
{
    struct err e = { .code = ERR_NONE };
    const struct rpc_connection from = { .client = 7 };
    ck_ok_e(call(IDENTITY_BIT(ROLE_WORKER), &from, "worker-1", &e));
    ck_assert(!seen.authenticated && seen.client == 7);
    ck_fails(call(IDENTITY_BIT(ROLE_WORKER), &from, "evaluator-0", &e), ERR_REFUSED, "only worker may");
    ck_ok_e(call(RPC_LEADER, &from, "chief-0", &e));
    ck_fails(call(RPC_LEADER, &from, "worker-0", &e), ERR_REFUSED, "only chief-0 may");
    ck_ok_e(call(RPC_LEADER, &from, "", &e)); /* its handler decides */
    ck_fails(call(0, &from, "", &e), ERR_REFUSED, "no permitted caller");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("authorize");
    TCase *t = tcase_create("authorize");
    tcase_add_test(t, a_role_in_the_mask_may_call_and_no_other);
    tcase_add_test(t, the_leader_is_the_chief_or_worker_0_without_one);
    tcase_add_test(t, the_sender_must_be_the_one_of_the_certificate);
    tcase_add_test(t, calls_of_one_identity_count_together);
    tcase_add_test(t, in_plain_text_the_role_of_the_header_is_checked);
    suite_add_tcase(s, t);
    return s;
}
