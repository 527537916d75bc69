/* Winograd's F(2x2, 3x3): transforms of tiles, and 16 matrix products of a block of tiles. With the names of Lavin and
 * Gray, forward is Y = A'((G g G') (B'd B))A. Backward has the transposed matrices in reverse order. A block of tiles
 * stays in the L2 cache. Blocks go through all examples, because an example may have few tiles; their size does not
 * depend on n. Every sum has a fixed order. Columns of a product after the last channel or filter hold anything: they
 * lead to no result. */
#include <stdint.h>
#include <string.h>

#include "nn/ops/conv_kernel.h"
#include "nn/ops/conv_product.h"
#include "nn/ops/conv_winograd_tile.h"

enum { CHANNELS_MIN = 16, POINTS = WINOGRAD_POINTS };
enum { BLOCK_FLOATS = 64 << 10 }; /* of a block, about: transformed input and output */
enum { BLOCK_MIN = 48, BLOCK_MAX = 96, BLOCK_STEP = 8 };
enum { PLANE_GAP = 16 }; /* planes do not begin in the same set of the L1 cache */

struct winograd { /* one convolution of n examples */
    size_t n;
    size_t in_height, in_width, out_height, out_width;
    size_t before_h, before_w; /* rows and columns of padding above and to the left of the input */
    size_t channels, filters;
};

struct plan {
    struct winograd s;
    size_t tiles_w, of_example, tiles; /* of a row of tiles; of one example; of all */
    size_t block;                      /* tiles of a block */
    size_t channels_up, filters_up;    /* columns of a product are whole PRODUCT_COLUMNS */
    size_t v_plane, m_plane;           /* floats of one of POINTS planes */
    float *u;                          /* (POINTS, channels, filters_up): the kernel, or its gradient */
    float *u_back;                     /* (POINTS, filters, channels_up): the kernel, transposed */
    float *v;                          /* (POINTS, block, channels_up): the input, or its gradient */
    float *m;                          /* (POINTS, block, filters_up): the output, or its gradient */
    float *zeros, *dump;               /* positions outside: to read, to write */
};

static size_t round_up(size_t n, size_t step)
{
    return divide_up(n, step) * step;
}

static struct winograd winograd_of(const struct window_layout *at, size_t n)
{
    const struct window_axis *h = &at->axis[WINDOW_HEIGHT], *w = &at->axis[WINDOW_WIDTH];
    return (struct winograd){ .n = n,
                              .in_height = h->in,
                              .in_width = w->in,
                              .out_height = h->out,
                              .out_width = w->out,
                              .before_h = h->before,
                              .before_w = w->before,
                              .channels = at->channels,
                              .filters = at->out_channels };
}

static struct plan plan_of(const struct window_layout *at, size_t n)
{
    struct plan p = { .s = winograd_of(at, n) };
    const struct winograd *s = &p.s;
    p.tiles_w = (s->out_width + 1) / 2;
    p.of_example = (s->out_height + 1) / 2 * p.tiles_w;
    p.tiles = s->n * p.of_example;
    p.channels_up = round_up(s->channels, PRODUCT_COLUMNS);
    p.filters_up = round_up(s->filters, PRODUCT_COLUMNS);
    size_t fit = BLOCK_FLOATS / (POINTS * (p.channels_up + p.filters_up));
    p.block = MIN(MAX(fit, BLOCK_MIN), BLOCK_MAX) / BLOCK_STEP * BLOCK_STEP;
    p.v_plane = p.block * p.channels_up + PLANE_GAP;
    p.m_plane = p.block * p.filters_up + PLANE_GAP;
    return p;
}

static size_t u_floats(const struct plan *p)
{
    return POINTS * p->s.channels * p->filters_up;
}

static size_t u_back_floats(const struct plan *p)
{
    return POINTS * p->s.filters * p->channels_up;
}

static size_t row_floats(const struct plan *p)
{
    return MAX(p->channels_up, p->filters_up);
}

/* With fewer channels it is slower than by windows, and with few outputs most of a tile is beyond the border. */
static bool winograd_fits(const struct window_layout *at)
{
    const struct window_axis *h = &at->axis[WINDOW_HEIGHT], *w = &at->axis[WINDOW_WIDTH];
    size_t tiles = (h->out + 1) / 2 * ((w->out + 1) / 2);
    for (int i = 0; i < WINDOW_AXES; i++)
        if (at->axis[i].size != 3 || at->axis[i].stride != 1 || at->axis[i].dilation != 1)
            return false;
    return MIN(at->channels, at->out_channels) >= CHANNELS_MIN && 5 * POINTS * tiles < 4 * 9 * h->out * w->out;
}

static size_t winograd_scratch(const struct window_layout *at, size_t n)
{
    const struct plan p = plan_of(at, n);
    return u_floats(&p) + u_back_floats(&p) + POINTS * (p.v_plane + p.m_plane) + 2 * row_floats(&p);
}

