/* One line per record, written with one write(2), so that lines of threads and processes do not mix. Control
 * characters and invalid UTF-8 of a message are replaced: it cannot forge another record. */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/utf8.h"

static const struct {
    const char *name, *text_prefix;
} LEVELS[] = {
    [LOG_DEBUG] = { "debug", "debug: " },
    [LOG_INFO] = { "info", "" },
    [LOG_WARNING] = { "warning", "warning: " },
    [LOG_ERROR] = { "error", "error: " },
};
static const char *const FORMATS[] = { [LOG_TEXT] = "text", [LOG_JSON] = "json" };

/* Written by log_setup() before threads exist, only read afterwards. */
static struct {
    enum log_level level;
    enum log_format format;
    char replica[64];
} logger = { .level = LOG_INFO };

void log_setup(enum log_level level, enum log_format format, const char *replica)
{
    logger.level = level;
    logger.format = format;
    str_fmt(logger.replica, sizeof(logger.replica), "%s", replica != NULL ? replica : "");
}

int log_level_parse(const char *s, enum log_level *ret, struct err *e)
{
    for (size_t i = 0; i < COUNT_OF(LEVELS); i++) {
        if (str_eq(s, LEVELS[i].name)) {
            *ret = (enum log_level)i;
            return 0;
        }
    }
    return err_set(e, ERR_INPUT, "log level '%s' is not known; it must be debug, info, warning or error", s);
}

int log_format_parse(const char *s, enum log_format *ret, struct err *e)
{
    for (size_t i = 0; i < COUNT_OF(FORMATS); i++) {
        if (str_eq(s, FORMATS[i])) {
            *ret = (enum log_format)i;
            return 0;
        }
    }
    return err_set(e, ERR_INPUT, "log format '%s' is not known; it must be text or json", s);
}

bool log_enabled(enum log_level level)
{
    return level >= logger.level;
}

static void add_json_string(struct buf *b, const char *s)
{
    buf_char(b, '"');
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            buf_printf(b, "\\%c", c);
        else if (c == '\n')
            buf_str(b, "\\n");
        else if (c < 0x20 || c == 0x7f)
            buf_printf(b, "\\u%04x", c);
        else if (c < 0x80)
            buf_char(b, *s);
        else {
            size_t n = utf8_length((const unsigned char *)s, strnlen(s, UTF8_MAX));
            buf_add(b, n > 0 ? s : "?", MAX(n, 1));
            s += MAX(n, 1) - 1;
        }
    }
    buf_char(b, '"');
}

static void add_number(struct buf *b, const struct log_field *f, bool json)
{
    char number[32];
    if (!isfinite(f->d) && json)
        buf_printf(b, "\"%s\"", isnan(f->d) ? "NaN" : f->d > 0 ? "Infinity" : "-Infinity");
    else if (!isfinite(f->d)) /* as Keras */
        buf_str(b, isnan(f->d) ? "nan" : f->d > 0 ? "inf" : "-inf");
    else if (json)
        buf_str(b, str_double(f->d, number));
    else
        buf_printf(b, "%.*g", f->digits, f->d);
}

static void add_value(struct buf *b, const struct log_field *f, bool json)
{
    switch (f->kind) {
    case LOG_FIELD_STR:
        if (json)
            add_json_string(b, f->s != NULL ? f->s : "");
        else
            buf_shown(b, f->s != NULL ? f->s : "", f->s != NULL ? strlen(f->s) : 0);
        break;
    case LOG_FIELD_INT:
        buf_printf(b, "%" PRId64, f->i);
        break;
    case LOG_FIELD_NUM:
        add_number(b, f, json);
        break;
    default:
        break;
    }
}

/* "loss 0.25  accuracy 0.9", what people read */
static void add_words(struct buf *b, const char *msg, int n, const struct log_field *fields)
{
    buf_shown(b, msg, strlen(msg)); /* one record is one line: no message forges another */
    for (int i = 0; i < n; i++) {
        buf_printf(b, "%s%s ", i > 0 || msg[0] != '\0' ? " " : "", fields[i].key);
        add_value(b, &fields[i], false);
    }
}

static void format_text(struct buf *b, enum log_level level, const char *msg, int n, const struct log_field *fields)
{
    if (logger.replica[0] != '\0')
        buf_printf(b, "[%s] ", logger.replica);
    buf_str(b, LEVELS[level].text_prefix);
    add_words(b, msg, n, fields);
}

/* A record without a message has the words of its fields: what collects logs shows msg. */
static void format_json(struct buf *b, enum log_level level, const char *msg, int n, const struct log_field *fields)
{
    char ts[32];
    AUTO_FINI(buf) words = BUF_INIT;
    if (msg[0] == '\0')
        add_words(&words, msg, n, fields);
    buf_printf(b, "{\"ts\":\"%s\",\"level\":\"%s\",\"replica\":", clock_rfc3339(clock_wall(), ts), LEVELS[level].name);
    add_json_string(b, logger.replica);
    buf_str(b, ",\"msg\":");
    add_json_string(b, msg[0] != '\0' ? msg : words.data);
    for (int i = 0; i < n; i++) {
        buf_char(b, ',');
        add_json_string(b, fields[i].key);
        buf_char(b, ':');
        add_value(b, &fields[i], true);
    }
    buf_char(b, '}');
}

void log_fields(enum log_level level, const char *msg, int n, const struct log_field *fields)
{
    int saved = errno;
    if (!log_enabled(level))
        return;

    AUTO_FINI(buf) line = BUF_INIT;
    if (logger.format == LOG_JSON)
        format_json(&line, level, msg, n, fields);
    else
        format_text(&line, level, msg, n, fields);
    buf_char(&line, '\n');
    ssize_t ignored UNUSED = write(STDERR_FILENO, line.data, line.len); /* nowhere to complain */
    errno = saved;
}

void log_msg(enum log_level level, const char *fmt, ...)
{
    if (!log_enabled(level))
        return;
    AUTO_FINI(buf) text = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    log_fields(level, text.data, 0, NULL);
}
