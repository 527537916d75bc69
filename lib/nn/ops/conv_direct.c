/* Convolutions as products whose left side is the image itself: the rows of a window are runs of floats in it, so
 * windows need not be copied. An image with padding is copied into a frame of zeros. */
#include <string.h>

#include "nn/ops/conv_kernel.h"
#include "nn/ops/conv_product.h"

enum { FRAME_FLOATS_MAX = 1 << 20 };
enum { BLOCK_ROWS = 96 }; /* of a product, whose places are on the stack */

struct direct { /* one image */
    const struct window_layout *at;
    size_t width, run; /* floats of a row of the frame, or of the image; of a window's row */
    bool framed;
};

/* Positions that the windows of an axis cover, from the first to the last. */
static size_t direct_reach(const struct window_axis *a)
{
    return (a->out - 1) * a->stride + a->size;
}

static bool direct_has_padding(const struct window_axis *a)
{
    return a->before > 0 || direct_reach(a) > a->in;
}

static size_t direct_frame(const struct window_layout *at)
{
    const struct window_axis *h = &at->axis[WINDOW_HEIGHT], *w = &at->axis[WINDOW_WIDTH];
    return direct_has_padding(h) || direct_has_padding(w) ? direct_reach(h) * direct_reach(w) * at->channels : 0;
}

static struct direct direct_of(const struct window_layout *at)
{
    const struct window_axis *w = &at->axis[WINDOW_WIDTH];
    bool framed = direct_frame(at) > 0;
    return (struct direct){ .at = at,
                            .width = (framed ? direct_reach(w) : w->in) * at->channels,
                            .run = w->size * at->channels,
                            .framed = framed };
}

static bool direct_fits(const struct window_layout *at)
{
    for (int i = 0; i < WINDOW_AXES; i++)
        if (at->axis[i].dilation != 1)
            return false;
    return at->out_channels % PRODUCT_COLUMNS == 0 && direct_frame(at) <= FRAME_FLOATS_MAX;
}

static size_t direct_scratch(const struct window_layout *at, size_t n)
{
    return MAX(direct_frame(at), conv_windows.scratch(at, n));
}

/* The padding of a pass's images is the same, so it is cleared once. */
static void direct_clear_frame(const struct direct *d, float *frame)
{
    if (d->framed)
        memset(frame, 0, direct_frame(d->at) * sizeof(*frame));
}

/* The image that the windows lie in: x, or its copy in the frame. Windows are larger than the padding before them. */
static const float *direct_image(const struct direct *d, const float *x, float *frame)
{
    const struct window_axis *h = &d->at->axis[WINDOW_HEIGHT], *w = &d->at->axis[WINDOW_WIDTH];
    size_t line = w->in * d->at->channels, left = w->before * d->at->channels;
    size_t rows = MIN(h->in, direct_reach(h) - h->before), floats = MIN(line, d->width - left);
    if (!d->framed)
        return x;
    for (size_t i = 0; i < rows; i++)
        memcpy(frame + (h->before + i) * d->width + left, x + i * line, floats * sizeof(*frame));
    return frame;
}

static void direct_forward_image(const struct direct *d, const float *image, const float *w, float *y)
{
    const struct window_axis *high = &d->at->axis[WINDOW_HEIGHT], *wide = &d->at->axis[WINDOW_WIDTH];
    size_t filters = d->at->out_channels, outputs = high->out * wide->out, place[BLOCK_ROWS];
    for (size_t first = 0; first < outputs; first += BLOCK_ROWS) {
        size_t rows = MIN(outputs - first, BLOCK_ROWS);
        for (size_t i = 0; i < rows; i++)
            place[i] = (first + i) / wide->out * high->stride * d->width +
                       (first + i) % wide->out * wide->stride * d->at->channels;
        product_multiply(&(struct product){ .a = image,
                                            .a_places = place,
                                            .a_part = d->width,
                                            .a_step = 1,
                                            .b = w,
                                            .b_row = filters,
                                            .y = y + first * filters,
                                            .y_row = filters,
                                            .rows = rows,
                                            .columns = filters,
                                            .parts = high->size,
                                            .depth = d->run });
    }
}

/* dw += windows' dy */
static void direct_weights_image(const struct direct *d, const float *image, const float *dy, float *dw)
{
    const struct window_axis *high = &d->at->axis[WINDOW_HEIGHT], *wide = &d->at->axis[WINDOW_WIDTH];
    size_t filters = d->at->out_channels, window = high->size * d->run, place[BLOCK_ROWS];
    for (size_t first = 0; first < window; first += BLOCK_ROWS) {
        size_t rows = MIN(window - first, BLOCK_ROWS);
        for (size_t i = 0; i < rows; i++)
            place[i] = (first + i) / d->run * d->width + (first + i) % d->run;
        product_multiply(&(struct product){ .a = image,
                                            .a_places = place,
                                            .a_part = high->stride * d->width,
                                            .a_step = wide->stride * d->at->channels,
                                            .b = dy,
                                            .b_row = filters,
                                            .y = dw + first * filters,
                                            .y_row = filters,
                                            .rows = rows,
                                            .columns = filters,
                                            .parts = high->out,
                                            .depth = wide->out,
                                            .add = true });
    }
}

/* Floats of an image, and of its output. */
static size_t direct_in(const struct window_layout *at)
{
    return at->axis[WINDOW_HEIGHT].in * at->axis[WINDOW_WIDTH].in * at->channels;
}

static size_t direct_out(const struct window_layout *at)
{
    return at->axis[WINDOW_HEIGHT].out * at->axis[WINDOW_WIDTH].out * at->out_channels;
}

static void direct_forward(const struct window_layout *at, size_t n, const float *x, const float *w, float *y,
                           float *scratch)
{
    const struct direct d = direct_of(at);
    direct_clear_frame(&d, scratch);
    for (size_t i = 0; i < n; i++)
        direct_forward_image(&d, direct_image(&d, x + i * direct_in(at), scratch), w, y + i * direct_out(at));
}

static void direct_backward(const struct window_layout *at, size_t n, const float *x, const float *w,
                            const struct conv_grads *g, float *scratch)
{
    const struct direct d = direct_of(at);
    if (g->dw != NULL) {
        direct_clear_frame(&d, scratch);
        for (size_t i = 0; i < n; i++)
            direct_weights_image(&d, direct_image(&d, x + i * direct_in(at), scratch), g->dy + i * direct_out(at),
                                 g->dw);
    }
    if (g->dx != NULL)
        conv_windows.backward(at, n, NULL, w, &(struct conv_grads){ .dy = g->dy, .dx = g->dx }, scratch);
}

const struct conv_kernel conv_direct = { .fits = direct_fits,
                                         .scratch = direct_scratch,
                                         .forward = direct_forward,
                                         .begin_backward = conv_clear_weights,
                                         .backward = direct_backward };
