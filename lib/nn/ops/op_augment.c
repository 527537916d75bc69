/* Layers that change images: RandomFlip, RandomTranslation, RandomRotation, RandomZoom, RandomContrast,
 * RandomBrightness and RandomCrop while training, CenterCrop and Resizing always. The random numbers of an example are
 * named as those of Dropout, so its images are the same in whatever batch it is, and backward draws them again. */
#include <math.h>
#include <string.h>

#include "nn/layers/layer_rows.h"
#include "nn/ops/example_rng.h"
#include "nn/ops/ops.h"

/* Of all but RandomCrop. */
static struct rng augment_rng(const struct op_ctx *c, size_t i)
{
    return rng_of_example(c, RNG_AUGMENT, c->l->arg[AUGMENT_SEED], i);
}

static double augment_draw(const struct augment_range *range, struct rng *r)
{
    return range->least + (range->most - range->least) * (double)rng_uniform(r);
}

bool op_augment_view(const struct layer *l UNUSED, bool training)
{
    return !training;
}

struct image { /* rows of pixels of `channels` floats */
    size_t height, width, channels;
};

static struct image image_of(const struct shape *s)
{
    return (struct image){ (size_t)s->dim[0], (size_t)s->dim[1], (size_t)s->dim[2] };
}

static size_t image_floats(const struct image *s)
{
    return s->height * s->width * s->channels;
}

/* ---- RandomFlip ---- */

struct flip {
    bool rows, columns; /* their order is reversed */
};

static struct flip flip_of(const struct op_ctx *c, size_t i)
{
    struct rng r = augment_rng(c, i);
    bool rows = rng_uniform(&r) < 0.5F, columns = rng_uniform(&r) < 0.5F;
    enum flip_mode mode = (enum flip_mode)c->l->arg[FLIP_MODE];
    return (struct flip){ .rows = rows && mode != FLIP_HORIZONTAL, .columns = columns && mode != FLIP_VERTICAL };
}

/* A flip undoes itself. */
static void flip(const struct op_ctx *c, const float *from, float *to)
{
    const struct image s = image_of(&c->l->out);
    for (size_t i = 0; i < c->n; i++) {
        const struct flip f = flip_of(c, i);
        for (size_t k = 0; k < s.height * s.width; k++, to += s.channels) {
            size_t row = k / s.width, column = k % s.width;
            size_t at = (f.rows ? s.height - 1 - row : row) * s.width + (f.columns ? s.width - 1 - column : column);
            memcpy(to, from + at * s.channels, s.channels * sizeof(*to));
        }
        from += image_floats(&s);
    }
}

void op_random_flip_forward(const struct op_ctx *c)
{
    flip(c, c->x[0], c->y);
}

void op_random_flip_backward(const struct op_ctx *c)
{
    if (c->dx[0] != NULL)
        flip(c, c->dy, c->dx[0]);
}

/* ---- where the pixels of the output come from ---- */

/* The pixel of the output at (row, column) is that of the input at (b0 x + b1 y + b2, a0 x + a1 y + a2), where x is
 * column + center and y row + center. */
struct sampling {
    float a[3], b[3], center;
    size_t top, left, height, width; /* of the part of the input that is seen */
    enum fill_mode fill;
    float fill_value;
    enum interpolation interpolation;
};

enum { SIDES = 2, CORNERS = SIDES * SIDES };

/* Of one axis: positions of the input and their weights. Outside of the image the weight is 0. */
struct axis_sample {
    uint32_t at[SIDES];
    float weight[SIDES];
};

struct pixel_sample { /* pixels of the input and their weights; what is missing to 1 is the weight of fill_value */
    uint32_t at[CORNERS];
    float weight[CORNERS];
};

struct sampled_images { /* an image of the input and its sampling */
    struct image in, out;
    struct axis_sample *columns; /* room for one row of the output */
    struct pixel_sample *row;    /* likewise */
};

