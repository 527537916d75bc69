/* Compares the spec of a job with that of the run in its output folder. The rule for each field comes from the tables
 * of the manifest; absent fields have their defaults. */
#include "job/rerun.h"

#include <string.h>

#include "job/fields.h"

enum { TEXT_MAX = 48, SAID_MAX = 6 };

void rerun_changes_fini(struct rerun_changes *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->items[i].path);
        free(c->items[i].was);
        free(c->items[i].now);
    }
    free(c->items);
    *c = (struct rerun_changes){ 0 };
}

void rerun_add(struct rerun_changes *c, const char *path, const char *was, const char *now, enum rerun need)
{
    c->items = xrealloc(c->items, (c->n + 1) * sizeof(c->items[0]));
    c->items[c->n++] = (struct rerun_change){ .path = xstrdup(path),
                                              .was = was != NULL ? xstrdup(was) : NULL,
                                              .now = now != NULL ? xstrdup(now) : NULL,
                                              .need = need };
}

static bool is_below(const char *path, const char *above)
{
    size_t n = strlen(above);
    return strncmp(path, above, n) == 0 && (path[n] == '\0' || path[n] == '.' || path[n] == '[');
}

void rerun_forget(struct rerun_changes *c, const char *path)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++) {
        struct rerun_change *change = &c->items[i];
        if (!is_below(change->path, path)) {
            c->items[kept++] = *change;
            continue;
        }
        free(change->path);
        free(change->was);
        free(change->now);
    }
    c->n = kept;
}

enum rerun rerun_need(const struct rerun_changes *c)
{
    enum rerun most = RERUN_FREE;
    for (size_t i = 0; i < c->n; i++)
        most = MAX(most, c->items[i].need);
    return most;
}

void rerun_text(const struct rerun_changes *c, enum rerun allowed, struct buf *out)
{
    size_t said = 0, more = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct rerun_change *change = &c->items[i];
        if (change->need <= allowed)
            continue;
        if (said == SAID_MAX) {
            more++;
            continue;
        }
        buf_printf(out, "%s%s is %s, was %s", said++ > 0 ? "; " : "", change->path,
                   change->now != NULL ? change->now : "not set", change->was != NULL ? change->was : "not set");
    }
    if (more > 0)
        buf_printf(out, "; and %zu more", more);
}

/* ---- comparison ---- */

struct comparison {
    struct rerun_changes *changes;
    bool finished;
};

/* An optimizer of another class, or with other slots, cannot use those of the checkpoint. The caller writes them among
 * the optimizer's arguments: compile.optimizer.Adam.slots. */
static enum rerun rule_of(const char *path, enum rerun rule)
{
    static const char OPTIMIZER[] = "compile.optimizer";
    bool class = str_eq(path, OPTIMIZER);
    bool slots = str_starts(path, OPTIMIZER) && strstr(path, ".slots") != NULL;
    return class || slots ? RERUN_FRESH : rule;
}

/* Short, for people; NULL when there is none. */
static char *value_text(const json_t *v)
{
    AUTO_FINI(buf) text = BUF_INIT;
    if (v == NULL || json_is_null(v))
        return NULL;
    if (json_is_string(v))
        buf_str(&text, json_string_value(v));
    else
        json_emit(v, &text);
    return text.len > TEXT_MAX ? xasprintf("%.*s...", TEXT_MAX - 3, text.data) : xstrdup(text.data);
}

static bool is_longer(const json_t *was, const json_t *now)
{
    return json_is_number(was) && json_is_number(now) && json_number_value(now) > json_number_value(was);
}

static void add(const struct comparison *c, const char *path, enum rerun rule, const json_t *was, const json_t *now)
{
    enum rerun need = rule_of(path, rule);
    if (need == RERUN_LONGER)
        need = is_longer(was, now) && !c->finished ? RERUN_FREE : RERUN_RESUME;
    if (need == RERUN_FREE)
        return;
    auto_free char *from = value_text(was), *to = value_text(now);
    rerun_add(c->changes, path, from, to, need);
}

