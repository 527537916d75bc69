/* Walks over the directories of a data set. */
#include "data/class_files.h"

#include <string.h>
#include <strings.h>

#include "base/map.h"
#include "base/rng.h"
#include "data/transcode.h"

enum { DEPTH_MAX = 32 };

struct walk {
    const struct class_files_kind *kind;
    struct class_files *files;
    struct buf entries; /* of struct class_file */
    int32_t label;
};

void class_files_fini(struct class_files *f)
{
    free(f->root);
    buf_fini(&f->names);
    free(f->v);
    strlist_fini(&f->classes);
    free(f->unread_name);
    *f = (struct class_files){ .root = NULL };
}

char *class_files_path(const struct class_files *f, size_t i)
{
    return path_join(f->root, class_files_name(f, i));
}

/* ---- one file ---- */

static const struct class_suffix *suffix_of(const struct class_files_kind *kind, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < kind->n; i++) {
        size_t n = strlen(kind->suffixes[i].text);
        if (length > n && strcasecmp(name + length - n, kind->suffixes[i].text) == 0)
            return &kind->suffixes[i];
    }
    return NULL;
}

static void add_file(struct walk *w, const char *name)
{
    struct class_file file = { .order = hash64(name, strlen(name), 0), .name = w->files->names.len, .label = w->label };
    buf_add(&w->files->names, name, strlen(name) + 1);
    buf_add(&w->entries, &file, sizeof(file));
    w->files->n++;
}

static void add_unread(struct class_files *f, const char *name)
{
    if (f->unread++ == 0)
        f->unread_name = xstrdup(name);
}

/* ---- directories ---- */

static bool is_hidden(const char *name)
{
    return name[0] == '.';
}

static int walk_directory(struct walk *w, const char *name, int depth, struct err *e);

/* Links to directories are followed at the root only, so that a walk ends. */
static int walk_entry(struct walk *w, const char *name, int depth, struct err *e)
{
    auto_free char *path = path_join(w->files->root, name);
    const struct class_suffix *suffix = suffix_of(w->kind, name);
    bool linked = suffix == NULL && depth == 0 && file_is_dir(path);
    if (suffix != NULL && suffix->read)
        add_file(w, name);
    else if (suffix != NULL)
        add_unread(w->files, name);
    if (!str_ends(name, "/") && !linked)
        return 0;
    if (depth == DEPTH_MAX)
        return err_set(e, ERR_INPUT, "%s: is more than %d directories deep", path, DEPTH_MAX);
    return walk_directory(w, name, depth + 1, e);
}