/* The coordinate of 0 .. n - 1 that stands for one outside, as TensorFlow's ImageProjectiveTransform has it. */
static float fill_coordinate(enum fill_mode fill, float x, size_t n)
{
    const float size = (float)n, last = size - 1, period = 2 * size;
    if (fill == FILL_CONSTANT || (x >= 0 && x <= last))
        return x;
    if (n <= 1)
        return 0;
    if (fill == FILL_REFLECT) {
        x = fmodf(x < 0 ? -x - 1 : x, period);
        x = x < size ? x : period - 1 - x;
    } else if (fill == FILL_WRAP)
        x += x < 0 ? size * (truncf(-x / last) + 1) : -size * truncf(x / last);
    return fminf(fmaxf(x, 0), last);
}

/* The part of the input that is seen has n positions from `first` on. */
static struct axis_sample axis_sample_of(const struct sampling *s, float x, size_t first, size_t n)
{
    const bool nearest = s->interpolation == INTERPOLATION_NEAREST;
    const float in = fill_coordinate(s->fill, x, n), base = nearest ? roundf(in) : floorf(in);
    const float share = nearest ? 0 : in - base;
    struct axis_sample ret = { .weight = { 1 - share, share } };
    for (size_t k = 0; k < SIDES; k++) {
        const float at = base + (float)k;
        if (at >= 0 && at < (float)n)
            ret.at[k] = (uint32_t)(first + (size_t)at);
        else
            ret.weight[k] = 0;
    }
    return ret;
}

static struct axis_sample row_sample(const struct sampling *s, float x, float y)
{
    return axis_sample_of(s, s->b[0] * x + s->b[1] * y + s->b[2], s->top, s->height);
}

static struct axis_sample column_sample(const struct sampling *s, float x, float y)
{
    return axis_sample_of(s, s->a[0] * x + s->a[1] * y + s->a[2], s->left, s->width);
}

static bool is_turned(const struct sampling *s)
{
    return s->a[1] != 0 || s->b[0] != 0;
}

/* Unless the image is turned, the columns are the same in all rows. */
static void sample_columns(const struct sampling *s, const struct sampled_images *v)
{
    for (size_t k = 0; k < v->out.width && !is_turned(s); k++)
        v->columns[k] = column_sample(s, (float)k + s->center, 0);
}

static void sample_row(const struct sampling *s, const struct sampled_images *v, size_t row)
{
    const float y = (float)row + s->center;
    const bool turned = is_turned(s);
    const struct axis_sample level = row_sample(s, 0, y);
    for (size_t k = 0; k < v->out.width; k++) {
        const float x = (float)k + s->center;
        const struct axis_sample down = turned ? row_sample(s, x, y) : level;
        const struct axis_sample right = turned ? column_sample(s, x, y) : v->columns[k];
        for (size_t j = 0; j < CORNERS; j++) {
            v->row[k].at[j] = down.at[j / SIDES] * (uint32_t)v->in.width + right.at[j % SIDES];
            v->row[k].weight[j] = down.weight[j / SIDES] * right.weight[j % SIDES];
        }
    }
}

/* One row of the output, which v->row describes, of example i. */
typedef void sampled_row_fn(const struct op_ctx *c, const struct sampling *s, const struct sampled_images *v, size_t i,
                            size_t row);

static size_t row_at(const struct sampled_images *v, size_t i, size_t row)
{
    return (i * v->out.height + row) * v->out.width * v->out.channels;
}

static void sample_pixels(const struct op_ctx *c, const struct sampling *s, const struct sampled_images *v, size_t i,
                          size_t row)
{
    const size_t channels = v->in.channels;
    const float *x = c->x[0] + i * image_floats(&v->in);
    float *y = c->y + row_at(v, i, row);
    for (size_t k = 0; k < v->out.width; k++, y += channels) {
        const struct pixel_sample *p = &v->row[k];
        float rest = 0;
        if (s->fill_value != 0)
            rest = (1 - p->weight[0] - p->weight[1] - p->weight[2] - p->weight[3]) * s->fill_value;
        for (size_t m = 0; m < channels; m++) {
            float sum = rest;
            for (size_t j = 0; j < CORNERS; j++)
                sum += p->weight[j] * x[p->at[j] * channels + m];
            y[m] = sum;
        }
    }
}

