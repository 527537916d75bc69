#include "check_main.h"

#include <string.h>

#include "codec/pb.h"

START_TEST(what_is_written_is_read)
{
    AUTO_FINI(buf) b = BUF_INIT;
    struct pb_field f;

    pb_put_varint(&b, 1, 300);
    pb_put_varint(&b, 2, UINT64_MAX);
    pb_put_fixed32(&b, 3, 0xdeadbeef);
    pb_put_float(&b, 4, 0.5F);
    pb_put_bytes(&b, 100, "a\0b", 3);
    pb_put_str(&b, (1 << 29) - 1, "");

    struct reader r = reader_of(b.data, b.len);
    ck_assert(pb_next(&r, &f) == 1 && f.number == 1 && f.type == PB_VARINT && f.u == 300);
    ck_assert(pb_next(&r, &f) == 1 && f.number == 2 && f.u == UINT64_MAX);
    ck_assert(pb_next(&r, &f) == 1 && f.number == 3 && f.type == PB_FIXED32 && f.u == 0xdeadbeef);
    ck_assert(pb_next(&r, &f) == 1 && f.number == 4 && pb_as_float(&f) == 0.5F);
    ck_assert(pb_next(&r, &f) == 1 && f.number == 100 && f.size == 3 && memcmp(f.data, "a\0b", 3) == 0);
    ck_assert(pb_next(&r, &f) == 1 && f.number == (1 << 29) - 1 && f.size == 0);
    ck_assert_int_eq(pb_next(&r, &f), 0);
}
END_TEST

/* SummaryMetadata of a scalar as TensorFlow writes it: Value{tag "accuracy", plugin "scalars"}. */
START_TEST(bytes_are_those_of_protobuf)
{
    static const unsigned char WANT[] = {
        0x0a, 8, 'a', 'c', 'c', 'u', 'r', 'a', 'c', 'y', 0x15, 0xa4, 0x70, 0x7d, 0x3f
    };
    AUTO_FINI(buf) b = BUF_INIT;

    pb_put_str(&b, 1, "accuracy");
    pb_put_float(&b, 2, 0.99F);
    ck_assert_mem_eq(b.data, WANT, sizeof(WANT));
    ck_assert_uint_eq(b.len, sizeof(WANT));
}
END_TEST

START_TEST(malformed_messages_are_refused)
{
    static const struct {
        const char *what;
        const char *bytes;
        size_t n;
    } BAD[] = {
        { "a key that does not end", "\x80", 1 },
        { "field number 0", "\x00\x01", 2 },
        { "a field number above 2^29 - 1", "\x80\x80\x80\x80\x10\x00", 6 },
        { "a group", "\x0b\x0c", 2 },
        { "wire type 7", "\x0f", 1 },
        { "no value", "\x08", 1 },
        { "a varint of 11 bytes", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12 },
        { "a short fixed32", "\x0d\x01\x02\x03", 4 },
        { "a short fixed64", "\x09\x01\x02\x03\x04\x05\x06\x07", 8 },
        { "more bytes than there are", "\x0a\x02x", 3 },
        { "a length of 2^64 - 1", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 },
    };

    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        struct reader r = reader_of(BAD[i].bytes, BAD[i].n);
        struct pb_field f;
        ck_assert_msg(pb_next(&r, &f) == -1, "%s is accepted", BAD[i].what);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("pb");
    TCase *c = tcase_create("pb");
    tcase_add_test(c, what_is_written_is_read);
    tcase_add_test(c, bytes_are_those_of_protobuf);
    tcase_add_test(c, malformed_messages_are_refused);
    suite_add_tcase(s, c);
    return s;
}
