/* frame_meter - part of rpc.h: bounds what the frames of one HTTP/2 connection cost the server that reads them.
 *
 * The gRPC library of this release makes a call for each stream before it knows that the client has reset it
 * (CVE-2023-44487), and copies a header block again for each of its frames (CVE-2023-33953). A client that sends such
 * frames as fast as it can takes all processor time and memory of a server. So the frames are counted before gRPC reads
 * them, and a connection with more of a kind than an honest client sends is closed (connection_guard.c).
 *
 * A meter sees the bytes of the client in their order, in pieces of any size. A connection that does not begin with
 * HTTP/2's preface, such as one of TLS, is not metered.
 *
 * Not thread-safe. Does not block, does not allocate.
 */
#ifndef TRAINYARD_RPC_FRAME_METER_H
#define TRAINYARD_RPC_FRAME_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FRAME_WINDOW_MS = 1000,            /* frames are counted within windows of this length */
    FRAME_HEADER_BLOCK_MAX = 64 << 10, /* bytes of one header block; ours have about 400 */
    FRAME_KINDS = 10,
};

struct frame_meter {
    enum { FRAME_PREFACE, FRAME_HEADER, FRAME_PAYLOAD, FRAME_UNMETERED } phase;
    uint8_t header[9];  /* of the current frame */
    uint32_t have;      /* bytes of the preface, or of the header */
    uint32_t left;      /* bytes of the payload that are still to come */
    uint32_t block;     /* bytes of the current header block */
    uint32_t increment; /* of a WINDOW_UPDATE */
    int64_t window_ms;  /* when the current window began */
    uint32_t count[FRAME_KINDS];
};

void frame_meter_init(struct frame_meter *m);

/* The client has sent `n` bytes. Returns NULL, or what it sent too much of: "more than 200 RST_STREAM frames within a
 * second". */
const char *frame_meter_add(struct frame_meter *m, const void *bytes, size_t n, int64_t now_ms);

#endif