/* Adds to the gradient of the image. It is exact; TensorFlow's is that of the inverse transformation. */
static void sample_gradients(const struct op_ctx *c, const struct sampling *s UNUSED, const struct sampled_images *v,
                             size_t i, size_t row)
{
    const size_t channels = v->in.channels;
    const float *dy = c->dy + row_at(v, i, row);
    float *dx = c->dx[0] + i * image_floats(&v->in);
    for (size_t k = 0; k < v->out.width; k++, dy += channels)
        for (size_t j = 0; j < CORNERS; j++)
            for (size_t m = 0; m < channels; m++)
                dx[v->row[k].at[j] * channels + m] += v->row[k].weight[j] * dy[m];
}

size_t op_sample_scratch(const struct layer *l, size_t max_n UNUSED, bool training UNUSED)
{
    return (size_t)l->out.dim[1] * (sizeof(struct axis_sample) + sizeof(struct pixel_sample)) / sizeof(float);
}

/* Of example i. */
typedef struct sampling sampling_fn(const struct op_ctx *c, const struct sampled_images *v, size_t i);

static struct sampled_images sampled_images_of(const struct op_ctx *c)
{
    struct sampled_images v = { .in = image_of(&c->l->in[0]), .out = image_of(&c->l->out) };
    v.row = (void *)c->scratch;
    v.columns = (void *)(v.row + v.out.width);
    return v;
}

/* How many examples have the same sampling. */
static size_t sampled_alike(const struct op_ctx *c)
{
    bool drawn = c->training && c->l->id != LAYER_CENTER_CROP && c->l->id != LAYER_RESIZING;
    return drawn ? 1 : c->n;
}

static void sample_images(const struct op_ctx *c, sampling_fn *fn, sampled_row_fn *of_row)
{
    const struct sampled_images v = sampled_images_of(c);
    const size_t alike = sampled_alike(c);
    for (size_t first = 0; first < c->n; first += alike) {
        const struct sampling s = fn(c, &v, first);
        sample_columns(&s, &v);
        for (size_t row = 0; row < v.out.height; row++) {
            sample_row(&s, &v, row);
            for (size_t i = first; i < first + alike; i++)
                of_row(c, &s, &v, i, row);
        }
    }
}

static void sample_backward(const struct op_ctx *c, sampling_fn *fn)
{
    if (c->dx[0] == NULL)
        return;
    memset(c->dx[0], 0, op_elements(c) * sizeof(float));
    sample_images(c, fn, sample_gradients);
}

/* ---- RandomTranslation, RandomZoom, RandomRotation ---- */

/* x and y of the output are turned and scaled about the centre of the image. */
static struct sampling affine_sampling(const struct op_ctx *c, const struct sampled_images *v, size_t i)
{
    struct rng r = augment_rng(c, i);
    const struct augment *own = c->l->own;
    const double center_x = ((double)v->in.width - 1) / 2, center_y = ((double)v->in.height - 1) / 2;
    double zoom_x = 1, zoom_y = 1, sine = 0, cosine = 1, shift_x = 0, shift_y = 0;
    if (c->l->id == LAYER_RANDOM_ROTATION) {
        double angle = augment_draw(&own->factor, &r) * 2 * M_PI;
        sine = sin(angle);
        cosine = cos(angle);
    } else {
        double height = augment_draw(&own->height, &r), width = own->same ? height : augment_draw(&own->width, &r);
        if (c->l->id == LAYER_RANDOM_ZOOM) {
            zoom_x = 1 + width;
            zoom_y = 1 + height;
        } else {
            shift_x = -width * (double)v->in.width;
            shift_y = -height * (double)v->in.height;
        }
    }
    const double a[] = { zoom_x * cosine, -zoom_x * sine }, b[] = { zoom_y * sine, zoom_y * cosine };
    return (struct sampling){
        .a = { (float)a[0], (float)a[1], (float)(shift_x + center_x - a[0] * center_x - a[1] * center_y) },
        .b = { (float)b[0], (float)b[1], (float)(shift_y + center_y - b[0] * center_x - b[1] * center_y) },
        .height = v->in.height,
        .width = v->in.width,
        .fill = (enum fill_mode)c->l->arg[AFFINE_FILL_MODE],
        .fill_value = (float)c->l->arg[AFFINE_FILL_VALUE],
        .interpolation = (enum interpolation)c->l->arg[AFFINE_INTERPOLATION]
    };
}

