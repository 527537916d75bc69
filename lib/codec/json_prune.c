/* One pass over the text, which only follows brackets and strings: validity is left to the parser that reads the
 * result. */
#include "codec/json_prune.h"

#include <string.h>

struct cutter {
    const char *p, *end;
    const char *from; /* what is kept and not yet in `out` begins here */
    struct buf *out;
};

/* What is left of the paths that lead into a value. */
struct ways {
    const char *rest[JSON_PRUNE_MAX];
    size_t n;
};

/* ---- skipping values that are not searched ---- */

static bool next_is(const struct cutter *c, char ch)
{
    return c->p < c->end && *c->p == ch;
}

static void skip_space(struct cutter *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t' || *c->p == '\r'))
        c->p++;
}

static bool skip_string(struct cutter *c)
{
    for (const char *q = c->p + 1; q < c->end && (q = memchr(q, '"', (size_t)(c->end - q))) != NULL; q++) {
        const char *slash = q;
        while (slash[-1] == '\\') /* ends at the first quote */
            slash--;
        if ((q - slash) % 2 == 0) {
            c->p = q + 1;
            return true;
        }
    }
    return false;
}

/* To the end of the value, or of the text: brackets are counted, not matched. */
static bool skip_value(struct cutter *c)
{
    int depth = 0;

    while (c->p < c->end) {
        switch (*c->p) {
        case '"':
            if (!skip_string(c))
                return false;
            break;
        case '{':
        case '[':
            depth++;
            c->p++;
            break;
        case '}':
        case ']':
            if (depth == 0)
                return true; /* a number before it */
            depth--;
            c->p++;
            break;
        case ',':
            if (depth == 0)
                return true;
            c->p++;
            continue;
        default:
            c->p++;
            continue;
        }
        if (depth == 0)
            return true;
    }
    return depth == 0;
}

/* ---- the paths to the members that are cut ---- */

/* The paths that continue in this member, or element (NULL). true: one ends here. */
static bool follow_member(const struct ways *w, const char *name, size_t len, struct ways *ret)
{
    bool ends = false;

    ret->n = 0;
    for (size_t i = 0; i < w->n; i++) {
        size_t n = strcspn(w->rest[i], ".");
        bool same = name != NULL ? n == len && memcmp(w->rest[i], name, n) == 0 : n == 1 && w->rest[i][0] == '*';
        if (same && w->rest[i][n] == '\0')
            ends = true;
        else if (same)
            ret->rest[ret->n++] = w->rest[i] + n + 1;
    }
    return ends;
}

static void keep_until(struct cutter *c, const char *p)
{
    buf_add(c->out, c->from, (size_t)(p - c->from));
}

/* The last member was cut: without the comma before it. */
static void drop_comma(struct buf *out)
{
    size_t n = out->len;

    while (n > 0 && strchr(" \n\t\r", out->data[n - 1]) != NULL)
        n--;
    if (n > 0 && out->data[n - 1] == ',')
        out->data[out->len = n - 1] = '\0';
}

static bool cut_value(struct cutter *c, const struct ways *w);

static bool cut_member(struct cutter *c, const struct ways *w)
{
    const char *begin = c->p;
    struct ways inside;

    if (!next_is(c, '"') || !skip_string(c))
        return false;
    bool leave_out = follow_member(w, begin + 1, (size_t)(c->p - begin) - 2, &inside);
    skip_space(c);
    if (!next_is(c, ':'))
        return false;
    c->p++;
    skip_space(c);
    if (!leave_out)
        return cut_value(c, &inside);
    keep_until(c, begin);
    if (!skip_value(c))
        return false;
    skip_space(c);
    c->from = c->p + next_is(c, ',');
    if (!next_is(c, ','))
        drop_comma(c->out);
    return true;
}

static bool cut_element(struct cutter *c, const struct ways *w)
{
    struct ways inside;

    follow_member(w, NULL, 0, &inside);
    return cut_value(c, &inside);
}

static bool cut_all(struct cutter *c, const struct ways *w, bool (*one)(struct cutter *c, const struct ways *w),
                    char last)
{
    c->p++;
    skip_space(c);
    if (next_is(c, last)) {
        c->p++;
        return true;
    }
    for (;; c->p++) {
        skip_space(c);
        if (!one(c, w))
            return false;
        skip_space(c);
        if (next_is(c, ','))
            continue;
        bool whole = next_is(c, last);
        c->p++;
        return whole;
    }
}

static bool cut_value(struct cutter *c, const struct ways *w)
{
    if (w->n > 0 && next_is(c, '{'))
        return cut_all(c, w, cut_member, '}');
    if (w->n > 0 && next_is(c, '['))
        return cut_all(c, w, cut_element, ']');
    return skip_value(c);
}

void json_prune(const char *text, size_t n, const struct strlist *paths, struct buf *out)
{
    struct cutter c = { .p = text, .end = text + n, .from = text, .out = out };
    struct ways w = { .n = 0 };
    size_t before = out->len;

    buf_reserve(out, n);
    for (size_t i = 0; i < paths->n && i < JSON_PRUNE_MAX; i++)
        w.rest[w.n++] = paths->items[i];
    skip_space(&c);
    if (cut_value(&c, &w)) {
        keep_until(&c, text + n);
        return;
    }
    out->len = before;
    buf_add(out, text, n);
}
