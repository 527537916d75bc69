/* Matrix products by CBLAS, on one thread: the result does not depend on the number of cores. */
#include "tensor/gemm.h"

#include <cblas.h>
#include <pthread.h>

static void one_thread(void)
{
    openblas_set_num_threads(1);
}

void gemm_setup(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, one_thread);
}

const char *gemm_core(void)
{
    return openblas_get_corename();
}

void gemm_nn(const float *a, const float *b, float beta, float *y, size_t m, size_t n, size_t k)
{
    gemm_setup();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n, (int)k, 1.0F, a, (int)k, b, (int)n, beta, y,
                (int)n);
}

void gemm_nt(const float *a, const float *b, float beta, float *y, size_t m, size_t n, size_t k)
{
    gemm_setup();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)n, (int)k, 1.0F, a, (int)k, b, (int)k, beta, y,
                (int)n);
}

void gemm_tn(const float *a, const float *b, float beta, float *y, size_t m, size_t n, size_t k)
{
    gemm_setup();
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)m, (int)n, (int)k, 1.0F, a, (int)m, b, (int)n, beta, y,
                (int)n);
}
