/* Directories of PNG and JPEG files, as in Keras's image_dataset_from_directory(): each image is decoded and resized
 * when it is read. An example is float32, because resizing gives fractions. */
#include <string.h>

#include "base/rng.h"
#include "data/class_files.h"
#include "data/image.h"
#include "data/values.h"

enum { IMAGE_FILE_MAX = 256 << 20, IMAGES_SAMPLED = 64 };

static const struct class_suffix IMAGE_SUFFIXES[] = { { ".jpg", true },  { ".jpeg", true }, { ".png", true },
                                                      { ".gif", false }, { ".bmp", false }, { ".webp", false },
                                                      { ".tif", false }, { ".tiff", false } };
static const struct class_files_kind IMAGE_FILES = { .suffixes = IMAGE_SUFFIXES,
                                                     .n = COUNT_OF(IMAGE_SUFFIXES),
                                                     .what = "images",
                                                     .files = "PNG or JPEG files (.png, .jpg, .jpeg)",
                                                     .unread = "they are neither PNG nor JPEG" };

struct images {
    struct records records;
    struct class_files files;
    struct image_form form;
};

static void images_free(struct records *r)
{
    struct images *s = (struct images *)r;
    class_files_fini(&s->files);
    column_names_fini(&r->names);
    free(s);
}

static int images_read_one(const struct images *s, size_t i, float *x, struct err *e)
{
    auto_free char *path = class_files_path(&s->files, i);
    AUTO_FINI(buf) content = BUF_INIT;
    if (file_read(path, IMAGE_FILE_MAX, &content, e) < 0)
        return -1;
    return image_read(content.data, content.len, &s->form, x, e) < 0 ? err_wrap(e, "%s", path) : 0;
}

static int images_read(const struct records *r, const int64_t *which, size_t n, void *x, void *y, float *w UNUSED,
                       struct err *e)
{
    const struct images *s = (const struct images *)r;
    size_t numbers = shape_elements(&r->x);
    for (size_t i = 0; i < n; i++) {
        if (images_read_one(s, (size_t)which[i], (float *)x + i * numbers, e) < 0)
            return -1;
        if (r->has_labels)
            ((int32_t *)y)[i] = s->files.v[which[i]].label;
    }
    return 0;
}

static void images_place(const struct records *r, int64_t record, enum record_part part, size_t i, struct buf *out)
{
    const struct images *s = (const struct images *)r;
    auto_free char *path = class_files_path(&s->files, (size_t)record);
    size_t channels = (size_t)s->form.channels, width = (size_t)s->form.width;
    buf_str(out, path);
    if (part == RECORD_LABELS)
        buf_printf(out, ": class '%s'", s->files.classes.items[s->files.v[record].label]);
    else
        buf_printf(out, ", element (%zu, %zu, %zu)", i / channels / width, i / channels % width, i % channels);
}

static int images_texts(const struct records *r, const char *column, int64_t first, size_t n, struct strlist *ret,
                        struct err *e)
{
    const struct images *s = (const struct images *)r;
    if (!str_eq(column, "path"))
        return err_set(e, ERR_INPUT, "images have no column '%s', only 'path'", column);
    for (size_t i = 0; i < n; i++)
        strlist_add(ret, class_files_name(&s->files, (size_t)first + i));
    return 0;
}

/* ---- what a user should know ---- */

static void images_warn(const struct records *r, struct strlist *ret)
{
    const struct class_files *f = &((const struct images *)r)->files;
    values_warn_equal(r, NOTHING_TO_LEARN, ret);
    class_files_notes(f, &IMAGE_FILES, ret);
}

static const struct records_ops IMAGES_OPS = {
    .free = images_free, .read = images_read, .place = images_place, .texts = images_texts, .warn = images_warn
};

/* ---- opening ---- */

static const int CHANNELS[] = { [IMAGE_RGB] = 3, [IMAGE_RGBA] = 4, [IMAGE_GRAYSCALE] = 1 };

static void images_describe(struct images *s, const struct data_spec *spec)
{
    struct records *r = &s->records;
    s->form = (struct image_form){ .height = spec->images.height,
                                   .width = spec->images.width,
                                   .channels = CHANNELS[spec->images.color],
                                   .interpolation = spec->images.interpolation,
                                   .crop = spec->images.crop_to_aspect_ratio,
                                   .cure = "copy the file again" };
    r->n = (int64_t)s->files.n;
    r->x = shape_of(3, (int64_t[]){ s->form.height, s->form.width, s->form.channels });
    r->has_labels = r->integer_labels = s->files.classes.n > 0;
    for (size_t i = 0; i < s->files.classes.n; i++)
        strlist_add(&r->names.classes, s->files.classes.items[i]);
    for (size_t i = 0; r->has_labels && i < s->files.n; i++)
        label_span_add(&r->labels, s->files.v[i].label, (int64_t)i);
}

static uint64_t images_hash_form(const struct image_form *f, uint64_t h)
{
    const uint64_t options[] = { (uint64_t)f->height, (uint64_t)f->width, (uint64_t)f->channels,
                                 (uint64_t)f->interpolation, f->crop };
    return hash64(options, sizeof(options), h);
}

/* All names in their order, the content of some files, and what becomes of it. */
static int images_fingerprint(struct images *s, struct err *e)
{
    const struct class_files *f = &s->files;
    uint64_t h = images_hash_form(&s->form, f->n);
    size_t step = (f->n + IMAGES_SAMPLED - 1) / IMAGES_SAMPLED;
    for (size_t i = 0; i < f->n; i++) {
        const char *name = class_files_name(f, i);
        h = hash64(name, strlen(name), h);
        h = hash64_mix(h, (uint64_t)f->v[i].label);
    }
    for (size_t i = 0; i < f->n; i += step) {
        AUTO(file_map) *map = NULL;
        auto_free char *path = class_files_path(f, i);
        if (file_map_open(path, &map, e) < 0)
            return -1;
        h = hash64_mix(h, hash64_mix(map->size, data_fingerprint(map->data, map->size)));
    }
    s->records.fingerprint = h;
    return 0;
}

/* Shows whether the form fits in memory, and whether the first image can be read. */
static int images_try_first(const struct images *s, struct err *e)
{
    auto_free void *x = NULL;
    if (mem_alloc(shape_elements(&s->records.x) * sizeof(float), "an image", &x, e) < 0)
        return -1;
    return images_read_one(s, 0, x, e);
}

int images_open(const struct data_place *at, struct records **ret, struct err *e)
{
    struct images *s = xcalloc(1, sizeof(*s));
    AUTO(records) *r = &s->records;
    r->ops = &IMAGES_OPS;
    r->random_access = true;
    r->cost = READ_DECODES;
    r->x_type = DT_FLOAT;
    if (class_files_find(at, &IMAGE_FILES, at->spec->images.mixed, &s->files, e) < 0)
        return -1;
    images_describe(s, at->spec);
    if (images_fingerprint(s, e) < 0 || images_try_first(s, e) < 0)
        return -1;
    *ret = TAKE(r);
    return 0;
}
