#include "check_main.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "codec/crc32c.h"

/* Vectors of RFC 3720 and of TensorFlow's own files. */
START_TEST(known_values)
{
    unsigned char data[32];

    ck_assert_uint_eq(crc32c(0, "", 0), 0);
    ck_assert_uint_eq(crc32c(0, "123456789", 9), 0xe3069283);
    ck_assert_uint_eq(crc32c_mask(0xe3069283), 0xc78ab0e5);
    ck_assert_uint_eq(crc32c_unmask(0xc78ab0e5), 0xe3069283);
    memset(data, 0, sizeof(data));
    ck_assert_uint_eq(crc32c(0, data, sizeof(data)), 0x8a9136aa);
    memset(data, 0xff, sizeof(data));
    ck_assert_uint_eq(crc32c(0, data, sizeof(data)), 0x62a8ab43);
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)i;
    ck_assert_uint_eq(crc32c(0, data, sizeof(data)), 0x46dd794e);
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)(31 - i);
    ck_assert_uint_eq(crc32c(0, data, sizeof(data)), 0x113fdb5c);
}
END_TEST

/* Sizes around the lanes of the fast way, odd addresses, and cuts anywhere. */
START_TEST(fast_and_portable_agree_however_the_bytes_are_cut)
{
    enum { SIZE = 3 * 4096 * 3 + 100 };
    unsigned char *data = malloc(SIZE);
    struct rng r = rng_at(1, RNG_TEST, 0, 0);

    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (unsigned char)rng_u32(&r);
    for (int i = 0; i < 200; i++) {
        size_t begin = rng_below(&r, 9), n = i < 20 ? (size_t)i : rng_below(&r, SIZE - begin),
               cut = rng_below(&r, n + 1);
        uint32_t want = crc32c_portable(0, data + begin, n);
        ck_assert_uint_eq(crc32c(0, data + begin, n), want);
        ck_assert_uint_eq(crc32c(crc32c(0, data + begin, cut), data + begin + cut, n - cut), want);
    }
    free(data);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("crc32c");
    TCase *c = tcase_create("crc32c");
    tcase_add_test(c, known_values);
    tcase_add_test(c, fast_and_portable_agree_however_the_bytes_are_cut);
    suite_add_tcase(s, c);
    return s;
}
