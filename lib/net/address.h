/* address - "host:port" texts, and sockets that listen on them. */
#ifndef TRAINYARD_NET_ADDRESS_H
#define TRAINYARD_NET_ADDRESS_H

#include <stdint.h>

#include "base/mem.h"

struct address {
    char *host; /* "", "0.0.0.0", "::1", "ps-0.mnist" */
    uint16_t port;
};
void address_fini(struct address *a);
DEFINE_AUTO_FINI(address, address_fini);

/* "host:port", "[::1]:port" or ":port", port 0 to 65535; anything else is ERR_INPUT. */
MUST_USE int address_parse(const char *text, struct address *ret, struct err *e);

/* True of 127.x.x.x, localhost and [::1], each with a port: a process of the same machine. */
bool address_is_loopback(const char *host_port);
/* The address on which a replica listens whose entry in the cluster spec is `own`: on loopback for a loopback entry,
 * else on all addresses of both families ("[::]:2222"). port 0: that of the entry, 2222 when it has none. given:
 * what the user asked for (--listen), taken as it is; or NULL. */
void address_to_listen_on(const char *given, const char *own, int port, char *out, size_t n);

/* A listening TCP socket (close-on-exec). ":port" and "[::]:port" take connections of IPv6 and of IPv4; where the
 * kernel has no IPv6, of IPv4 alone. "0.0.0.0:port" is IPv4 alone. ERR_INPUT: the port is in use, the address is not of
 * this machine, ... */
MUST_USE int address_listen(const char *text, int *ret_fd, uint16_t *ret_port, struct err *e);
/* 0 when address_listen would succeed now: for servers whose library keeps its reasons to itself. */
MUST_USE int address_check(const char *text, struct err *e);

#endif
