/* Compares all passes of depthwise convolutions with direct loops in double precision. */
#include "nn/ops/depthwise_kernel.h"

#include "base/str.h"
#include "guarded.h"

enum { EXAMPLES = 2 };

#define AXIS(in_, out_, size_, stride_, dilation_, before_)                                                            \
    {                                                                                                                  \
        .in = in_, .out = out_, .size = size_, .stride = stride_, .dilation = dilation_, .before = before_             \
    }
static const struct window_axis AXES[] = {
    AXIS(1, 1, 1, 1, 1, 0),  AXIS(1, 1, 3, 1, 1, 1), AXIS(12, 12, 3, 1, 1, 1), AXIS(12, 10, 3, 1, 1, 0),
    AXIS(11, 6, 3, 2, 1, 1), AXIS(9, 5, 1, 2, 1, 0), AXIS(12, 4, 2, 3, 1, 0),  AXIS(11, 11, 3, 1, 4, 4),
    AXIS(3, 3, 7, 1, 1, 3),  AXIS(3, 2, 8, 2, 1, 3),
};
static const size_t CHANNELS[] = { 1, 3, 16, 21, 48 };
static const size_t MULTIPLIERS[] = { 1, 2 };

struct passes {
    double *y, *dw, *dx;
};

/* All products of one output of one channel. */
static void direct_output(const struct depthwise *d, size_t output, const float *x, const float *w, const float *dy,
                          struct passes *ret)
{
    const struct window_axis *h = &d->at.axis[WINDOW_HEIGHT], *v = &d->at.axis[WINDOW_WIDTH];
    size_t channels = d->at.channels * d->multiplier, channel = output % channels, column = output / channels % v->out;
    size_t row = output / channels / v->out % h->out, example = output / channels / v->out / h->out;
    for (size_t i = 0; i < h->size; i++)
        for (size_t j = 0; j < v->size; j++) {
            size_t y = row * h->stride + i * h->dilation, z = column * v->stride + j * v->dilation;
            if (y < h->before || y - h->before >= h->in || z < v->before || z - v->before >= v->in)
                continue;
            size_t position = (example * h->in + y - h->before) * v->in + z - v->before;
            size_t at = position * d->at.channels + channel / d->multiplier;
            size_t place = (i * v->size + j) * channels + channel;
            ret->y[output] += (double)x[at] * (double)w[place];
            ret->dw[place] += (double)x[at] * (double)dy[output];
            ret->dx[at] += (double)w[place] * (double)dy[output];
        }
}

static void check(struct depthwise *d, const char *about)
{
    const struct window_axis *h = &d->at.axis[WINDOW_HEIGHT], *v = &d->at.axis[WINDOW_WIDTH];
    size_t channels = d->at.channels * d->multiplier, nx = d->n * h->in * v->in * d->at.channels;
    size_t ny = d->n * h->out * v->out * channels, nw = h->size * v->size * channels;
    size_t floats = depthwise_scratch(&d->at, d->multiplier);
    auto_free float *x = draw(nx, 1), *w = draw(nw, 2), *dy = draw(ny, 3);
    auto_free float *y = buffer(ny), *dw = buffer(nw), *dx = buffer(nx), *scratch = buffer(floats);
    auto_free double *want_y = xcalloc(ny, sizeof(*want_y)), *want_dw = xcalloc(nw, sizeof(*want_dw));
    auto_free double *want_dx = xcalloc(nx, sizeof(*want_dx));
    struct passes want = { .y = want_y, .dw = want_dw, .dx = want_dx };
    for (size_t i = 0; i < ny; i++)
        direct_output(d, i, x, w, dy, &want);
    d->scratch = scratch;
    depthwise_forward(d, x, w, y);
    depthwise_weights_gradient(d, x, dy, dw);
    depthwise_input_gradient(d, w, dy, dx);
    compare(about, "y", y, want_y, ny);
    compare(about, "dw", dw, want_dw, nw);
    compare(about, "dx", dx, want_dx, nx);
    check_guards(scratch, floats);
}

START_TEST(passes)
{
    for (size_t i = 0; i < COUNT_OF(AXES); i++)
        for (size_t k = 0; k < COUNT_OF(CHANNELS) * COUNT_OF(MULTIPLIERS); k++) {
            struct depthwise d = { .at = { .axis = { [WINDOW_HEIGHT] = AXES[i], [WINDOW_WIDTH] = AXES[_i] },
                                           .channels = CHANNELS[k / COUNT_OF(MULTIPLIERS)] },
                                   .multiplier = MULTIPLIERS[k % COUNT_OF(MULTIPLIERS)],
                                   .n = EXAMPLES };
            char about[96];
            str_fmt(about, sizeof(about), "axes %zu and %d, %zu channels, multiplier %zu", i, _i, d.at.channels,
                    d.multiplier);
            check(&d, about);
        }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/depthwise kernel");
    TCase *t = tcase_create("depthwise kernel");
    tcase_add_loop_test(t, passes, 0, COUNT_OF(AXES));
    suite_add_tcase(s, t);
    return s;
}
