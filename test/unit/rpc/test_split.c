#include "check_main.h"
#include "rpc/rpc.h"
#include "rpc/split.h"

#include <string.h>

#include "base/buf.h"
#include "codec/pb.h"

#define S(text) text, sizeof(text) - 1

/* message; where the payload field begins, its bytes begin and end; error (NULL: good) */
static const struct {
    const char *bytes;
    size_t n, field, payload, end;
    const char *error;
} CASES[] = {
    { S(""), 0, 0, 0, NULL },
    { S("\x08\x05"), 2, 2, 2, NULL }, /* a varint, no payload */
    { S("\x7a\x03"
        "abc"),
      0, 2, 5, NULL }, /* only a payload */
    { S("\x08\x05\x7a\x03"
        "abc"),
      2, 4, 7, NULL }, /* head and payload */
    { S("\x08\x05\x7a\x03"
        "abc\x18\x01"),
      2, 4, 7, NULL },                         /* a field of a newer peer after it */
    { S("\x7a\x00"), 0, 2, 2, NULL },          /* empty payload */
    { S("\x78\x01\x12\x01x"), 5, 5, 5, NULL }, /* field 15 of another type is not a payload */
    { S("\x0d"
        "abcd\x11"
        "12345678\xf8\xff\xff\xff\x0f\x01"),
      20, 20, 20, NULL }, /* all types, largest number */
    { S("\x08"), 0, 0, 0, "bad value of field 1 at byte 0" },
    { S("\x08\x01\x12\x05"
        "abc"),
      0, 0, 0, "bad value of field 2 at byte 2" },
    { S("\x0b\x0c"), 0, 0, 0, "bad value of field 1" }, /* a group */
    { S("\x0e"), 0, 0, 0, "bad value of field 1" },     /* wire type 6 */
    { S("\x00\x01"), 0, 0, 0, "bad tag at byte 0" },    /* field 0 */
    { S("\x80"), 0, 0, 0, "bad tag" },
    { S("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), 0, 0, 0, "bad tag" }, /* more than 64 bits */
    { S("\x7a\x05"
        "abc"),
      0, 0, 0, "payload is cut off: 3 of 5 bytes" },
    { S("\x7a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
        "abc"),
      0, 0, 0, "payload is cut off" },
    { S("\x7a"), 0, 0, 0, "bad payload size" },
    { S("\x7a\x01"
        "a\x7a\x01"
        "b"),
      0, 0, 0, "second payload field at byte 3" },
};

/* Every way to cut the message into three runs must give the same result. */
static void split_all_ways(size_t i)
{
    const unsigned char *p = (const unsigned char *)CASES[i].bytes;
    size_t n = CASES[i].n;
    for (size_t a = 0; a <= n; a++) {
        for (size_t b = a; b <= n; b++) {
            struct rpc_span spans[] = { { p, a }, { p + a, b - a }, { p + b, n - b } };
            struct rpc_split at = { 0 };
            struct err e = { .msg = "" };
            int rc = rpc_split(spans, 3, &at, &e);
            if (CASES[i].error != NULL) {
                ck_assert_int_eq(rc, -1);
                ck_assert_int_eq(e.code, ERR_INPUT);
                ck_assert_msg(strstr(e.msg, CASES[i].error) != NULL, "%s, not %s", e.msg, CASES[i].error);
                continue;
            }
            ck_assert_msg(rc == 0, "%s", e.msg);
            ck_assert_uint_eq(at.field, CASES[i].field);
            ck_assert_uint_eq(at.payload, CASES[i].payload);
            ck_assert_uint_eq(at.end, CASES[i].end);
            ck_assert_uint_eq(at.total, n);
        }
    }
}

START_TEST(messages_are_split_wherever_they_are_cut)
{
    split_all_ways((size_t)_i);
}
END_TEST

START_TEST(a_huge_head_is_refused)
{
    AUTO_FINI(buf) b = BUF_INIT;
    pb_raw_varint(&b, 2 << 3 | 2);
    pb_raw_varint(&b, RPC_HEAD_MAX);
    static unsigned char zeros[1 << 20];
    struct rpc_span spans[17] = { { (unsigned char *)b.data, b.len } };
    for (size_t i = 1; i < COUNT_OF(spans); i++)
        spans[i] = (struct rpc_span){ zeros, sizeof(zeros) };
    struct rpc_split at;
    struct err e = { .msg = "" };
    ck_assert_int_eq(rpc_split(spans, COUNT_OF(spans), &at, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "at most 16777216"));
}
END_TEST

START_TEST(a_message_gives_head_and_payload)
{
    static const char bytes[] = "\x08\x05\x7a\x06"
                                "abcdef\x18\x01";
    struct err e;
    AUTO(rpc_message) *m = NULL;
    ck_ok_e(rpc_message_of(bytes, sizeof(bytes) - 1, &m, &e));
    size_t n, pos = 0;
    const void *p = rpc_message_head(m, &n);
    ck_assert_uint_eq(n, 4);
    ck_assert_mem_eq(p, "\x08\x05\x18\x01", 4); /* what came after the payload counts too */
    ck_assert_uint_eq(rpc_message_payload_size(m), 6);
    ck_assert_int_eq(rpc_message_next(m, &pos, &p, &n), 1);
    ck_assert_uint_eq(n, 6);
    ck_assert_mem_eq(p, "abcdef", 6);
    ck_assert_int_eq(rpc_message_next(m, &pos, &p, &n), 0);

    char out[6] = "";
    ck_assert(rpc_message_copy(m, 2, out, 3));
    ck_assert_mem_eq(out, "cde", 3);
    ck_assert(rpc_message_copy(m, 6, out, 0));
    ck_assert(!rpc_message_copy(m, 4, out, 3));
    ck_assert(!rpc_message_copy(m, SIZE_MAX, out, 2));
    ck_assert(!rpc_message_copy(m, 2, out, SIZE_MAX));
}
END_TEST

START_TEST(a_message_may_be_empty)
{
    struct err e;
    AUTO(rpc_message) *m = NULL;
    ck_ok_e(rpc_message_of("", 0, &m, &e));
    size_t n, pos = 0;
    const void *p;
    ck_assert_ptr_nonnull(rpc_message_head(m, &n));
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(rpc_message_next(m, &pos, &p, &n), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("split");
    TCase *t = tcase_create("split");
    tcase_add_loop_test(t, messages_are_split_wherever_they_are_cut, 0, COUNT_OF(CASES));
    tcase_add_test(t, a_huge_head_is_refused);
    tcase_add_test(t, a_message_gives_head_and_payload);
    tcase_add_test(t, a_message_may_be_empty);
    suite_add_tcase(s, t);
    return s;
}
