/* Compares all passes of all ways to compute a convolution with direct loops in double precision. */
#include "nn/ops/conv_kernel.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "guarded.h"

struct axis_case { /* before and after: positions of padding */
    size_t in, before, after, size, stride, dilation;
};
struct image_case {
    struct axis_case axis[WINDOW_AXES];
};
struct kernel_case {
    const struct conv_kernel *kernel;
    const struct image_case *images;
    size_t nimages;
    size_t channels[4], filters[5];
};

#define THREE(in, before, after)                                                                                       \
    {                                                                                                                  \
        in, before, after, 3, 1, 1                                                                                     \
    }
#define LEFT_OUT(n) (0 - (size_t)(n)) /* as padding behind: the last n positions have no windows */
static const struct image_case OF_WINOGRAD[] = {
    { { THREE(3, 0, 0), THREE(3, 0, 0) } },
    { { THREE(4, 0, 0), THREE(4, 0, 0) } },
    { { THREE(5, 0, 0), THREE(7, 0, 0) } },
    { { THREE(13, 0, 0), THREE(13, 0, 0) } },
    { { THREE(3, 1, 1), THREE(3, 1, 1) } },
    { { THREE(4, 1, 1), THREE(4, 1, 1) } },
    { { THREE(5, 1, 1), THREE(7, 1, 1) } },
    { { THREE(7, 1, 1), THREE(6, 1, 1) } },
    { { THREE(3, 2, 0), THREE(8, 0, 2) } },
    { { THREE(4, 0, 1), THREE(5, 2, 1) } },
    { { THREE(6, 3, 2), THREE(3, 1, 4) } },
    { { THREE(1, 1, 1), THREE(1, 1, 1) } },
    { { THREE(9, 1, LEFT_OUT(2)), THREE(8, 0, LEFT_OUT(1)) } },
};
#define ONE                                                                                                            \
    {                                                                                                                  \
        1, 0, 0, 1, 1, 1                                                                                               \
    }
static const struct image_case OF_WINDOWS[] = {
    { { THREE(9, 1, LEFT_OUT(2)), THREE(8, 0, LEFT_OUT(1)) } },
    { { THREE(5, 0, 0), THREE(7, 1, 1) } },
    { { ONE, THREE(40, 2, 0) } },
    { { { 6, 0, 0, 1, 1, 1 }, { 5, 0, 0, 1, 1, 1 } } },
    { { { 6, 0, 0, 1, 2, 1 }, { 5, 0, 0, 1, 1, 1 } } },
    { { { 9, 1, 2, 4, 3, 1 }, { 8, 3, 0, 2, 2, 1 } } },
    { { { 9, 2, 2, 2, 1, 3 }, { 9, 0, 4, 3, 1, 2 } } },
    { { { 3, 3, 3, 7, 1, 1 }, { 2, 3, 3, 7, 1, 1 } } },
    { { ONE, { 3, 8, 0, 3, 1, 4 } } },
    { { { 2, 5, 6, 3, 1, 5 }, { 2, 5, 6, 3, 2, 1 } } },
    { { { 30, 0, 0, 5, 1, 1 }, { 31, 2, 2, 5, 1, 1 } } },
};
static const struct image_case OF_DIRECT[] = {
    { { THREE(9, 1, LEFT_OUT(2)), THREE(8, 0, LEFT_OUT(1)) } },
    { { THREE(5, 0, 0), THREE(7, 1, 1) } },
    { { ONE, THREE(40, 2, 0) } },
    { { { 6, 0, 0, 1, 2, 1 }, { 5, 0, 0, 1, 1, 1 } } },
    { { { 9, 1, 2, 4, 3, 1 }, { 8, 3, 0, 2, 2, 1 } } },
    { { { 3, 3, 3, 7, 1, 1 }, { 2, 3, 3, 7, 1, 1 } } },
    { { { 8, 0, 0, 3, 2, 1 }, { 7, 0, 0, 2, 3, 1 } } }, /* the last row and column are in no window */
    { { { 8, 1, 0, 3, 3, 1 }, { 9, 1, 0, 2, 4, 1 } } }, /* likewise, with padding */
    { { { 2, 5, 6, 3, 1, 1 }, { 2, 5, 6, 3, 2, 1 } } },
    { { { 6, 0, 1, 2, 1, 1 }, { 5, 0, 0, 2, 1, 1 } } }, /* padding behind only, as of "same" with an even size */
    { { { 6, 0, 0, 2, 1, 1 }, { 5, 0, 1, 2, 1, 1 } } },
    { { { 30, 0, 0, 5, 1, 1 }, { 31, 2, 2, 5, 1, 1 } } },
};
static const struct image_case OF_POINTWISE[] = {
    { { { 6, 0, 0, 1, 1, 1 }, { 5, 0, 0, 1, 1, 1 } } },
    { { ONE, { 9, 0, 0, 1, 1, 2 } } },
};
static const size_t EXAMPLES[] = { 1, 3 };
static const struct kernel_case KERNELS[] = {
    { &conv_winograd, OF_WINOGRAD, COUNT_OF(OF_WINOGRAD), { 16, 17, 32, 48 }, { 1, 5, 16, 33, 64 } },
    { &conv_windows, OF_WINDOWS, COUNT_OF(OF_WINDOWS), { 1, 2, 3, 17 }, { 1, 2, 5, 16, 33 } },
    { &conv_pointwise, OF_POINTWISE, COUNT_OF(OF_POINTWISE), { 1, 2, 3, 17 }, { 1, 2, 5, 16, 33 } },
    { &conv_direct, OF_DIRECT, COUNT_OF(OF_DIRECT), { 1, 3, 4, 17 }, { 16, 32, 48, 80, 160 } },
};

