/* address - "host:port" texts, and sockets that listen on them. */
#ifndef TRAINYARD_NET_ADDRESS_H
#define TRAINYARD_NET_ADDRESS_H

#include <stdint.h>

#include "base/mem.h"

struct address {
    char *host; /* "0.0.0.0", "::1", "ps-0.mnist" */
    uint16_t port;
};
void address_fini(struct address *a);
DEFINE_AUTO_FINI(address, address_fini)

/* "host:port" or "[::1]:port", port 0 to 65535; anything else is ERR_INPUT. */
MUST_USE int address_parse(const char *text, struct address *ret, struct err *e);

/* A listening TCP socket (close-on-exec). ERR_INPUT: the port is in use, the address is not of this machine, ... */
MUST_USE int address_listen(const char *text, int *ret_fd, uint16_t *ret_port, struct err *e);
/* 0 when address_listen would succeed now: for servers whose library keeps its reasons to itself. */
MUST_USE int address_check(const char *text, struct err *e);

#endif
