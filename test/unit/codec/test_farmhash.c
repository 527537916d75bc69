/* The vectors of test/data/codec/farmhash.json are by TensorFlow: of each class of lengths and its ends. */
#include "codec/farmhash.h"

#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "check_main.h"
#include "codec/json.h"

#define VECTORS "test/data/codec/farmhash.json"

START_TEST(same_as_tensorflow)
{
    AUTO_FINI(buf) file = BUF_INIT;
    struct err e = { 0 };
    json_auto_t *vectors = NULL;
    size_t longest = 0;
    ck_ok_e(file_read(VECTORS, 1 << 20, &file, &e));
    ck_ok_e(json_parse_any(file.data, file.len, VECTORS, &vectors, &e));
    for (size_t i = 0; i < json_array_size(vectors); i++) {
        const json_t *one = json_array_get(vectors, i);
        const char *text = json_string_value(json_object_get(one, "text"));
        char got[17];
        str_fmt(got, sizeof(got), "%016llx", (unsigned long long)farmhash_fingerprint64(text, strlen(text)));
        ck_assert_msg(str_eq(got, json_string_value(json_object_get(one, "hash"))), "%zu bytes: %s", strlen(text), got);
        longest = MAX(longest, strlen(text));
    }
    ck_assert_uint_gt(longest, 128);
}
END_TEST

/* Zero bytes are bytes, and nothing beyond the text is read. */
START_TEST(every_byte_counts)
{
    char text[130];
    memset(text, 0, sizeof(text));
    for (size_t n = 1; n <= sizeof(text); n++) {
        auto_free char *exact = xmalloc(n);
        memset(exact, 0, n);
        uint64_t zeros = farmhash_fingerprint64(exact, n);
        ck_assert_uint_eq(zeros, farmhash_fingerprint64(text, n));
        for (size_t i = 0; i < n; i++) {
            exact[i] = 1;
            ck_assert_uint_ne(farmhash_fingerprint64(exact, n), zeros);
            exact[i] = 0;
        }
    }
    ck_assert_uint_eq(farmhash_fingerprint64(NULL, 0), farmhash_fingerprint64("", 0));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("farmhash");
    TCase *c = tcase_create("all");
    tcase_add_test(c, same_as_tensorflow);
    tcase_add_test(c, every_byte_counts);
    suite_add_tcase(s, c);
    return s;
}