/* ---- the direct way ---- */

struct exact {
    double *y, *dw, *dx;
};

/* One output and one position of its window: all channels and filters. */
static void direct_part(const struct window_layout *s, const float *x, const float *w, const float *dy,
                        struct exact *to)
{
    for (size_t c = 0; c < s->channels; c++)
        for (size_t f = 0; f < s->out_channels; f++) {
            size_t k = c * s->out_channels + f;
            if (dy == NULL) {
                to->y[f] += (double)x[c] * (double)w[k];
                continue;
            }
            to->dw[k] += (double)x[c] * (double)dy[f];
            to->dx[c] += (double)w[k] * (double)dy[f];
        }
}

struct sized_conv { /* of n examples, and the way to compute it */
    const struct conv_kernel *kernel;
    struct window_layout at;
    size_t n;
};

/* The position of the input; false: padding. */
static bool place_of(const struct window_axis *a, size_t out, size_t k, size_t *ret)
{
    *ret = out * a->stride + k * a->dilation - a->before;
    return *ret < a->in;
}

/* dy NULL: y; otherwise dw and dx */
static void direct(const struct sized_conv *v, const float *x, const float *w, const float *dy, const struct exact *all)
{
    const struct window_axis *h = &v->at.axis[WINDOW_HEIGHT], *g = &v->at.axis[WINDOW_WIDTH];
    size_t places = h->size * g->size, each = v->at.channels * v->at.out_channels, row, column;
    for (size_t i = 0; i < v->n * h->out * g->out * places; i++) {
        size_t k = i % places, o = i / places, example = o / g->out / h->out;
        if (!place_of(h, o / g->out % h->out, k / g->size, &row) || !place_of(g, o % g->out, k % g->size, &column))
            continue;
        size_t in = ((example * h->in + row) * g->in + column) * v->at.channels, out = o * v->at.out_channels;
        struct exact to = { .y = dy == NULL ? all->y + out : NULL,
                            .dw = dy != NULL ? all->dw + k * each : NULL,
                            .dx = dy != NULL ? all->dx + in : NULL };
        direct_part(&v->at, x + in, w + k * each, dy != NULL ? dy + out : NULL, &to);
    }
}

/* ---- comparison ---- */

static double worst_y, worst_dw, worst_dx;
static char about[96]; /* the convolution that is compared */

struct sizes { /* of the buffers */
    size_t x, w, y, scratch;
};

