/* summary_writer - TensorBoard summaries of a job: an event file for training and one for evaluations.
 *
 * A summary that cannot be written is reported once as a warning and never ends training. Not thread-safe.
 */
#ifndef TRAINYARD_CHIEF_SUMMARY_WRITER_H
#define TRAINYARD_CHIEF_SUMMARY_WRITER_H

#include "base/report.h"
#include "codec/json.h"

struct summary_writer;
/* Makes dir/train, and dir/validation if the job evaluates. */
MUST_USE int summary_writer_open(const char *dir, bool evaluates, const struct report *report,
                                 struct summary_writer **ret, struct err *e);
void summary_writer_free(struct summary_writer *w);
DEFINE_AUTO(summary_writer, summary_writer_free);

struct summary_session {
    const json_t *hparams;
    const char *const *metrics; /* tags that the HParams tab compares */
    size_t nmetrics;
    const char *trial; /* sessions of one trial are one row of the HParams tab */
};
/* Call it first. Event files begin with SessionLog START at `step`, so that viewers drop what earlier files have
 * from that step on. */
MUST_USE int summary_writer_begin(struct summary_writer *w, int64_t step, const struct summary_session *session,
                                  struct err *e);
void summary_writer_train(struct summary_writer *w, int64_t step, const char *tag, double value);
void summary_writer_validation(struct summary_writer *w, int64_t step, const char *tag, double value);
void summary_writer_histogram(struct summary_writer *w, int64_t step, const char *tag, const float *values, size_t n);
void summary_writer_checkpoint(struct summary_writer *w, int64_t step, const char *prefix);
void summary_writer_end(struct summary_writer *w, bool success);
/* fsync; unless `at_once`, once a second at most. */
void summary_writer_sync(struct summary_writer *w, int64_t now_ms, bool at_once);

#endif
