/* Knows the kernels of OpenBLAS that need no AVX2: they are the wrong ones for a processor that has it. */
#include "tensor/gemm_core.h"

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "tensor/gemm.h"

static const char *const WITHOUT_AVX2[] = { "Prescott",  "Core2",       "Penryn",       "Dunnington", "Nehalem",
                                            "Atom",      "Sandybridge", "Katmai",       "Coppermine", "Northwood",
                                            "Banias",    "Opteron",     "Opteron_SSE3", "Barcelona",  "Bobcat",
                                            "Bulldozer", "Piledriver",  "Steamroller",  "Nano",       "Athlon",
                                            "Unknown" };

const char *gemm_core_better(const char *core, const struct gemm_features *f)
{
    bool old = false;
    for (size_t i = 0; i < COUNT_OF(WITHOUT_AVX2); i++)
        old |= str_eq(core, WITHOUT_AVX2[i]);
    if (!old || !f->avx2)
        return NULL;
    if (f->avx512)
        return f->bf16 ? "Cooperlake" : "SkylakeX"; /* as OpenBLAS chooses for processors that it knows */
    return f->amd ? "Zen" : "Haswell";
}

#ifdef __x86_64__
static struct gemm_features gemm_features(void)
{
    __builtin_cpu_init();
    return (struct gemm_features){
        .avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
        .avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl"),
        .bf16 = __builtin_cpu_supports("avx512bf16"),
        .amd = __builtin_cpu_is("amd"),
    };
}
#else
static struct gemm_features gemm_features(void)
{
    return (struct gemm_features){ 0 };
}
#endif

void gemm_core_choose(char **argv)
{
    struct gemm_features features = gemm_features();
    const char *core = gemm_core(), *better = gemm_core_better(core, &features);
    if (better == NULL || getenv("OPENBLAS_CORETYPE") != NULL)
        return;
    if (setenv("OPENBLAS_CORETYPE", better, 1) == 0 && setenv(GEMM_CORE_REPLACED, core, 1) == 0)
        execv("/proc/self/exe", argv);
    unsetenv("OPENBLAS_CORETYPE"); /* it has no effect on this process */
    unsetenv(GEMM_CORE_REPLACED);
}
