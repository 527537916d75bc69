/* event_reader - reads TensorBoard's event files of any writer (framing: tfio/event_writer.h).
 *
 * All event files below a path (a file, or a folder searched with its subfolders): files in order of their names, the
 * records of a file in order. Simple values (V1) and tensors (V2) give the same events.
 */
#ifndef TRAINYARD_TFIO_EVENT_READER_H
#define TRAINYARD_TFIO_EVENT_READER_H

#include "base/str.h"

enum event_kind { EVENT_SCALAR, EVENT_HISTOGRAM, EVENT_TEXT, EVENT_SESSION, EVENT_OTHER };
struct event {
    enum event_kind kind;
    double wall;
    int64_t step;
    const char *tag;    /* "" for a session */
    const char *plugin; /* "scalars", "hparams", ... from the first value of the tag; "" when it has none */
    double value;       /* of a scalar; session_status of a session; values in a histogram */
    const char *text;   /* of a text; checkpoint path or message of a session; "" otherwise */
    struct event_bucket {
        double left, right, count;
    } * buckets; /* of a histogram */
    size_t nbuckets;
    const char *file; /* which file has it */
};

struct event_reader;
MUST_USE int event_reader_open(const char *path, struct event_reader **ret, struct err *e);
void event_reader_free(struct event_reader *r);
DEFINE_AUTO(event_reader, event_reader_free);
/* 1: *ret is the next event, borrowed until the next call; 0: no more for now (a record that is cut may be
 * completed: later calls continue there); -1: a damaged file, named in the error; the next call continues with the
 * next file. */
MUST_USE int event_reader_next(struct event_reader *r, struct event *ret, struct err *e);
/* "train" for <path>/train/events.out...; "." for a file directly in the path: what TensorBoard calls the run. */
const char *event_reader_run(const struct event_reader *r, const struct event *event, char *out, size_t n);

#endif
