/* bins - keras.layers.Discretization: numbers become the numbers of ranges. n boundaries make n + 1 ranges; a value
 * that equals a boundary lies above it. All is compared as float32, as Keras does.
 *
 *     struct bins_learner l = { .n = 0 };
 *     bins_add(&l, 23.5);                       // each value
 *     size_t n = bins_finish(&l, 10, &boundaries);
 *
 * Memory is bounded: BINS_CHUNK values are kept, and then summarized with an error of 1%, as by Keras's adapt() for one
 * batch. Up to BINS_CHUNK values give the boundaries of adapt() on all of them in one batch. Inside of lib/data.
 */
#ifndef TRAINYARD_DATA_BINS_H
#define TRAINYARD_DATA_BINS_H

#include "base/mem.h"

enum { BINS_CHUNK = 1 << 16, BINS_SUMMARY_MAX = 199 + 100 }; /* of a chunk, and of those before it */

/* The range of v: 0 to n. Boundaries do not decrease. */
size_t bins_place(const double *boundaries, size_t n, double v);

struct bins_summary { /* sorted values, and how many each stands for */
    float value[BINS_SUMMARY_MAX], weight[BINS_SUMMARY_MAX];
    size_t n;
};
struct bins_learner {
    float *values; /* of the chunk that is not full yet */
    size_t n, room;
    struct bins_summary summary;
};
void bins_fini(struct bins_learner *l);
DEFINE_AUTO_FINI(bins_learner, bins_fini);

/* v is finite. */
void bins_add(struct bins_learner *l, double v);
/* About num_bins - 1 boundaries; fewer of fewer values. Some are equal where one value is frequent. *ret must be freed;
 * at least one value was added, and num_bins is 1 or more. */
size_t bins_finish(struct bins_learner *l, size_t num_bins, double **ret);

#endif