static struct plan plan_begin(const struct window_layout *at, size_t n, float *scratch)
{
    struct plan p = plan_of(at, n);
    p.u = scratch;
    p.u_back = p.u + u_floats(&p);
    p.v = p.u_back + u_back_floats(&p);
    p.m = p.v + POINTS * p.v_plane;
    p.zeros = p.m + POINTS * p.m_plane;
    p.dump = p.zeros + row_floats(&p);
    memset(p.zeros, 0, 2 * row_floats(&p) * sizeof(float));
    return p;
}

/* ---- the kernel ---- */

static void weights_in(const struct plan *p, const float *w)
{
    const struct winograd *s = &p->s;
    for (size_t c = 0; c < s->channels; c++)
        winograd_weights(w + c * s->filters, s->channels * s->filters, p->u + c * p->filters_up,
                         s->channels * p->filters_up, s->filters);
}

/* u_back from u */
static void weights_turn(const struct plan *p)
{
    const struct winograd *s = &p->s;
    for (size_t k = 0; k < POINTS; k++) {
        const float *u = p->u + k * s->channels * p->filters_up;
        float *to = p->u_back + k * s->filters * p->channels_up;
        for (size_t f = 0; f < s->filters; f++, to += p->channels_up)
            for (size_t c = 0; c < s->channels; c++)
                to[c] = u[c * p->filters_up + f];
    }
}

static void weights_out(const struct plan *p, float *dw)
{
    const struct winograd *s = &p->s;
    for (size_t c = 0; c < s->channels; c++)
        winograd_weights_back(p->u + c * p->filters_up, s->channels * p->filters_up, dw + c * s->filters,
                              s->channels * s->filters, s->filters);
}

/* ---- tiles of images ---- */

struct tile_place { /* of a tile: its example, and the first row and column of its output */
    size_t example, row, column;
};

static struct tile_place place_of(const struct plan *p, size_t tile)
{
    size_t in_example = tile % p->of_example;
    return (struct tile_place){ .example = tile / p->of_example,
                                .row = in_example / p->tiles_w * 2,
                                .column = in_example % p->tiles_w * 2 };
}

/* Where the 4 x 4 positions of the input of a tile are; SIZE_MAX: outside. A row above the image wraps round, and is
 * then below it. */
static void input_places(const struct plan *p, size_t tile, size_t ret[POINTS])
{
    const struct winograd *s = &p->s;
    const struct tile_place at = place_of(p, tile);
    size_t top = at.row - s->before_h, left = at.column - s->before_w;
    for (size_t k = 0; k < POINTS; k++) {
        size_t row = top + k / 4, column = left + k % 4;
        bool inside = row < s->in_height && column < s->in_width;
        ret[k] = inside ? ((at.example * s->in_height + row) * s->in_width + column) * s->channels : SIZE_MAX;
    }
}

static void output_places(const struct plan *p, size_t tile, size_t ret[4])
{
    const struct winograd *s = &p->s;
    const struct tile_place at = place_of(p, tile);
    for (size_t k = 0; k < 4; k++) {
        size_t row = at.row + k / 2, column = at.column + k % 2;
        bool inside = row < s->out_height && column < s->out_width;
        ret[k] = inside ? ((at.example * s->out_height + row) * s->out_width + column) * s->filters : SIZE_MAX;
    }
}

static void input_block(const struct plan *p, const float *x, size_t first, size_t tiles)
{
    for (size_t t = 0; t < tiles; t++) {
        size_t at[POINTS];
        const float *from[POINTS];
        input_places(p, first + t, at);
        for (int k = 0; k < POINTS; k++)
            from[k] = at[k] == SIZE_MAX ? p->zeros : x + at[k];
        winograd_input(from, p->v + t * p->channels_up, p->v_plane, p->s.channels);
    }
}

static void input_block_back(const struct plan *p, float *dx, size_t first, size_t tiles)
{
    for (size_t t = 0; t < tiles; t++) {
        size_t at[POINTS];
        float *to[POINTS];
        input_places(p, first + t, at);
        for (int k = 0; k < POINTS; k++)
            to[k] = at[k] == SIZE_MAX ? p->dump : dx + at[k];
        winograd_input_back(p->v + t * p->channels_up, p->v_plane, to, p->s.channels);
    }
}

static void output_block(const struct plan *p, float *y, size_t first, size_t tiles)
{
    for (size_t t = 0; t < tiles; t++) {
        size_t at[4];
        float *to[4];
        output_places(p, first + t, at);
        for (int k = 0; k < 4; k++)
            to[k] = at[k] == SIZE_MAX ? p->dump : y + at[k];
        winograd_output(p->m + t * p->filters_up, p->m_plane, to, p->s.filters);
    }
}

static void output_block_back(const struct plan *p, const float *dy, size_t first, size_t tiles)
{
    for (size_t t = 0; t < tiles; t++) {
        size_t at[4];
        const float *from[4];
        output_places(p, first + t, at);
        for (int k = 0; k < 4; k++)
            from[k] = at[k] == SIZE_MAX ? p->zeros : dy + at[k];
        winograd_output_back(from, p->m + t * p->filters_up, p->m_plane, p->s.filters);
    }
}

