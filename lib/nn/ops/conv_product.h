/* conv_winograd_product - products of small matrices that lie in the cache: nothing is packed. Single precision, with
 * fused multiply-add where the processor has it. Each element is one sum in the order of depth, so its bits depend on
 * no other row or column. Pure, thread-safe. y overlaps neither a nor b. No alignment is needed.
 */
#ifndef TRAINYARD_NN_OPS_CONV_WINOGRAD_PRODUCT_H
#define TRAINYARD_NN_OPS_CONV_WINOGRAD_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>

enum { PRODUCT_COLUMNS = 16 };

/* y (rows, columns) = a (rows, depth) b (depth, columns), or += */
struct product {
    const float *a;
    size_t a_row, a_step; /* floats from one row of a to the next; from one column to the next */
    const float *b;
    size_t b_row;
    float *y;
    size_t y_row;
    size_t rows, columns, depth; /* columns: a multiple of PRODUCT_COLUMNS */
    bool add;
};

void product_multiply(const struct product *p);

#endif
