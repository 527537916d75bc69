/* conv_product - products of small matrices that lie in the cache: nothing is packed. Single precision, with
 * fused multiply-add where the processor has it. Each element is one sum in the order of depth, so its bits depend on
 * no other row or column. Pure, thread-safe. y overlaps neither a nor b. No alignment is needed.
 */
#ifndef TRAINYARD_NN_OPS_CONV_PRODUCT_H
#define TRAINYARD_NN_OPS_CONV_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>

enum { PRODUCT_COLUMNS = 16 };

/* y (rows, columns) = a (rows, parts * depth) b (parts * depth, columns), or +=. Number i of part k of row r of a is
 * a[k * a_part + i * a_step] behind the place of row r. */
struct product {
    const float *a;
    const size_t *a_places; /* where each row begins; NULL: a_row floats apart */
    size_t a_row, a_part, a_step;
    const float *b;
    size_t b_row;
    float *y;
    size_t y_row;
    size_t rows, columns, parts, depth; /* columns: a multiple of PRODUCT_COLUMNS */
    bool add;
};

void product_multiply(const struct product *p);

#endif
