/* Plain loops that the compiler vectorises (KERNEL in tensor/kernel.h). */
#include "shard/update_kernel.h"

#include "tensor/kernel.h"

KERNEL void update_weigh(const void *x, float w, float *sum, size_t n)
{
    const wire_float *restrict from = x;
    float *restrict to = sum;
    for (size_t i = 0; i < n; i++)
        to[i] = w * from[i];
}

KERNEL void update_add(const void *x, float w, float *sum, size_t n)
{
    const wire_float *restrict from = x;
    float *restrict to = sum;
    for (size_t i = 0; i < n; i++)
        to[i] += w * from[i];
}

KERNEL void update_weigh_two(const void *x, float w, const void *y, float v, float *sum, size_t n)
{
    const wire_float *restrict one = x, *restrict two = y;
    float *restrict to = sum;
    for (size_t i = 0; i < n; i++)
        to[i] = w * one[i] + v * two[i];
}

KERNEL void update_mean_of_one(const void *x, float w, float k, float *mean, size_t n)
{
    const wire_float *restrict from = x;
    float *restrict to = mean;
    for (size_t i = 0; i < n; i++)
        to[i] = w * from[i] / k;
}

KERNEL void update_mean(const float *sum, const void *x, float w, float k, float *mean, size_t n)
{
    const wire_float *restrict from = x;
    const float *restrict others = sum;
    float *restrict to = mean;
    for (size_t i = 0; i < n; i++)
        to[i] = (others[i] + w * from[i]) / k;
}

KERNEL void update_average(const float *values, const void *x, float m, float *next, size_t n)
{
    const wire_float *from = x;
    const float rest = 1 - m;
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++)
        next[i] = values[i] * m + from[i] * rest;
}
