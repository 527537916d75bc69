/* The list of strings of str.h. */
#include <ctype.h>
#include <string.h>

#include "base/str.h"

void strlist_fini(struct strlist *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i]);
    free(l->items);
    *l = (struct strlist){ 0 };
}

static void list_take(struct strlist *l, char *owned)
{
    if (l->n == l->cap) {
        l->cap = MAX(8, l->cap * 2);
        l->items = xrealloc(l->items, l->cap * sizeof(l->items[0]));
    }
    l->items[l->n++] = owned;
}

void strlist_add(struct strlist *l, const char *s)
{
    list_take(l, xstrdup(s));
}

void strlist_split(struct strlist *l, const char *s, char separator)
{
    for (;;) {
        const char *end = strchr(s, separator);
        size_t n = end != NULL ? (size_t)(end - s) : strlen(s);
        while (n > 0 && isspace((unsigned char)*s)) {
            s++;
            n--;
        }
        while (n > 0 && isspace((unsigned char)s[n - 1]))
            n--;
        if (n > 0)
            list_take(l, xstrndup(s, n));
        if (end == NULL)
            return;
        s = end + 1;
    }
}

bool strlist_has(const struct strlist *l, const char *s)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->items[i], s))
            return true;
    return false;
}

bool strlist_same(const struct strlist *a, const struct strlist *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = str_eq(a->items[i], b->items[i]);
    return same;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void strlist_sort(struct strlist *l)
{
    if (l->n > 1)
        qsort(l->items, l->n, sizeof(*l->items), by_bytes);
}
