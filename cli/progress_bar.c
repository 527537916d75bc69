/* Parses the chief's /progress and formats it as one line of limited width, with the remaining time from a smoothed
 * rate. */
#include "progress_bar.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static int64_t whole(const json_t *v, const char *key)
{
    const json_t *x = json_object_get(v, key);
    if (json_is_integer(x))
        return json_integer_value(x);
    double d = json_is_real(x) ? json_real_value(x) : 0;
    return fabs(d) < 9e15 ? (int64_t)d : 0;
}

static double real(const json_t *x)
{
    double d = (double)NAN;
    if (json_is_number(x))
        return json_number_value(x);
    if (json_is_string(x) && str_f64(json_string_value(x), &d, NULL) < 0)
        return (double)NAN;
    return d;
}

static void text(const json_t *v, const char *key, char *out, size_t n)
{
    const char *s = json_string_value(json_object_get(v, key));
    str_fmt(out, n, "%s", s != NULL ? s : "");
}

static void add_metric(struct job_progress *p, const char *name, const json_t *value)
{
    if (value == NULL || json_is_null(value) || p->nmetrics == PROGRESS_METRICS_MAX)
        return;
    str_fmt(p->metrics[p->nmetrics].name, sizeof(p->metrics[0].name), "%s", name);
    p->metrics[p->nmetrics++].value = real(value);
}

int progress_parse(const char *body, size_t n, struct job_progress *ret, struct err *e)
{
    json_auto_t *v = NULL;
    struct job_progress p = { 0 };
    const char *name;
    json_t *value;

    if (json_parse(body, n, "progress", &v, e) < 0)
        return -1;
    text(v, "state", p.state, sizeof(p.state));
    text(v, "message", p.message, sizeof(p.message));
    p.step = whole(v, "step");
    p.epoch = whole(v, "epoch");
    p.epochs = whole(v, "epochs");
    p.epoch_done = whole(v, "epoch_batches_done");
    p.epoch_total = whole(v, "epoch_batches_total");
    p.done = whole(v, "batches_done");
    p.total = whole(v, "batches_total");
    p.looked = real(json_object_get(v, "last_update_time")) > 0;
    p.workers = whole(v, "workers");
    p.examples_per_second = real(json_object_get(v, "examples_per_second"));
    add_metric(&p, "loss", json_object_get(v, "loss"));
    json_object_foreach(json_object_get(v, "metrics"), name, value)
    {
        if (!str_eq(name, "loss"))
            add_metric(&p, name, value);
    }
    *ret = p;
    return 0;
}

enum { PACE_MIN_MS = 100, PACE_STILL_MS = 3000 }; /* the chief itself updates only once per second */
static const double PACE_SECONDS = 3;             /* time constant of the smoothing */

void progress_rate_update(struct progress_rate *p, const struct job_progress *seen, int64_t now_ms)
{
    int64_t done = seen->done;
    if (!seen->looked) { /* the chief is starting */
        *p = (struct progress_rate){ 0 };
        return;
    }
    if (p->at_ms == 0 || done < p->done) { /* first, or rolled back */
        *p = (struct progress_rate){ .at_ms = now_ms, .done = done };
        return;
    }
    int64_t ms = now_ms - p->at_ms;
    if (ms < PACE_MIN_MS || (done == p->done && ms < PACE_STILL_MS))
        return;
    double seconds = (double)ms / 1000, now = (double)(done - p->done) / seconds;
    double weight = p->per_second > 0 ? 1 - exp(-seconds / PACE_SECONDS) : 1;
    p->per_second += weight * (now - p->per_second);
    p->at_ms = now_ms;
    p->done = done;
}

static void add_bar(struct buf *out, int64_t done, int64_t total, int64_t cells)
{
    int64_t filled = total > 0 ? MIN(done, total) * cells / total : 0;
    buf_str(out, " [");
    for (int64_t i = 0; i < cells; i++)
        buf_char(out, i < filled ? '=' : i == filled ? '>' : '.');
    buf_char(out, ']');
}

/* Appends the part if it fits; else returns false, and nothing more is appended. */
static PRINTF_LIKE(3, 4) bool part(struct buf *out, size_t width, const char *fmt, ...)
{
    AUTO_FINI(buf) piece = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&piece, fmt, ap);
    va_end(ap);
    if (out->len + piece.len > width)
        return false;
    buf_add(out, piece.data, piece.len);
    return true;
}

