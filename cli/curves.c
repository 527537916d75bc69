/* Series of cli/curves.h: collected from event files. */
#include "curves.h"

#include <string.h>

#include "tfio/event_reader.h"
#include "tfio/event_writer.h"

enum { RUN_MAX = 512 };

void series_set_fini(struct series_set *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->items[i].run);
        free(s->items[i].tag);
        free(s->items[i].steps);
        free(s->items[i].values);
    }
    free(s->items);
    *s = (struct series_set)SERIES_SET_INIT;
}

static struct scalar_series *find(struct series_set *s, const char *run, const char *tag)
{
    for (size_t i = 0; i < s->n; i++)
        if (str_eq(s->items[i].tag, tag) && str_eq(s->items[i].run, run))
            return &s->items[i];
    if (s->n == s->cap)
        s->items = xrealloc(s->items, (s->cap = s->cap * 2 + 8) * sizeof(*s->items));
    s->items[s->n] = (struct scalar_series){ .run = xstrdup(run), .tag = xstrdup(tag) };
    return &s->items[s->n++];
}

/* Removes the points from `step` on. */
static void cut(struct scalar_series *line, double step)
{
    while (line->n > 0 && line->steps[line->n - 1] >= step)
        line->n--;
}

void series_add(struct series_set *s, const char *run, const char *tag, double step, double value)
{
    struct scalar_series *line = find(s, run, tag);
    cut(line, step);
    if (line->n == line->cap) {
        line->cap = line->cap * 2 + 64;
        line->steps = xrealloc(line->steps, line->cap * sizeof(*line->steps));
        line->values = xrealloc(line->values, line->cap * sizeof(*line->values));
    }
    line->steps[line->n] = step;
    line->values[line->n++] = value;
}

void series_purge(struct series_set *s, const char *run, double step)
{
    for (size_t i = 0; i < s->n; i++)
        if (str_eq(s->items[i].run, run))
            cut(&s->items[i], step);
}

void series_merge(struct series_set *s, const char *name, const struct series_set *from)
{
    for (size_t i = 0; i < from->n; i++) {
        const struct scalar_series *line = &from->items[i];
        bool nameless = line->run[0] == '\0' || str_eq(line->run, ".");
        auto_free char *run = nameless ? xstrdup(name) : xasprintf("%s/%s", name, line->run);
        for (size_t k = 0; k < line->n; k++)
            series_add(s, run, line->tag, line->steps[k], line->values[k]);
    }
}

int series_load(const char *path, struct series_set *ret, struct strlist *ret_warnings, struct err *e)
{
    AUTO(event_reader) *r = NULL;
    struct err damage = { .code = ERR_NONE };
    struct event ev;
    char run[RUN_MAX];
    int more;

    if (event_reader_open(path, &r, e) < 0)
        return -1;
    while ((more = event_reader_next(r, &ev, &damage)) != 0) {
        if (more < 0) {
            if (ret_warnings != NULL)
                strlist_add(ret_warnings, damage.msg);
            continue;
        }
        event_reader_run(r, &ev, run, sizeof(run));
        if (ev.kind == EVENT_SCALAR)
            series_add(ret, run, ev.tag, (double)ev.step, ev.value);
        else if (ev.kind == EVENT_SESSION && ev.value == SESSION_START)
            series_purge(ret, run, (double)ev.step);
    }
    return 0;
}
