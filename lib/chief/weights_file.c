/* Any file of weights as a list of named arrays. */
#include <string.h>

#include "base/str.h"
#include "chief/checkpoint_path.h"
#include "chief/weights_internal.h"
#include "data/h5.h"
#include "data/safetensors.h"

static const char KERAS_MEMBER[] = "model.weights.h5";

/* ---- npz and .keras ---- */

static int open_npz(struct weights_file *f, struct err *e)
{
    f->source = xcalloc(f->zip.count + 1, sizeof(f->source[0]));
    for (size_t i = 0; i < f->zip.count; i++) {
        const char *name = f->zip.members[i].name;
        if (!str_ends(name, ".npy"))
            continue;
        f->source[f->arrays.n] = i;
        (void)named_arrays_add(&f->arrays, xstrndup(name, strlen(name) - strlen(".npy")), NULL);
    }
    return f->arrays.n > 0
               ? 0
               : err_set(e, ERR_INPUT, "%s: a zip archive with neither %s (as .keras has) nor .npy members (npz)",
                         f->path, KERAS_MEMBER);
}

static int open_zip(struct weights_file *f, struct err *e)
{
    const void *h5;
    if (zip_open(f->map->data, f->map->size, f->path, &f->zip, e) < 0)
        return -1;
    size_t i = zip_find(&f->zip, KERAS_MEMBER);
    if (i == f->zip.count)
        return open_npz(f, e);
    if (zip_read(&f->zip, i, &h5, &f->unpacked, e) < 0)
        return -1;
    return h5_read(h5, (size_t)f->zip.members[i].size, f->path, &f->arrays, e);
}

static int member_array(const struct weights_file *f, size_t i, struct array *ret, void **ret_owned, struct err *e)
{
    const struct zip_member *m = &f->zip.members[f->source[i]];
    auto_free void *owned = NULL;
    const void *bytes;
    if (zip_read(&f->zip, f->source[i], &bytes, &owned, e) < 0 ||
        npy_parse(bytes, (size_t)m->size, m->name, ret, e) < 0)
        return -1;
    *ret_owned = TAKE(owned);
    return 0;
}

/* ---- checkpoints ---- */

static int open_checkpoint(struct weights_file *f, struct err *e)
{
    auto_free char *prefix = NULL;
    if (checkpoint_path(f->path, &prefix, e) < 0 || bundle_open(prefix, &f->bundle, e) < 0)
        return -1;
    f->source = xcalloc(bundle_count(f->bundle) + 1, sizeof(f->source[0]));
    for (size_t i = 0; i < bundle_count(f->bundle); i++) {
        const struct bundle_entry *t = bundle_entry(f->bundle, i);
        if (dtype_size(t->dtype) == 0 || bundle_is_bookkeeping(f->bundle, t->name))
            continue;
        f->source[f->arrays.n] = i;
        struct named_array *a = named_arrays_add(&f->arrays, xstrdup(t->name), NULL);
        a->array = (struct array){ .dtype = t->dtype, .shape = t->shape };
    }
    return 0;
}

static int checkpoint_array(const struct weights_file *f, size_t i, struct array *ret, void **ret_owned, struct err *e)
{
    const struct bundle_entry *t = bundle_entry(f->bundle, f->source[i]);
    auto_free void *data = NULL;
    if (mem_alloc((size_t)t->size, t->name, &data, e) < 0 || bundle_read(f->bundle, t, 0, (size_t)t->size, data, e) < 0)
        return -1;
    *ret = (struct array){ .data = data, .dtype = t->dtype, .shape = t->shape };
    *ret_owned = TAKE(data);
    return 0;
}

/* ---- any of them ---- */

/* Except for links, devices and folders: a path that does not begin like one of these files may be a checkpoint's
 * prefix. */
static int open_any(struct weights_file *f, struct err *e)
{
    auto_free char *index = xasprintf("%s.index", f->path);
    if (file_is_dir(f->path) || !file_exists(f->path) || file_exists(index) || str_ends(f->path, ".index"))
        return open_checkpoint(f, e);
    if (file_map_open(f->path, &f->map, e) < 0)
        return -1;
    const void *data = f->map->data;
    size_t n = f->map->size;
    if (h5_is(data, n))
        return h5_read(data, n, f->path, &f->arrays, e);
    if (zip_is(data, n))
        return open_zip(f, e);
    if (safetensors_is(data, n))
        return safetensors_read(data, n, f->path, &f->arrays, e);
    return err_set(e, ERR_INPUT,
                   "%s: unsupported file of weights: it must be a run's folder, a TensorFlow checkpoint, "
                   "safetensors, npz, .weights.h5 or .keras",
                   f->path);
}

int weights_open(const char *path, struct weights_file *ret, struct err *e)
{
    AUTO_FINI(weights_file) f = { .path = xstrdup(path) };
    if (open_any(&f, e) < 0)
        return -1;
    *ret = f;
    f = (struct weights_file){ 0 };
    return 0;
}

void weights_file_fini(struct weights_file *f)
{
    named_arrays_fini(&f->arrays);
    bundle_free(f->bundle);
    zip_archive_fini(&f->zip);
    file_map_free(f->map);
    free(f->unpacked);
    free(f->source);
    free(f->path);
}

int weights_array(const struct weights_file *f, size_t i, struct array *ret, void **ret_owned, struct err *e)
{
    const struct named_array *a = &f->arrays.items[i];
    if (f->bundle != NULL)
        return checkpoint_array(f, i, ret, ret_owned, e);
    if (f->source != NULL)
        return member_array(f, i, ret, ret_owned, e);
    if (a->unread != NULL)
        return err_set(e, ERR_INPUT, "%s", a->unread);
    *ret = a->array;
    *ret_owned = NULL;
    return 0;
}
