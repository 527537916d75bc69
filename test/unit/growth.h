/* growth - the time that a parser takes may grow with the size of its input, not with the square of it.
 *
 * Each case makes inputs of n/4, n and 4n items and reads them. The time is CPU time of the thread, which other
 * programs on the machine do not change. Of several rounds the fastest of each size counts. Sixteen times the items may
 * cost at most GROWTH_MAX times as much: linear work is near 16, or near 40 where the input leaves a cache on the way;
 * quadratic work is near 256. With sizes that are closer to each other, a cache looks like a square.
 */
#ifndef TRAINYARD_TEST_GROWTH_H
#define TRAINYARD_TEST_GROWTH_H

#include <float.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "check_main.h"

#define GROWTH_MAX 80.0
enum { GROWTH_SIZES = 3, GROWTH_ROUNDS_MIN = 3, GROWTH_ROUNDS_MAX = 12, GROWTH_SANITIZED = 8 };

struct growth {
    const char *name;
    size_t n;                                   /* items of the middle input: some milliseconds */
    void (*make)(size_t n, struct buf *out);    /* an input of n items */
    void (*read)(const char *text, size_t len); /* text has a terminating NUL */
};

static inline void repeat(struct buf *out, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        buf_str(out, text);
}

/* "aN": each differs. */
static inline void number(struct buf *out, size_t n, const char *before, const char *after)
{
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s%zu%s", before, i, after);
}

static inline double growth_cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static inline void growth_round(const struct growth *g, const struct buf *text, double *best)
{
    for (int i = 0; i < GROWTH_SIZES; i++) {
        double start = growth_cpu_ms();
        g->read(text[i].data, text[i].len);
        best[i] = MIN(best[i], growth_cpu_ms() - start);
    }
}

static inline void growth_check(const struct growth *g)
{
    struct buf text[GROWTH_SIZES] = { BUF_INIT, BUF_INIT, BUF_INIT };
    double best[GROWTH_SIZES] = { DBL_MAX, DBL_MAX, DBL_MAX };
    size_t n = g->n;

#ifdef TRAINYARD_SANITIZED
    n = MAX(n / GROWTH_SANITIZED, 64);
#endif
    for (size_t i = 0; i < GROWTH_SIZES; i++) {
        g->make((n / 4) << (2 * i), &text[i]);
        buf_char(&text[i], '\0');
        text[i].len--;
    }
    for (int round = 0; round < GROWTH_ROUNDS_MIN || (round < GROWTH_ROUNDS_MAX && best[2] > GROWTH_MAX * best[0]);
         round++)
        growth_round(g, text, best);
    printf("%-28s %8zu items %8zu bytes: %8.2f %8.2f %8.2f ms\n", g->name, n << 2, text[2].len, best[0], best[1],
           best[2]);
    for (int i = 0; i < GROWTH_SIZES; i++)
        buf_fini(&text[i]);
    ck_assert_msg(best[2] <= GROWTH_MAX * best[0], "%s: n/4, n, 4n items take %.2f, %.2f, %.2f ms", g->name, best[0],
                  best[1], best[2]);
}

/* The whole program of a table GROWTH of cases. */
#define GROWTH_SUITE(suite_name)                                                                                       \
    START_TEST(grows_with_the_input)                                                                                   \
    {                                                                                                                  \
        growth_check(&GROWTH[_i]);                                                                                     \
    }                                                                                                                  \
    END_TEST                                                                                                           \
    Suite *test_suite(void)                                                                                            \
    {                                                                                                                  \
        mem_keep_pages(); /* or each round would pay for fresh pages, and more so for the larger inputs */             \
        Suite *s = suite_create(suite_name);                                                                           \
        TCase *t = tcase_create(suite_name);                                                                           \
        tcase_add_loop_test(t, grows_with_the_input, 0, COUNT_OF(GROWTH));                                             \
        suite_add_tcase(s, t);                                                                                         \
        return s;                                                                                                      \
    }

#endif
