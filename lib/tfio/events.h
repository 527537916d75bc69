/* events - TensorBoard's event files: records of tensorflow.Event (core/util/event.proto, core/framework/summary.proto)
 * in TFRecord framing.
 *
 * TensorBoard drops a file for ever at the first damaged record, and waits for more at a record that is cut. So each
 * record here is one write(2), a file is only appended to, by one writer, and a restart begins a new file.
 */
#ifndef TRAINYARD_TFIO_EVENTS_H
#define TRAINYARD_TFIO_EVENTS_H

#include "base/str.h"
#include "codec/json.h"

/* ---- writing: not thread-safe; `wall` is seconds since the epoch ---- */

struct events_writer;
/* Makes dir/events.out.tfevents.<wall>.<host>, with ".1", ".2", ... when that exists; dir is made too. */
MUST_USE int events_open(const char *dir, double wall, const char *host, struct events_writer **ret, struct err *e);
void events_free(struct events_writer *w);
DEFINE_AUTO(events_writer, events_free);
const char *events_path(const struct events_writer *w);

MUST_USE int events_scalar(struct events_writer *w, double wall, int64_t step, const char *tag, float value,
                           struct err *e);
/* Buckets as TensorFlow's (edges grow by a tenth). NaN and Inf are left out; n may be 0. */
MUST_USE int events_histogram(struct events_writer *w, double wall, int64_t step, const char *tag, const float *values,
                              size_t n, struct err *e);
MUST_USE int events_text(struct events_writer *w, double wall, int64_t step, const char *tag, const char *markdown,
                         struct err *e);
enum events_session { EVENTS_START = 1, EVENTS_STOP = 2, EVENTS_CHECKPOINT = 3 };
/* START with step s makes TensorBoard forget what other files of the folder have from s on (a job that went back); it
 * takes only the second START of a folder and later ones for restarts, so every life writes one, the first at step 0.
 * path (of the checkpoint) and msg may be NULL. */
MUST_USE int events_session(struct events_writer *w, double wall, enum events_session status, int64_t step,
                            const char *path, const char *msg, struct err *e);
/* What the HParams tab shows: `hparams` is an object of strings, numbers and booleans (others are written as JSON
 * text), `metrics` the scalar tags to compare, `group` the name of the run. Written when the session starts;
 * events_hparams_end when it ends. */
MUST_USE int events_hparams(struct events_writer *w, double wall, const json_t *hparams, const char *const metrics[],
                            size_t nmetrics, const char *group, struct err *e);
MUST_USE int events_hparams_end(struct events_writer *w, double wall, bool success, struct err *e);
MUST_USE int events_flush(struct events_writer *w, struct err *e); /* fsync */

/* ---- reading ---- */

enum event_kind { EVENT_SCALAR, EVENT_HISTOGRAM, EVENT_TEXT, EVENT_SESSION, EVENT_OTHER };
struct event {
    enum event_kind kind;
    double wall;
    int64_t step;
    const char *tag;    /* "" for a session */
    const char *plugin; /* "scalars", "hparams", ... as the first value of the tag named it; "" when it did not */
    double value;       /* of a scalar; status of a session; values in a histogram */
    const char *text;   /* of a text; checkpoint path or message of a session; "" otherwise */
    struct event_bucket {
        double left, right, count;
    } * buckets; /* of a histogram */
    size_t nbuckets;
    const char *file; /* where it stands */
};

/* All event files below a path (a file, or a folder searched with its subfolders): files in order of their names, the
 * records of a file in order. Simple values (V1) and tensors (V2) look the same. */
struct events_reader;
MUST_USE int events_reader_open(const char *path, struct events_reader **ret, struct err *e);
void events_reader_free(struct events_reader *r);
DEFINE_AUTO(events_reader, events_reader_free);
/* 1: *ret is the next event, borrowed until the next call; 0: no more for now (a record that is cut may be completed:
 * later calls go on there); -1: a damaged file, named in the error; the next call goes on with the next file. */
MUST_USE int events_reader_next(struct events_reader *r, struct event *ret, struct err *e);
/* "train" for <path>/train/events.out...; "." for a file directly in the path: what TensorBoard calls the run. */
const char *events_reader_run(const struct events_reader *r, const struct event *event, char *out, size_t n);

#endif
