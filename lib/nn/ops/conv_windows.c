/* Convolutions as matrix products: the windows of some outputs are copied into the rows of a matrix, which is
 * multiplied by the kernel. */
#include <string.h>

#include "nn/ops/conv_kernel.h"
#include "tensor/gemm.h"
#include "tensor/kernel.h"

enum { TILE_FLOATS = 64 << 10, TILE_ROWS = 32 }; /* of windows at a time: with the kernel they stay in the L2 cache */

struct tiles {
    const struct window_layout *at;
    size_t window;        /* floats of a window: the rows of the kernel */
    size_t outputs, each; /* of all examples; in one tile */
    float *windows;       /* (each, window) */
};

static struct tiles tiles_of(const struct window_layout *at, size_t n, float *scratch)
{
    const struct window_axis *h = &at->axis[WINDOW_HEIGHT], *w = &at->axis[WINDOW_WIDTH];
    struct tiles t = { .at = at, .window = h->size * w->size * at->channels, .outputs = n * h->out * w->out };
    t.each = MIN(MAX(TILE_FLOATS / t.window, TILE_ROWS), MAX(t.outputs, 1));
    t.windows = scratch;
    return t;
}

static bool windows_fits(const struct window_layout *at UNUSED)
{
    return true;
}

static size_t windows_scratch(const struct window_layout *at, size_t n)
{
    const struct tiles t = tiles_of(at, n, NULL);
    return t.each * t.window;
}

/* ---- windows ---- */

/* Outputs of one line (a height of an image): first .. first + n - 1, whose windows begin at `windows`. */
struct line {
    size_t at, first, n;
    float *windows;
};

/* The next line of the outputs output .. output + n - 1, of which `done` are done. */
static struct line line_after(const struct tiles *t, size_t output, size_t n, size_t done)
{
    size_t width = t->at->axis[WINDOW_WIDTH].out, first = (output + done) % width;
    return (struct line){ .at = (output + done) / width,
                          .first = first,
                          .n = MIN(width - first, n - done),
                          .windows = t->windows + done * t->window };
}

/* Where in the images the row begins that row i of the windows of a line covers; false: it is padding. */
static bool image_row(const struct tiles *t, const struct line *line, size_t i, size_t *ret)
{
    const struct window_axis *h = &t->at->axis[WINDOW_HEIGHT], *w = &t->at->axis[WINDOW_WIDTH];
    size_t at = line->at % h->out * h->stride + i * h->dilation;
    if (at < h->before || at - h->before >= h->in)
        return false;
    *ret = (line->at / h->out * h->in + at - h->before) * w->in * t->at->channels;
    return true;
}

/* Copies one row of the window of output o; `row` NULL is padding. */
static void copy_row(const struct tiles *t, const float *row, size_t o, float *to)
{
    const struct window_axis *w = &t->at->axis[WINDOW_WIDTH];
    size_t c = t->at->channels, first = 0, end = 0;
    if (row != NULL)
        window_inside(w, o, &first, &end);
    if (end <= first) {
        memset(to, 0, w->size * c * sizeof(*to));
        return;
    }
    const float *from = row + (o * w->stride + first * w->dilation - w->before) * c;
    memset(to, 0, first * c * sizeof(*to));
    if (w->dilation == 1)
        memcpy(to + first * c, from, (end - first) * c * sizeof(*to));
    for (size_t i = first; w->dilation > 1 && i < end; i++)
        memcpy(to + i * c, from + (i - first) * w->dilation * c, c * sizeof(*to));
    memset(to + end * c, 0, (w->size - end) * c * sizeof(*to));
}

/* n runs of `run` floats, `from_step` and `to_step` apart. */
static void copy_runs(const float *restrict from, size_t from_step, float *restrict to, size_t to_step, size_t run,
                      size_t n)
{
    for (size_t k = 0; k < n; k++, from += from_step, to += to_step)
        for (size_t i = 0; i < run; i++)
            to[i] = from[i];
}

/* The outputs first .. end - 1 have windows of which no column is padding. */
struct whole {
    size_t first, end;
};

static struct whole whole_windows(const struct window_axis *w, const struct line *line)
{
    size_t span = (w->size - 1) * w->dilation + 1, room = w->in + w->before;
    size_t first = divide_up(w->before, w->stride), end = room < span ? 0 : (room - span) / w->stride + 1;
    struct whole ret = { .first = MAX(first, line->first), .end = MIN(end, line->first + line->n) };
    return ret.first < ret.end ? ret : (struct whole){ line->first, line->first };
}