static const char *time_for(int64_t batches, const struct progress_rate *rate, char out[32])
{
    double seconds = (double)MAX(batches, 0) / rate->per_second;
    return str_duration(seconds < 1 ? seconds : ceil(seconds), out);
}

/* The ETA of the epoch, and of the job if more than this epoch remains. */
static void add_eta(const struct job_progress *p, const struct progress_rate *rate, size_t width, struct buf *out)
{
    char epoch[32], job[32];
    int64_t epoch_left = p->epoch_total - p->epoch_done, job_left = p->total - p->done;
    if (rate->per_second <= 0)
        return;
    time_for(epoch_left, rate, epoch);
    if (job_left <= epoch_left || !part(out, width, "  ETA %s, job %s", epoch, time_for(job_left, rate, job)))
        part(out, width, "  ETA %s", epoch);
}

/* The text after the bar. */
static void add_facts(const struct job_progress *p, const struct progress_rate *rate, bool finished, int64_t done,
                      size_t width, struct buf *out)
{
    bool fits = part(out, width, " %" PRId64 "/%" PRId64, done, p->epoch_total);
    for (size_t i = 0; i < p->nmetrics && fits && done > 0; i++) /* without a batch there are no metrics */
        fits = part(out, width, "  %s %.4g", p->metrics[i].name, p->metrics[i].value);
    if (fits && p->examples_per_second > 0)
        fits = part(out, width, "  %.0f ex/s", p->examples_per_second);
    if (fits && !finished)
        add_eta(p, rate, width, out);
    if (fits && !finished && p->message[0] != '\0')
        part(out, width, "  (%s)", p->message);
}

/* The bar takes the width that the text leaves, in steps, so that it does not change with each digit. */
void progress_bar(const struct job_progress *p, const struct progress_rate *rate, bool finished, size_t width,
                  struct buf *out)
{
    static const size_t CELLS[] = { 30, 20, 10, 6 };
    AUTO_FINI(buf) line = BUF_INIT, facts = BUF_INIT;

    if (p->epoch_total <= 0) { /* nothing is trained yet */
        part(&line, width, "%s%s%s", p->state[0] != '\0' ? p->state : "starting", p->message[0] != '\0' ? ": " : "",
             p->message);
        buf_add(out, line.data, line.len);
        return;
    }
    int64_t done = finished ? p->epoch_total : MIN(p->epoch_done, p->epoch_total);
    if (p->epochs > 0)
        part(&line, width, "Epoch %" PRId64 "/%" PRId64, p->epoch, p->epochs);
    else
        part(&line, width, "Epoch %" PRId64, p->epoch);
    add_facts(p, rate, finished, done, width - line.len, &facts);
    for (size_t i = 0; i < COUNT_OF(CELLS); i++) {
        if (line.len + CELLS[i] + 3 + facts.len <= width) {
            add_bar(&line, done, p->epoch_total, (int64_t)CELLS[i]);
            break;
        }
    }
    buf_add(out, line.data, line.len);
    buf_add(out, facts.data, facts.len);
}

enum line_kind progress_line_kind(const char *text)
{
    if (str_starts(text, "step "))
        return LINE_STEP;
    int epoch, epochs, end = 0;
    if (sscanf(text, "epoch %d/%d done%n", &epoch, &epochs, &end) == 2 && end > 0)
        return LINE_EPOCH;
    return LINE_SHOW;
}

void progress_epoch_line(const char *text, size_t width, struct buf *out)
{
    static const char *const BARS[] = { " [====================] 100% ", " [==========] 100% ", " [=====] 100% " };
    int end = 0, cut = 0;
    sscanf(text, "epoch %*d/%*d%n done%n", &end, &cut);
    size_t room = (size_t)end + strlen(text + cut), i = 0;
    while (i < COUNT_OF(BARS) && room + strlen(BARS[i]) > width)
        i++;
    buf_printf(out, "E%.*s%s%s", end - 1, text + 1, i < COUNT_OF(BARS) ? BARS[i] : " ", text + cut);
}
