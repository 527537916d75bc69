/* peer_address - part of rpc.h: the other side of a connection, for limits and for logs.
 *
 * Thread-safe. Does not block.
 */
#ifndef TRAINYARD_RPC_PEER_ADDRESS_H
#define TRAINYARD_RPC_PEER_ADDRESS_H

#include <netinet/in.h>

/* IPv4 or IPv6 with its port; all zero (AF_UNSPEC): the connection is gone, or of another family. An IPv4 peer of an
 * IPv6 socket is one of IPv4. Unused bytes are 0, so two of them compare with memcmp(). */
struct peer_address {
    sa_family_t family;
    in_port_t port;      /* as in the packet */
    uint8_t address[16]; /* IPv4: 4 of them */
};
struct peer_address peer_address_of(int fd);

enum { PEER_NAME_SIZE = 64 };
/* Without the port: "10.0.0.7", "fd00::7"; "": it is not known. */
void peer_address_name(const struct peer_address *a, char out[PEER_NAME_SIZE]);

#endif
