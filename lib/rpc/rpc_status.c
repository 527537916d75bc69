/* Error codes as names in the trailing metadata and as gRPC statuses, and back. */
#include "rpc/rpc_status.h"

#include <grpc/slice.h>
#include <string.h>

#include "base/mem.h"

static const char *const NAMES[] = {
#define X(name, exit_code) [name] = &#name[sizeof("ERR_") - 1],
    ERR_CODES(X)
#undef X
};

static const grpc_status_code STATUSES[COUNT_OF(NAMES)] = {
    [ERR_NONE] = GRPC_STATUS_OK,
    [ERR_INPUT] = GRPC_STATUS_INVALID_ARGUMENT,
    [ERR_DIVERGED] = GRPC_STATUS_OUT_OF_RANGE,
    [ERR_IO] = GRPC_STATUS_UNKNOWN,
    [ERR_NOMEM] = GRPC_STATUS_RESOURCE_EXHAUSTED,
    [ERR_NO_SPACE] = GRPC_STATUS_RESOURCE_EXHAUSTED, /* without its name ERR_NOMEM */
    [ERR_LIMIT] = GRPC_STATUS_RESOURCE_EXHAUSTED,
    [ERR_LOST] = GRPC_STATUS_UNAVAILABLE,
    [ERR_TIMEOUT] = GRPC_STATUS_DEADLINE_EXCEEDED,
    [ERR_FENCED] = GRPC_STATUS_ABORTED,
    [ERR_NOT_READY] = GRPC_STATUS_FAILED_PRECONDITION,
    [ERR_PENDING] = GRPC_STATUS_FAILED_PRECONDITION, /* these two without their names: ERR_NOT_READY */
    [ERR_STALE] = GRPC_STATUS_FAILED_PRECONDITION,
    [ERR_REFUSED] = GRPC_STATUS_PERMISSION_DENIED,
    [ERR_NOT_FOUND] = GRPC_STATUS_NOT_FOUND,
    [ERR_STOPPED] = GRPC_STATUS_CANCELLED,
    [ERR_INTERNAL] = GRPC_STATUS_INTERNAL,
};

grpc_status_code rpc_status_of(enum err_code code)
{
    return (size_t)code < COUNT_OF(STATUSES) ? STATUSES[code] : GRPC_STATUS_INTERNAL;
}

const char *rpc_error_name(enum err_code code)
{
    return (size_t)code < COUNT_OF(NAMES) ? NAMES[code] : NAMES[ERR_INTERNAL];
}

static enum err_code by_name(grpc_slice name)
{
    for (size_t i = 1; i < COUNT_OF(NAMES); i++)
        if (grpc_slice_str_cmp(name, NAMES[i]) == 0)
            return (enum err_code)i;
    return ERR_NONE;
}

static enum err_code by_status(grpc_status_code status)
{
    if (status == GRPC_STATUS_UNIMPLEMENTED || status == GRPC_STATUS_UNAUTHENTICATED)
        return ERR_REFUSED;
    for (size_t i = 1; i < COUNT_OF(STATUSES); i++)
        if (STATUSES[i] == status)
            return (enum err_code)i;
    return ERR_INTERNAL;
}

enum err_code rpc_error_of(grpc_status_code status, const grpc_metadata_array *trailing, bool *ret_named)
{
    for (size_t i = 0; i < trailing->count; i++) {
        if (grpc_slice_str_cmp(trailing->metadata[i].key, RPC_ERROR_KEY) != 0)
            continue;
        enum err_code code = by_name(trailing->metadata[i].value);
        *ret_named = code != ERR_NONE;
        if (*ret_named)
            return code;
    }
    *ret_named = false;
    return by_status(status);
}