static struct sizes sizes_of(const struct sized_conv *v)
{
    const struct window_axis *h = &v->at.axis[WINDOW_HEIGHT], *w = &v->at.axis[WINDOW_WIDTH];
    return (struct sizes){ .x = v->n * h->in * w->in * v->at.channels,
                           .w = h->size * w->size * v->at.channels * v->at.out_channels,
                           .y = v->n * h->out * w->out * v->at.out_channels,
                           .scratch = v->kernel->scratch(&v->at, v->n) };
}

/* A pass with fresh scratch, which no other pass has written. */
static void forward(const struct sized_conv *v, const float *x, const float *w, float *y)
{
    size_t floats = sizes_of(v).scratch;
    auto_free float *scratch = buffer(floats);
    const struct conv_call c = { .kernel = v->kernel, .at = v->at, .scratch = scratch };
    conv_forward(&c, v->n, x, w, y);
    check_guards(scratch, floats);
}

static void backward(const struct sized_conv *v, const float *x, const float *w, struct conv_grads g)
{
    size_t floats = sizes_of(v).scratch;
    auto_free float *scratch = buffer(floats);
    const struct conv_call c = { .kernel = v->kernel, .at = v->at, .scratch = scratch };
    conv_backward(&c, v->n, x, w, &g);
    check_guards(scratch, floats);
}

static void check_forward(const struct sized_conv *v, const float *x, const float *w)
{
    const struct sizes z = sizes_of(v);
    auto_free float *y = buffer(z.y);
    auto_free double *wanted = xcalloc(z.y, sizeof(double));
    forward(v, x, w, y);
    direct(v, x, w, NULL, &(struct exact){ .y = wanted });
    worst_y = fmax(worst_y, compare(about, "y", y, wanted, z.y));
}

/* Both gradients, then each one alone: the same bits. What is not needed is not read. */
static void check_backward(const struct sized_conv *v, const float *x, const float *w)
{
    const struct sizes z = sizes_of(v);
    auto_free float *dy = draw(z.y, 3), *dw = buffer(z.w), *dx = buffer(z.x);
    auto_free float *dw_alone = buffer(z.w), *dx_alone = buffer(z.x);
    auto_free double *wanted_dw = xcalloc(z.w, sizeof(double)), *wanted_dx = xcalloc(z.x, sizeof(double));
    backward(v, x, w, (struct conv_grads){ .dy = dy, .dw = dw, .dx = dx });
    direct(v, x, w, dy, &(struct exact){ .dw = wanted_dw, .dx = wanted_dx });
    worst_dw = fmax(worst_dw, compare(about, "dw", dw, wanted_dw, z.w));
    worst_dx = fmax(worst_dx, compare(about, "dx", dx, wanted_dx, z.x));

    backward(v, x, NULL, (struct conv_grads){ .dy = dy, .dw = dw_alone });
    backward(v, NULL, w, (struct conv_grads){ .dy = dy, .dx = dx_alone });
    ck_assert_mem_eq(dw, dw_alone, (z.w + GUARDS) * sizeof(float));
    ck_assert_mem_eq(dx, dx_alone, (z.x + GUARDS) * sizeof(float));
}

static struct sized_conv conv_of(const struct kernel_case *c, const struct image_case *image, size_t n, size_t channels,
                                 size_t filters)
{
    struct sized_conv ret = { .kernel = c->kernel, .n = n, .at = { .channels = channels, .out_channels = filters } };
    for (int i = 0; i < WINDOW_AXES; i++) {
        const struct axis_case *a = &image->axis[i];
        size_t span = (a->size - 1) * a->dilation + 1;
        ret.at.axis[i] = (struct window_axis){ .in = a->in,
                                               .out = (a->in + a->before + a->after - span) / a->stride + 1,
                                               .size = a->size,
                                               .stride = a->stride,
                                               .dilation = a->dilation,
                                               .before = a->before };
    }
    return ret;
}

