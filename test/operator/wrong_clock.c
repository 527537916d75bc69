/* Preloaded: a machine whose clock is two minutes and ten seconds fast. Clocks that cannot be set are not changed. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FAST_S = 130 };

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, ret);
    if (failed == 0 && clock == CLOCK_REALTIME)
        ret->tv_sec += FAST_S;
    return failed;
}

time_t time(time_t *ret)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (ret != NULL)
        *ret = t.tv_sec;
    return t.tv_sec;
}