static bool same(const json_t *a, const json_t *b)
{
    bool none_a = a == NULL || json_is_null(a), none_b = b == NULL || json_is_null(b);
    if (none_a || none_b)
        return none_a && none_b;
    if (json_is_number(a) && json_is_number(b)) /* 1 and 1.0 */
        return json_number_value(a) >= json_number_value(b) && json_number_value(a) <= json_number_value(b);
    return json_equal(a, b);
}

static void compare_values(const struct comparison *c, const char *path, enum rerun rule, const json_t *was,
                           const json_t *now);

/* Keys of both, each once. */
static void compare_objects(const struct comparison *c, const char *path, enum rerun rule, const json_t *was,
                            const json_t *now)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)was, key, v)
    {
        auto_free char *below = xasprintf("%s.%s", path, key);
        compare_values(c, below, rule, v, json_object_get(now, key));
    }
    json_object_foreach((json_t *)(uintptr_t)now, key, v)
    {
        auto_free char *below = xasprintf("%s.%s", path, key);
        if (json_object_get(was, key) == NULL)
            compare_values(c, below, rule, NULL, v);
    }
}

/* Down to the innermost value that differs: parsers bound the depth of both. */
static void compare_values(const struct comparison *c, const char *path, enum rerun rule, const json_t *was,
                           const json_t *now)
{
    size_t n = json_array_size(was);
    if (same(was, now))
        return;
    if (json_is_object(was) && json_is_object(now)) {
        compare_objects(c, path, rule, was, now);
    } else if (json_is_array(was) && json_is_array(now) && json_array_size(now) == n) {
        for (size_t i = 0; i < n; i++) {
            auto_free char *below = xasprintf("%s[%zu]", path, i);
            compare_values(c, below, rule, json_array_get(was, i), json_array_get(now, i));
        }
    } else {
        add(c, path, rule, was, now);
    }
}

/* A new reference to the value, or to its default; NULL: neither. */
static json_t *value_or_default(const struct field *f, const json_t *v)
{
    bool text = f->kind == FIELD_STRING || f->kind == FIELD_CHOICE;
    json_t *fallback = NULL;
    if (v != NULL && !json_is_null(v))
        return json_incref((json_t *)(uintptr_t)v);
    if (f->fallback == NULL)
        return NULL;
    if (text)
        return json_string(f->fallback);
    return json_parse(f->fallback, strlen(f->fallback), f->key, &fallback, NULL) == 0 ? fallback : NULL;
}

static void compare_table(const struct comparison *c, const struct field_table *t, const char *path, enum rerun rule,
                          const json_t *was, const json_t *now);

static void compare_field(const struct comparison *c, const struct field *f, const char *above, enum rerun rule,
                          const json_t *was, const json_t *now)
{
    enum rerun own = f->rerun != RERUN_UNSAID ? f->rerun : rule;
    auto_free char *path = above[0] != '\0' ? xasprintf("%s.%s", above, f->key) : xstrdup(f->key);
    const json_t *a = json_object_get(was, f->key), *b = json_object_get(now, f->key);
    if (own == RERUN_FREE)
        return;
    if (f->kind == FIELD_TABLE) {
        bool one = (a == NULL) != (b == NULL) && f->rerun != RERUN_UNSAID;
        if (one) /* as a whole, not each of its fields */
            rerun_add(c->changes, path, a != NULL ? "set" : NULL, b != NULL ? "set" : NULL, own);
        else
            compare_table(c, f->table, path, own, a, b);
        return;
    }
    json_auto_t *from = value_or_default(f, a), *to = value_or_default(f, b);
    compare_values(c, path, own, from, to);
}

static void compare_table(const struct comparison *c, const struct field_table *t, const char *path, enum rerun rule,
                          const json_t *was, const json_t *now)
{
    for (size_t i = 0; i < t->nrows; i++)
        compare_field(c, &t->rows[i], path, rule, was, now);
}

void rerun_compare(const json_t *was, const json_t *now, bool finished, struct rerun_changes *ret)
{
    const struct comparison c = { .changes = ret, .finished = finished };
    const struct field *spec = NULL;
    for (size_t i = 0; i < JOB_FIELDS.nrows; i++)
        if (str_eq(JOB_FIELDS.rows[i].key, "spec"))
            spec = &JOB_FIELDS.rows[i];
    if (spec != NULL)
        compare_table(&c, spec->table, "", RERUN_UNSAID, was, now);
}