/* Every image with every number of channels, filters and examples. */
START_TEST(passes)
{
    const struct kernel_case *c = &KERNELS[_i];
    size_t nchannels = COUNT_OF(c->channels), nfilters = COUNT_OF(c->filters), done = 0;
    worst_y = worst_dw = worst_dx = 0;
    for (size_t i = 0; i < c->nimages; i++)
        for (size_t k = 0; k < nchannels * nfilters * COUNT_OF(EXAMPLES); k++, done++) {
            size_t n = EXAMPLES[k / nchannels / nfilters];
            const struct sized_conv v =
                conv_of(c, &c->images[i], n, c->channels[k % nchannels], c->filters[k / nchannels % nfilters]);
            auto_free float *x = draw(sizes_of(&v).x, 1), *w = draw(sizes_of(&v).w, 2);
            str_fmt(about, sizeof(about), "image %zu, %zu channels to %zu, n %zu", i, v.at.channels, v.at.out_channels,
                    n);
            check_forward(&v, x, w);
            check_backward(&v, x, w);
        }
    printf("%zu convolutions: the largest difference is %.1e of y, %.1e of dw, %.1e of dx\n", done, worst_y, worst_dw,
           worst_dx);
}
END_TEST

/* y and dx of an example have the same bits alone as among others; the scratch does not grow. */
START_TEST(examples_of_winograd_are_independent)
{
    static const struct image_case IMAGE = { { THREE(9, 1, 1), THREE(6, 1, 1) } };
    const struct sized_conv all = conv_of(&KERNELS[0], &IMAGE, 11, 17, 33),
                            one = conv_of(&KERNELS[0], &IMAGE, 1, 17, 33);
    const struct sizes z = sizes_of(&one);
    ck_assert_uint_eq(sizes_of(&all).scratch, z.scratch);
    auto_free float *x = draw(11 * z.x, 1), *w = draw(z.w, 2), *dy = draw(11 * z.y, 3);
    auto_free float *y = buffer(11 * z.y), *dx = buffer(11 * z.x), *y_one = buffer(z.y), *dx_one = buffer(z.x);
    forward(&all, x, w, y);
    backward(&all, x, w, (struct conv_grads){ .dy = dy, .dx = dx });
    for (size_t e = 0; e < all.n; e++) {
        forward(&one, x + e * z.x, w, y_one);
        backward(&one, x + e * z.x, w, (struct conv_grads){ .dy = dy + e * z.y, .dx = dx_one });
        ck_assert_mem_eq(y + e * z.y, y_one, z.y * sizeof(float));
        ck_assert_mem_eq(dx + e * z.x, dx_one, z.x * sizeof(float));
    }
}
END_TEST

/* Winograd's algorithm is for windows of 3 x 3 side by side, of enough channels and outputs. */
START_TEST(winograd_fits_where_it_is_faster)
{
    static const struct {
        struct image_case image;
        size_t channels, filters;
        bool fits;
    } CASES[] = {
        { { { THREE(8, 0, 0), THREE(8, 0, 0) } }, 16, 16, true },
        { { { THREE(8, 0, 0), THREE(8, 0, 0) } }, 15, 16, false },
        { { { THREE(8, 0, 0), THREE(8, 0, 0) } }, 16, 15, false },
        { { { THREE(3, 0, 0), THREE(3, 0, 0) } }, 64, 64, false },
        { { { THREE(8, 0, 0), { 8, 0, 0, 2, 1, 1 } } }, 64, 64, false },
        { { { THREE(8, 0, 0), { 8, 0, 0, 3, 2, 1 } } }, 64, 64, false },
        { { { { 8, 0, 0, 3, 1, 2 }, THREE(8, 0, 0) } }, 64, 64, false },
        { { { THREE(3, 0, 0), THREE(7, 0, 0) } }, 64, 64, false },
        { { { THREE(5, 0, 0), THREE(5, 0, 0) } }, 64, 64, true },
        { { { ONE, THREE(64, 1, 1) } }, 64, 64, false },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        const struct sized_conv v = conv_of(&KERNELS[0], &CASES[i].image, 1, CASES[i].channels, CASES[i].filters);
        ck_assert_msg(conv_winograd.fits(&v.at) == CASES[i].fits, "case %zu", i);
    }
}
END_TEST

