/* event_writer_internal - inside of event_writer.h: what its files share. */
#ifndef TRAINYARD_TFIO_EVENT_WRITER_INTERNAL_H
#define TRAINYARD_TFIO_EVENT_WRITER_INTERNAL_H

#include "codec/protobuf.h"
#include "tfio/event.pb-c.h"
#include "tfio/event_writer.h"

enum { DATA_CLASS_TENSOR = 2 }; /* of SummaryMetadata */

/* TensorFlow's histogram buckets. */
struct histogram_buckets {
    double *limits; /* right edges, ascending */
    size_t n;
    uint16_t *first; /* by the upper 12 bits of a float: bucket of the smallest float that has them */
};
void histogram_buckets_init(struct histogram_buckets *b);
void histogram_buckets_fini(struct histogram_buckets *b);
/* Fills *ret, whose lists then belong to *ret_lists (free() it). */
void histogram_buckets_count(const struct histogram_buckets *b, const float *values, size_t n,
                             Tensorflow__HistogramProto *ret, double **ret_lists);

/* An event with one summary value. */
MUST_USE int event_writer_value(struct event_writer *w, double wall, int64_t step, Tensorflow__Summary__Value *value,
                                struct err *e);

#endif
