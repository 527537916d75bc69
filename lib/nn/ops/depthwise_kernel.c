/* Each output, and each value of the gradient of the input, is a sum over a rectangle of places in the window, which
 * stays in registers. */
#include "nn/ops/depthwise_kernel.h"

#include "nn/ops/window_runs.h"
#include "tensor/kernel.h"

typedef float lanes16 __attribute__((vector_size(64), aligned(4), may_alias));
enum { LANES = 16, ABREAST = 4 };

/* ---- what is summed, along one axis ---- */

struct taps { /* n pairs: a place in the window, and the position where the other factor is */
    size_t n, place, place_step, at;
    ptrdiff_t at_step;
};
typedef struct taps taps_fn(const struct window_axis *a, size_t i);

/* The sum of output o, over positions of the input. */
static struct taps taps_of_output(const struct window_axis *a, size_t o)
{
    size_t first, end;
    window_inside(a, o, &first, &end);
    if (end <= first)
        return (struct taps){ 0 };
    return (struct taps){ .n = end - first,
                          .place = first,
                          .place_step = 1,
                          .at = o * a->stride + first * a->dilation - a->before,
                          .at_step = (ptrdiff_t)a->dilation };
}

/* The sum of the gradient of position p of the input, over outputs: o stride + place dilation = p + before. */
static struct taps taps_of_input(const struct window_axis *a, size_t p)
{
    size_t sum = p + a->before, most = (a->out - 1) * a->stride;
    size_t first = sum % a->stride, end = MIN(a->size, sum / a->dilation + 1);
    size_t least = sum > most ? divide_up(sum - most, a->dilation) : 0;
    if (least > first)
        first += divide_up(least - first, a->stride) * a->stride;
    if (end <= first)
        return (struct taps){ 0 };
    return (struct taps){ .n = divide_up(end - first, a->stride),
                          .place = first,
                          .place_step = a->stride,
                          .at = (sum - first * a->dilation) / a->stride,
                          .at_step = -(ptrdiff_t)a->dilation };
}

/* ---- the loops, of as many kernels as channels ---- */

struct sum_row { /* of sums side by side */
    const float *from, *w;
    float *to;
    struct taps row;
    const struct taps *columns;          /* n */
    size_t n, channels, from_row, w_row; /* *_row: floats */
};

/* The sums of LANES channels for `count` columns from `column` on, which have the same places; constant where this is
 * inlined. */
static inline __attribute__((always_inline)) void sum_block(const struct sum_row *l, size_t channel,
                                                            const struct taps *column, size_t count)
{
    const size_t channels = l->channels, rows = l->row.n, n = column->n;
    const ptrdiff_t next = count > 1 ? (ptrdiff_t)((column[1].at - column[0].at) * channels) : 0;
    const ptrdiff_t from_step = column->at_step * (ptrdiff_t)channels;
    const ptrdiff_t from_row = l->row.at_step * (ptrdiff_t)l->from_row;
    const size_t w_step = column->place_step * channels, w_row = l->row.place_step * l->w_row;
    const float *from = l->from + l->row.at * l->from_row + column->at * channels + channel;
    const float *w = l->w + l->row.place * l->w_row + column->place * channels + channel;
    float *to = l->to + (size_t)(column - l->columns) * channels + channel;
    lanes16 sum[ABREAST] = { 0 };
    for (size_t i = 0; i < rows; i++, from += from_row, w += w_row) {
        const float *f = from, *v = w;
        for (size_t j = 0; j < n; j++, f += from_step, v += w_step)
            for (size_t k = 0; k < count; k++)
                sum[k] += *(const lanes16 *)(f + (ptrdiff_t)k * next) * *(const lanes16 *)v;
    }
    for (size_t k = 0; k < count; k++)
        *(lanes16 *)(to + k * channels) = sum[k];
}

