/* getpeername() of both families in one form. */
#include "rpc/peer_address.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

static struct peer_address of_v4(const struct in_addr *address, in_port_t port)
{
    struct peer_address ret = { .family = AF_INET, .port = port };
    memcpy(ret.address, address, sizeof(*address));
    return ret;
}

static struct peer_address of_v6(const struct sockaddr_in6 *a)
{
    struct peer_address ret = { .family = AF_INET6, .port = a->sin6_port };
    struct in_addr mapped;
    memcpy(&mapped, &a->sin6_addr.s6_addr[12], sizeof(mapped));
    if (IN6_IS_ADDR_V4MAPPED(&a->sin6_addr))
        return of_v4(&mapped, a->sin6_port);
    memcpy(ret.address, &a->sin6_addr, sizeof(ret.address));
    return ret;
}

struct peer_address peer_address_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a;
    socklen_t n = sizeof(a);
    if (fd < 0 || getpeername(fd, &a.any, &n) < 0)
        return (struct peer_address){ 0 };
    if (a.any.sa_family == AF_INET)
        return of_v4(&a.v4.sin_addr, a.v4.sin_port);
    return a.any.sa_family == AF_INET6 ? of_v6(&a.v6) : (struct peer_address){ 0 };
}

void peer_address_name(const struct peer_address *a, char out[PEER_NAME_SIZE])
{
    if (inet_ntop(a->family, a->address, out, PEER_NAME_SIZE) == NULL)
        out[0] = '\0';
}
