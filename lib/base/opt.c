/* Parses flags and environment variables by one table and prints --help from the same table, so that they cannot
 * disagree. */
#include "base/opt.h"

#include <string.h>

#include "base/file.h"
#include "base/str.h"

const char TRAINYARD_VERSION[] = "0.1.0";

enum { NAMES_MAX = 128, NAME_LEN = 64 };

static bool is_flag(const struct opt *o)
{
    return o->kind != OPT_KIND_SECTION && o->kind != OPT_KIND_END;
}

static const struct opt *find_name(const struct opt *opts, const char *name)
{
    for (const struct opt *o = opts; o->kind != OPT_KIND_END; o++)
        if (is_flag(o) && str_eq(o->name, name))
            return o;
    return NULL;
}

static const struct opt *find_short(const struct opt *opts, char c)
{
    for (const struct opt *o = opts; o->kind != OPT_KIND_END; o++)
        if (is_flag(o) && o->short_name == c && c != '\0')
            return o;
    return NULL;
}

static int set_unknown_flag(const struct opt *opts, const char *name, struct err *e)
{
    const char *names[NAMES_MAX] = { "help", "version" };
    size_t n = 2;
    char hint[NAME_LEN + 32] = "";

    for (const struct opt *o = opts; o->kind != OPT_KIND_END && n < NAMES_MAX; o++)
        if (is_flag(o))
            names[n++] = o->name;
    const char *nearest = str_nearest(name, names, n);
    if (nearest != NULL)
        str_fmt(hint, sizeof(hint), "; did you mean '--%s'?", nearest);
    return err_set(e, ERR_INPUT, "flag '--%s' is not known%s", name,
                   hint[0] != '\0' ? hint : "; --help lists them all");
}

/* `from` names the source of the text in messages: "--task-index" or "TASK_INDEX". */
static int store(const struct opt *o, const char *value, const char *from, struct err *e)
{
    int rc = 0;
    switch (o->kind) {
    case OPT_KIND_STR:
        *(const char **)o->dest = value;
        break;
    case OPT_KIND_LIST:
        strlist_add(o->dest, value);
        break;
    case OPT_KIND_INT:
        rc = str_i64(value, o->min, o->max, o->dest, e);
        break;
    case OPT_KIND_BOOL:
        rc = str_bool(value, o->dest, e);
        break;
    case OPT_KIND_END:
    case OPT_KIND_SECTION:
    default:
        break;
    }
    if (rc < 0)
        return err_wrap(e, "%s", from);
    if (o->ret_given != NULL)
        *o->ret_given = true;
    return 0;
}

static int from_environment(const struct opt *opts, struct err *e)
{
    for (const struct opt *o = opts; o->kind != OPT_KIND_END; o++) {
        const char *value = is_flag(o) && o->env != NULL ? getenv(o->env) : NULL;
        if (value != NULL && value[0] != '\0' && store(o, value, o->env, e) < 0)
            return -1;
    }
    return 0;
}

struct arg_cursor {
    const struct opt *opts;
    int argc, i;
    char **argv;
};

/* The value of flag o: the text after '=', or the next argument. */
static int take_value(struct arg_cursor *c, const struct opt *o, const char *attached, const char **ret, struct err *e)
{
    if (attached != NULL)
        *ret = attached;
    else if (c->i + 1 < c->argc)
        *ret = c->argv[++c->i];
    else
        return err_set(e, ERR_INPUT, "--%s needs a value: %s", o->name, o->arg != NULL ? o->arg : "VALUE");
    return 0;
}

static int parse_long(struct arg_cursor *c, const char *text, struct err *e)
{
    char name[NAME_LEN], from[NAME_LEN + 2];
    const char *equals = strchr(text, '=');
    size_t len = equals != NULL ? (size_t)(equals - text) : strlen(text);
    if (len == 0 || len >= sizeof(name))
        return err_set(e, ERR_INPUT, "flag '--%.80s' is not known; --help lists them all", text);

    for (size_t i = 0; i < len; i++)
        name[i] = text[i] == '_' ? '-' : text[i];
    name[len] = '\0';
    const char *value = equals != NULL ? equals + 1 : NULL;

    const struct opt *o = find_name(c->opts, name);
    if (o == NULL && str_starts(name, "no-") && value == NULL) {
        o = find_name(c->opts, name + 3);
        if (o == NULL || o->kind != OPT_KIND_BOOL)
            return set_unknown_flag(c->opts, name, e);
        value = "false";
    }
    if (o == NULL)
        return set_unknown_flag(c->opts, name, e);
    if (o->kind == OPT_KIND_BOOL)
        value = value != NULL ? value : "true";
    else if (take_value(c, o, value, &value, e) < 0)
        return -1;
    str_fmt(from, sizeof(from), "--%s", o->name);
    return store(o, value, from, e);
}

