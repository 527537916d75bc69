/* overlap - whether a worker computes its next gradient while a push is still under way. Pure.
 *
 * It hides the push, but every worker's values are then one push older: with W workers the staleness is 2W - 1 instead of
 * W - 1. MNIST with Adam loses nothing by a staleness of 3 and 0.001 to 0.003 of accuracy by one of 7, more on a machine with
 * fewer cores than replicas (docs/benchmarks.md, Staleness). So a worker overlaps while the staleness it sees is small: with
 * up to three workers of equal speed.
 */
#ifndef TRAINYARD_TRAIN_OVERLAP_H
#define TRAINYARD_TRAIN_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

struct overlap {
    bool allowed, on;
    double staleness;  /* mean over the last pushes */
    int pushes;        /* so many */
};
/* on from the first push if allowed. */
struct overlap overlap_init(bool allowed);
/* After a push: staleness as it was answered. */
void overlap_observe(struct overlap *o, int64_t staleness);

#endif
