/* gemm_core - which kernels OpenBLAS uses on a processor that it does not know.
 *
 * OpenBLAS chooses its kernels by the model of the processor. One that is newer than the library, or a virtual one,
 * gets kernels for processors of 2004 ("Prescott"), which are several times slower than those for the vector
 * instructions that it has. OPENBLAS_CORETYPE in the environment chooses others, but only before the program begins.
 */
#ifndef TRAINYARD_TENSOR_GEMM_CORE_H
#define TRAINYARD_TENSOR_GEMM_CORE_H

#include <stdbool.h>

/* Vector instructions that processor and kernel support. */
struct gemm_features {
    bool avx2;   /* and FMA */
    bool avx512; /* what OpenBLAS's SkylakeX needs: F, CD, DQ, BW and VL */
    bool bf16;   /* of AVX-512 */
    bool amd;
};

/* The name of better kernels for a processor for which OpenBLAS chose `core`; NULL: its choice is right. Pure. */
const char *gemm_core_better(const char *core, const struct gemm_features *f);

/* First in main: where there are better kernels and OPENBLAS_CORETYPE is not set, starts the program again with it, and
 * does not return. The environment then also has GEMM_CORE_REPLACED, the name of the core that OpenBLAS chose, and so
 * have the programs that this one starts. If it cannot be started again, the program goes on with the slow kernels. */
void gemm_core_choose(char **argv);
#define GEMM_CORE_REPLACED "TRAINYARD_REPLACED_BLAS_CORE"

#endif
