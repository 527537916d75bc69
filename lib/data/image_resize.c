/* Crops and resizes images, with TensorFlow's order of operations, so that the floats are the same. The file is
 * compiled with the flags of kernels, because fused operations would give other floats. */
#include <math.h>
#include <string.h>

#include "data/image_codec.h"
#include "tensor/kernel.h"

/* Where an element of a resized row or column comes from. */
struct image_tap {
    size_t lower, upper;
    float share; /* of upper */
};

/* A part of an image. */
struct image_part {
    const unsigned char *data;
    size_t stride; /* from row to row */
    int64_t height, width;
};

/* ---- cropping ---- */

/* Keras computes in floats. */
static int64_t image_crop_side(int64_t side, int64_t other, int64_t to, int64_t to_other)
{
    float fits = (float)(other * to) / (float)to_other;
    return MAX(MIN(side, (int64_t)fits), 1);
}

static struct image_part image_part_of(const struct image_pixels *from, const struct image_form *form)
{
    struct image_part p = { from->data, (size_t)(from->width * from->channels), from->height, from->width };
    if (!form->crop)
        return p;
    p.height = image_crop_side(from->height, from->width, form->height, form->width);
    p.width = image_crop_side(from->width, from->height, form->width, form->height);
    p.data += (size_t)((from->height - p.height) / 2) * p.stride;
    p.data += (size_t)((from->width - p.width) / 2 * from->channels);
    return p;
}

/* ---- resizing ---- */

/* Taps are in units of `step`. */
static void image_taps_fill(struct image_tap *taps, int64_t from, int64_t to, size_t step, bool nearest)
{
    float scale = (float)from / (float)to;
    for (int64_t i = 0; i < to; i++) {
        float at = ((float)i + 0.5F) * scale - (nearest ? 0.0F : 0.5F), below = floorf(at);
        taps[i].lower = (size_t)MIN(MAX((int64_t)below, 0), from - 1) * step;
        taps[i].upper = (size_t)MIN((int64_t)ceilf(at), from - 1) * step;
        taps[i].share = at - below;
    }
}

static inline void image_row_of(const unsigned char *from, const struct image_tap *taps, int64_t width, int channels,
                                float *restrict to)
{
    for (int64_t x = 0; x < width; x++) {
        const unsigned char *l = from + taps[x].lower, *u = from + taps[x].upper;
        for (int k = 0; k < channels; k++) {
            float left = l[k], right = u[k];
            *to++ = left + (right - left) * taps[x].share;
        }
    }
}

/* Constants let the compiler unroll. */
static void image_row_bilinear(const unsigned char *from, const struct image_tap *taps, int64_t width, int channels,
                               float *to)
{
    if (channels == 3)
        image_row_of(from, taps, width, 3, to);
    else if (channels == 4)
        image_row_of(from, taps, width, 4, to);
    else
        image_row_of(from, taps, width, 1, to);
}

KERNEL static void image_blend(const float *top, const float *bottom, float share, float *restrict to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = top[i] + (bottom[i] - top[i]) * share;
}

KERNEL static void image_widen(const unsigned char *restrict from, float *restrict to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

/* The input rows that were interpolated last. Enlarging uses them again. */
struct image_lines {
    float *row[2];
    size_t at[2];
};

/* The number of the row that holds the input row at `at`, other than `keep`. */
static size_t image_lines_get(struct image_lines *l, size_t at, size_t keep, const unsigned char *from,
                              const struct image_tap *columns, const struct image_form *f)
{
    for (size_t i = 0; i < 2; i++)
        if (l->at[i] == at)
            return i;
    size_t i = 1 - keep;
    image_row_bilinear(from + at, columns, f->width, f->channels, l->row[i]);
    l->at[i] = at;
    return i;
}

static int image_bilinear(const struct image_part *p, const struct image_form *f, const struct image_tap *columns,
                          const struct image_tap *rows, float *to, struct err *e)
{
    size_t n = (size_t)(f->width * f->channels);
    void *room;
    if (mem_alloc(2 * n * sizeof(float), "rows of an image", &room, e) < 0)
        return -1;
    auto_free float *lines = room;
    struct image_lines l = { { lines, lines + n }, { SIZE_MAX, SIZE_MAX } };
    size_t bottom = 0;
    for (int64_t y = 0; y < f->height; y++) {
        size_t top = image_lines_get(&l, rows[y].lower, 1 - bottom, p->data, columns, f);
        bottom = image_lines_get(&l, rows[y].upper, top, p->data, columns, f);
        image_blend(l.row[top], l.row[bottom], rows[y].share, to + (size_t)y * n, n);
    }
    return 0;
}

static void image_nearest(const struct image_part *p, const struct image_form *f, const struct image_tap *columns,
                          const struct image_tap *rows, float *to)
{
    for (int64_t y = 0; y < f->height; y++)
        for (int64_t x = 0; x < f->width; x++)
            for (int k = 0; k < f->channels; k++)
                *to++ = p->data[rows[y].lower + columns[x].lower + (size_t)k];
}

int image_resize(const struct image_pixels *from, const struct image_form *form, float *to, struct err *e)
{
    struct image_part p = image_part_of(from, form);
    if (p.height == form->height && p.width == form->width) {
        size_t n = (size_t)(p.width * form->channels);
        for (int64_t y = 0; y < p.height; y++)
            image_widen(p.data + (size_t)y * p.stride, to + (size_t)y * n, n);
        return 0;
    }
    void *room;
    if (mem_alloc((size_t)(form->height + form->width) * sizeof(struct image_tap), "a resized image", &room, e) < 0)
        return -1;
    auto_free struct image_tap *columns = room;
    struct image_tap *rows = columns + form->width;
    bool nearest = form->interpolation == IMAGE_NEAREST;
    image_taps_fill(columns, p.width, form->width, (size_t)form->channels, nearest);
    image_taps_fill(rows, p.height, form->height, p.stride, nearest);
    if (!nearest)
        return image_bilinear(&p, form, columns, rows, to, e);
    image_nearest(&p, form, columns, rows, to);
    return 0;
}
