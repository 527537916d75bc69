#include "base/mem.h"
#include "check_main.h"
#include "codec/pb.h"
#include "rpc/caller.h"

static int caller_of(const struct buf *header, struct rpc_caller *ret, struct err *e)
{
    AUTO_FINI(buf) message = BUF_INIT;
    AUTO(rpc_message) *m = NULL;
    pb_put_varint(&message, 2, 7);
    if (header != NULL)
        pb_put_bytes(&message, 1, header->data, header->len);
    ck_assert_int_eq(rpc_message_of(message.data, message.len, &m, e), 0);
    return rpc_caller_of(m, ret, e);
}

static int caller_named(const char *name, struct rpc_caller *ret, struct err *e)
{
    AUTO_FINI(buf) header = BUF_INIT;
    pb_put_str(&header, 1, "uid-1");
    pb_put_varint(&header, 2, 5);
    pb_put_str(&header, 3, name);
    pb_put_varint(&header, 4, UINT64_MAX);
    return caller_of(&header, ret, e);
}

START_TEST(a_header_names_job_replica_and_process)
{
    struct rpc_caller c;
    struct err e = { .code = ERR_NONE };
    ck_ok_e(caller_named("worker-3", &c, &e));
    ck_assert_str_eq(c.job_uid, "uid-1");
    ck_assert_str_eq(c.name, "worker-3");
    ck_assert(c.role == ROLE_WORKER && c.index == 3);
    ck_assert(c.generation == 5 && c.incarnation == UINT64_MAX);
    ck_ok_e(caller_named("chief-0", &c, &e));
    ck_assert(c.role == ROLE_CHIEF && c.index == 0);
}
END_TEST

static const char *const NO_REPLICAS[] = { "local",      "worker",         "worker-", "worker-x",
                                           "operator-0", "worker-1048577", "-1",      "" };

START_TEST(another_name_has_no_role)
{
    struct rpc_caller c;
    struct err e = { .code = ERR_NONE };
    ck_ok_e(caller_named(NO_REPLICAS[_i], &c, &e));
    ck_assert_str_eq(c.name, NO_REPLICAS[_i]);
    ck_assert(c.role == ROLE_COUNT && c.index == -1);
}
END_TEST

static const char *const BAD_NAMES[] = { "worker 7", "worker-7\n", "w\xc3\xa9", "../x",
                                         "a234567890123456789012345678901234567890123456789012345678901234" };

START_TEST(a_name_that_is_not_plain_is_refused)
{
    struct rpc_caller c;
    struct err e = { .code = ERR_NONE };
    ck_assert_int_eq(caller_named(BAD_NAMES[_i], &c, &e), -1);
    ck_assert_msg(e.code == ERR_INPUT && strstr(e.msg, "sender") != NULL, "%s", e.msg);
}
END_TEST

START_TEST(a_request_without_a_header_has_nobody)
{
    struct rpc_caller c;
    struct err e = { .code = ERR_NONE };
    ck_ok_e(caller_of(NULL, &c, &e));
    ck_assert(c.name[0] == '\0' && c.job_uid[0] == '\0' && c.role == ROLE_COUNT && c.incarnation == 0);
}
END_TEST

START_TEST(what_is_malformed_is_refused)
{
    static char broken[] = "\x0a\x20uid", uid[] = "\x0a\x02\xff\xff";
    struct buf bytes = { .data = broken, .len = sizeof(broken) - 1 };
    struct rpc_caller c;
    struct err e = { .code = ERR_NONE };
    ck_assert(caller_of(&bytes, &c, &e) == -1 && e.code == ERR_INPUT);
    bytes = (struct buf){ .data = uid, .len = sizeof(uid) - 1 };
    ck_assert(caller_of(&bytes, &c, &e) == -1 && e.code == ERR_INPUT);
    ck_assert_msg(strstr(e.msg, "UTF-8") != NULL, "%s", e.msg);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("caller");
    TCase *t = tcase_create("caller");
    tcase_add_test(t, a_header_names_job_replica_and_process);
    tcase_add_loop_test(t, another_name_has_no_role, 0, COUNT_OF(NO_REPLICAS));
    tcase_add_loop_test(t, a_name_that_is_not_plain_is_refused, 0, COUNT_OF(BAD_NAMES));
    tcase_add_test(t, a_request_without_a_header_has_nobody);
    tcase_add_test(t, what_is_malformed_is_refused);
    suite_add_tcase(s, t);
    return s;
}
