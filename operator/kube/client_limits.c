/* Pure decisions of the client: token bucket, concurrency limit, retries. Time and chance are parameters. */
#include "kube/client_internal.h"

#include <math.h>

enum { PAUSE_FIRST_MS = 100, PAUSE_MAX_MS = 5000 };

struct bucket bucket_of(double qps, int burst, int64_t now_ms)
{
    double size = burst > 0 ? burst : 1;
    return (struct bucket){ .qps = qps, .burst = size, .tokens = size, .at_ms = now_ms };
}

int64_t bucket_take(struct bucket *b, int64_t now_ms)
{
    if (b->qps <= 0)
        return 0;
    if (now_ms > b->at_ms) {
        b->tokens = fmin(b->burst, b->tokens + (double)(now_ms - b->at_ms) * b->qps / 1000);
        b->at_ms = now_ms;
    }
    if (b->tokens >= 1) {
        b->tokens -= 1;
        return 0;
    }
    double wait = ceil((1 - b->tokens) * 1000 / b->qps);
    return wait < 1 ? 1 : (int64_t)fmin(wait, 3600.0 * 1000);
}

struct concurrency_limit concurrency_limit_of(int most)
{
    return (struct concurrency_limit){ .size = most, .most = most, .cut_ms = INT64_MIN };
}

int concurrency_limit_now(const struct concurrency_limit *w)
{
    return (int)w->size;
}

bool concurrency_limit_answer(struct concurrency_limit *w, int status, int running, int64_t began_ms, int64_t now_ms)
{
    if (status != 429) {
        if (status != 0)
            w->size = fmin(w->most, w->size + 1 / w->size);
        return false;
    }
    if (began_ms <= w->cut_ms) /* it was sent before the limit was reduced */
        return false;
    w->size = fmax(1, fmin(w->size, running) / 2);
    w->cut_ms = now_ms;
    return true;
}

bool retry_wanted(const struct http_answer *a)
{
    if (a->status == 0)
        return err_is(a->err, ERR_LOST) || err_is(a->err, ERR_TIMEOUT);
    return a->status == 429 || (a->status >= 500 && a->retry_after_s > 0);
}

int64_t retry_pause_ms(int tries, double retry_after_s, double chance)
{
    int64_t pause = PAUSE_FIRST_MS;

    for (int i = 1; i < tries && pause < PAUSE_MAX_MS; i++)
        pause *= 2;
    pause = MIN(pause, (int64_t)PAUSE_MAX_MS);
    int64_t jittered = (int64_t)((double)pause * (0.75 + 0.5 * chance));
    int64_t asked = (int64_t)(fmin(fmax(retry_after_s, 0), RETRY_AFTER_MAX_S) * 1000);
    return MAX(jittered, asked);
}
