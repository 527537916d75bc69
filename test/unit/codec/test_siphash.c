/* The vectors of test/data/codec/siphash.json are by Keras's Hashing. */
#include "codec/siphash.h"

#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "check_main.h"
#include "codec/json.h"

#define VECTORS "test/data/codec/siphash.json"

/* Of the paper, appendix A. */
START_TEST(same_as_the_paper)
{
    const uint64_t key[2] = { 0x0706050403020100U, 0x0f0e0d0c0b0a0908U };
    unsigned char text[15];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (unsigned char)i;
    ck_assert_uint_eq(siphash(key, text, sizeof(text)), 0xa129ca6149be45e5U);
}
END_TEST

static uint64_t half_of(const json_t *salt, size_t i)
{
    return (uint64_t)json_integer_value(json_array_get(salt, i));
}

START_TEST(same_as_keras)
{
    AUTO_FINI(buf) file = BUF_INIT;
    struct err e = { 0 };
    json_auto_t *vectors = NULL;
    ck_ok_e(file_read(VECTORS, 1 << 20, &file, &e));
    ck_ok_e(json_parse_any(file.data, file.len, VECTORS, &vectors, &e));
    ck_assert_uint_gt(json_array_size(vectors), 50);
    for (size_t i = 0; i < json_array_size(vectors); i++) {
        const json_t *one = json_array_get(vectors, i), *salt = json_object_get(one, "salt");
        const char *text = json_string_value(json_object_get(one, "text"));
        const uint64_t key[2] = { half_of(salt, 0), half_of(salt, 1) };
        uint64_t bin = siphash(key, text, strlen(text)) % INT64_MAX;
        ck_assert_uint_eq(bin, (uint64_t)json_integer_value(json_object_get(one, "bin")));
    }
}
END_TEST

/* Zero bytes are bytes, and nothing beyond the text is read. */
START_TEST(every_byte_counts)
{
    const uint64_t key[2] = { 1, 2 };
    for (size_t n = 1; n <= 40; n++) {
        auto_free char *exact = xmalloc(n);
        memset(exact, 0, n);
        uint64_t zeros = siphash(key, exact, n);
        ck_assert_uint_ne(zeros, siphash(key, exact, n - 1));
        for (size_t i = 0; i < n; i++) {
            exact[i] = 1;
            ck_assert_uint_ne(siphash(key, exact, n), zeros);
            exact[i] = 0;
        }
    }
    ck_assert_uint_eq(siphash(key, NULL, 0), siphash(key, "", 0));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("siphash");
    TCase *c = tcase_create("all");
    tcase_add_test(c, same_as_the_paper);
    tcase_add_test(c, same_as_keras);
    tcase_add_test(c, every_byte_counts);
    suite_add_tcase(s, c);
    return s;
}
