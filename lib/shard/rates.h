/* rates - learning rates that callbacks have set: each holds from one batch ordinal, the first of an epoch, until the
 * next one. A ps applies a batch at the rate of its ordinal, so that a batch which is trained again gets the rate that
 * it had.
 *
 * Plain values; not thread-safe. Ordinals before the first entry have the optimizer's own rate.
 */
#ifndef TRAINYARD_SHARD_RATES_H
#define TRAINYARD_SHARD_RATES_H

#include "codec/node.h"

enum { RATES_MAX = 4096 }; /* older ones are dropped: no batch that old is trained again */

struct rates {
    int64_t *from; /* ascending */
    double *rate;
    size_t n;
};
#define RATES_INIT                                                                                                     \
    {                                                                                                                  \
        0                                                                                                              \
    }
void rates_fini(struct rates *r);
DEFINE_AUTO_FINI(rates, rates_fini);

/* Checks rates from outside: ascending ordinals, rates that are not negative; at most RATES_MAX. */
MUST_USE int rates_set(struct rates *r, const int64_t *from, const double *rate, size_t n, struct err *e);
void rates_copy(struct rates *to, const struct rates *from);
void rates_add(struct rates *r, int64_t from, double rate); /* from: not below the last one */
/* The rate of the ordinal; fallback before the first entry. */
double rates_at(const struct rates *r, int64_t ordinal, double fallback);

json_t *rates_to_json(const struct rates *r); /* [[from, rate], ...]; new reference */
MUST_USE int rates_from_json(struct rates *r, const struct node *n, struct err *e); /* absent: none */

#endif
