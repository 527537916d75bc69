/* The binary files of CIFAR-10 and CIFAR-100 (https://www.cs.toronto.edu/~kriz/cifar.html): records of one label byte,
 * or of a coarse and a fine one, and of the red, green and blue plane of an image. Files are memory-mapped, and any
 * record is found by its number. Images are given with the channels last, as uint8. */
#include <string.h>

#include "base/bisect.h"
#include "base/rng.h"
#include "data/file_kind.h"
#include "data/files.h"
#include "data/values.h"

enum { CIFAR_SIDE = 32, CIFAR_CHANNELS = 3, CIFAR_PLANE = CIFAR_SIDE * CIFAR_SIDE };
enum { CIFAR_IMAGE = CIFAR_PLANE * CIFAR_CHANNELS };
#define CIFAR_CHEAP_PASS (INT64_C(1) << 29) /* bytes of files whose labels are looked at when they are opened */

/* In the order in which they are tried. */
static const struct cifar_kind {
    const char *name;
    size_t labels;    /* bytes before an image */
    int classes[2];   /* of each label */
    size_t at_coarse; /* of the labels; SIZE_MAX: it has none */
    size_t at_fine;
} CIFAR_KINDS[] = {
    { "CIFAR-10", 1, { 10 }, SIZE_MAX, 0 },
    { "CIFAR-100", 2, { 20, 100 }, 0, 1 },
};

struct cifar {
    struct records records;
    struct data_files files;
    const struct cifar_kind *kind;
    size_t stride;  /* bytes of a record */
    size_t label;   /* the byte of a record that is its label */
    int64_t *first; /* the first record of each file, and the end of the last one */
};

static void cifar_free(struct records *r)
{
    struct cifar *c = (struct cifar *)r;
    data_files_fini(&c->files);
    free(c->first);
    free(c);
}

static size_t cifar_file(const struct cifar *c, int64_t record)
{
    return bisect_right(c->first, sizeof(c->first[0]), c->files.n, record) - 1;
}

static const unsigned char *cifar_record(const struct cifar *c, int64_t record)
{
    size_t i = cifar_file(c, record);
    return c->files.file[i].map->data + (size_t)(record - c->first[i]) * c->stride;
}

/* Planes become pixels. */
static void cifar_interleave(const unsigned char *from, uint8_t *to)
{
    for (size_t i = 0; i < CIFAR_PLANE; i++)
        for (size_t k = 0; k < CIFAR_CHANNELS; k++)
            to[i * CIFAR_CHANNELS + k] = from[k * CIFAR_PLANE + i];
}

static int cifar_read(const struct records *r, const int64_t *which, size_t n, void *x, void *y, float *w UNUSED,
                      struct err *e UNUSED)
{
    const struct cifar *c = (const struct cifar *)r;
    for (size_t i = 0; i < n; i++) {
        const unsigned char *p = cifar_record(c, which[i]);
        cifar_interleave(p + c->kind->labels, (uint8_t *)x + i * CIFAR_IMAGE);
        if (r->has_labels)
            ((int32_t *)y)[i] = p[c->label];
    }
    return 0;
}

static void cifar_place(const struct records *r, int64_t record, enum record_part part, size_t i, struct buf *out)
{
    const struct cifar *c = (const struct cifar *)r;
    size_t file = cifar_file(c, record);
    buf_printf(out, "%s: record %lld", c->files.file[file].path, (long long)(record - c->first[file]));
    if (part == RECORD_FEATURES)
        buf_printf(out, ", element (%zu, %zu, %zu)", i / CIFAR_CHANNELS / CIFAR_SIDE, i / CIFAR_CHANNELS % CIFAR_SIDE,
                   i % CIFAR_CHANNELS);
}

static void cifar_warn(const struct records *r, struct strlist *ret)
{
    values_warn_equal(r, NOTHING_TO_LEARN, ret);
}

static const struct records_ops CIFAR_OPS = {
    .free = cifar_free, .read = cifar_read, .place = cifar_place, .warn = cifar_warn
};

/* ---- which kind it is ---- */

static size_t cifar_stride(const struct cifar_kind *k)
{
    return k->labels + CIFAR_IMAGE;
}

/* The first file whose size is not that of whole records; NULL: there is none. */
static const struct data_file *cifar_misfit(const struct data_files *files, const struct cifar_kind *k)
{
    for (size_t i = 0; i < files->n; i++)
        if (files->file[i].map->size == 0 || files->file[i].map->size % cifar_stride(k) != 0)
            return &files->file[i];
    return NULL;
}

/* All labels are classes of this kind. */
static bool cifar_labels_fit(const struct data_files *files, const struct cifar_kind *k)
{
    for (size_t i = 0; i < files->n; i++) {
        const struct file_map *map = files->file[i].map;
        for (size_t at = 0; at < map->size; at += cifar_stride(k))
            for (size_t j = 0; j < k->labels; j++)
                if (map->data[at + j] >= k->classes[j])
                    return false;
    }
    return true;
}

