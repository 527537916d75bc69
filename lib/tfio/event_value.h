/* event_value - inside of event_reader.h: the content of one record of an event file. Pure; fuzzed. */
#ifndef TRAINYARD_TFIO_EVENT_VALUE_H
#define TRAINYARD_TFIO_EVENT_VALUE_H

#include "base/map.h"
#include "codec/protobuf.h"
#include "tfio/event_reader.h"

/* A tensorflow.Event, owned: the values of its summary come one by one. */
struct event_record {
    ProtobufCMessage *message;
    double wall;
    int64_t step;
    size_t next; /* value */
};
void event_record_fini(struct event_record *r);
DEFINE_AUTO_FINI(event_record, event_record_fini);
/* Replaces what *ret held. -1: malformed; *ret is then empty. */
MUST_USE int event_record_read(const void *data, size_t n, struct event_record *ret);

/* A value of the record; its texts point into the record. Owns its buckets. */
struct event_value {
    enum event_kind kind;
    const char *tag, *plugin;
    struct buf text;
    double value;
    struct event_bucket *buckets;
    size_t nbuckets;
};
#define EVENT_VALUE_INIT                                                                                               \
    {                                                                                                                  \
        .tag = "", .plugin = "", .text = BUF_INIT                                                                      \
    }
void event_value_fini(struct event_value *v);
DEFINE_AUTO_FINI(event_value, event_value_fini);
/* The next value of the record, or false. `plugins`: tag -> char *, owned names that first values of tags gave; kept up
 * to date. */
bool event_record_next(struct event_record *r, struct map *plugins, struct event_value *ret);

#endif
