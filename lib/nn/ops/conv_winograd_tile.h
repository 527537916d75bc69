/* conv_winograd_tile - the transforms of Winograd's F(2x2, 3x3) and their adjoints, for n channels of one tile.
 *
 * A tile has 4 x 4 positions of the input and 2 x 2 of the output, in row-major order: a pointer for each. A
 * transformed tile has 4 x 4 points, which lie `plane` floats apart. No alignment is needed. Pure, thread-safe.
 *
 *     B' =  1  0 -1  0    A' = 1  1  1  0    G =  1    0    0
 *           0  1  1  0         0  1 -1 -1        1/2  1/2  1/2
 *           0 -1  1  0                           1/2 -1/2  1/2
 *           0  1  0 -1                            0    0    1
 */
#ifndef TRAINYARD_NN_OPS_CONV_WINOGRAD_TILE_H
#define TRAINYARD_NN_OPS_CONV_WINOGRAD_TILE_H

#include <stddef.h>

enum { WINOGRAD_POINTS = 16 };

/* v = B'd B */
void winograd_input(const float *const *d, float *v, size_t plane, size_t n);
/* d += B v B'; positions that are not read may share a pointer */
void winograd_input_back(const float *v, size_t plane, float *const *d, size_t n);
/* y = A'm A; positions that are not read may share a pointer */
void winograd_output(const float *m, size_t plane, float *const *y, size_t n);
/* m = A y A' */
void winograd_output_back(const float *const *y, float *m, size_t plane, size_t n);
/* u = G w G', for n filters; the 3 x 3 positions of w lie `step` floats apart */
void winograd_weights(const float *w, size_t step, float *u, size_t plane, size_t n);
/* w = G'u G */
void winograd_weights_back(const float *u, size_t plane, float *w, size_t step, size_t n);

#endif
