/* guarded - buffers of floats for tests of kernels: undefined at first, with guards after the end that nobody may
 * write, and compared with values in double precision. */
#ifndef TRAINYARD_TEST_GUARDED_H
#define TRAINYARD_TEST_GUARDED_H

#include <math.h>

#include "../check_main.h"
#include "base/mem.h"
#include "base/rng.h"

enum { GUARDS = 64 };
static const float GUARD = 12345.5F;
static const double LIMIT = 1e-5; /* of the largest absolute value */

/* n floats that are not numbers, then guards. New. */
static float *buffer(size_t n)
{
    float *p = xmalloc((n + GUARDS) * sizeof(*p));
    for (size_t i = 0; i < n + GUARDS; i++)
        p[i] = i < n ? NAN : GUARD;
    return p;
}

static void check_guards(const float *p, size_t n)
{
    size_t i = n;
    while (i < n + GUARDS && p[i] == GUARD)
        i++;
    ck_assert_msg(i == n + GUARDS, "float %zu after the end was written", i - n);
}

/* n numbers between -1 and 1, the same for the same name; no guards. New. */
static float *draw(size_t n, uint32_t name)
{
    struct rng r = rng_at(3, RNG_TEST, 0, name);
    float *p = xmalloc(n * sizeof(*p));
    for (size_t i = 0; i < n; i++)
        p[i] = 2 * rng_uniform(&r) - 1;
    return p;
}

/* Of a buffer. Returns the largest difference, as a part of the largest value. */
UNUSED static double compare(const char *about, const char *what, const float *got, const double *wanted, size_t n)
{
    double largest = 0, difference = 0;
    size_t strange = 0;
    for (size_t i = 0; i < n; i++) {
        strange += isfinite(got[i]) ? 0 : 1;
        largest = fmax(largest, fabs(wanted[i]));
        difference = fmax(difference, fabs((double)got[i] - wanted[i]));
    }
    ck_assert_msg(strange == 0, "%s: %zu of %zu values of %s are not finite", about, strange, n, what);
    ck_assert_msg(difference <= LIMIT * largest, "%s: %s differs by %g of %g", about, what, difference, largest);
    check_guards(got, n);
    return largest > 0 ? difference / largest : 0;
}

#endif