static float sum_one(const struct sum_row *l, size_t channel, const struct taps *column)
{
    float sum = 0;
    for (size_t i = 0; i < l->row.n; i++)
        for (size_t j = 0; j < column->n; j++) {
            size_t row = (size_t)((ptrdiff_t)l->row.at + (ptrdiff_t)i * l->row.at_step);
            size_t at = (size_t)((ptrdiff_t)column->at + (ptrdiff_t)j * column->at_step);
            size_t w = (l->row.place + i * l->row.place_step) * l->w_row +
                       (column->place + j * column->place_step) * l->channels;
            sum += l->from[row * l->from_row + at * l->channels + channel] * l->w[w + channel];
        }
    return sum;
}

/* Do ABREAST columns have the same places? */
static bool are_alike(const struct taps *columns)
{
    for (size_t k = 1; k < ABREAST; k++)
        if (columns[k].n != columns[0].n || columns[k].place != columns[0].place)
            return false;
    return true;
}

KERNEL static void sum_line(const struct sum_row *l)
{
    size_t channel = 0;
    for (; channel + LANES <= l->channels; channel += LANES)
        for (size_t o = 0; o < l->n;) {
            bool abreast = o + ABREAST <= l->n && are_alike(&l->columns[o]);
            if (abreast)
                sum_block(l, channel, &l->columns[o], ABREAST);
            else
                sum_block(l, channel, &l->columns[o], 1);
            o += abreast ? ABREAST : 1;
        }
    for (; channel < l->channels; channel++)
        for (size_t o = 0; o < l->n; o++)
            l->to[o * l->channels + channel] = sum_one(l, channel, &l->columns[o]);
}

struct product_run { /* outputs side by side, and the position of each that has one place in its window */
    const float *x, *dy;
    float *dw;
    size_t n, step, channels; /* step: floats */
};

/* dw += the sum of x dy */
KERNEL static void add_products(const struct product_run *r)
{
    size_t c = 0, pairs = r->n & ~(size_t)1;
    for (; c + LANES <= r->channels; c += LANES) {
        const float *x = r->x + c, *dy = r->dy + c;
        lanes16 even = { 0 }, odd = { 0 };
        for (size_t o = 0; o < pairs; o += 2, x += 2 * r->step, dy += 2 * r->channels) {
            even += *(const lanes16 *)x * *(const lanes16 *)dy;
            odd += *(const lanes16 *)(x + r->step) * *(const lanes16 *)(dy + r->channels);
        }
        if (r->n > pairs)
            even += *(const lanes16 *)x * *(const lanes16 *)dy;
        *(lanes16 *)(r->dw + c) += even + odd;
    }
    for (; c < r->channels; c++) {
        float sum = 0;
        for (size_t o = 0; o < r->n; o++)
            sum += r->x[o * r->step + c] * r->dy[o * r->channels + c];
        r->dw[c] += sum;
    }
}

/* ---- channels that have several kernels: as many channels, of copies ---- */

static void repeat_channels(const float *x, size_t n, size_t times, float *y)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < times; k++)
            y[i * times + k] = x[i];
}

static void sum_channels(const float *x, size_t n, size_t times, float *y)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = 0;
        for (size_t k = 0; k < times; k++)
            y[i] += x[i * times + k];
    }
}

/* ---- passes ---- */

struct depthwise_sizes {      /* of one example */
    size_t in, out, channels; /* positions; channels * multiplier */
};

static struct depthwise_sizes sizes_of(const struct window_layout *at, size_t multiplier)
{
    const struct window_axis *h = &at->axis[WINDOW_HEIGHT], *w = &at->axis[WINDOW_WIDTH];
    return (
        struct depthwise_sizes){ .in = h->in * w->in, .out = h->out * w->out, .channels = at->channels * multiplier };
}

static size_t taps_floats(const struct window_layout *at)
{
    const struct window_axis *w = &at->axis[WINDOW_WIDTH];
    return MAX(w->in, w->out) * (sizeof(struct taps) / sizeof(float));
}

/* The taps of all columns; with a multiplier the copies of an example. */
size_t depthwise_scratch(const struct window_layout *at, size_t multiplier)
{
    const struct depthwise_sizes size = sizes_of(at, multiplier);
    return taps_floats(at) + (multiplier > 1 ? size.in * size.channels : 0);
}

static struct taps *taps_in(float *scratch)
{
    return (struct taps *)(void *)scratch;
}

