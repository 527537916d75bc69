/* Writes what --help shows in two other forms, from the same table: a manual page, and a list for a shell's completion.
 */
#include <ctype.h>
#include <string.h>

#include "base/opt.h"

/* ---- roff ---- */

/* A hyphen of roff may be broken or replaced; one of a flag must not. */
void opt_man_text(struct buf *out, const char *text)
{
    for (bool first = true; *text != '\0'; first = *text == '\n', text++) {
        if (first && (*text == '.' || *text == '\''))
            buf_str(out, "\\&");
        if (*text == '\\')
            buf_str(out, "\\e");
        else if (*text == '-')
            buf_str(out, "\\-");
        else
            buf_char(out, *text);
    }
}

static void man_section(struct buf *out, const char *title)
{
    buf_str(out, ".SH ");
    for (; *title != '\0'; title++)
        buf_char(out, (char)toupper((unsigned char)*title));
    buf_char(out, '\n');
}

/* "trainyard run" -> "trainyard-run": the name of the page. */
static void page_name(struct buf *out, const char *name, bool capitals)
{
    for (; *name != '\0'; name++)
        buf_char(out, *name == ' ' ? '-' : capitals ? (char)toupper((unsigned char)*name) : *name);
}

/* The first sentence, without its full stop. */
static void first_sentence(struct buf *out, const char *about)
{
    const char *end = strstr(about, ". "), *colon = strstr(about, ": ");
    if (end == NULL || (colon != NULL && colon < end))
        end = colon != NULL ? colon : about + strlen(about) - str_ends(about, ".");
    auto_free char *sentence = xstrndup(about, (size_t)(end - about));
    opt_man_text(out, sentence);
    buf_char(out, '\n');
}

static void man_flag(struct buf *out, const struct opt *o)
{
    buf_str(out, ".TP\n\\fB");
    if (o->short_name != '\0')
        buf_printf(out, "\\-%c\\fR, \\fB", o->short_name);
    buf_str(out, "\\-\\-");
    opt_man_text(out, o->name);
    buf_str(out, "\\fR");
    if (o->arg != NULL && o->kind != OPT_KIND_BOOL) {
        buf_str(out, " \\fI");
        opt_man_text(out, o->arg);
        buf_str(out, "\\fR");
    }
    buf_char(out, '\n');
    opt_man_text(out, o->help != NULL ? o->help : "");
    if (o->kind == OPT_KIND_LIST)
        buf_str(out, " (may be given again)");
    if (o->env != NULL)
        buf_printf(out, " [$%s]", o->env);
    buf_char(out, '\n');
}

void opt_man_head(const struct opt_program *p, struct buf *out)
{
    buf_str(out, ".TH ");
    page_name(out, p->name, true);
    buf_printf(out, " 1 \"\" \"Trainyard %s\"\n.SH NAME\n", TRAINYARD_VERSION);
    page_name(out, p->name, false);
    buf_str(out, " \\- ");
    first_sentence(out, p->about);
    buf_printf(out, ".SH SYNOPSIS\n.B %s\n", p->name);
    opt_man_text(out, p->usage);
    buf_str(out, "\n.SH DESCRIPTION\n");
    opt_man_text(out, p->about);
    buf_char(out, '\n');
}

void opt_man(const struct opt_program *p, const struct opt *opts, struct buf *out)
{
    opt_man_head(p, out);
    if (opts->kind != OPT_KIND_SECTION)
        man_section(out, "flags");
    for (const struct opt *o = opts; o->kind != OPT_KIND_END; o++) {
        if (o->kind == OPT_KIND_SECTION)
            man_section(out, o->name);
        else
            man_flag(out, o);
    }
    if (p->epilog != NULL) {
        man_section(out, "notes");
        opt_man_text(out, p->epilog);
        buf_char(out, '\n');
    }
    buf_str(out, ".SH SEE ALSO\n.BR trainyard (1)\n");
}

/* ---- completion ---- */

void opt_flags(const struct opt *opts, struct buf *out)
{
    for (const struct opt *o = opts; o->kind != OPT_KIND_END; o++)
        if (o->kind != OPT_KIND_SECTION)
            buf_printf(out, "--%s%s\n", o->name, o->kind == OPT_KIND_BOOL ? "" : "=");
    buf_str(out, "--help\n--version\n");
}
