/* Warnings about callers and connections that were refused. Their number is limited for the whole process, because
 * anyone who reaches the port can cause them. */
#include "rpc/refusal_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/thread.h"

bool refusal_due(struct refusal_limit *l, uint64_t key, int64_t now_ms, uint64_t *ret_left_out)
{
    size_t free_line = REFUSAL_LINES;
    for (size_t i = 0; i < REFUSAL_LINES; i++) {
        bool recent = l->line[i].key != 0 && now_ms - l->line[i].logged_ms < REFUSAL_EVERY_MS;
        if (l->line[i].key == key) {
            if (recent) {
                l->line[i].left_out++;
                return false;
            }
            free_line = i;
            break;
        }
        if (!recent && free_line == REFUSAL_LINES)
            free_line = i;
    }
    if (free_line == REFUSAL_LINES)
        return false;
    *ret_left_out = l->line[free_line].key == key ? l->line[free_line].left_out : 0;
    l->line[free_line].key = key;
    l->line[free_line].logged_ms = now_ms;
    l->line[free_line].left_out = 0;
    return true;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct refusal_limit limit; /* one for the process: gRPC's log has no place for a handle */

void rpc_log_refusal(const char *fmt, ...)
{
    char text[ERR_TEXT_MAX];
    uint64_t left_out = 0;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    pthread_mutex_lock(&lock);
    bool due = refusal_due(&limit, hash64(text, strlen(text), 0) | 1, clock_ms(), &left_out);
    pthread_mutex_unlock(&lock);
    if (!due)
        return;
    if (left_out > 0)
        log_warning("refused: %s (and %llu times before)", text, (unsigned long long)left_out);
    else
        log_warning("refused: %s", text);
}

void rpc_log_refusal_reset(void)
{
    pthread_mutex_lock(&lock);
    limit = (struct refusal_limit){ .line = { { .key = 0 } } };
    pthread_mutex_unlock(&lock);
}
