/* report - how a library reports something to people: its caller decides where the line goes.
 *
 *     struct thing_config { ...; const struct report *report; };     NULL: silent
 *     report_info(t->config.report, "waiting for %s, %d s", peer, seconds);
 *
 * A library does not log above debug: a program that wants the lines in its log passes &REPORT_TO_LOG. A report may be
 * written from any thread that the library runs in.
 */
#ifndef TRAINYARD_BASE_REPORT_H
#define TRAINYARD_BASE_REPORT_H

#include "base/log.h"

struct report {
    /* As log_fields(); what the pointers refer to stays valid until the function returns. */
    void (*write)(void *user, enum log_level level, const char *msg, int n, const struct log_field *fields);
    void *user;
};
extern const struct report REPORT_TO_LOG;

void report_msg(const struct report *r, enum log_level level, const char *fmt, ...) PRINTF_LIKE(3, 4);
void report_fields(const struct report *r, enum log_level level, const char *msg, int n,
                   const struct log_field *fields);

#define report_info(r, ...)    report_msg((r), LOG_INFO, __VA_ARGS__)
#define report_warning(r, ...) report_msg((r), LOG_WARNING, __VA_ARGS__)

#endif
