#include "check_main.h"
#include "tensor/philox.h"

#include "base/mem.h"

/* Many at once give the same draws as one by one, at every length. */
START_TEST(mask_follows_the_draws)
{
    static const size_t SIZES[] = { 0, 1, 3, 4, 5, 127, 128, 129, 1000 };
    for (size_t k = 0; k < COUNT_OF(SIZES); k++) {
        struct rng r = rng_at(77 + k, RNG_DROPOUT, 123456789012345, (uint32_t)k);
        float mask[1001];
        mask[SIZES[k]] = -1;
        philox_mask(&r, 0.25, 4.0F, mask, SIZES[k]);
        for (size_t i = 0; i < SIZES[k]; i++)
            ck_assert_double_eq((double)mask[i], rng_u32(&r) >= 0x40000000U ? 4 : 0);
        ck_assert_double_eq((double)mask[SIZES[k]], -1);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("tensor/philox");
    TCase *t = tcase_create("philox");
    tcase_add_test(t, mask_follows_the_draws);
    suite_add_tcase(s, t);
    return s;
}
