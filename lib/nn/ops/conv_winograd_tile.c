/* The transforms of conv_winograd, one channel at a time: sums of a few terms in a fixed order, so the bits are the
 * same with every vector width. */
#include "nn/ops/conv_winograd_tile.h"

#include "tensor/kernel.h"

/* ---- the matrices B', A', G and their transposes, of one column or row ---- */

struct four {
    float a, b, c, d;
};

static inline struct four input_of(struct four x) /* B' */
{
    return (struct four){ x.a - x.c, x.b + x.c, x.c - x.b, x.b - x.d };
}

static inline struct four input_back(struct four v) /* B */
{
    return (struct four){ v.a, v.b - v.c + v.d, v.b + v.c - v.a, -v.d };
}

static inline struct four output_back(float a, float b) /* A */
{
    return (struct four){ a, a + b, a - b, -b };
}

static inline struct four weight_of(float a, float b, float c) /* G */
{
    return (struct four){ a, 0.5F * (a + c + b), 0.5F * (a + c - b), c };
}

/* ---- transforms ---- */

static inline void put_row(float *to, size_t plane, struct four x)
{
    to[0] = x.a;
    to[plane] = x.b;
    to[2 * plane] = x.c;
    to[3 * plane] = x.d;
}

static inline struct four get_row(const float *from, size_t plane)
{
    return (struct four){ from[0], from[plane], from[2 * plane], from[3 * plane] };
}

KERNEL void winograd_input(const float *const *d, float *v, size_t plane, size_t n)
{
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        struct four k = input_of((struct four){ d[0][i], d[4][i], d[8][i], d[12][i] });
        struct four l = input_of((struct four){ d[1][i], d[5][i], d[9][i], d[13][i] });
        struct four m = input_of((struct four){ d[2][i], d[6][i], d[10][i], d[14][i] });
        struct four o = input_of((struct four){ d[3][i], d[7][i], d[11][i], d[15][i] });
        put_row(v + i, plane, input_of((struct four){ k.a, l.a, m.a, o.a }));
        put_row(v + 4 * plane + i, plane, input_of((struct four){ k.b, l.b, m.b, o.b }));
        put_row(v + 8 * plane + i, plane, input_of((struct four){ k.c, l.c, m.c, o.c }));
        put_row(v + 12 * plane + i, plane, input_of((struct four){ k.d, l.d, m.d, o.d }));
    }
}

static inline void add_row(float *const *to, size_t i, struct four x)
{
    to[0][i] += x.a;
    to[1][i] += x.b;
    to[2][i] += x.c;
    to[3][i] += x.d;
}

KERNEL void winograd_input_back(const float *v, size_t plane, float *const *d, size_t n)
{
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        struct four k = input_back(get_row(v + i, plane)), l = input_back(get_row(v + 4 * plane + i, plane));
        struct four m = input_back(get_row(v + 8 * plane + i, plane)),
                    o = input_back(get_row(v + 12 * plane + i, plane));
        struct four w = input_back((struct four){ k.a, l.a, m.a, o.a });
        struct four x = input_back((struct four){ k.b, l.b, m.b, o.b });
        struct four y = input_back((struct four){ k.c, l.c, m.c, o.c });
        struct four z = input_back((struct four){ k.d, l.d, m.d, o.d });
        add_row(d, i, (struct four){ w.a, x.a, y.a, z.a });
        add_row(d + 4, i, (struct four){ w.b, x.b, y.b, z.b });
        add_row(d + 8, i, (struct four){ w.c, x.c, y.c, z.c });
        add_row(d + 12, i, (struct four){ w.d, x.d, y.d, z.d });
    }
}

KERNEL void winograd_output(const float *m, size_t plane, float *const *y, size_t n)
{
    float *y0 = y[0], *y1 = y[1], *y2 = y[2], *y3 = y[3];
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        struct four a = get_row(m + i, plane), b = get_row(m + 4 * plane + i, plane);
        struct four c = get_row(m + 8 * plane + i, plane), d = get_row(m + 12 * plane + i, plane);
        struct four top = { a.a + b.a + c.a, a.b + b.b + c.b, a.c + b.c + c.c, a.d + b.d + c.d };
        struct four low = { b.a - c.a - d.a, b.b - c.b - d.b, b.c - c.c - d.c, b.d - c.d - d.d };
        y0[i] = top.a + top.b + top.c;
        y1[i] = top.b - top.c - top.d;
        y2[i] = low.a + low.b + low.c;
        y3[i] = low.b - low.c - low.d;
    }
}

KERNEL void winograd_output_back(const float *const *y, float *m, size_t plane, size_t n)
{
    const float *y0 = y[0], *y1 = y[1], *y2 = y[2], *y3 = y[3];
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        struct four left = output_back(y0[i], y2[i]), right = output_back(y1[i], y3[i]);
        put_row(m + i, plane, output_back(left.a, right.a));
        put_row(m + 4 * plane + i, plane, output_back(left.b, right.b));
        put_row(m + 8 * plane + i, plane, output_back(left.c, right.c));
        put_row(m + 12 * plane + i, plane, output_back(left.d, right.d));
    }
}

KERNEL void winograd_weights(const float *w, size_t step, float *u, size_t plane, size_t n)
{
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        const float *g = w + i;
        struct four k = weight_of(g[0], g[3 * step], g[6 * step]), l = weight_of(g[step], g[4 * step], g[7 * step]);
        struct four m = weight_of(g[2 * step], g[5 * step], g[8 * step]);
        put_row(u + i, plane, weight_of(k.a, l.a, m.a));
        put_row(u + 4 * plane + i, plane, weight_of(k.b, l.b, m.b));
        put_row(u + 8 * plane + i, plane, weight_of(k.c, l.c, m.c));
        put_row(u + 12 * plane + i, plane, weight_of(k.d, l.d, m.d));
    }
}

static inline void put_weights(float *to, size_t step, struct four u) /* G' */
{
    float half = 0.5F * (u.b + u.c);
    to[0] = u.a + half;
    to[step] = 0.5F * (u.b - u.c);
    to[2 * step] = half + u.d;
}

KERNEL void winograd_weights_back(const float *u, size_t plane, float *w, size_t step, size_t n)
{
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++) {
        struct four a = get_row(u + i, plane), b = get_row(u + 4 * plane + i, plane);
        struct four c = get_row(u + 8 * plane + i, plane), d = get_row(u + 12 * plane + i, plane);
        struct four half = { 0.5F * (b.a + c.a), 0.5F * (b.b + c.b), 0.5F * (b.c + c.c), 0.5F * (b.d + c.d) };
        struct four odd = { 0.5F * (b.a - c.a), 0.5F * (b.b - c.b), 0.5F * (b.c - c.c), 0.5F * (b.d - c.d) };
        put_weights(w + i, step, (struct four){ a.a + half.a, a.b + half.b, a.c + half.c, a.d + half.d });
        put_weights(w + 3 * step + i, step, odd);
        put_weights(w + 6 * step + i, step, (struct four){ half.a + d.a, half.b + d.b, half.c + d.c, half.d + d.d });
    }
}
