/* slot_server - the requests of other processes of this host, in memory that they share (params/shm_region.h,
 * params/shm_slot.h). One thread for each slot of a client waits for its requests and lets the handler answer them.
 * Nothing that a client writes is trusted. The memory of a client that ended or closed its slots is unmapped within
 * half a second. Thread-safe.
 */
#ifndef TRAINYARD_PARAMS_SLOT_SERVER_H
#define TRAINYARD_PARAMS_SLOT_SERVER_H

#include "params/shm_region.h"
#include "params/shm_slot.h"

enum { SLOTS_MAX = 4, SLOT_CLIENTS_MAX = 64, SLOT_NAME_SIZE = 64 }; /* SLOTS_MAX: of a client */

/* The process that shares, as it was when it attached. */
struct slot_client {
    const struct shm_region *region;
    size_t capacity; /* of a slot, as the protocol counts it */
    char sender[SLOT_NAME_SIZE], job_uid[SLOT_NAME_SIZE];
    uint64_t incarnation;
};
/* What a client offers. */
struct slot_offer {
    int pid, fd;
    size_t size; /* of the memory */
    const void *nonce;
    size_t nonce_size;
    uint64_t slots_at; /* bytes from the start of the memory: the first of `slots` slots of slot_size bytes */
    uint32_t slots;
    size_t slot_size, capacity;
    const char *sender, *job_uid;
    uint64_t incarnation;
};

/* Handles the request of a slot; then the slot is answered, with the error if it fails. May block; the threads of other
 * slots go on. */
typedef int slot_serve_fn(void *user, const struct slot_client *client, struct shm_slot *slot, struct err *e);

struct slot_server;
struct slot_server *slot_server_new(slot_serve_fn *serve, void *user);
/* The handler must not wait any more. */
void slot_server_free(struct slot_server *s);
/* What an earlier process of this sender shared is unmapped. ERR_REFUSED: the memory cannot be shared from here, or is
 * not valid, or there are SLOT_CLIENTS_MAX clients. */
MUST_USE int slot_server_attach(struct slot_server *s, const struct slot_offer *o, struct err *e);
size_t slot_server_clients(struct slot_server *s); /* that share memory now */

#endif
