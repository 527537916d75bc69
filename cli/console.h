/* console - the output of `trainyard run`: lines of the replicas, each with its name as prefix and a colour, and below
 * them one line that is redrawn (the progress bar). All on stderr; one write(2) a line.
 *
 * Not a terminal (or NO_COLOR, TERM=dumb): no colours, no bar. JSON logs: lines are not changed.
 */
#ifndef TRAINYARD_CLI_CONSOLE_H
#define TRAINYARD_CLI_CONSOLE_H

#include "base/buf.h"
#include "base/log.h"

struct console {
    bool terminal, json;
    size_t width;   /* columns */
    struct buf bar; /* currently shown below the lines; empty: none */
};

/* Describes a terminal by values that the caller has read. */
struct console console_for(bool is_terminal, const char *no_color, const char *term, size_t columns, bool json);
struct console console_open(bool json);  /* of this process's stderr */
void console_measure(struct console *c); /* the window's width may have changed */
void console_fini(struct console *c);
DEFINE_AUTO_FINI(console, console_fini);

/* A line of replica i (its colour), written as "[name] text". */
void console_line(struct console *c, size_t i, const char *name, const char *text);
/* A line of the launcher. */
void console_log(struct console *c, enum log_level level, const char *text);
/* Shows this bar from now on; "" removes it. No-op when not on a terminal. */
void console_bar(struct console *c, const char *text);
/* Keeps the bar as a normal line. */
void console_bar_keep(struct console *c, const char *text);

/* The text that console_line writes. A "[name] " that the replica wrote itself is not repeated; control
 * characters become spaces. */
void console_format(const struct console *c, size_t i, const char *name, const char *text, struct buf *out);

#endif
