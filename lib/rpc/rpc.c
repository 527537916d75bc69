/* What gRPC needs once in a process: its log, the settings that exist only as environment variables, its start and
 * its end. */
#include "rpc/rpc.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "rpc/refusal_log.h"
#include "rpc/tls.h"

enum { SHUTDOWN_MS = 20 }; /* a few where no connection is being made */

static long threads_before; /* grpc_init */

/* Of this process; 0: not known. The folder has a link for each thread, and two more. */
static long count_threads(void)
{
    struct stat s;
    return stat("/proc/self/task", &s) == 0 ? (long)s.st_nlink - 2 : 0;
}

/* gRPC's own messages are for debugging it. */
static void log_of_grpc(gpr_log_func_args *args)
{
    tls_read_log(args->message);
    if (args->severity == GPR_LOG_SEVERITY_ERROR || getenv("GRPC_VERBOSITY") != NULL)
        log_debug("grpc: %s", args->message);
}

void rpc_init(void)
{
    rpc_log_refusal_reset();
    gpr_set_log_function(log_of_grpc);
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG); /* the level at which failed handshakes are reported */
    /* Settings that exist only as environment variables. Pings must be answered and connections made while the
     * program computes and no thread waits for a call. Names are resolved as in every other program on the host. */
    setenv("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "100", 0);
    setenv("GRPC_DNS_RESOLVER", "native", 0);
    tls_setup();
    file_raise_limit();
    threads_before = count_threads();
    grpc_init();
}

/* Ends the process before the destructors of libraries run: a thread of gRPC may use what they free. */
static void leave_at_once(int status, void *unused UNUSED)
{
    fflush(NULL);
    _exit(status); /* within exit() */
}

static bool grpc_has_threads(void)
{
    long n = count_threads();
    return n == 0 || n > threads_before;
}

/* A channel that was freed while it connected keeps gRPC running until the attempt is over, which may take seconds, and
 * grpc_shutdown_blocking does not wait for that. */
void rpc_shutdown(void)
{
    int64_t until_ms = clock_ms() + SHUTDOWN_MS;
    grpc_shutdown_blocking();
    while (grpc_has_threads() && clock_ms() < until_ms)
        clock_sleep_ms(1);
    if (grpc_has_threads())
        on_exit(leave_at_once, NULL);
}
