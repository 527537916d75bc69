/* label_span - the labels that a reader saw when it opened a data set of one label an example: from where to where, and
 * which records have the least and the largest one.
 */
#ifndef TRAINYARD_DATA_LABEL_SPAN_H
#define TRAINYARD_DATA_LABEL_SPAN_H

#include <stdbool.h>
#include <stdint.h>

struct label_span {
    int64_t n;              /* 0: it saw none */
    double min, max;        /* min is NaN when one is */
    int64_t min_at, max_at; /* the first records that have them */
    bool whole;             /* all are whole numbers */
};

/* Adds the label of a record. */
void label_span_add(struct label_span *s, double v, int64_t record);
/* Adds the labels of the next file, whose first record has the number `first`. */
void label_span_join(struct label_span *s, const struct label_span *next, int64_t first);

#endif
