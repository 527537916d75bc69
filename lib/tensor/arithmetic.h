/* arithmetic - what determines the bits that this process computes: BLAS, its kernels, and the C library's functions.
 *
 * Two processes with the same text compute the same bits of the same batch. The instruction set of our own kernels is
 * not in it, because they give the same bits on every x86-64 (tensor/kernel.h).
 */
#ifndef TRAINYARD_TENSOR_ARITHMETIC_H
#define TRAINYARD_TENSOR_ARITHMETIC_H

enum { ARITHMETIC_MAX = 128 }; /* bytes, with the 0 */

/* One line: "OpenBLAS 0.3.21, core Zen, 1 thread, glibc 2.36 with FMA". Constant for the process. */
void arithmetic_describe(char out[ARITHMETIC_MAX]);

#endif
