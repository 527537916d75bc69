/* log - one line per record on stderr, for people or machines.
 *
 *     log_info("waiting for %s, %d s", peer, seconds);
 *     log_fields(LOG_INFO, "", 3, (struct log_field[]){LOG_INT("step", n), LOG_NUM("loss", x), LOG_STR("who", w)});
 *
 * text: `step 1400 loss 0.1433 who worker-1` (warnings and errors begin with "warning: ", "error: ";
 *        debug lines with "debug: "); with a prefix set: `[worker-1] step ...`
 * json: {"ts":"...","level":"info","replica":"worker-1","msg":"step 1400 loss 0.1433 who
 * worker-1","step":1400,"loss":0.1433,"who":"worker-1"} (a record without a message has the words of its fields for
 * one) A record is written with one write(2). Thread-safe. The process has one logger, set up by log_setup() once in
 * main(). It is the only state in the project that is kept outside of a handle.
 */
#ifndef TRAINYARD_BASE_LOG_H
#define TRAINYARD_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };

struct log_field {
    const char *key;
    enum { LOG_FIELD_STR, LOG_FIELD_INT, LOG_FIELD_NUM } kind;
    const char *s;
    int64_t i;
    double d; /* printed with `digits` significant digits in text, NaN and Inf as strings in JSON */
    int digits;
};
#define LOG_STR(k, v)                                                                                                  \
    {                                                                                                                  \
        .key = (k), .kind = LOG_FIELD_STR, .s = (v)                                                                    \
    }
#define LOG_INT(k, v)                                                                                                  \
    {                                                                                                                  \
        .key = (k), .kind = LOG_FIELD_INT, .i = (int64_t)(v)                                                           \
    }
#define LOG_NUM(k, v)                                                                                                  \
    {                                                                                                                  \
        .key = (k), .kind = LOG_FIELD_NUM, .d = (double)(v), .digits = 4                                               \
    }

void log_setup(enum log_level level, enum log_format format, const char *replica);
MUST_USE int log_level_parse(const char *s, enum log_level *ret, struct err *e);   /* debug info warning error */
MUST_USE int log_format_parse(const char *s, enum log_format *ret, struct err *e); /* text json */
bool log_enabled(enum log_level level);
void log_msg(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);
void log_fields(enum log_level level, const char *msg, int n, const struct log_field *fields);

#define log_debug(...)   (log_enabled(LOG_DEBUG) ? log_msg(LOG_DEBUG, __VA_ARGS__) : (void)0)
#define log_info(...)    log_msg(LOG_INFO, __VA_ARGS__)
#define log_warning(...) log_msg(LOG_WARNING, __VA_ARGS__)
#define log_error(...)   log_msg(LOG_ERROR, __VA_ARGS__)

#endif
