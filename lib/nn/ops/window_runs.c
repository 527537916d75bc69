/* Which outputs of a line have a position at a place of their windows that is not padding. */
#include "nn/ops/window_runs.h"

/* The outputs whose position i of the window is not padding: first .. end - 1. */
static void outputs_at(const struct window_axis *a, size_t i, size_t *ret_first, size_t *ret_end)
{
    size_t place = i * a->dilation, room = a->in + a->before;
    *ret_first = place >= a->before ? 0 : divide_up(a->before - place, a->stride);
    *ret_end = place >= room ? 0 : MIN((room - place - 1) / a->stride + 1, a->out);
}

static void window_line(const struct window_layout *at, size_t line, window_run_fn *fn, void *user)
{
    const struct window_axis *h = &at->axis[WINDOW_HEIGHT], *w = &at->axis[WINDOW_WIDTH];
    size_t example = line / h->out, row = line % h->out, top, bottom;
    size_t reach = (w->out - 1) * w->stride; /* columns before `left` and from `right` on are padding only */
    size_t left = w->before > reach ? divide_up(w->before - reach, w->dilation) : 0;
    size_t right = MIN(w->size, divide_up(w->in + w->before, w->dilation));
    window_inside(h, row, &top, &bottom);
    for (size_t i = top; i < bottom; i++)
        for (size_t j = left; j < right; j++) {
            size_t first, end;
            outputs_at(w, j, &first, &end);
            if (end <= first)
                continue;
            size_t y = row * h->stride + i * h->dilation - h->before;
            size_t x = first * w->stride + j * w->dilation - w->before;
            fn(&(struct window_run){ .place = i * w->size + j,
                                     .x = (example * h->in + y) * w->in + x,
                                     .step = w->stride,
                                     .y = line * w->out + first,
                                     .n = end - first },
               user);
        }
}

void window_runs(const struct window_layout *at, size_t examples, window_run_fn *fn, void *user)
{
    for (size_t line = 0; line < examples * at->axis[WINDOW_HEIGHT].out; line++)
        window_line(at, line, fn, user);
}
