/* Decides, from its parameters only, what a ps logs and when it ends. After a signal, a ps whose segments are saved
 * ends at once. Otherwise it waits for the chief until its grace period is over. */
#include "ps_life.h"

enum { SAY_MS = 30000, GRACE_MS = 30000, SILENT_MS = 10000, LEAVE_AT_ONCE = 2 };
static const size_t BYTES_A_MS = 50000; /* 50 MB/s: the lowest speed expected when a chief saves */

const char *shard_state_name(enum shard_state state)
{
    static const char *const NAMES[] = {
        [SHARD_UNINITIALISED] = "uninitialised", [SHARD_LOADING] = "loading",   [SHARD_SERVING] = "serving",
        [SHARD_TERMINATING] = "terminating",     [SHARD_FINISHED] = "finished",
    };
    return NAMES[state];
}

static void report_waiting(struct ps_life *s, const struct ps_seen *seen, char line[240])
{
    int64_t silent = seen->now_ms - seen->heard_ms;
    char text[32];
    if (seen->now_ms - s->waiting_said_ms < SAY_MS || (seen->state == SHARD_SERVING && silent < SAY_MS))
        return;
    s->waiting_said_ms = seen->now_ms;
    if (seen->state == SHARD_UNINITIALISED)
        str_fmt(line, 240, "waiting for the chief to initialise it; last request %s ago",
                str_duration((double)(silent / 1000), text));
    else if (seen->state == SHARD_LOADING)
        str_fmt(line, 240, "waiting for the chief to bring the segments; last request %s ago",
                str_duration((double)(silent / 1000), text));
    else
        str_fmt(line, 240, "waiting for requests; the last one came %s ago",
                str_duration((double)(silent / 1000), text));
}

static void state_text(const struct ps_seen *seen, enum shard_state state, char line[240])
{
    char text[32];
    str_fmt(line, 240, "%s: generation %llu, %zu segments, %s", shard_state_name(state),
            (unsigned long long)seen->generation, seen->segments, str_bytes(seen->bytes, text));
}

/* A job may be over between two polls, and has served then. */
static bool served_unseen(const struct ps_life *s, const struct ps_seen *seen)
{
    return seen->state == SHARD_FINISHED && s->state < SHARD_SERVING && seen->generation > 0;
}

static void report_change(struct ps_life *s, const struct ps_seen *seen, char line[240])
{
    if (seen->state != s->state)
        state_text(seen, seen->state, line);
    else if (seen->generation != s->generation)
        str_fmt(line, 240, "generation %llu", (unsigned long long)seen->generation);
    else
        return;
    s->state = seen->state;
    s->generation = seen->generation;
    s->waiting_said_ms = seen->now_ms;
}

static enum ps_verdict poll_leaving(struct ps_life *s, const struct ps_seen *seen, char line[240])
{
    int64_t gone = seen->now_ms - s->leaving_since_ms;
    if (seen->saved)
        str_fmt(line, 240, "stopped by a signal; all %zu segments were saved", seen->segments);
    else if (seen->signals >= LEAVE_AT_ONCE)
        str_fmt(line, 240, "stopped by a second signal; the chief did not save all segments");
    else if (MIN(gone, seen->now_ms - seen->heard_ms) >= SILENT_MS)
        str_fmt(line, 240, "stopped by a signal; no request came for %d s, so no chief is there to save the segments",
                SILENT_MS / 1000);
    else if (gone >= s->grace_ms)
        str_fmt(line, 240, "stopped by a signal; the chief did not save all segments within %lld s",
                (long long)(gone / 1000));
    else
        return PS_LIFE_ON;
    return PS_LIFE_STOPPED;
}

enum ps_verdict ps_poll(struct ps_life *s, const struct ps_seen *seen, char line[240])
{
    line[0] = '\0';
    if (s->waiting_said_ms == 0)
        s->waiting_said_ms = seen->now_ms;
    if (served_unseen(s, seen)) {
        state_text(seen, SHARD_SERVING, line);
        s->state = SHARD_SERVING;
        return PS_LIFE_ON;
    }
    if (seen->state == SHARD_FINISHED) {
        str_fmt(line, 240, "the job has finished");
        return PS_LIFE_DONE;
    }
    if (s->leaving_since_ms != 0)
        return poll_leaving(s, seen, line);
    if (seen->signals > 0 && seen->state != SHARD_SERVING) {
        str_fmt(line, 240, "stopped by a signal; it held nothing to save");
        return PS_LIFE_STOPPED;
    }
    if (seen->signals > 0) {
        s->leaving_since_ms = seen->now_ms;
        s->grace_ms = GRACE_MS + (int64_t)(seen->bytes / BYTES_A_MS);
        str_fmt(line, 240, "a signal came: serving until the chief has saved its %zu segments, for at most %lld s",
                seen->segments, (long long)(s->grace_ms / 1000));
        return PS_LIFE_LEAVE;
    }
    if (seen->now_ms - seen->heard_ms > s->max_wait_ms) {
        str_fmt(line, 240, "no request for %lld s: the chief is lost", (long long)(s->max_wait_ms / 1000));
        return PS_LIFE_LOST;
    }
    report_change(s, seen, line);
    if (line[0] == '\0')
        report_waiting(s, seen, line);
    return PS_LIFE_ON;
}
