/* Formats a message and passes it to the callback of the caller; without one it is dropped before it is formatted. */
#include "base/report.h"

#include <stdarg.h>

#include "base/buf.h"

static void write_log(void *user, enum log_level level, const char *msg, int n, const struct log_field *fields)
{
    (void)user;
    log_fields(level, msg, n, fields);
}

const struct report REPORT_TO_LOG = { .write = write_log };

void report_fields(const struct report *r, enum log_level level, const char *msg, int n, const struct log_field *fields)
{
    if (r != NULL)
        r->write(r->user, level, msg, n, fields);
}

void report_msg(const struct report *r, enum log_level level, const char *fmt, ...)
{
    if (r == NULL)
        return;
    AUTO_FINI(buf) text = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    report_fields(r, level, text.data, 0, NULL);
}
