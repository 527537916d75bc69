/* event_writer - writes TensorBoard's event files: records of tensorflow.Event (tfio/event.proto) in TFRecord framing.
 *
 * TensorBoard drops a file forever at the first damaged record, and waits for more at a record that is cut. So each
 * record here is one write(2), a file is only appended to, by one writer, and a restart begins a new file. Not
 * thread-safe; `wall` is seconds since the epoch.
 */
#ifndef TRAINYARD_TFIO_EVENT_WRITER_H
#define TRAINYARD_TFIO_EVENT_WRITER_H

#include "codec/json.h"

struct event_writer;
/* Makes dir/events.out.tfevents.<wall>.<host>, with ".1", ".2", ... when that exists; dir is made too. */
MUST_USE int event_writer_open(const char *dir, double wall, const char *host, struct event_writer **ret,
                               struct err *e);
void event_writer_free(struct event_writer *w);
DEFINE_AUTO(event_writer, event_writer_free);
const char *event_writer_path(const struct event_writer *w);

MUST_USE int event_writer_scalar(struct event_writer *w, double wall, int64_t step, const char *tag, float value,
                                 struct err *e);
/* Buckets as TensorFlow's (edges grow by a tenth). NaN and Inf are left out; n may be 0. */
MUST_USE int event_writer_histogram(struct event_writer *w, double wall, int64_t step, const char *tag,
                                    const float *values, size_t n, struct err *e);
MUST_USE int event_writer_text(struct event_writer *w, double wall, int64_t step, const char *tag, const char *markdown,
                               struct err *e);
enum session_status { SESSION_START = 1, SESSION_STOP = 2, SESSION_CHECKPOINT = 3 };
/* START with step s makes TensorBoard drop what other files of the folder have from s on (a job that continues from
 * an earlier step). It treats only the second START of a folder and later ones as restarts. So every process writes
 * one, the first at step 0. path (of the checkpoint) and msg may be NULL. */
MUST_USE int event_writer_session(struct event_writer *w, double wall, enum session_status status, int64_t step,
                                  const char *path, const char *msg, struct err *e);
/* The content of the HParams tab: `hparams` is an object of strings, numbers and booleans (others are written as
 * JSON text), `metrics` the scalar tags to compare, `group` the name of the run. Written when the session starts;
 * event_writer_hparams_end when it ends. */
MUST_USE int event_writer_hparams(struct event_writer *w, double wall, const json_t *hparams,
                                  const char *const metrics[], size_t nmetrics, const char *group, struct err *e);
MUST_USE int event_writer_hparams_end(struct event_writer *w, double wall, bool success, struct err *e);
MUST_USE int event_writer_sync(struct event_writer *w, struct err *e); /* fsync */

#endif
