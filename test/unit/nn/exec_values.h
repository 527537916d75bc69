/* exec_values - an exec, and memory with drawn values, for tests of exec. */
#ifndef TRAINYARD_TEST_EXEC_VALUES_H
#define TRAINYARD_TEST_EXEC_VALUES_H

#include "base/rng.h"
#include "check_main.h"
#include "nn/exec.h"

static inline struct exec *make_exec(const struct model *m, size_t max_batch, uint64_t seed)
{
    struct err e = { 0 };
    struct exec *x = NULL;
    ck_ok_e(exec_new(m, max_batch, seed, &x, &e));
    return x;
}

static inline float *zeros(size_t n)
{
    return xcalloc(n + 1, sizeof(float));
}

static inline void draw(float *v, size_t n, uint32_t name)
{
    struct rng r = rng_at(3, RNG_TEST, 0, name);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)rng_normal(&r);
}

#endif