void op_random_affine_forward(const struct op_ctx *c)
{
    sample_images(c, affine_sampling, sample_pixels);
}

void op_random_affine_backward(const struct op_ctx *c)
{
    sample_backward(c, affine_sampling);
}

/* ---- RandomCrop: a part of that size while training. CenterCrop: that in the middle. Where the image is smaller, and
 * for RandomCrop otherwise: the largest part in the middle that has this aspect ratio, resized. Resizing: the whole
 * ---- */

static size_t largest(size_t n, size_t other, size_t size, size_t other_size)
{
    return MAX(MIN(n, other * size / other_size), 1);
}

/* The part of the input that is seen, resized to the whole output; pixel centres are at halves. */
static void resize_part(struct sampling *s, const struct sampled_images *v, size_t height, size_t width)
{
    s->height = height;
    s->width = width;
    s->top = (v->in.height - height) / 2;
    s->left = (v->in.width - width) / 2;
    s->center = 0.5F;
    s->a[0] = (float)width / (float)v->out.width;
    s->b[1] = (float)height / (float)v->out.height;
    s->a[2] = s->b[2] = -0.5F;
}

static void resize_ratio(struct sampling *s, const struct sampled_images *v)
{
    resize_part(s, v, largest(v->in.height, v->in.width, v->out.height, v->out.width),
                largest(v->in.width, v->in.height, v->out.width, v->out.height));
}

static struct sampling crop_sampling(const struct op_ctx *c, const struct sampled_images *v, size_t i)
{
    struct sampling s = { .a = { 1, 0, 0 }, .b = { 0, 1, 0 }, .fill = FILL_NEAREST };
    const bool random = c->l->id == LAYER_RANDOM_CROP,
               fits = v->in.height >= v->out.height && v->in.width >= v->out.width;
    if (!fits || (random && !c->training)) {
        resize_ratio(&s, v);
        return s;
    }
    size_t down = v->in.height - v->out.height, right = v->in.width - v->out.width;
    s.height = v->out.height;
    s.width = v->out.width;
    s.top = down / 2;
    s.left = right / 2;
    if (random) {
        struct rng r = rng_of_example(c, RNG_AUGMENT, c->l->arg[CROP_SEED], i);
        s.top = rng_below(&r, down + 1);
        s.left = rng_below(&r, right + 1);
    }
    return s;
}

void op_crop_forward(const struct op_ctx *c)
{
    sample_images(c, crop_sampling, sample_pixels);
}

void op_crop_backward(const struct op_ctx *c)
{
    sample_backward(c, crop_sampling);
}

static struct sampling resize_sampling(const struct op_ctx *c, const struct sampled_images *v, size_t i UNUSED)
{
    struct sampling s = { .fill = FILL_NEAREST, .interpolation = (enum interpolation)c->l->arg[RESIZE_INTERPOLATION] };
    if (c->l->arg[RESIZE_CROPS] != 0)
        resize_ratio(&s, v);
    else
        resize_part(&s, v, v->in.height, v->in.width);
    return s;
}

void op_resizing_forward(const struct op_ctx *c)
{
    sample_images(c, resize_sampling, sample_pixels);
}

void op_resizing_backward(const struct op_ctx *c)
{
    sample_backward(c, resize_sampling);
}

