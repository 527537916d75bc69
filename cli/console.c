/* Writes the lines of all replicas to stderr, with colours and a progress bar below them on a terminal. Every line is
 * one write(2), so that lines of this process never mix. */
#include "console.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/str.h"

static const char RESET[] = "\033[0m", ERASE_LINE[] = "\r\033[K";
static const char RED[] = "\033[31m", YELLOW[] = "\033[33m";
/* one for each replica in turn; not red and yellow, which mark errors and warnings */
static const char *const PALETTE[] = { "\033[36m", "\033[32m", "\033[35m", "\033[34m",
                                       "\033[96m", "\033[92m", "\033[95m", "\033[94m" };

struct console console_for(bool is_terminal, const char *no_color, const char *term, size_t columns, bool json)
{
    bool plain = (no_color != NULL && no_color[0] != '\0') || str_eq(term, "dumb");
    return (struct console){
        .terminal = is_terminal && !plain && !json, .json = json, .width = columns >= 20 ? columns : 80, .bar = BUF_INIT
    };
}

struct console console_open(bool json)
{
    struct winsize size = { 0 };
    bool is_terminal = isatty(STDERR_FILENO) == 1 && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
    return console_for(is_terminal, getenv("NO_COLOR"), getenv("TERM"), size.ws_col, json);
}

void console_measure(struct console *c)
{
    struct winsize size = { 0 };
    if (c->terminal && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
        c->width = size.ws_col;
}

void console_fini(struct console *c)
{
    console_bar(c, "");
    buf_fini(&c->bar);
}

static void put(const struct buf *text)
{
    ssize_t ignored UNUSED = write(STDERR_FILENO, text->data, text->len); /* an error cannot be reported */
}

static const char *text_colour(const char *text)
{
    return str_starts(text, "error: ") ? RED : str_starts(text, "warning: ") ? YELLOW : "";
}

void console_format(const struct console *c, size_t i, const char *name, const char *text, struct buf *out)
{
    size_t n = strlen(name);

    if (c->json) {
        buf_shown(out, text, strlen(text));
        return;
    }
    if (text[0] == '[' && strncmp(text + 1, name, n) == 0 && str_starts(text + 1 + n, "] "))
        text += n + 3;
    if (!c->terminal) {
        buf_printf(out, "[%s] ", name);
        buf_shown(out, text, strlen(text));
        return;
    }
    buf_printf(out, "%s[%s]%s %s", PALETTE[i % COUNT_OF(PALETTE)], name, RESET, text_colour(text));
    buf_shown(out, text, strlen(text));
    if (text_colour(text)[0] != '\0')
        buf_str(out, RESET);
}

/* The line, and the bar again below it. */
static void put_line(struct console *c, const char *line, size_t n)
{
    AUTO_FINI(buf) out = BUF_INIT;
    if (c->bar.len > 0)
        buf_str(&out, ERASE_LINE);
    buf_add(&out, line, n);
    buf_char(&out, '\n');
    buf_add(&out, c->bar.data, c->bar.len);
    put(&out);
}

void console_line(struct console *c, size_t i, const char *name, const char *text)
{
    AUTO_FINI(buf) line = BUF_INIT;
    console_format(c, i, name, text, &line);
    put_line(c, line.data, line.len);
}

void console_log(struct console *c, enum log_level level, const char *text)
{
    if (!c->terminal) {
        log_msg(level, "%s", text);
        return;
    }
    AUTO_FINI(buf) line = BUF_INIT;
    if (!log_enabled(level))
        return;
    if (level >= LOG_WARNING)
        buf_printf(&line, "%s%s: ", level == LOG_ERROR ? RED : YELLOW, level == LOG_ERROR ? "error" : "warning");
    buf_shown(&line, text, strlen(text));
    if (level >= LOG_WARNING)
        buf_str(&line, RESET);
    put_line(c, line.data, line.len);
}

void console_bar(struct console *c, const char *text)
{
    if (!c->terminal || str_eq(text, c->bar.data))
        return;
    AUTO_FINI(buf) out = BUF_INIT;
    buf_str(&out, ERASE_LINE);
    buf_str(&out, text);
    buf_clear(&c->bar);
    buf_str(&c->bar, text);
    put(&out);
}

void console_bar_keep(struct console *c, const char *text)
{
    if (!c->terminal)
        return;
    console_bar(c, text);
    AUTO_FINI(buf) out = BUF_INIT;
    buf_char(&out, '\n');
    put(&out);
    buf_clear(&c->bar);
}
