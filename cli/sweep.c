/* Reads the values of a sweep, counts their combinations and names them. */
#include "sweep.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"

enum { NAME_VALUE_MAX = 40 };

void sweep_fini(struct sweep *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->fields[i].path);
        strlist_fini(&s->fields[i].values);
    }
    *s = (struct sweep){ .n = 0 };
}

/* ---- the texts ---- */

/* The end of the value at p: a comma outside of brackets and quotes, or the end of the text. */
static const char *value_end(const char *p)
{
    int depth = 0;
    char quote = '\0';
    for (; *p != '\0' && (*p != ',' || depth > 0 || quote != '\0'); p++) {
        if (quote != '\0')
            quote = *p == quote ? '\0' : quote;
        else if (*p == '"' || *p == '\'')
            quote = *p;
        else if (strchr("{[(", *p) != NULL)
            depth++;
        else if (strchr("}])", *p) != NULL && depth > 0)
            depth--;
    }
    return p;
}

static int parse_field(const char *text, struct sweep_field *f, struct err *e)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return err_set(e, ERR_INPUT, "--sweep: '%s' must be PATH=VALUE,VALUE..., such as fit.batchSize=32,64", text);
    f->path = xstrndup(text, (size_t)(equals - text));
    for (const char *p = equals + 1;; p++) {
        const char *end = value_end(p);
        if (end == p)
            return err_set(e, ERR_INPUT, "--sweep: '%s' has an empty value", text);
        auto_free char *value = xstrndup(p, (size_t)(end - p));
        if (strlist_has(&f->values, value))
            return err_set(e, ERR_INPUT, "--sweep: '%s' has the value %s twice", text, value);
        strlist_add(&f->values, value);
        p = end;
        if (*p == '\0')
            return 0;
    }
}

static int check(const struct sweep *s, struct err *e)
{
    size_t runs = 1;
    for (size_t i = 0; i < s->n; i++) {
        for (size_t j = 0; j < i; j++)
            if (str_eq(s->fields[i].path, s->fields[j].path))
                return err_set(e, ERR_INPUT, "--sweep: %s is given twice; list its values after one",
                               s->fields[i].path);
        runs *= s->fields[i].values.n;
        if (runs > SWEEP_RUNS_MAX)
            return err_set(e, ERR_INPUT, "--sweep: these are more than %d runs", SWEEP_RUNS_MAX);
    }
    return 0;
}

int sweep_parse(const struct strlist *texts, struct sweep *ret, struct err *e)
{
    AUTO_FINI(sweep) s = { .n = 0 };
    if (texts->n > SWEEP_FIELDS_MAX)
        return err_set(e, ERR_INPUT, "--sweep: at most %d fields", SWEEP_FIELDS_MAX);
    for (size_t i = 0; i < texts->n; i++) {
        s.n++;
        if (parse_field(texts->items[i], &s.fields[i], e) < 0)
            return -1;
    }
    if (check(&s, e) < 0)
        return -1;
    *ret = s;
    s = (struct sweep){ .n = 0 };
    return 0;
}

/* ---- the runs ---- */

size_t sweep_runs(const struct sweep *s)
{
    size_t n = 1;
    for (size_t i = 0; i < s->n; i++)
        n *= s->fields[i].values.n;
    return n;
}

const char *sweep_value(const struct sweep *s, size_t i, size_t field)
{
    for (size_t k = s->n - 1; k > field; k--)
        i /= s->fields[k].values.n;
    return s->fields[field].values.items[i % s->fields[field].values.n];
}

void sweep_sets(const struct sweep *s, size_t i, struct strlist *ret)
{
    for (size_t k = 0; k < s->n; k++) {
        auto_free char *set = xasprintf("%s=%s", s->fields[k].path, sweep_value(s, i, k));
        strlist_add(ret, set);
    }
}

const char *sweep_field_name(const struct sweep *s, size_t field)
{
    const char *dot = strrchr(s->fields[field].path, '.');
    return dot != NULL ? dot + 1 : s->fields[field].path;
}

/* Only characters that need no quotes in a shell. */
static void put_value(struct buf *out, const char *value)
{
    for (size_t i = 0; value[i] != '\0' && i < NAME_VALUE_MAX; i++)
        buf_char(out, isalnum((unsigned char)value[i]) || strchr(".+-", value[i]) != NULL ? value[i] : '_');
}

static void plain_name(const struct sweep *s, size_t i, struct buf *out)
{
    for (size_t k = 0; k < s->n; k++) {
        buf_str(out, k > 0 ? "," : "");
        put_value(out, sweep_field_name(s, k));
        buf_char(out, '=');
        put_value(out, sweep_value(s, i, k));
    }
}

char *sweep_name(const struct sweep *s, size_t i)
{
    AUTO_FINI(buf) name = BUF_INIT;
    plain_name(s, i, &name);
    for (size_t j = 0; j < sweep_runs(s); j++) {
        AUTO_FINI(buf) other = BUF_INIT;
        plain_name(s, j, &other);
        if (j != i && str_eq(name.data, other.data)) { /* the values differ in what a name cannot have */
            buf_printf(&name, "-%zu", i + 1);
            break;
        }
    }
    return xstrdup(name.data);
}
