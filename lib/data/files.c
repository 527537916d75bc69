/* Finds, maps and fingerprints data files; compressed files are decompressed, and csv files in another encoding than
 * UTF-8 converted, into the cache folder first. The fingerprint does not depend on folder, compression, encoding or
 * modification time. */
#include "data/files.h"

#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "data/converted.h"
#include "data/decompress.h"
#include "data/text_files.h"

enum { SAMPLE_WHOLE = 512 << 10, SAMPLE_EDGE = 64 << 10, SAMPLE_PIECE = 4 << 10, SAMPLES = 64 };

uint64_t data_fingerprint(const void *data, size_t n)
{
    const unsigned char *p = data;
    if (n <= SAMPLE_WHOLE)
        return hash64(p, n, 0);

    uint64_t h = hash64(p, SAMPLE_EDGE, n);
    h = hash64_mix(h, hash64(p + n - SAMPLE_EDGE, SAMPLE_EDGE, n));
    size_t gap = n / (SAMPLES + 1);
    for (size_t i = 1; i <= SAMPLES; i++)
        h = hash64(p + i * gap, SAMPLE_PIECE, h);
    return h;
}

int data_error(const struct data_place *at, const char *key, struct err *e, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    struct node at_key = node_get(&at->spec->node, key);
    if (node_present(&at_key))
        return node_error(&at_key, e, "%s", text);
    if (node_present(&at->spec->node))
        return node_error(&at->spec->node, e, "%s: %s", key, text);
    return err_set(e, ERR_INPUT, "%s: %s", key, text);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

char *cache_path(const struct data_place *at, const char *name, uint64_t key, const char *suffix)
{
    auto_free char *file = xasprintf("%s-%016llx.%s", base_name(name), (unsigned long long)key, suffix);
    return path_join(at->cache_dir, file);
}

void data_file_fini(struct data_file *f)
{
    file_map_free(f->map);
    free(f->path);
    *f = (struct data_file){ .map = NULL };
}

/* When a file was written, which a user can set, and when it was written, renamed or given such a time. 0: unknown. */
struct file_times {
    uint64_t modified, changed;
};

static struct file_times times_of(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return (struct file_times){ .modified = 0 };
    return (struct file_times){ .modified = hash64_mix((uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec),
                                .changed = hash64_mix((uint64_t)st.st_ctim.tv_sec, (uint64_t)st.st_ctim.tv_nsec) };
}

/* Detected from the content, whatever the name. Any file may begin like zlib, so a file counts as zlib only when it
 * does not begin with a record of the format: TensorFlow writes TFRecord files that way. */
static bool find_packing(const struct data_place *at, const struct file_map *map, enum packing *ret)
{
    if (gzip_is(map->data, map->size)) {
        *ret = PACKED_GZIP;
        return true;
    }
    *ret = PACKED_ZLIB;
    return at->spec->format == DATA_TFRECORD && zlib_is(map->data, map->size) && !tfrecord_is(map->data, map->size);
}

/* Maps the file at `path`, or what is packed in it; `name` loses its .gz then. */
static int open_unpacked(const struct data_place *at, const char *path, char *name, struct file_map **ret,
                         struct err *e)
{
    AUTO(file_map) *map = NULL;
    enum packing how;
    if (file_map_open(path, &map, e) < 0)
        return -1;
    if (!find_packing(at, map, &how)) {
        *ret = TAKE(map);
        return 0;
    }
    if (how == PACKED_GZIP && str_ends(name, ".gz"))
        name[strlen(name) - 3] = '\0';
    struct packed packed = { .how = how,
                             .data = map->data,
                             .n = map->size,
                             .path = path,
                             .what = packing_name(how),
                             .name = name,
                             .key = data_fingerprint(map->data, map->size) };
    return decompress_cached(at, &packed, ret, e);
}

/* The same, and a text is UTF-8. */
static int open_found(const struct data_place *at, const char *path, struct data_file *ret, struct err *e)
{
    AUTO(file_map) *content = NULL, *utf8 = NULL;
    auto_free char *name = xstrdup(base_name(path));
    if (open_unpacked(at, path, name, &content, e) < 0)
        return -1;
    const struct file_times times = times_of(path);
    struct original original = { .path = path,
                                 .name = name,
                                 .fingerprint = data_fingerprint(content->data, content->size),
                                 .modified = times.modified };
    if (at->spec->format == DATA_CSV && converted_open(at, &original, content, &utf8, e) < 0)
        return -1;
    uint64_t sampled = utf8 != NULL ? data_fingerprint(utf8->data, utf8->size) : original.fingerprint;
    uint64_t fingerprint = hash64(name, strlen(name), sampled);
    *ret = (struct data_file){ .path = xstrdup(path),
                               .fingerprint = fingerprint,
                               .cache_key = hash64_mix(fingerprint, times.modified),
                               .changed = times.changed };
    ret->map = utf8 != NULL ? TAKE(utf8) : TAKE(content);
    return 0;
}

int data_file_open(const struct data_place *at, const char *key, const char *name, struct data_file *ret, struct err *e)
{
    auto_free char *path = path_join(at->base_dir, name);
    auto_free char *packed = xasprintf("%s.gz", path);
    if (file_exists(path))
        return open_found(at, path, ret, e);
    if (file_exists(packed))
        return open_found(at, packed, ret, e);
    return data_error(at, key, e, "no file '%s' in the data folder '%s' (set it with --data-dir)", name, at->base_dir);
}

void data_files_fini(struct data_files *f)
{
    for (size_t i = 0; i < f->n; i++)
        data_file_fini(&f->file[i]);
    free(f->file);
    strlist_fini(&f->classes);
    strlist_fini(&f->notes);
    *f = (struct data_files){ .file = NULL };
}

/* The folder as a pattern that matches only itself. */
static char *glob_escaped(const char *folder)
{
    AUTO_FINI(buf) out = BUF_INIT;
    for (const char *p = folder; *p != '\0'; p++) {
        if (strchr("*?[\\", *p) != NULL)
            buf_char(&out, '\\');
        buf_char(&out, *p);
    }
    return buf_detach(&out);
}

/* glob() sorts by the language of the user; the order of examples must be the same everywhere. */
static void find_matches(const struct data_place *at, const char *pattern, struct strlist *ret)
{
    auto_free char *folder = glob_escaped(at->base_dir);
    auto_free char *whole = path_join(folder, pattern);
    AUTO_FINI(strlist) matches = { 0 };
    glob_t found;
    if (glob(whole, GLOB_NOSORT, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        strlist_add(&matches, found.gl_pathv[i]);
    globfree(&found);
    strlist_sort(&matches);
    for (size_t i = 0; i < matches.n; i++)
        strlist_add(ret, matches.items[i]);
}

/* The file of that name, with or without .gz, or else those that match. */
static void find_pattern(const struct data_place *at, const char *pattern, struct strlist *ret)
{
    auto_free char *literal = path_join(at->base_dir, pattern);
    auto_free char *packed = xasprintf("%s.gz", literal);
    if (file_exists(literal))
        strlist_add(ret, literal); /* also a name with the characters of a pattern */
    else if (file_exists(packed))
        strlist_add(ret, packed);
    else
        find_matches(at, pattern, ret);
}

int data_files_paths(const struct data_place *at, struct strlist *ret, struct err *e)
{
    const struct strlist *patterns = &at->spec->files;
    for (size_t i = 0; i < patterns->n; i++) {
        size_t before = ret->n;
        find_pattern(at, patterns->items[i], ret);
        if (ret->n == before)
            return data_error(at, "files", e,
                              "no file matches '%s' in the data folder '%s' (set it with "
                              "--data-dir)",
                              patterns->items[i], at->base_dir);
    }
    if (ret->n == 0)
        return data_error(at, "files", e, "names no file");
    return 0;
}

bool data_files_found(const struct data_spec *spec, const char *base_dir)
{
    const struct data_place at = { .spec = spec, .base_dir = base_dir };
    AUTO_FINI(strlist) paths = { .items = NULL };
    if (spec->images.directory != NULL) {
        auto_free char *path = path_join(base_dir, spec->images.directory);
        return file_is_dir(path);
    }
    for (size_t i = 0; i < spec->files.n; i++)
        find_pattern(&at, spec->files.items[i], &paths);
    if (spec->files.n == 0 && spec->features != NULL)
        find_pattern(&at, spec->features, &paths);
    for (size_t i = 0; spec->files.n == 0 && i < spec->inputs.n; i++)
        find_pattern(&at, spec->inputs.v[i].from.items[0], &paths);
    return paths.n > 0;
}

int data_files_open(const struct data_place *at, struct data_files *ret, struct err *e)
{
    AUTO_FINI(strlist) paths = { .items = NULL };
    if (at->spec->format == DATA_TEXT)
        return text_files_open(at, ret, e);
    if (data_files_paths(at, &paths, e) < 0)
        return -1;

    struct data_files files = { .file = xcalloc(paths.n, sizeof(*files.file)) };
    for (; files.n < paths.n; files.n++) {
        if (open_found(at, paths.items[files.n], &files.file[files.n], e) < 0) {
            data_files_fini(&files);
            return -1;
        }
    }
    *ret = files;
    return 0;
}
