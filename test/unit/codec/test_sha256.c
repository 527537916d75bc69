#include "check_main.h"

#include <string.h>

#include "base/mem.h"
#include "codec/sha256.h"

enum { MILLION = 1000000 };

/* The examples of FIPS 180-4. */
START_TEST(known_values)
{
    static const struct {
        const char *text, *hash;
    } WANT[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    };
    char got[SHA256_TEXT];
    struct err e = { 0 };
    for (size_t i = 0; i < COUNT_OF(WANT); i++) {
        ck_ok_e(sha256_ranges(&(struct sha256_range){ WANT[i].text, strlen(WANT[i].text) }, 1, got, &e));
        ck_assert_str_eq(got, WANT[i].hash);
    }
    ck_ok_e(sha256_ranges(NULL, 0, got, &e));
    ck_assert_str_eq(got, WANT[0].hash);
}
END_TEST

START_TEST(however_the_bytes_are_cut)
{
    auto_free char *text = xmalloc(MILLION);
    char got[SHA256_TEXT];
    struct err e = { 0 };
    memset(text, 'a', MILLION);
    for (size_t cut = 0; cut <= MILLION; cut += MILLION / 8) {
        struct sha256_range two[] = { { text, cut }, { text + cut, MILLION - cut } };
        ck_ok_e(sha256_ranges(two, 2, got, &e));
        ck_assert_str_eq(got, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
}
END_TEST

START_TEST(only_its_own_text_is_one)
{
    char text[SHA256_TEXT];
    struct err e = { 0 };
    ck_ok_e(sha256_ranges(NULL, 0, text, &e));
    ck_assert(sha256_is_text(text));
    ck_assert(!sha256_is_text(text + 1));
    ck_assert(!sha256_is_text(NULL));
    text[3] = 'A';
    ck_assert(!sha256_is_text(text));
    text[3] = '\n';
    ck_assert(!sha256_is_text(text));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("sha256");
    TCase *c = tcase_create("all");
    tcase_add_test(c, known_values);
    tcase_add_test(c, however_the_bytes_are_cut);
    tcase_add_test(c, only_its_own_text_is_one);
    suite_add_tcase(s, c);
    return s;
}
