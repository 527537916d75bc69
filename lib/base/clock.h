/* clock - the only functions that read the time. Code that makes decisions takes the time as a parameter instead. */
#ifndef TRAINYARD_BASE_CLOCK_H
#define TRAINYARD_BASE_CLOCK_H

#include <stdint.h>

int64_t clock_ms(void);     /* monotonic milliseconds */
int64_t clock_ns(void);     /* monotonic nanoseconds */
double clock_wall(void);    /* seconds since the epoch, for event files and logs */
int64_t clock_cpu_ns(void); /* CPU time of this process */
void clock_sleep_ms(int64_t ms);
/* RFC 3339 in UTC with milliseconds, "2026-03-04T05:06:07.089Z". */
const char *clock_rfc3339(double wall, char out[32]);

#endif
