/* gemm - matrix products (OpenBLAS; gemm.c is the only file that includes <cblas.h>).
 *
 * Row-major, dense, single precision, one thread: OpenBLAS's own threads would compete with the RPC threads (measured:
 * no gain at these sizes). The first call, or gemm_setup(), sets that for the process. Thread-safe. beta 0 ignores what
 * y held (NaN included).
 */
#ifndef TRAINYARD_TENSOR_GEMM_H
#define TRAINYARD_TENSOR_GEMM_H

#include <stddef.h>

/* One BLAS thread from now on. Cheap, idempotent. */
void gemm_setup(void);
/* Kernels that OpenBLAS chose for this processor: "SkylakeX", "Haswell", ...; programs print it at start,
 * because OPENBLAS_CORETYPE in the environment can halve the speed. */
const char *gemm_core(void);
/* What determines the bits of a product: "OpenBLAS 0.3.21, core Zen, 1 thread". */
void gemm_describe(char *out, size_t n);

/* y (m,n) = a (m,k) b (k,n) + beta y */
void gemm_nn(const float *a, const float *b, float beta, float *y, size_t m, size_t n, size_t k);
/* y (m,n) = a (m,k) b^T, b (n,k), + beta y */
void gemm_nt(const float *a, const float *b, float beta, float *y, size_t m, size_t n, size_t k);
/* y (m,n) = a^T b, a (k,m), b (k,n), + beta y */
void gemm_tn(const float *a, const float *b, float beta, float *y, size_t m, size_t n, size_t k);

#endif
