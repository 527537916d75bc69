/* Describes the arithmetic of this process in one line of bounded length, which others compare and people read. */
#include "tensor/arithmetic.h"

#include <gnu/libc-version.h>
#include <stdbool.h>

#include "base/str.h"
#include "tensor/gemm.h"

/* glibc has a second form of pow() and others for processors with fused multiply-add. It rounds otherwise. */
static bool arithmetic_fuses(void)
{
#ifdef __x86_64__
    return (__builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2")) || __builtin_cpu_supports("fma4");
#else
    return true;
#endif
}

void arithmetic_describe(char out[ARITHMETIC_MAX])
{
    char blas[ARITHMETIC_MAX - 28];
    gemm_describe(blas, sizeof(blas));
    str_fmt(out, ARITHMETIC_MAX, "%s, glibc %.10s%s", blas, gnu_get_libc_version(),
            arithmetic_fuses() ? " with FMA" : "");
}