/* ---- RandomContrast and RandomBrightness: the values of each channel, around their mean, or all, changed by one
 * factor; then cut to value_range ---- */

static bool is_outside(const struct augment_range *value, float v)
{
    return v < (float)value->least || v > (float)value->most;
}

static float cut(const struct augment_range *value, float v)
{
    const float least = (float)value->least, most = (float)value->most;
    return v < least ? least : v > most ? most : v;
}

static float brightness_of(const struct op_ctx *c, size_t i)
{
    const struct augment *own = c->l->own;
    struct rng r = augment_rng(c, i);
    return (float)(augment_draw(&own->factor, &r) * (own->value.most - own->value.least));
}

void op_random_brightness_forward(const struct op_ctx *c)
{
    const struct augment *own = c->l->own;
    const size_t each = shape_elements(&c->l->out);
    for (size_t i = 0; i < c->n; i++) {
        const float more = brightness_of(c, i);
        for (size_t k = i * each; k < (i + 1) * each; k++)
            c->y[k] = cut(&own->value, c->x[0][k] + more);
    }
}

void op_random_brightness_backward(const struct op_ctx *c)
{
    const struct augment *own = c->l->own;
    const size_t each = shape_elements(&c->l->out);
    for (size_t i = 0; i < c->n && c->dx[0] != NULL; i++) {
        const float more = brightness_of(c, i);
        for (size_t k = i * each; k < (i + 1) * each; k++)
            c->dx[0][k] = is_outside(&own->value, c->x[0][k] + more) ? 0 : c->dy[k];
    }
}

struct contrast { /* one channel of one example: the values at, at + channels, ... */
    size_t at, end, channels;
    float factor, mean, pixels;
};

static float contrast_of(const struct op_ctx *c, size_t i)
{
    const struct augment *own = c->l->own;
    struct rng r = augment_rng(c, i);
    return (float)(1 + augment_draw(&own->factor, &r));
}

static struct contrast contrast_channel(const struct op_ctx *c, size_t i, size_t channel, float factor)
{
    const struct image s = image_of(&c->l->out);
    struct contrast ret = { .at = i * image_floats(&s) + channel, .channels = s.channels, .factor = factor };
    double sum = 0;
    ret.end = ret.at - channel + image_floats(&s);
    ret.pixels = (float)(s.height * s.width);
    for (size_t k = ret.at; k < ret.end; k += ret.channels)
        sum += (double)c->x[0][k];
    ret.mean = (float)(sum / (double)ret.pixels);
    return ret;
}

static float contrasted(const struct contrast *s, float v)
{
    return (v - s->mean) * s->factor + s->mean;
}

void op_random_contrast_forward(const struct op_ctx *c)
{
    const struct augment *own = c->l->own;
    for (size_t i = 0; i < c->n; i++) {
        const float factor = contrast_of(c, i);
        for (size_t channel = 0; channel < op_channels(c); channel++) {
            const struct contrast s = contrast_channel(c, i, channel, factor);
            for (size_t k = s.at; k < s.end; k += s.channels)
                c->y[k] = cut(&own->value, contrasted(&s, c->x[0][k]));
        }
    }
}

/* Each value also moves the mean. */
void op_random_contrast_backward(const struct op_ctx *c)
{
    const struct augment *own = c->l->own;
    for (size_t i = 0; i < c->n && c->dx[0] != NULL; i++) {
        const float factor = contrast_of(c, i);
        for (size_t channel = 0; channel < op_channels(c); channel++) {
            const struct contrast s = contrast_channel(c, i, channel, factor);
            float *dx = c->dx[0], sum = 0;
            for (size_t k = s.at; k < s.end; k += s.channels) {
                dx[k] = is_outside(&own->value, contrasted(&s, c->x[0][k])) ? 0 : c->dy[k];
                sum += dx[k];
            }
            const float by_mean = (1 - factor) * sum / s.pixels;
            for (size_t k = s.at; k < s.end; k += s.channels)
                dx[k] = factor * dx[k] + by_mean;
        }
    }
}
