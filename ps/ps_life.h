/* ps_life - the life of a ps process between its start and its end, as a function of what happened: what to log, how
 * long to wait, when to leave. Pure; ps/main.c asks it a few times a second. */
#ifndef TRAINYARD_PS_PS_LIFE_H
#define TRAINYARD_PS_PS_LIFE_H

#include "shard/shard.h"

struct ps_life {
    int64_t max_wait_ms;    /* without a request */
    enum shard_state state; /* as logged last */
    uint64_t generation;
    int64_t waiting_said_ms;
    int64_t leaving_since_ms; /* SIGTERM came; 0: no */
    int64_t grace_ms;
};
struct ps_seen {              /* what is so now */
    int64_t now_ms, heard_ms; /* heard: the last request */
    enum shard_state state;
    uint64_t generation;
    size_t segments, bytes;
    int signals;
    bool saved; /* every segment was snapshotted since the signal */
};
enum ps_verdict { PS_LIFE_ON, PS_LIFE_LEAVE, PS_LIFE_DONE, PS_LIFE_STOPPED, PS_LIFE_LOST };

const char *shard_state_name(enum shard_state state); /* "serving" */

/* PS_LIFE_LEAVE: a signal came just now: stop being healthy, serve on. The last three end the process; line: something
 * to log, or empty. */
enum ps_verdict ps_poll(struct ps_life *s, const struct ps_seen *seen, char line[240]);

#endif
