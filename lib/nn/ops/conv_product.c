/* Products by a loop that keeps a tile of y in vector registers, compiled for AVX-512, for AVX2, and plain. gcc fuses
 * multiplications and additions only where it is told so, because -ffp-contract=off holds for the whole tree. */
#include "nn/ops/conv_product.h"

#include "base/mem.h"

#ifdef __clang__
#define UNROLL      _Pragma("clang loop unroll(full)")
#define FUSED_BODY  _Pragma("clang fp contract(fast)")
#define TARGET(isa) __attribute__((target(isa)))
#else
#define UNROLL _Pragma("GCC unroll 16")
#define FUSED_BODY
#define TARGET(isa) __attribute__((target(isa), optimize("fp-contract=fast")))
#endif
#define INLINE static inline __attribute__((always_inline))

typedef float lanes16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef float lanes8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float lanes4 __attribute__((vector_size(16), aligned(4), may_alias));

/* `rows` rows and `vectors` vectors of y, both constant where this is inlined. place: where these rows of a begin. */
#define DEFINE_TILE(name, attributes, vector, max_rows, max_vectors)                                                   \
    attributes INLINE void name(const struct product *p, const size_t *place, size_t column, float *y, int rows,       \
                                int vectors)                                                                           \
    {                                                                                                                  \
        FUSED_BODY                                                                                                     \
        enum { LANES = sizeof(vector) / sizeof(float) };                                                               \
        vector sum[max_rows * max_vectors], in[max_vectors];                                                           \
        const float *b = p->b + column;                                                                                \
        UNROLL for (int k = 0; k < rows * vectors; k++) sum[k] = (vector){ 0 };                                        \
        for (size_t part = 0; part < p->parts; part++) {                                                               \
            const float *a = p->a + part * p->a_part;                                                                  \
            for (size_t i = 0; i < p->depth; i++, a += p->a_step, b += p->b_row) {                                     \
                UNROLL for (int v = 0; v < vectors; v++) in[v] = *(const vector *)(b + v * LANES);                     \
                UNROLL for (int k = 0; k < rows * vectors; k++) sum[k] += a[place[k / vectors]] * in[k % vectors];     \
            }                                                                                                          \
        }                                                                                                              \
        UNROLL for (int k = 0; k < rows * vectors; k++)                                                                \
        {                                                                                                              \
            vector *to = (vector *)(y + (size_t)(k / vectors) * p->y_row + k % vectors * LANES);                       \
            if (p->add)                                                                                                \
                sum[k] += *to;                                                                                         \
            *to = sum[k];                                                                                              \
        }                                                                                                              \
    }

#define ROWS_OF(name, n, vectors)                                                                                      \
    case n:                                                                                                            \
        name##_tile(p, place, column, y, n, vectors);                                                                  \
        break;

/* All rows of some columns: in tiles of about as many rows each, because a tile of few rows waits for its sums. */
#define DEFINE_PANEL(name, attributes, suffix, max_rows, vectors)                                                      \
    attributes static void name##_panel##suffix(const struct product *p, size_t column)                                \
    {                                                                                                                  \
        const size_t tiles = (p->rows + max_rows - 1) / max_rows, each = (p->rows + tiles - 1) / tiles;                \
        for (size_t row = 0; row < p->rows; row += each) {                                                             \
            size_t place[max_rows];                                                                                    \
            float *y = p->y + row * p->y_row + column;                                                                 \
            const size_t rows = MIN(p->rows - row, each);                                                              \
            for (size_t k = 0; k < rows; k++)                                                                          \
                place[k] = p->a_places != NULL ? p->a_places[row + k] : (row + k) * p->a_row;                          \
            switch (rows) {                                                                                            \
                ROWS_##max_rows(name, vectors)                                                                         \
            }                                                                                                          \
        }                                                                                                              \
    }
#define ROWS_2(name, v) ROWS_OF(name, 1, v) ROWS_OF(name, 2, v)
#define ROWS_4(name, v) ROWS_OF(name, 1, v) ROWS_OF(name, 2, v) ROWS_OF(name, 3, v) ROWS_OF(name, 4, v)
#define ROWS_6(name, v) ROWS_4(name, v) ROWS_OF(name, 5, v) ROWS_OF(name, 6, v)
#define ROWS_8(name, v) ROWS_6(name, v) ROWS_OF(name, 7, v) ROWS_OF(name, 8, v)

/* Columns in panels of `most` vectors, the last ones in one of PRODUCT_COLUMNS. */
#define DEFINE_PRODUCT(name, attributes, vector, max_rows, most, least)                                                \
    DEFINE_TILE(name##_tile, attributes, vector, max_rows, most)                                                       \
    DEFINE_PANEL(name, attributes, _wide, max_rows, most)                                                              \
    DEFINE_PANEL(name, attributes, _narrow, max_rows, least)                                                           \
    static void name(const struct product *p)                                                                          \
    {                                                                                                                  \
        const size_t wide = (most) * sizeof(vector) / sizeof(float);                                                   \
        size_t column = 0;                                                                                             \
        for (; column + wide <= p->columns; column += wide)                                                            \
            name##_panel_wide(p, column);                                                                              \
        for (; column < p->columns; column += PRODUCT_COLUMNS)                                                         \
            name##_panel_narrow(p, column);                                                                            \
    }

#ifdef __x86_64__
DEFINE_PRODUCT(product_avx512, TARGET("avx512f"), lanes16, 8, 2, 1)
DEFINE_PRODUCT(product_avx2, TARGET("avx2,fma"), lanes8, 6, 2, 2)
#endif
DEFINE_PRODUCT(product_plain, , lanes4, 2, 4, 4)

void product_multiply(const struct product *p)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        product_avx512(p);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        product_avx2(p);
    else
#endif
        product_plain(p);
}
