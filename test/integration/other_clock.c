/* Preloaded: the clock is ahead by the number of seconds in the file that OTHER_CLOCK names (behind, if negative),
 * while there is such a file. With OTHER_CLOCK_OF only that of the program with this name. Clocks that cannot be set
 * are not changed. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long ahead(void)
{
    const char *path = getenv("OTHER_CLOCK"), *program = getenv("OTHER_CLOCK_OF");
    long seconds = 0;
    int mine = program == NULL || strcmp(program_invocation_short_name, program) == 0;
    FILE *f = path != NULL && mine ? fopen(path, "re") : NULL;
    if (f == NULL)
        return 0;
    if (fscanf(f, "%ld", &seconds) != 1)
        seconds = 0;
    fclose(f);
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, ret);
    if (failed == 0 && clock == CLOCK_REALTIME)
        ret->tv_sec += ahead();
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
