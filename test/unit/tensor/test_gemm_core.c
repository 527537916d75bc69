#include "check_main.h"

#include <stdlib.h>

#include "base/str.h"
#include "tensor/gemm.h"
#include "tensor/gemm_core.h"

#define AVX2   .avx2 = true
#define AMD    .avx2 = true, .amd = true
#define AVX512 .avx2 = true, .avx512 = true
#define BF16   .avx2 = true, .avx512 = true, .bf16 = true

static const struct {
    const char *core;
    struct gemm_features has;
    const char *better;
} CASES[] = {
    /* what OpenBLAS chooses for a processor that it does not know */
    { "Prescott", { AVX2 }, "Haswell" },
    { "Prescott", { AMD }, "Zen" },
    { "Prescott", { AVX512 }, "SkylakeX" },
    { "Prescott", { BF16 }, "Cooperlake" }, /* an Emerald Rapids with OpenBLAS 0.3.21 */
    { "Sandybridge", { AVX2 }, "Haswell" },
    { "Opteron_SSE3", { AMD }, "Zen" },
    /* it does not have them: a processor of that kind, or a system that does not save its registers */
    { "Prescott", { 0 }, NULL },
    { "Nehalem", { .bf16 = true, .amd = true }, NULL },
    /* kernels that OpenBLAS knows to be right, and those of a later release */
    { "Haswell", { BF16 }, NULL },
    { "Zen", { BF16 }, NULL },
    { "SkylakeX", { BF16 }, NULL },
    { "GraniteRapids", { BF16 }, NULL },
};

START_TEST(a_processor_gets_the_kernels_of_its_instructions)
{
    ck_assert_pstr_eq(gemm_core_better(CASES[_i].core, &CASES[_i].has), CASES[_i].better);
}
END_TEST

START_TEST(a_core_that_was_chosen_stays)
{
    ck_assert_int_eq(setenv("OPENBLAS_CORETYPE", "Prescott", 1), 0);
    gemm_core_choose(NULL); /* returns: nothing is started again */
    ck_assert_str_eq(getenv("OPENBLAS_CORETYPE"), "Prescott");
    ck_assert_ptr_null(getenv(GEMM_CORE_REPLACED));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("gemm_core");
    TCase *t = tcase_create("gemm_core");
    tcase_add_loop_test(t, a_processor_gets_the_kernels_of_its_instructions, 0, COUNT_OF(CASES));
    tcase_add_test(t, a_core_that_was_chosen_stays);
    suite_add_tcase(s, t);
    return s;
}
