/* What gRPC needs once in a process: its log, the settings that exist only as environment variables, its start and
 * its end. */
#include "rpc/rpc.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include "base/file.h"
#include "base/log.h"
#include "rpc/refusal_log.h"
#include "rpc/tls.h"

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
    grpc_init();
}

void rpc_shutdown(void)
{
    grpc_shutdown_blocking();
}
