/* rpc_status - part of rpc.h: errors of base/err.h as gRPC statuses and back.
 *
 * The code of an error travels by name in the trailing metadata `trainyard-error` ("FENCED"), and its message as the
 * status message. The status code is the nearest gRPC status, for clients that use only that.
 */
#ifndef TRAINYARD_RPC_RPC_STATUS_H
#define TRAINYARD_RPC_RPC_STATUS_H

#include <grpc/grpc.h>

#include "base/err.h"

#define RPC_ERROR_KEY "trainyard-error"
/* The status message of DEADLINE_EXCEEDED when the server ended the call (call_ms and bulk_ms of its options). gRPC has
 * no metadata then. Any other message: the client's own deadline. */
#define RPC_CALLER_TOO_SLOW "the caller was too slow"

grpc_status_code rpc_status_of(enum err_code code);
const char *rpc_error_name(enum err_code code); /* "FENCED" */
/* By the name among the metadata if it is there and known, else by the status code (not OK). */
enum err_code rpc_error_of(grpc_status_code status, const grpc_metadata_array *trailing, bool *ret_named);

#endif