static void gather_line(const struct tiles *t, const float *x, const struct line *line)
{
    const struct window_axis *h = &t->at->axis[WINDOW_HEIGHT], *w = &t->at->axis[WINDOW_WIDTH];
    size_t c = t->at->channels, part = w->size * c;
    const struct whole whole = whole_windows(w, line);
    for (size_t i = 0; i < h->size; i++) {
        size_t at = 0;
        const float *row = image_row(t, line, i, &at) ? x + at : NULL;
        float *to = line->windows + i * part;
        bool runs = row != NULL && w->dilation == 1 && whole.first < whole.end;
        if (runs)
            copy_runs(row + (whole.first * w->stride - w->before) * c, w->stride * c,
                      to + (whole.first - line->first) * t->window, t->window, part, whole.end - whole.first);
        for (size_t o = line->first; o < line->first + line->n; o++)
            if (!runs || o < whole.first || o >= whole.end)
                copy_row(t, row, o, to + (o - line->first) * t->window);
    }
}

static void gather(const struct tiles *t, const float *x, size_t output, size_t n)
{
    for (size_t done = 0; done < n;) {
        const struct line line = line_after(t, output, n, done);
        gather_line(t, x, &line);
        done += line.n;
    }
}

/* Adds the gradients of windows to those of the positions that they cover. */
static void scatter_line(const struct tiles *t, float *dx, const struct line *line)
{
    const struct window_axis *h = &t->at->axis[WINDOW_HEIGHT], *w = &t->at->axis[WINDOW_WIDTH];
    size_t c = t->at->channels, part = w->size * c;
    for (size_t i = 0; i < h->size; i++) {
        size_t at = 0;
        float *row = image_row(t, line, i, &at) ? dx + at : NULL;
        for (size_t o = line->first; row != NULL && o < line->first + line->n; o++) {
            const float *from = line->windows + (o - line->first) * t->window + i * part;
            size_t first, end;
            window_inside(w, o, &first, &end);
            if (end <= first)
                continue;
            size_t run = w->dilation == 1 ? end - first : 1; /* positions side by side */
            float *to = row + (o * w->stride + first * w->dilation - w->before) * c;
            for (size_t j = first; j < end; j += run, to += w->dilation * c)
                kernel_add(from + j * c, to, run * c);
        }
    }
}

static void scatter(const struct tiles *t, float *dx, size_t output, size_t n)
{
    for (size_t done = 0; done < n;) {
        const struct line line = line_after(t, output, n, done);
        scatter_line(t, dx, &line);
        done += line.n;
    }
}

/* ---- passes ---- */

static void windows_forward(const struct window_layout *at, size_t n, const float *x, const float *w, float *y,
                            float *scratch)
{
    const struct tiles t = tiles_of(at, n, scratch);
    for (size_t o = 0; o < t.outputs; o += t.each) {
        size_t rows = MIN(t.each, t.outputs - o), filters = at->out_channels;
        gather(&t, x, o, rows);
        gemm_nn(t.windows, w, 0.0F, y + o * filters, rows, filters, t.window);
    }
}

/* As of Dense, with windows for rows; a position gets the gradients of all windows that cover it. */
static void windows_backward(const struct window_layout *at, size_t n, const float *x, const float *w,
                             const struct conv_grads *g, float *scratch)
{
    const struct tiles t = tiles_of(at, n, scratch);
    if (g->dx != NULL)
        memset(g->dx, 0, n * at->axis[WINDOW_HEIGHT].in * at->axis[WINDOW_WIDTH].in * at->channels * sizeof(float));
    for (size_t o = 0; o < t.outputs; o += t.each) {
        size_t rows = MIN(t.each, t.outputs - o), filters = at->out_channels;
        const float *dy = g->dy + o * filters;
        if (g->dw != NULL) {
            gather(&t, x, o, rows);
            gemm_tn(t.windows, dy, 1.0F, g->dw, t.window, filters, rows);
        }
        if (g->dx != NULL) {
            gemm_nt(dy, w, 0.0F, t.windows, rows, t.window, filters);
            scatter(&t, g->dx, o, rows);
        }
    }
}

const struct conv_kernel conv_windows = { .fits = windows_fits,
                                          .scratch = windows_scratch,
                                          .forward = windows_forward,
                                          .begin_backward = conv_clear_weights,
                                          .backward = windows_backward };
