/* ps_life - the life of a ps process between its start and its end, as a function of events: what to log, how long
 * to wait, when to leave. Pure; ps/main.c calls it a few times a second. */
#ifndef TRAINYARD_PS_PS_LIFE_H
#define TRAINYARD_PS_PS_LIFE_H

#include "shard/shard.h"

struct ps_life {
    int64_t max_wait_ms;    /* without a request */
    enum shard_state state; /* value logged last */
    uint64_t generation;
    int64_t waiting_said_ms;
    int64_t leaving_since_ms; /* SIGTERM came; 0: no */
    int64_t grace_ms;
};
struct ps_seen {              /* the current state */
    int64_t now_ms, heard_ms; /* heard: time of the last request */
    enum shard_state state;
    uint64_t generation;
    size_t segments, bytes;
    int signals;
    bool saved; /* every segment was snapshotted since the signal */
};
enum ps_verdict { PS_LIFE_ON, PS_LIFE_LEAVE, PS_LIFE_DONE, PS_LIFE_STOPPED, PS_LIFE_LOST };

const char *shard_state_name(enum shard_state state); /* "serving" */

/* PS_LIFE_LEAVE: a signal has just arrived: report not ready and continue to serve. The last three end the process.
 * line: text to log, or empty. */
enum ps_verdict ps_poll(struct ps_life *s, const struct ps_seen *seen, char line[240]);

#endif
