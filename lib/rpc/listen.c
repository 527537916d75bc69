/* gRPC takes more than addresses, and does not say why it cannot listen. */
#include "rpc/listen.h"

#include <string.h>

#include "base/str.h"
#include "net/address.h"
#include "rpc/settings.h"

static char *self_of(const struct address *a, int port)
{
    bool all = a->host[0] == '\0' || str_eq(a->host, "0.0.0.0") || str_eq(a->host, "::");
    const char *host = all ? "127.0.0.1" : a->host;
    return xasprintf(strchr(host, ':') != NULL ? "[%s]:%d" : "%s:%d", host, port);
}

int rpc_listen(grpc_server *server, const char *address, const struct rpc_credentials *credentials, int *ret_port,
               char **ret_self, struct err *e)
{
    AUTO_FINI(address) parsed = { 0 }; /* gRPC would take more: service names, ports beyond 65535 */
    if (address_parse(address, &parsed, e) < 0)
        return -1;
    grpc_server_credentials *own = rpc_server_credentials(credentials);
    /* gRPC does not accept ":port"; its [::] takes IPv4 too, and is 0.0.0.0 where the kernel has no IPv6. */
    auto_free char *where = *parsed.host == '\0' ? xasprintf("[::]%s", address) : xstrdup(address);
    *ret_port = grpc_server_add_http2_port(server, where, own);
    grpc_server_credentials_release(own);
    if (*ret_port > 0) {
        *ret_self = self_of(&parsed, *ret_port);
        return 0;
    }
    if (address_check(address, e) < 0) /* gRPC does not report the reason */
        return -1;
    return err_set(e, ERR_INPUT, "cannot listen on '%s'", address);
}
