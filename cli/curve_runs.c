/* Groups the folders of event files by run, and names the runs without what all names share. */
#include "curve_runs.h"

#include <string.h>

enum { NAME_MAX_BYTES = 40 };

void curve_runs_fini(struct curve_runs *r)
{
    strlist_fini(&r->runs);
    strlist_fini(&r->names);
}

static const char *last_part(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    return slash != NULL ? slash + 1 : folder;
}

/* Keras and Trainyard write to train and validation, TensorFlow's estimators to the folder itself and eval. */
bool curve_runs_is_validation(const char *folder)
{
    const char *last = last_part(folder);
    return str_eq(last, "validation") || str_eq(last, "eval");
}

/* Without the last part of its path; "" when it has no other. */
static void cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    *(slash != NULL ? slash : path) = '\0';
}

static char *run_of(const char *folder)
{
    char *run = xstrdup(folder);
    if (curve_runs_is_validation(run) || str_eq(last_part(run), "train"))
        cut_last(run);
    if (str_eq(last_part(run), "summaries")) /* of a run's output folder */
        cut_last(run);
    if (str_eq(run, "."))
        run[0] = '\0';
    return run;
}

void curve_runs_add(struct curve_runs *r, const char *folder)
{
    auto_free char *run = run_of(folder);
    r->validation = r->validation || curve_runs_is_validation(folder);
    if (!strlist_has(&r->runs, run))
        strlist_add(&r->runs, run);
}

/* Bytes of the folders that all names begin with: "runs/" of runs/a and runs/b. */
static size_t common_folders(const struct strlist *names)
{
    size_t n = 0;
    for (size_t end = 0; names->n > 1 && names->items[0][end] != '\0'; end++) {
        for (size_t i = 1; i < names->n; i++)
            if (names->items[i][end] != names->items[0][end])
                return n;
        if (names->items[0][end] == '/')
            n = end + 1;
    }
    return n;
}

/* The end of a long name distinguishes it. */
static void add_name(struct strlist *names, const char *name)
{
    size_t n = strlen(name);
    if (n <= NAME_MAX_BYTES) {
        strlist_add(names, name);
        return;
    }
    const char *tail = name + n - (NAME_MAX_BYTES - 3);
    while (((unsigned char)*tail & 0xC0) == 0x80) /* within a character */
        tail++;
    auto_free char *text = xasprintf("...%s", tail);
    strlist_add(names, text);
}

void curve_runs_settle(struct curve_runs *r)
{
    strlist_sort(&r->runs);
    size_t skip = common_folders(&r->runs);
    for (size_t i = 0; i < r->runs.n; i++) {
        const char *run = r->runs.items[i];
        add_name(&r->names, run[0] != '\0' ? run + skip : r->runs.n > 1 ? "." : "train");
    }
}

size_t curve_runs_shown(const struct curve_runs *r)
{
    return MIN(r->runs.n, (size_t)CURVE_RUNS_MAX);
}

size_t curve_runs_find(const struct curve_runs *r, const char *folder)
{
    auto_free char *run = run_of(folder);
    size_t i = 0;
    while (i < r->runs.n && !str_eq(r->runs.items[i], run))
        i++;
    return i;
}
