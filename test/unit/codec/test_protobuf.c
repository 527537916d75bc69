#include "check_main.h"
#include "codec/protobuf.h"

#include "base/mem.h"

/* A message with one repeated field, itself of such messages. Its description is written by hand, because codec has no
 * .proto file. */
struct nested {
    ProtobufCMessage base;
    size_t n_items;
    struct nested **items;
};

static const ProtobufCMessageDescriptor NESTED;
static const ProtobufCFieldDescriptor FIELDS[] = { { .name = "items",
                                                     .id = 1,
                                                     .label = PROTOBUF_C_LABEL_REPEATED,
                                                     .type = PROTOBUF_C_TYPE_MESSAGE,
                                                     .quantifier_offset = offsetof(struct nested, n_items),
                                                     .offset = offsetof(struct nested, items),
                                                     .descriptor = &NESTED } };
static const ProtobufCIntRange RANGES[] = { { 1, 0 }, { 0, 1 } };
static const unsigned BY_NAME[] = { 0 };
static const ProtobufCMessageDescriptor NESTED = { .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
                                                   .name = "Nested",
                                                   .short_name = "Nested",
                                                   .sizeof_message = sizeof(struct nested),
                                                   .n_fields = 1,
                                                   .fields = FIELDS,
                                                   .fields_sorted_by_name = BY_NAME,
                                                   .n_field_ranges = 1,
                                                   .field_ranges = RANGES };

START_TEST(a_message_is_packed_and_unpacked)
{
    struct nested inner = { .base = PROTOBUF_C_MESSAGE_INIT(&NESTED) }, outer = inner;
    struct nested *items[] = { &inner, &inner, &inner };
    AUTO_FINI(buf) out = BUF_INIT;
    PROTOBUF_AUTO *got = NULL;
    outer.items = items;
    outer.n_items = COUNT_OF(items);
    buf_char(&out, 'x'); /* appended to what is there */
    protobuf_append(&outer.base, &out);
    ck_assert_uint_eq(out.len, 1 + 2 * COUNT_OF(items));
    ck_assert_int_eq(protobuf_unpack(&NESTED, out.data + 1, out.len - 1, 1, &got), 0);
    ck_assert_uint_eq(((struct nested *)got)->n_items, COUNT_OF(items));
}
END_TEST

START_TEST(what_is_malformed_is_refused)
{
    PROTOBUF_AUTO *got = NULL;
    ck_assert_int_eq(protobuf_unpack(&NESTED, "\x0a\x05", 2, 1, &got), -1);
    ck_assert_ptr_null(got);
}
END_TEST

/* Two bytes an item: many times that in memory. */
START_TEST(memory_is_bounded_by_the_size)
{
    enum { ITEMS = 4 << 20 };
    AUTO_FINI(buf) out = BUF_INIT;
    PROTOBUF_AUTO *got = NULL;
    buf_reserve(&out, 2 * ITEMS);
    for (size_t i = 0; i < ITEMS; i++)
        buf_add(&out, "\x0a", 2);
    ck_assert_int_eq(protobuf_unpack(&NESTED, out.data, out.len, 2, &got), -1);
    ck_assert_ptr_null(got);
    ck_assert_int_eq(protobuf_unpack(&NESTED, out.data, out.len, 100, &got), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("protobuf");
    TCase *t = tcase_create("protobuf");
    tcase_add_test(t, a_message_is_packed_and_unpacked);
    tcase_add_test(t, what_is_malformed_is_refused);
    tcase_add_test(t, memory_is_bounded_by_the_size);
    suite_add_tcase(s, t);
    return s;
}
