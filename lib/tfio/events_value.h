/* events_value - inside of tfio/events.h: what one record of an event file says. Pure; every byte is fuzzed. */
#ifndef TRAINYARD_TFIO_EVENTS_VALUE_H
#define TRAINYARD_TFIO_EVENTS_VALUE_H

#include "tfio/events.h"

/* A tensorflow.Event taken apart: the values of its summary come one by one. */
struct event_record {
    double wall;
    int64_t step;
    struct reader summary; /* what is left of it; points into the record */
    bool has_session;
    uint64_t status;
    struct buf text; /* of the session */
};
#define EVENT_RECORD_INIT                                                                                              \
    {                                                                                                                  \
        .text = BUF_INIT                                                                                               \
    }
void event_record_fini(struct event_record *r);
DEFINE_AUTO_FINI(event_record, event_record_fini);
/* Replaces what *ret held. -1: malformed. */
MUST_USE int event_record_read(const void *data, size_t n, struct event_record *ret);

/* A summary value, owned. */
struct event_value {
    enum event_kind kind;
    struct buf tag, plugin, text;
    double value;
    struct event_bucket *buckets;
    size_t nbuckets;
};
#define EVENT_VALUE_INIT                                                                                               \
    {                                                                                                                  \
        .tag = BUF_INIT, .plugin = BUF_INIT, .text = BUF_INIT                                                          \
    }
void event_value_fini(struct event_value *v);
DEFINE_AUTO_FINI(event_value, event_value_fini);
/* The next value of the record: 1, 0 at the end, -1 malformed. `plugins`: tag -> char *, owned names that first values
 * of tags gave; kept up to date. */
int event_record_next(struct event_record *r, struct strmap *plugins, struct event_value *ret);

#endif
