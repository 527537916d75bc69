/* What gRPC needs once in a process: its log, its settings that have no other knob than the environment, its start and
 * its end. */
#include "rpc/rpc.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include "base/file.h"
#include "base/log.h"

/* gRPC's own messages are for debugging it. */
static void log_of_grpc(gpr_log_func_args *args)
{
    log_debug("grpc: %s", args->message);
}

void rpc_init(void)
{
    gpr_set_log_function(log_of_grpc);
    /* What has no other knob than the environment. Pings must be answered and connections made while the program
     * computes and no thread waits for a call; names are looked up as every other program on the host does it. */
    setenv("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "100", 0);
    setenv("GRPC_DNS_RESOLVER", "native", 0);
    file_raise_limit();
    grpc_init();
}

void rpc_shutdown(void)
{
    grpc_shutdown_blocking();
}
