/* Reads /progress, a page that any process in the pod may have written: every value is bounded. */
#include "control/training_progress.h"

#include <math.h>
#include <string.h>

#include "base/str.h"

void training_progress_fini(struct training_progress *p)
{
    free(p->metrics);
    p->metrics = NULL;
}

enum { METRICS_MAX = 32, METRIC_NAME_MAX = 64, REMAINING_MAX_S = 10 * 365 * 86400, WAITING_MIN_S = 30 };
static const double MOST = 9e18; /* the range of int64 */

/* Reads a value of an untrusted page. */
static int64_t integer(const json_t *v, const char *key)
{
    const json_t *x = json_object_get(v, key);
    double real = json_is_real(x) ? json_real_value(x) : 0;
    int64_t n = json_is_integer(x) ? (int64_t)json_integer_value(x) : fabs(real) < MOST ? (int64_t)real : 0;
    return n < 0 ? 0 : n;
}

/* Accepts a short text of plain characters such as "NaN". */
static void word_text(const char *word, char out[32])
{
    size_t n = word != NULL ? strlen(word) : 0;
    for (size_t i = 0; i < n; i++)
        if (word[i] <= ' ' || word[i] > '~')
            n = 0;
    str_fmt(out, 32, "%s", n > 0 && n <= 20 ? word : "");
}

/* Numbers are stored in the status as short texts, because JSON has no NaN, and four digits are enough for users. */
static void number_text(const json_t *v, char out[32])
{
    if (json_is_number(v))
        str_fmt(out, 32, "%.4g", json_number_value(v));
    else
        word_text(json_string_value(v), out);
}

/* For kubectl's output: thousands need no decimals. */
static double rate_of(const json_t *v)
{
    double rate = json_is_number(v) ? json_number_value(v) : 0;
    return !isfinite(rate) ? 0 : rate >= 100 ? round(rate) : round(rate * 100) / 100;
}

/* {"loss": ..., "accuracy": 0.95} without the loss, as texts */
static char *metrics_text(const json_t *metrics)
{
    AUTO_FINI(buf) text = BUF_INIT;
    json_auto_t *out = json_object();
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)metrics, key, value)
    {
        char number[32];
        number_text(value, number);
        if (!str_eq(key, "loss") && number[0] != '\0' && strlen(key) <= METRIC_NAME_MAX &&
            json_object_size(out) < METRICS_MAX)
            json_object_set_new(out, key, json_string(number));
    }
    if (json_object_size(out) == 0)
        return NULL;
    json_emit(out, &text);
    return buf_detach(&text);
}

/* A wait that is over soon is not reported. */
static void waiting_text(const json_t *v, char *out, size_t n)
{
    const char *message = json_string_value(json_object_get(v, "message"));
    bool waits = str_eq(json_string_value(json_object_get(v, "state")), "waiting") &&
                 integer(v, "waiting_seconds") >= WAITING_MIN_S;
    str_fmt(out, n, "%s", waits && message != NULL ? message : "");
    for (char *at = out; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
}

int training_progress_parse(const char *text, size_t n, struct training_progress *ret)
{
    json_auto_t *v = NULL;
    if (n > PROGRESS_MAX || json_parse(text, n, "progress", &v, NULL) < 0 ||
        !json_is_integer(json_object_get(v, "step")))
        return -1;
    *ret = (struct training_progress){ .present = true,
                                       .percent = MIN(integer(v, "percent"), 100),
                                       .remaining_s = MIN(integer(v, "remaining_seconds"), REMAINING_MAX_S),
                                       .step = integer(v, "step"),
                                       .epoch = integer(v, "epoch"),
                                       .epochs = integer(v, "epochs"),
                                       .last_checkpoint_step = integer(v, "last_checkpoint_step"),
                                       .examples_per_second = rate_of(json_object_get(v, "examples_per_second")) };
    if (ret->step > 0) /* before the first step there is no loss, not a NaN */
        number_text(json_object_get(v, "loss"), ret->loss);
    const char *weights = json_string_value(json_object_get(v, "weights_sha256"));
    str_fmt(ret->weights_sha256, sizeof(ret->weights_sha256), "%s", sha256_is_text(weights) ? weights : "");
    ret->metrics = metrics_text(json_object_get(v, "metrics"));
    waiting_text(v, ret->waiting, sizeof(ret->waiting));
    return 0;
}

int training_progress_of_pod(const struct job_kind *k, const json_t *pod, struct training_progress *ret)
{
    const json_t *list = json_at(pod, "status.containerStatuses"), *one;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)list, i, one)
    {
        const json_t *ended = json_at(one, "state.terminated");
        const char *words = json_string_value(json_object_get(ended, "message"));
        bool ours = str_eq(json_string_value(json_object_get(one, "name")), k->container) || json_array_size(list) == 1;
        if (ours && words != NULL && words[0] == '{')
            return training_progress_parse(words, strlen(words), ret);
    }
    return -1;
}
