/* refusal_log - part of rpc.h: warnings about callers and connections that were refused. A caller that tries again and
 * again must not fill the log: the same line comes once a minute, and at most REFUSAL_LINES different ones. */
#ifndef TRAINYARD_RPC_REFUSAL_LOG_H
#define TRAINYARD_RPC_REFUSAL_LOG_H

#include <stdint.h>

#include "base/err.h"

enum { REFUSAL_LINES = 16, REFUSAL_EVERY_MS = 60 * 1000 };

struct refusal_limit {
    struct {
        uint64_t key;
        int64_t logged_ms;
        uint64_t left_out; /* lines since */
    } line[REFUSAL_LINES];
};
/* Whether the line of this key (not 0) is due at now_ms; *ret_left_out: how many of its kind were not written before.
 */
bool refusal_due(struct refusal_limit *l, uint64_t key, int64_t now_ms, uint64_t *ret_left_out);

/* Writes a warning unless the limit forbids it. who: the caller or the peer's address; lines of one text are the
 * same line. Thread-safe. */
void rpc_log_refusal(const char *fmt, ...) PRINTF_LIKE(1, 2);
void rpc_log_refusal_reset(void); /* forgets the lines that were written */

#endif