/* ---- products of a block ---- */

/* M = V U */
static void multiply_forward(const struct plan *p, size_t tiles)
{
    for (size_t k = 0; k < POINTS; k++)
        product_multiply(&(struct product){ .a = p->v + k * p->v_plane,
                                            .a_row = p->channels_up,
                                            .a_step = 1,
                                            .b = p->u + k * p->s.channels * p->filters_up,
                                            .b_row = p->filters_up,
                                            .y = p->m + k * p->m_plane,
                                            .y_row = p->filters_up,
                                            .rows = tiles,
                                            .columns = p->filters_up,
                                            .parts = 1,
                                            .depth = p->s.channels });
}

/* dU += V'dM */
static void multiply_for_weights(const struct plan *p, size_t tiles)
{
    for (size_t k = 0; k < POINTS; k++)
        product_multiply(&(struct product){ .a = p->v + k * p->v_plane,
                                            .a_row = 1,
                                            .a_step = p->channels_up,
                                            .b = p->m + k * p->m_plane,
                                            .b_row = p->filters_up,
                                            .y = p->u + k * p->s.channels * p->filters_up,
                                            .y_row = p->filters_up,
                                            .rows = p->s.channels,
                                            .columns = p->filters_up,
                                            .parts = 1,
                                            .depth = tiles,
                                            .add = true });
}

/* dV = dM U' */
static void multiply_for_input(const struct plan *p, size_t tiles)
{
    for (size_t k = 0; k < POINTS; k++)
        product_multiply(&(struct product){ .a = p->m + k * p->m_plane,
                                            .a_row = p->filters_up,
                                            .a_step = 1,
                                            .b = p->u_back + k * p->s.filters * p->channels_up,
                                            .b_row = p->channels_up,
                                            .y = p->v + k * p->v_plane,
                                            .y_row = p->channels_up,
                                            .rows = tiles,
                                            .columns = p->channels_up,
                                            .parts = 1,
                                            .depth = p->s.filters });
}

/* ---- passes ---- */

static void winograd_begin_forward(const struct window_layout *at, const float *w, float *scratch)
{
    const struct plan p = plan_begin(at, 0, scratch);
    weights_in(&p, w);
}

static void winograd_forward(const struct window_layout *at, size_t n, const float *x, const float *w UNUSED, float *y,
                             float *scratch)
{
    const struct plan p = plan_begin(at, n, scratch);
    for (size_t first = 0; first < p.tiles; first += p.block) {
        size_t tiles = MIN(p.block, p.tiles - first);
        input_block(&p, x, first, tiles);
        multiply_forward(&p, tiles);
        output_block(&p, y, first, tiles);
    }
}

/* Zeros in the examples that tiles before `end` touch, from *zeroed on. */
static void clear_examples(const struct plan *p, float *dx, size_t end, size_t *zeroed)
{
    size_t image = p->s.in_height * p->s.in_width * p->s.channels;
    size_t examples = divide_up(end, p->of_example);
    memset(dx + *zeroed * image, 0, (examples - *zeroed) * image * sizeof(float));
    *zeroed = examples;
}

static void winograd_begin_backward(const struct window_layout *at, const float *w, const struct conv_grads *g,
                                    float *scratch)
{
    const struct plan p = plan_begin(at, 0, scratch);
    if (g->dx != NULL) {
        weights_in(&p, w);
        weights_turn(&p);
    }
    if (g->dw != NULL) /* from here on u is the gradient */
        memset(p.u, 0, u_floats(&p) * sizeof(float));
}

static void winograd_backward(const struct window_layout *at, size_t n, const float *x, const float *w UNUSED,
                              const struct conv_grads *g, float *scratch)
{
    const struct plan p = plan_begin(at, n, scratch);
    size_t zeroed = 0;
    for (size_t first = 0; first < p.tiles; first += p.block) {
        size_t tiles = MIN(p.block, p.tiles - first);
        output_block_back(&p, g->dy, first, tiles);
        if (g->dw != NULL) {
            input_block(&p, x, first, tiles);
            multiply_for_weights(&p, tiles);
        }
        if (g->dx != NULL) {
            multiply_for_input(&p, tiles);
            clear_examples(&p, g->dx, first + tiles, &zeroed);
            input_block_back(&p, g->dx, first, tiles);
        }
    }
}

static void winograd_end_backward(const struct window_layout *at, const struct conv_grads *g, float *scratch)
{
    const struct plan p = plan_begin(at, 0, scratch);
    if (g->dw != NULL)
        weights_out(&p, g->dw);
}

const struct conv_kernel conv_winograd = { .fits = winograd_fits,
                                           .scratch = winograd_scratch,
                                           .begin_forward = winograd_begin_forward,
                                           .forward = winograd_forward,
                                           .begin_backward = winograd_begin_backward,
                                           .backward = winograd_backward,
                                           .end_backward = winograd_end_backward };
