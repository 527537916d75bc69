/* Event files of the chief. Each value is in its file at once; that it survives a crash of the machine is ensured once
 * a second at most, because fsync may take longer than a short epoch. */
#include "chief/summary_writer.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "tfio/event_writer.h"

enum { SYNC_MS = 1000 };

struct summary_writer {
    const struct report *report;
    struct event_writer *train, *validation; /* validation NULL: the job does not evaluate */
    int64_t synced_ms;
    bool warned;
};

static void warn_once(struct summary_writer *w, int result, const struct err *e)
{
    if (result == 0 || w->warned)
        return;
    w->warned = true;
    report_warning(w->report, "summaries cannot be written: %s", e->msg);
}

int summary_writer_open(const char *dir, bool evaluates, const struct report *report, struct summary_writer **ret,
                        struct err *e)
{
    AUTO(summary_writer) *w = xcalloc(1, sizeof(*w));
    char host[64] = "localhost";
    (void)!gethostname(host, sizeof(host) - 1);
    auto_free char *train = path_join(dir, "train"), *validation = path_join(dir, "validation");
    double now = clock_wall();
    w->report = report;
    if (event_writer_open(train, now, host, &w->train, e) < 0)
        return -1;
    if (evaluates && event_writer_open(validation, now, host, &w->validation, e) < 0) {
        (void)!file_remove(event_writer_path(w->train), NULL);
        return -1;
    }
    *ret = TAKE(w);
    return 0;
}

void summary_writer_free(struct summary_writer *w)
{
    if (w == NULL)
        return;
    event_writer_free(w->train);
    event_writer_free(w->validation);
    free(w);
}

/* Also in a job's first life: TensorBoard takes only a folder's second START and later ones for restarts. */
int summary_writer_begin(struct summary_writer *w, int64_t step, const struct summary_session *session, struct err *e)
{
    double now = clock_wall();
    if (event_writer_session(w->train, now, SESSION_START, step, NULL, NULL, e) < 0 ||
        (w->validation != NULL && event_writer_session(w->validation, now, SESSION_START, step, NULL, NULL, e) < 0))
        return -1;
    return event_writer_hparams(w->train, now, session->hparams, session->metrics, session->nmetrics, session->trial,
                                e);
}

static void write_scalar(struct summary_writer *w, struct event_writer *to, int64_t step, const char *tag, double value)
{
    struct err e = { 0 };
    if (to != NULL)
        warn_once(w, event_writer_scalar(to, clock_wall(), step, tag, (float)value, &e), &e);
}

void summary_writer_train(struct summary_writer *w, int64_t step, const char *tag, double value)
{
    write_scalar(w, w->train, step, tag, value);
}

void summary_writer_validation(struct summary_writer *w, int64_t step, const char *tag, double value)
{
    write_scalar(w, w->validation, step, tag, value);
}

void summary_writer_histogram(struct summary_writer *w, int64_t step, const char *tag, const float *values, size_t n)
{
    struct err e = { 0 };
    warn_once(w, event_writer_histogram(w->train, clock_wall(), step, tag, values, n, &e), &e);
}

void summary_writer_checkpoint(struct summary_writer *w, int64_t step, const char *prefix)
{
    struct err e = { 0 };
    warn_once(w, event_writer_session(w->train, clock_wall(), SESSION_CHECKPOINT, step, prefix, NULL, &e), &e);
}

static void sync_files(struct summary_writer *w, int64_t now_ms)
{
    struct err e = { 0 };
    w->synced_ms = now_ms;
    warn_once(w, event_writer_sync(w->train, &e), &e);
    if (w->validation != NULL)
        warn_once(w, event_writer_sync(w->validation, &e), &e);
}

void summary_writer_end(struct summary_writer *w, bool success)
{
    struct err e = { 0 };
    warn_once(w, event_writer_hparams_end(w->train, clock_wall(), success, &e), &e);
    sync_files(w, clock_ms());
}

void summary_writer_sync(struct summary_writer *w, int64_t now_ms, bool at_once)
{
    if (at_once || now_ms - w->synced_ms >= SYNC_MS)
        sync_files(w, now_ms);
}
