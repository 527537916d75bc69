/* stop - SIGTERM, SIGINT and SIGHUP (unless ignored: nohup) as a counter that loops poll and a descriptor that poll(2)
 * can wait for.
 *
 * The handler only writes one byte to a pipe and adds one to the counter (async-signal-safe, errno kept). The first
 * signal requests an orderly end (save, then leave); the second, an immediate one. SIGPIPE is ignored, and so is
 * SIGXFSZ: a write beyond the limit of file sizes (ulimit -f) is an error. Call stop_install() once in main(), before
 * any thread.
 */
#ifndef TRAINYARD_BASE_STOP_H
#define TRAINYARD_BASE_STOP_H

#include "base/err.h"

MUST_USE int stop_install(struct err *e);
int stop_count(void);    /* signals so far */
int stop_fd(void);       /* readable after the first signal; never read it */
void stop_request(void); /* as if a signal had come (tests, in-process shutdown) */

#endif
