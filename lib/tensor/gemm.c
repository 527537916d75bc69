/* Matrix products by CBLAS, on one thread: the result does not depend on the number of cores. */
#include "tensor/gemm.h"

#include <cblas.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

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

/* Of "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...", the first two words. */
static int gemm_library_length(const char *config)
{
    size_t name = strcspn(config, " ");
    return (int)(config[name] == ' ' ? name + 1 + strcspn(config + name + 1, " ") : name);
}

void gemm_describe(char *out, size_t n)
{
    gemm_setup();
    const char *config = openblas_get_config(), *l2 = getenv("OPENBLAS_L2_SIZE");
    char cache[40] = "";
    int threads = openblas_get_num_threads();
    int64_t kilobytes;
    if (l2 != NULL && str_i64(l2, 1, INT32_MAX, &kilobytes, NULL) == 0)
        str_fmt(cache, sizeof(cache), ", OPENBLAS_L2_SIZE %d", (int)kilobytes);
    str_fmt(out, n, "%.*s, core %.20s%s, %d thread%s", MIN(gemm_library_length(config), 30), config, gemm_core(), cache,
            threads, threads == 1 ? "" : "s");
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
