/* Selects an array of an npz archive. Stored arrays are mapped in place; deflated ones are decompressed into the cache
 * folder, with a limit on their size. */
#include "data/npz.h"

#include <string.h>

#include "base/rng.h"
#include "data/decompress.h"
#include "data/file_kind.h"
#include "data/zip.h"

enum { NAMES_SHOWN = 16, METHOD_DEFLATE = 8 };

static const char SUFFIX[] = ".npy";

/* numpy adds .npy to the name of an array; Keras users write the name without it. */
static size_t find_array(const struct zip_archive *z, const char *array)
{
    auto_free char *member = xasprintf("%s%s", array, SUFFIX);
    size_t i = zip_find(z, member);
    return i < z->count ? i : zip_find(z, array);
}

/* "x_train, y_train, ..." */
static void list_arrays(const struct zip_archive *z, char **names, struct buf *out)
{
    for (size_t i = 0; i < z->count; i++) {
        names[i] = xstrdup(z->members[i].name);
        if (str_ends(names[i], SUFFIX))
            names[i][strlen(names[i]) - strlen(SUFFIX)] = '\0';
        if (i <= NAMES_SHOWN)
            buf_printf(out, "%s%s", i > 0 ? ", " : "", i < NAMES_SHOWN ? names[i] : "...");
    }
}

static int no_such_array(const struct data_place *at, const char *key, const char *array, const struct zip_archive *z,
                         struct err *e)
{
    char hint[128];
    AUTO_FINI(buf) list = BUF_INIT;
    char **names = xcalloc(z->count + 1, sizeof(*names));
    list_arrays(z, names, &list);
    str_did_you_mean(array, (const char *const *)names, z->count, hint, sizeof(hint));
    if (z->count > 0)
        (void)!data_error(at, key, e, "%s has no array '%s' (it has %s)%s", z->label, array, list.data, hint);
    else
        (void)!data_error(at, key, e, "%s holds no arrays", z->label);
    for (size_t i = 0; i < z->count; i++)
        free(names[i]);
    free(names);
    return -1;
}

/* What is deflated, as a file of the cache folder. */
static int unpack_member(const struct data_place *at, const struct data_file *f, const struct zip_member *m,
                         const unsigned char *bytes, struct file_map **ret, struct err *e)
{
    auto_free char *label = xasprintf("%s: %s", f->path, m->name);
    struct packed packed = { .how = PACKED_DEFLATE,
                             .data = bytes,
                             .n = (size_t)m->packed,
                             .path = label,
                             .what = "compressed",
                             .name = m->name,
                             .key = hash64_mix(hash64_mix(data_fingerprint(bytes, (size_t)m->packed), m->crc), m->size),
                             .sized = true,
                             .size = m->size,
                             .crc = m->crc };
    return decompress_cached(at, &packed, ret, e);
}

static int open_member(const struct data_place *at, const char *key, const char *array, const struct data_file *f,
                       struct data_file *ret, const void **ret_bytes, size_t *ret_n, struct err *e)
{
    AUTO_FINI(zip_archive) z = { 0 };
    const unsigned char *bytes;
    if (file_kind_check(f->map->data, f->map->size, f->path, "npz", e) < 0)
        return -1;
    if (!zip_is(f->map->data, f->map->size))
        return err_set(e, ERR_INPUT, "%s: is not an npz file, an archive of arrays that numpy.savez writes", f->path);
    if (zip_open(f->map->data, f->map->size, f->path, &z, e) < 0)
        return -1;
    size_t i = find_array(&z, array);
    if (i == z.count)
        return no_such_array(at, key, array, &z, e);
    const struct zip_member *m = &z.members[i];
    if (zip_bytes(&z, i, &bytes, e) < 0)
        return -1;

    struct file_map *map = NULL;
    if (m->method == METHOD_DEFLATE) {
        if (unpack_member(at, f, m, bytes, &map, e) < 0)
            return -1;
        bytes = map->data;
    }
    *ret = (struct data_file){ .map = map, .path = xasprintf("%s: %s", f->path, m->name) };
    ret->fingerprint = hash64(m->name, strlen(m->name), data_fingerprint(bytes, (size_t)m->size));
    *ret_bytes = bytes;
    *ret_n = (size_t)m->size;
    return 0;
}

int npz_open(const struct data_place *at, const char *key, const char *array, struct data_file *ret,
             const void **ret_bytes, size_t *ret_n, struct err *e)
{
    struct data_files files;
    if (data_files_open(at, &files, e) < 0)
        return -1;
    int rc = files.n > 1 ? data_error(at, "files", e, "matches %zu files; an npz data set has one file", files.n)
                         : open_member(at, key, array, &files.file[0], ret, ret_bytes, ret_n, e);
    if (rc == 0 && ret->map == NULL) { /* stored: the bytes are the archive's */
        ret->map = files.file[0].map;
        files.file[0].map = NULL;
    }
    data_files_fini(&files);
    return rc;
}