/* The input of a kernel of one position is its windows, unless it skips or leaves out positions. */
START_TEST(pointwise_fits_kernels_of_one_position)
{
    static const struct {
        struct image_case image;
        bool fits;
    } CASES[] = {
        { { { { 6, 0, 0, 1, 1, 1 }, { 5, 0, 0, 1, 1, 1 } } }, true },
        { { { { 6, 0, 0, 1, 2, 1 }, { 5, 0, 0, 1, 1, 1 } } }, false },
        { { { { 6, 0, 0, 1, 1, 1 }, { 5, 0, 0, 2, 1, 1 } } }, false },
        { { { { 6, 0, LEFT_OUT(1), 1, 1, 1 }, { 5, 0, 0, 1, 1, 1 } } }, false },
        { { { { 6, 0, 0, 1, 1, 1 }, { 5, 0, LEFT_OUT(1), 1, 1, 1 } } }, false },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        const struct sized_conv v = conv_of(&KERNELS[2], &CASES[i].image, 1, 3, 5);
        ck_assert_msg(conv_pointwise.fits(&v.at) == CASES[i].fits, "case %zu", i);
    }
}
END_TEST

/* Windows side by side, whole vectors of filters, and an image that is not too large to be copied. */
START_TEST(direct_fits_whole_vectors)
{
    static const struct {
        struct image_case image;
        size_t channels, filters;
        bool fits;
    } CASES[] = {
        { { { THREE(8, 0, 0), { 8, 0, 0, 5, 2, 1 } } }, 3, 32, true },
        { { { THREE(8, 0, 0), { 8, 0, 0, 3, 1, 2 } } }, 3, 32, false },
        { { { { 8, 0, 0, 3, 1, 2 }, THREE(8, 0, 0) } }, 3, 32, false },
        { { { THREE(8, 0, 0), THREE(8, 0, 0) } }, 3, 24, false },
        { { { THREE(2000, 0, 0), THREE(2000, 0, 0) } }, 1, 16, true },
        { { { THREE(1022, 1, 1), THREE(1022, 1, 1) } }, 1, 16, true },
        { { { THREE(1022, 1, 1), THREE(1023, 1, 1) } }, 1, 16, false },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        const struct sized_conv v = conv_of(&KERNELS[3], &CASES[i].image, 1, CASES[i].channels, CASES[i].filters);
        ck_assert_msg(conv_direct.fits(&v.at) == CASES[i].fits, "case %zu", i);
    }
}
END_TEST

/* A frame that takes all the scratch, and less than the image. */
START_TEST(a_large_frame_holds_what_windows_cover)
{
    static const struct image_case IMAGE = { { THREE(300, 1, LEFT_OUT(20)), THREE(300, 1, LEFT_OUT(10)) } };
    const struct sized_conv v = conv_of(&KERNELS[3], &IMAGE, 1, 1, 16);
    auto_free float *x = draw(sizes_of(&v).x, 1), *w = draw(sizes_of(&v).w, 2);
    ck_assert_uint_eq(sizes_of(&v).scratch, 281 * 291);
    str_fmt(about, sizeof(about), "a large frame");
    check_forward(&v, x, w);
}
END_TEST

/* Many channels or large images need no more than one tile. */
START_TEST(scratch_of_windows_is_bounded)
{
    static const struct image_case LARGE = { { THREE(4000, 1, 1), THREE(4000, 1, 1) } };
    const struct sized_conv few = conv_of(&KERNELS[1], &LARGE, 64, 3, 32),
                            many = conv_of(&KERNELS[1], &LARGE, 64, 4096, 32);
    ck_assert_uint_le(sizes_of(&few).scratch, 64 << 10);
    ck_assert_uint_eq(sizes_of(&many).scratch, 32 * 9 * 4096);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/conv kernels");
    TCase *t = tcase_create("conv kernels");
    tcase_add_loop_test(t, passes, 0, COUNT_OF(KERNELS));
    tcase_add_test(t, examples_of_winograd_are_independent);
    tcase_add_test(t, winograd_fits_where_it_is_faster);
    tcase_add_test(t, pointwise_fits_kernels_of_one_position);
    tcase_add_test(t, direct_fits_whole_vectors);
    tcase_add_test(t, a_large_frame_holds_what_windows_cover);
    tcase_add_test(t, scratch_of_windows_is_bounded);
    suite_add_tcase(s, t);
    return s;
}