/* -x value, -xvalue, -x=value; booleans cannot be joined (-ab): nothing here has enough of them. */
static int parse_short(struct arg_cursor *c, const char *text, struct err *e)
{
    const struct opt *o = find_short(c->opts, text[0]);
    char from[3] = { '-', text[0], '\0' };
    const char *value = text[1] == '\0' ? NULL : text + 1 + (text[1] == '=' ? 1 : 0);

    if (o == NULL)
        return err_set(e, ERR_INPUT, "flag '-%s' is not known; --help lists them all", text);
    if (o->kind == OPT_KIND_BOOL) {
        if (value != NULL)
            return err_set(e, ERR_INPUT, "flag '-%s' is not known; -%c takes no value", text, text[0]);
        value = "true";
    } else if (take_value(c, o, value, &value, e) < 0) {
        return -1;
    }
    return store(o, value, from, e);
}

/* 1: help or version was requested, and printed; 0: it was not. */
static int asked_about(const struct opt_program *p, const struct opt *opts, const char *arg, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    if (str_eq(arg, "--help") || (str_eq(arg, "-h") && find_short(opts, 'h') == NULL))
        opt_help(p, opts, &text);
    else if (str_eq(arg, "--help=man"))
        opt_man(p, opts, &text);
    else if (str_eq(arg, "--help=flags"))
        opt_flags(opts, &text);
    else if (str_eq(arg, "--version"))
        buf_printf(&text, "%s %s\n", p->name, TRAINYARD_VERSION);
    else
        return 0;
    return file_write_stdout(text.data, text.len, e) < 0 ? -1 : 1;
}

int opt_parse(const struct opt_program *p, const struct opt *opts, int argc, char **argv, struct strlist *ret_args,
              enum opt_result *ret, struct err *e)
{
    struct arg_cursor c = { .opts = opts, .argc = argc, .argv = argv };

    if (from_environment(opts, e) < 0)
        return -1;
    for (c.i = 1; c.i < argc; c.i++) {
        const char *arg = argv[c.i];
        int asked = asked_about(p, opts, arg, e);
        if (asked < 0)
            return -1;
        if (asked > 0) {
            *ret = OPT_DONE;
            return 0;
        }
        if (str_eq(arg, "--")) {
            while (++c.i < argc)
                strlist_add(ret_args, argv[c.i]);
        } else if (str_starts(arg, "--")) {
            if (parse_long(&c, arg + 2, e) < 0)
                return -1;
        } else if (arg[0] == '-' && arg[1] != '\0') { /* "-" alone is standard input */
            if (parse_short(&c, arg + 1, e) < 0)
                return -1;
        } else {
            strlist_add(ret_args, arg);
        }
    }
    *ret = OPT_OK;
    return 0;
}

enum { HELP_COLUMN = 30, HELP_WIDTH = 96 };

/* Words of `text` from `column` on, broken before HELP_WIDTH; `at` is the current column. */
static void wrap_text(struct buf *out, const char *text, size_t column, size_t at)
{
    while (*text != '\0') {
        size_t word = strcspn(text, " \n");
        if (at > column && at + 1 + word > HELP_WIDTH) {
            buf_char(out, '\n');
            at = 0;
        }
        if (at > column) {
            buf_char(out, ' ');
            at++;
        }
        for (; at < column; at++)
            buf_char(out, ' ');
        buf_add(out, text, word);
        at += word;
        text += word;
        while (*text == ' ' || *text == '\n')
            text++;
    }
    buf_char(out, '\n');
}

static void help_line(struct buf *out, const struct opt *o)
{
    size_t start = out->len;

    if (o->short_name != '\0')
        buf_printf(out, "  -%c, ", o->short_name);
    else
        buf_str(out, "      ");
    buf_printf(out, "--%s%s%s", o->name, o->arg != NULL && o->kind != OPT_KIND_BOOL ? " " : "",
               o->arg != NULL && o->kind != OPT_KIND_BOOL ? o->arg : "");
    size_t at = out->len - start;
    if (at + 2 > HELP_COLUMN) {
        buf_char(out, '\n');
        at = 0;
    }
    AUTO_FINI(buf) text = BUF_INIT;
    buf_str(&text, o->help != NULL ? o->help : "");
    if (o->kind == OPT_KIND_LIST)
        buf_str(&text, " (may be given again)");
    if (o->env != NULL)
        buf_printf(&text, " [$%s]", o->env);
    wrap_text(out, text.data, HELP_COLUMN, at);
}

void opt_help(const struct opt_program *p, const struct opt *opts, struct buf *out)
{
    static const struct opt COMMON[] = {
        { .kind = OPT_KIND_BOOL, .short_name = 'h', .name = "help", .help = "show this text" },
        { .kind = OPT_KIND_BOOL, .name = "version", .help = "show the version" },
    };

    buf_printf(out, "Usage: %s %s\n\n", p->name, p->usage);
    wrap_text(out, p->about, 0, 0);
    if (opts->kind != OPT_KIND_SECTION)
        buf_str(out, "\nFlags:\n");
    for (const struct opt *o = opts; o->kind != OPT_KIND_END; o++) {
        if (o->kind == OPT_KIND_SECTION)
            buf_printf(out, "\n%s:\n", o->name);
        else
            help_line(out, o);
    }
    buf_str(out, "\nOther:\n");
    for (size_t i = 0; i < COUNT_OF(COMMON); i++)
        help_line(out, &COMMON[i]);
    if (p->epilog != NULL)
        buf_printf(out, "\n%s\n", p->epilog);
}
