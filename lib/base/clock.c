/* Durations come from CLOCK_MONOTONIC, which no administrator or NTP step can turn back; only event files and logs
 * use wall time. */
#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

static int64_t ns_of(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_ms(void)
{
    return clock_ns() / 1000000;
}

int64_t clock_ns(void)
{
    return ns_of(CLOCK_MONOTONIC);
}

double clock_wall(void)
{
    return (double)ns_of(CLOCK_REALTIME) / 1e9;
}

int64_t clock_cpu_ns(void)
{
    return ns_of(CLOCK_PROCESS_CPUTIME_ID);
}

void clock_sleep_ms(int64_t ms)
{
    if (ms <= 0)
        return;
    struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

const char *clock_rfc3339(double wall, char out[32])
{
    int64_t ms = llround(wall * 1000);
    time_t seconds = (time_t)(ms / 1000 - (ms % 1000 < 0 ? 1 : 0));
    int fraction = (int)(ms - (int64_t)seconds * 1000);
    struct tm tm;

    if (gmtime_r(&seconds, &tm) == NULL || strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &tm) != 19) {
        snprintf(out, 32, "0000-00-00T00:00:00.000Z");
        return out;
    }
    snprintf(out + 19, 32 - 19, ".%03dZ", fraction);
    return out;
}