/* The first file is of kind `of`, and this one is not. */
static int cifar_other_kind(const struct data_files *files, const struct data_file *f, const struct cifar_kind *of,
                            struct err *e)
{
    return err_set(e, ERR_INPUT,
                   "%s: has %zu bytes, but %s is %s with records of %zu bytes; all files must be whole and of one kind",
                   f->path, f->map->size, files->file[0].path, of->name, cifar_stride(of));
}

static int cifar_neither(const struct data_file *f, struct err *e)
{
    return err_set(
        e, ERR_INPUT,
        "%s: has %zu bytes, but a file of CIFAR-10 has records of %zu bytes, and one of CIFAR-100 of %zu: the "
        "file is truncated, or of another format",
        f->path, f->map->size, cifar_stride(&CIFAR_KINDS[0]), cifar_stride(&CIFAR_KINDS[1]));
}

/* By the sizes of the files, and where these fit both kinds, by the labels. */
static int cifar_find_kind(const struct data_files *files, const struct cifar_kind **ret, struct err *e)
{
    const struct cifar_kind *ten = &CIFAR_KINDS[0], *hundred = &CIFAR_KINDS[1];
    const struct data_file *not_ten = cifar_misfit(files, ten), *not_hundred = cifar_misfit(files, hundred);
    if (not_ten != NULL && not_hundred != NULL) {
        if (not_ten != &files->file[0])
            return cifar_other_kind(files, not_ten, ten, e);
        return not_hundred != &files->file[0] ? cifar_other_kind(files, not_hundred, hundred, e)
                                              : cifar_neither(not_ten, e);
    }
    bool both = not_ten == NULL && not_hundred == NULL;
    if (both)
        *ret = !cifar_labels_fit(files, ten) && cifar_labels_fit(files, hundred) ? hundred : ten;
    else
        *ret = not_ten == NULL ? ten : hundred;
    return 0;
}

/* ---- opening ---- */

static int cifar_open_files(const struct data_place *at, struct cifar *c, struct err *e)
{
    if (data_files_open(at, &c->files, e) < 0)
        return -1;
    for (size_t i = 0; i < c->files.n; i++) {
        const struct data_file *f = &c->files.file[i];
        if (file_kind_check(f->map->data, f->map->size, f->path, "cifar", e) < 0)
            return -1;
    }
    if (cifar_find_kind(&c->files, &c->kind, e) < 0)
        return -1;
    c->stride = cifar_stride(c->kind);
    c->first = xcalloc(c->files.n + 1, sizeof(c->first[0]));
    for (size_t i = 0; i < c->files.n; i++) {
        c->first[i + 1] = c->first[i] + (int64_t)(c->files.file[i].map->size / c->stride);
        c->records.fingerprint = hash64_mix(c->records.fingerprint, c->files.file[i].fingerprint);
    }
    c->records.n = c->first[c->files.n];
    return 0;
}

static void cifar_survey(struct cifar *c)
{
    struct records *r = &c->records;
    if (r->n > CIFAR_CHEAP_PASS / CIFAR_IMAGE)
        return; /* labels are judged when they are read */
    for (int64_t i = 0; i < r->n; i++)
        label_span_add(&r->labels, cifar_record(c, i)[c->label], i);
}

static int cifar_describe_label(const struct data_place *at, struct cifar *c, struct err *e)
{
    struct records *r = &c->records;
    if (at->spec->label.n == 0)
        return 0;
    bool coarse = str_eq(at->spec->label.items[0], "coarse");
    if (coarse && c->kind->at_coarse == SIZE_MAX)
        return data_error(at, "label", e, "only CIFAR-100 has coarse labels, and %s is %s", c->files.file[0].path,
                          c->kind->name);
    c->label = coarse ? c->kind->at_coarse : c->kind->at_fine;
    r->has_labels = true;
    r->integer_labels = true;
    r->y = shape_of(0, NULL);
    r->fingerprint = hash64_mix(r->fingerprint, c->label);
    cifar_survey(c);
    return 0;
}

int cifar_open(const struct data_place *at, struct records **ret, struct err *e)
{
    struct cifar *c = xcalloc(1, sizeof(*c));
    AUTO(records) *r = &c->records;
    r->ops = &CIFAR_OPS;
    r->random_access = true;
    r->x = shape_of(3, (int64_t[]){ CIFAR_SIDE, CIFAR_SIDE, CIFAR_CHANNELS });
    r->x_type = DT_UINT8;
    if (cifar_open_files(at, c, e) < 0 || cifar_describe_label(at, c, e) < 0)
        return -1;
    *ret = TAKE(r);
    return 0;
}
