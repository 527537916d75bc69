/* Axes that follow each other and are all repeated, or all kept, count as one: the innermost loops are long. */
#include "nn/ops/broadcast.h"

#include <string.h>

#include "nn/ops/row.h"

struct broadcast {
    int rank;
    size_t size[SHAPE_MAX_RANK + 1];
    bool repeated[SHAPE_MAX_RANK + 1];
};

static void broadcast_axis(struct broadcast *b, size_t size, bool repeated)
{
    if (size == 1)
        return;
    if (b->rank > 0 && b->repeated[b->rank - 1] == repeated) {
        b->size[b->rank - 1] *= size;
        return;
    }
    b->size[b->rank] = size;
    b->repeated[b->rank++] = repeated;
}

static struct broadcast broadcast_of(const struct shape *in, const struct shape *out, size_t n)
{
    struct broadcast b = { 0 };
    int missing = out->rank - in->rank;
    broadcast_axis(&b, n, false);
    for (int i = 0; i < out->rank; i++)
        broadcast_axis(&b, (size_t)out->dim[i], i < missing || in->dim[i - missing] != out->dim[i]);
    if (b.rank == 0) /* a single element */
        b.size[b.rank++] = 1;
    return b;
}

/* Both walk over the axes from `axis` on and return where the next part of the smaller tensor is. */
static const float *repeat_from(const struct broadcast *b, int axis, const float *x, float **y)
{
    size_t size = b->size[axis];
    const float *next = x;
    if (axis + 1 < b->rank) {
        for (size_t i = 0; i < size; i++)
            next = repeat_from(b, axis + 1, b->repeated[axis] ? x : next, y);
        return next;
    }
    float *to = *y;
    *y += size;
    if (!b->repeated[axis]) {
        memcpy(to, x, size * sizeof(*to));
        return x + size;
    }
    for (size_t i = 0; i < size; i++)
        to[i] = *x;
    return x + 1;
}

static float *sum_from(const struct broadcast *b, int axis, const float **dy, float *dx)
{
    size_t size = b->size[axis];
    float *next = dx;
    if (axis + 1 < b->rank) {
        for (size_t i = 0; i < size; i++)
            next = sum_from(b, axis + 1, dy, b->repeated[axis] ? dx : next);
        return next;
    }
    const float *from = *dy;
    *dy += size;
    if (!b->repeated[axis]) {
        kernel_add(from, dx, size);
        return dx + size;
    }
    *dx += row_sum(from, size);
    return dx + 1;
}

void broadcast_repeat(const struct shape *in, const struct shape *out, size_t n, const float *x, float *y)
{
    struct broadcast b = broadcast_of(in, out, n);
    repeat_from(&b, 0, x, &y);
}

void broadcast_sum(const struct shape *in, const struct shape *out, size_t n, const float *dy, float *dx)
{
    struct broadcast b = broadcast_of(in, out, n);
    memset(dx, 0, n * shape_elements(in) * sizeof(*dx));
    sum_from(&b, 0, &dy, dx);
}