static float *copies_of(const struct depthwise *d)
{
    return d->scratch + taps_floats(&d->at);
}

/* x of an example, with as many channels as kernels. */
static const float *repeated(const struct depthwise *d, const struct depthwise_sizes *size, const float *x)
{
    if (d->multiplier == 1)
        return x;
    repeat_channels(x, size->in * d->at.channels, d->multiplier, copies_of(d));
    return copies_of(d);
}

/* Sums over `from`, with lines of from_columns positions, for lines of n columns. */
static struct sum_row sums_of(const struct depthwise *d, taps_fn *taps_of, const float *w, size_t from_columns,
                              size_t n)
{
    const struct window_axis *width = &d->at.axis[WINDOW_WIDTH];
    struct taps *columns = taps_in(d->scratch);
    size_t channels = d->at.channels * d->multiplier;
    for (size_t i = 0; i < n; i++)
        columns[i] = taps_of(width, i);
    return (struct sum_row){ .w = w,
                             .columns = columns,
                             .n = n,
                             .channels = channels,
                             .from_row = from_columns * channels,
                             .w_row = width->size * channels };
}

static void sum_image(struct sum_row *row, taps_fn *taps_of, const struct window_axis *height, size_t lines, float *to)
{
    for (size_t i = 0; i < lines; i++) {
        row->row = taps_of(height, i);
        row->to = to + i * row->n * row->channels;
        sum_line(row);
    }
}

void depthwise_forward(const struct depthwise *d, const float *x, const float *w, float *y)
{
    const struct window_axis *height = &d->at.axis[WINDOW_HEIGHT], *width = &d->at.axis[WINDOW_WIDTH];
    const struct depthwise_sizes size = sizes_of(&d->at, d->multiplier);
    struct sum_row row = sums_of(d, taps_of_output, w, width->in, width->out);
    for (size_t example = 0; example < d->n; example++) {
        row.from = repeated(d, &size, x + example * size.in * d->at.channels);
        sum_image(&row, taps_of_output, height, height->out, y + example * size.out * size.channels);
    }
}

void depthwise_input_gradient(const struct depthwise *d, const float *w, const float *dy, float *dx)
{
    const struct window_axis *height = &d->at.axis[WINDOW_HEIGHT], *width = &d->at.axis[WINDOW_WIDTH];
    const struct depthwise_sizes size = sizes_of(&d->at, d->multiplier);
    struct sum_row row = sums_of(d, taps_of_input, w, width->out, width->in);
    for (size_t example = 0; example < d->n; example++) {
        float *of_example = dx + example * size.in * d->at.channels;
        float *to = d->multiplier > 1 ? copies_of(d) : of_example;
        row.from = dy + example * size.out * size.channels;
        sum_image(&row, taps_of_input, height, height->in, to);
        if (d->multiplier > 1)
            sum_channels(to, size.in * d->at.channels, d->multiplier, of_example);
    }
}

struct weights_pass { /* of one example */
    const float *x, *dy;
    float *dw;
    size_t channels;
};

static void weights_of_place(const struct window_run *run, void *user)
{
    const struct weights_pass *p = user;
    add_products(&(struct product_run){ .x = p->x + run->x * p->channels,
                                        .dy = p->dy + run->y * p->channels,
                                        .dw = p->dw + run->place * p->channels,
                                        .n = run->n,
                                        .step = run->step * p->channels,
                                        .channels = p->channels });
}

void depthwise_weights_gradient(const struct depthwise *d, const float *x, const float *dy, float *dw)
{
    const struct depthwise_sizes size = sizes_of(&d->at, d->multiplier);
    size_t places = d->at.axis[WINDOW_HEIGHT].size * d->at.axis[WINDOW_WIDTH].size;
    memset(dw, 0, places * size.channels * sizeof(*dw));
    for (size_t example = 0; example < d->n; example++) {
        struct weights_pass pass = { .x = repeated(d, &size, x + example * size.in * d->at.channels),
                                     .dy = dy + example * size.out * size.channels,
                                     .dw = dw,
                                     .channels = size.channels };
        window_runs(&d->at, 1, weights_of_place, &pass);
    }
}