/* All files below the directory `name`; "" is the root. */
static int walk_directory(struct walk *w, const char *name, int depth, struct err *e)
{
    AUTO_FINI(strlist) entries = { 0 };
    auto_free char *directory = path_join(w->files->root, name);
    if (dir_list_marked(directory, &entries, e) < 0)
        return -1;
    for (size_t i = 0; i < entries.n; i++) {
        auto_free char *below = path_join(name, entries.items[i]);
        if (!is_hidden(entries.items[i]) && walk_entry(w, below, depth, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- classes ---- */

static int list_classes(const struct class_files *f, struct strlist *ret, struct err *e)
{
    AUTO_FINI(strlist) entries = { 0 };
    if (dir_list(f->root, &entries, e) < 0)
        return -1;
    for (size_t i = 0; i < entries.n; i++) {
        const char *name = entries.items[i];
        auto_free char *path = path_join(f->root, name);
        if (is_hidden(name) || !file_is_dir(path))
            continue;
        if (transcode_utf8((const unsigned char *)name, strlen(name)) != strlen(name))
            return err_set(e, ERR_INPUT, "%s: the name of a class must be UTF-8; rename the directory", path);
        strlist_add(ret, name);
    }
    return 0;
}

enum { LIST_TEXT = 400 };

/* By the run, whose data had classes with names. */
static bool are_given(const struct data_place *at)
{
    return at->like != NULL && at->like->classes.n > 0;
}

/* Classes have the numbers by which the run was trained. */
static int check_given(const struct data_place *at, struct err *e)
{
    const struct strlist *given = &at->spec->images.class_names;
    char all[LIST_TEXT];
    if (given->n == 0 || !are_given(at) || strlist_same(given, &at->like->classes))
        return 0;
    return data_error(at, "classNames", e, "the run was trained with the classes %s; remove classNames here",
                      column_names_text(&at->like->classes, all, sizeof(all)));
}

static void put_all(const struct strlist *names, struct map *ret)
{
    for (size_t i = 0; i < names->n; i++)
        map_put(ret, names->items[i], ret);
}

/* Each class of the manifest must have a directory, as in Keras; other directories are left out. */
static int check_listed(const struct data_place *at, struct class_files *f, const struct strlist *found, struct err *e)
{
    AUTO_FINI(map) classes = { 0 }, directories = { 0 };
    char all[LIST_TEXT];
    put_all(&f->classes, &classes);
    put_all(found, &directories);
    for (size_t i = 0; !are_given(at) && i < f->classes.n; i++)
        if (map_get(&directories, f->classes.items[i]) == NULL)
            return data_error(at, "classNames", e, "%s has no directory '%s', but %s", f->root, f->classes.items[i],
                              column_names_text(found, all, sizeof(all)));
    for (size_t i = 0; i < found->n; i++)
        f->others += map_get(&classes, found->items[i]) == NULL;
    return 0;
}

/* Each directory must be one of the classes that the run was trained with. */
static int check_known(const struct data_place *at, const struct class_files *f, const struct strlist *found,
                       struct err *e)
{
    AUTO_FINI(map) classes = { 0 };
    char all[LIST_TEXT];
    put_all(&f->classes, &classes);
    for (size_t i = 0; i < found->n; i++)
        if (map_get(&classes, found->items[i]) == NULL)
            return data_error(at, "directory", e,
                              "the directory '%s' of %s is not one of the classes that the run was trained with, %s; "
                              "move it away, or list the classes to read in classNames",
                              found->items[i], f->root, column_names_text(&f->classes, all, sizeof(all)));
    return 0;
}

static int find_classes(const struct data_place *at, struct walk *w, struct err *e)
{
    struct class_files *f = w->files;
    AUTO_FINI(strlist) found = { 0 };
    if (check_given(at, e) < 0 || list_classes(f, &found, e) < 0)
        return -1;
    if (found.n == 0)
        return data_error(at, "directory", e,
                          "%s has no directories; each class needs one with its %s (for %s without labels write "
                          "label: \"\")",
                          f->root, w->kind->what, w->kind->what);
    const struct strlist *listed = &at->spec->images.class_names;
    const struct strlist *classes = are_given(at) ? &at->like->classes : listed->n > 0 ? listed : &found;
    for (size_t i = 0; i < classes->n; i++)
        strlist_add(&f->classes, classes->items[i]);
    return listed->n > 0 ? check_listed(at, f, &found, e) : check_known(at, f, &found, e);
}

static int walk_classes(const struct data_place *at, struct walk *w, struct err *e)
{
    if (find_classes(at, w, e) < 0)
        return -1;
    for (size_t i = 0; i < w->files->classes.n; i++) {
        const char *name = w->files->classes.items[i];
        auto_free char *path = path_join(w->files->root, name);
        w->label = (int32_t)i;
        if (file_is_dir(path) && walk_directory(w, name, 1, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- all of them ---- */

/* The path as the manifest has it. `root` is where it was looked for, and may end with slashes. */
static const char *below_root(const char *path, const char *root)
{
    size_t n = strlen(root);
    while (n > 0 && root[n - 1] == '/')
        n--;
    bool below = root[0] != '\0' && strncmp(path, root, n) == 0 && path[n] == '/';
    return below ? path + n + strspn(path + n, "/") : path;
}

static int walk_files(const struct data_place *at, struct walk *w, struct err *e)
{
    AUTO_FINI(strlist) paths = { 0 };
    if (data_files_paths(at, &paths, e) < 0)
        return -1;
    for (size_t i = 0; i < paths.n; i++) {
        const char *name = below_root(paths.items[i], w->files->root);
        if (!file_is_dir(paths.items[i]))
            add_file(w, name);
        else if (walk_directory(w, name, 0, e) < 0)
            return -1;
    }
    return 0;
}

static int walk_root(const struct data_place *at, struct walk *w, struct err *e)
{
    if (!file_is_dir(w->files->root))
        return data_error(at, "directory", e, "no directory '%s' in the data folder '%s' (set it with --data-dir)",
                          at->spec->images.directory, at->base_dir);
    return at->spec->label.n > 0 ? walk_classes(at, w, e) : walk_directory(w, "", 0, e);
}

static int check_any(const struct data_place *at, const struct walk *w, const char *key, struct err *e)
{
    const struct class_files *f = w->files;
    AUTO_FINI(buf) others = BUF_INIT;
    if (f->n > 0)
        return 0;
    if (f->unread > 0)
        buf_printf(&others, ", only %s of other kinds, which must be converted: %s", w->kind->what, f->unread_name);
    return data_error(at, key, e, "%s has no %s%s", f->root, w->kind->files, others.data);
}

static int by_order(const void *a, const void *b)
{
    const struct class_file *x = a, *y = b;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

int class_files_find(const struct data_place *at, const struct class_files_kind *kind, bool mixed,
                     struct class_files *ret, struct err *e)
{
    AUTO_FINI(class_files) f = { .names = BUF_INIT };
    struct walk w = { .kind = kind, .files = &f, .entries = BUF_INIT };
    bool by_directory = at->spec->images.directory != NULL;
    f.root = by_directory ? path_join(at->base_dir, at->spec->images.directory) : xstrdup(at->base_dir);
    int rc = by_directory ? walk_root(at, &w, e) : walk_files(at, &w, e);
    f.v = (struct class_file *)(void *)buf_detach(&w.entries);
    if (rc < 0 || check_any(at, &w, by_directory ? "directory" : "files", e) < 0)
        return -1;
    if (mixed)
        qsort(f.v, f.n, sizeof(f.v[0]), by_order);
    *ret = f;
    f = (struct class_files){ .names = BUF_INIT };
    return 0;
}

/* ---- what a user should know ---- */

/* "pets: classes without images: 2, such as ant". Nothing is said of none. */
static void add_note(const char *root, const char *what, size_t n, const char *example, struct strlist *ret)
{
    AUTO_FINI(buf) text = BUF_INIT;
    if (n == 0)
        return;
    buf_printf(&text, "%s: %s: %zu", root, what, n);
    if (example != NULL)
        buf_printf(&text, ", such as %s", example);
    strlist_add(ret, text.data);
}

static void note_empty(const struct class_files *f, const char *what, struct strlist *ret)
{
    auto_free bool *seen = xcalloc(f->classes.n + 1, sizeof(seen[0]));
    auto_free char *without = xasprintf("classes without %s", what);
    const char *example = NULL;
    size_t empty = 0;
    for (size_t i = 0; f->classes.n > 0 && i < f->n; i++)
        seen[f->v[i].label] = true;
    for (size_t i = 0; i < f->classes.n; i++) {
        empty += !seen[i];
        if (!seen[i] && example == NULL)
            example = f->classes.items[i];
    }
    add_note(f->root, without, empty, example, ret);
}

void class_files_notes(const struct class_files *f, const struct class_files_kind *kind, struct strlist *ret)
{
    auto_free char *unread = xasprintf("files left out, because %s", kind->unread);
    note_empty(f, kind->what, ret);
    add_note(f->root, "directories left out, because classNames does not list them", f->others, NULL, ret);
    add_note(f->root, unread, f->unread, f->unread_name, ret);
}
