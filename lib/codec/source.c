/* A map from paths of values to lines and columns. A path that was not recorded has the place of its nearest ancestor.
 */
#include "codec/source.h"

#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "codec/node.h"

struct noted {
    struct place value, key;
};

struct source {
    char *name;
    struct map places;      /* path -> struct noted */
    struct map origins;     /* path -> char *, what overrode it */
    struct strlist *faults; /* not owned; NULL: they are not collected */
};

struct source *source_new(const char *name)
{
    struct source *s = xcalloc(1, sizeof(*s));
    s->name = xstrdup(name);
    return s;
}

static void free_values(struct map *m)
{
    const struct map_slot *slot;

    for (size_t i = 0; (slot = map_next(m, &i)) != NULL;)
        free(slot->value);
    map_fini(m);
}

void source_free(struct source *s)
{
    if (s == NULL)
        return;
    free_values(&s->places);
    free_values(&s->origins);
    free(s->name);
    free(s);
}

void source_collect(struct source *s, struct strlist *faults)
{
    s->faults = faults;
}

bool source_collects(const struct source *s)
{
    return s != NULL && s->faults != NULL && s->faults->n < FAULTS_MAX;
}

void source_fault(const struct source *s, const char *text)
{
    if (source_collects(s) && !strlist_has(s->faults, text))
        strlist_add(s->faults, text);
}

const char *source_name(const struct source *s)
{
    return s->name;
}

void source_note(struct source *s, const char *path, struct place value, struct place key)
{
    if (strlen(path) >= NODE_PATH_MAX || map_get(&s->places, path) != NULL)
        return;
    struct noted *n = xmalloc(sizeof(*n));
    *n = (struct noted){ .value = value, .key = key };
    map_put(&s->places, path, n);
}

void source_copy(struct source *s, const char *from, const char *to)
{
    const struct noted *n = map_get(&s->places, from);
    if (n != NULL)
        source_note(s, to, n->value, n->key);
}

/* Cuts the last member off a path: "a.b[2]" -> "a.b" -> "a" -> "". */
static void cut_last(char *path)
{
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] != '.' && path[n - 1] != '[')
        n--;
    path[n > 0 ? n - 1 : 0] = '\0';
}

static const struct noted *nearest_place(const struct source *s, const char *path, bool *ret_exact)
{
    char at[NODE_PATH_MAX];
    str_fmt(at, sizeof(at), "%s", path);

    *ret_exact = true;
    for (;;) {
        const struct noted *n = map_get(&s->places, at);
        if (n != NULL || at[0] == '\0')
            return n;
        cut_last(at);
        *ret_exact = false;
    }
}

bool source_find(const struct source *s, const char *path, int *ret_line, int *ret_column)
{
    bool exact;
    const struct noted *n = nearest_place(s, path, &exact);
    if (n == NULL)
        return false;
    *ret_line = n->value.line;
    *ret_column = n->value.column;
    return true;
}

bool source_find_key(const struct source *s, const char *path, int *ret_line, int *ret_column)
{
    bool exact;
    const struct noted *n = nearest_place(s, path, &exact);
    if (n == NULL)
        return false;
    *ret_line = exact ? n->key.line : n->value.line;
    *ret_column = exact ? n->key.column : n->value.column;
    return true;
}

void source_override(struct source *s, const char *path, const char *origin)
{
    free(map_get(&s->origins, path));
    map_put(&s->origins, path, xstrdup(origin));
}

const char *source_origin(const struct source *s, const char *path)
{
    char at[NODE_PATH_MAX];
    str_fmt(at, sizeof(at), "%s", path);

    for (;; cut_last(at)) {
        const char *origin = map_get(&s->origins, at);
        if (origin != NULL || at[0] == '\0')
            return origin;
    }
}
