/* The frames of HTTP/2 (RFC 9113, sections 3.4, 4.1 and 6), and how many of each kind a client may send. */
#include "rpc/frame_meter.h"

#include <string.h>

#include "base/mem.h"

enum kind { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION };
_Static_assert(CONTINUATION + 1 == FRAME_KINDS, "all kinds are counted");
enum { END_STREAM = 0x1 };

static const char PREFACE[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#define A_SECOND(n, kind)                                                                                              \
    {                                                                                                                  \
        n, "more than " #n " " kind " frames within a second"                                                          \
    }
/* Frames of a kind within a window. A client of ours resets the streams of the calls that it gives up, at most 32 on a
 * connection at a time, and sends a PING every 5 s, and with bulk ten a second. Calls are limited by the number of open
 * streams, and data by the windows of HTTP/2. */
static const struct {
    uint32_t max; /* 0: no limit */
    const char *excess;
} LIMITS[FRAME_KINDS] = {
    [DATA] = A_SECOND(1000, "empty DATA"),
    [PRIORITY] = A_SECOND(200, "PRIORITY"),
    [RST_STREAM] = A_SECOND(200, "RST_STREAM"),
    [SETTINGS] = A_SECOND(200, "SETTINGS"),
    [PUSH_PROMISE] = { 1, "PUSH_PROMISE frames, which only a server may send" },
    [PING] = A_SECOND(1000, "PING"),
    [GOAWAY] = A_SECOND(10, "GOAWAY"),
    [WINDOW_UPDATE] = A_SECOND(200, "empty WINDOW_UPDATE"),
    [CONTINUATION] = A_SECOND(200, "CONTINUATION"),
};
static const char LONG_BLOCK[] = "a header block of more than 64 KiB";

void frame_meter_init(struct frame_meter *m)
{
    *m = (struct frame_meter){ .phase = FRAME_PREFACE };
}

static enum kind meter_kind(const struct frame_meter *m)
{
    return (enum kind)m->header[3];
}

/* One more frame of the kind. */
static const char *meter_count(struct frame_meter *m, enum kind kind, int64_t now_ms)
{
    if (now_ms - m->window_ms >= FRAME_WINDOW_MS) {
        memset(m->count, 0, sizeof(m->count));
        m->window_ms = now_ms;
    }
    m->count[kind]++;
    return LIMITS[kind].max > 0 && m->count[kind] > LIMITS[kind].max ? LIMITS[kind].excess : NULL;
}

/* The header of a frame is complete. */
static const char *meter_begin_frame(struct frame_meter *m, int64_t now_ms)
{
    const enum kind kind = meter_kind(m);
    m->left = (uint32_t)m->header[0] << 16 | (uint32_t)m->header[1] << 8 | m->header[2];
    m->phase = FRAME_PAYLOAD;
    m->increment = 0;
    if (kind > CONTINUATION ||
        kind == WINDOW_UPDATE) /* unknown kinds are ignored; updates are counted by their value */
        return NULL;
    if (kind == HEADERS || kind == CONTINUATION) {
        m->block = (kind == CONTINUATION ? m->block : 0) + m->left;
        if (m->block > FRAME_HEADER_BLOCK_MAX)
            return LONG_BLOCK;
    }
    bool costs = kind != HEADERS && (kind != DATA || (m->left == 0 && (m->header[4] & END_STREAM) == 0));
    return costs ? meter_count(m, kind, now_ms) : NULL;
}

static const char *meter_end_frame(struct frame_meter *m, int64_t now_ms)
{
    m->phase = FRAME_HEADER;
    m->have = 0;
    return meter_kind(m) == WINDOW_UPDATE && m->increment == 0 ? meter_count(m, WINDOW_UPDATE, now_ms) : NULL;
}

/* Bytes of the preface: how many, or 0 if it is another protocol. */
static size_t meter_preface(struct frame_meter *m, const uint8_t *bytes, size_t n)
{
    size_t size = MIN(n, sizeof(PREFACE) - 1 - m->have);
    if (memcmp(bytes, PREFACE + m->have, size) != 0) {
        m->phase = FRAME_UNMETERED;
        return 0;
    }
    m->have += (uint32_t)size;
    if (m->have == sizeof(PREFACE) - 1) {
        m->phase = FRAME_HEADER;
        m->have = 0;
    }
    return size;
}

static size_t meter_header(struct frame_meter *m, const uint8_t *bytes, size_t n)
{
    size_t size = MIN(n, sizeof(m->header) - m->have);
    memcpy(m->header + m->have, bytes, size);
    m->have += (uint32_t)size;
    return size;
}

/* Of a payload only the value of a window update is of interest. */
static size_t meter_payload(struct frame_meter *m, const uint8_t *bytes, size_t n)
{
    size_t size = MIN(n, m->left);
    for (size_t i = 0; i < size && meter_kind(m) == WINDOW_UPDATE; i++)
        m->increment |= bytes[i];
    m->left -= (uint32_t)size;
    return size;
}

const char *frame_meter_add(struct frame_meter *m, const void *data, size_t n, int64_t now_ms)
{
    const uint8_t *bytes = data, *end = bytes + n;
    const char *excess = NULL;
    while (bytes < end && excess == NULL && m->phase != FRAME_UNMETERED) {
        size_t rest = (size_t)(end - bytes);
        if (m->phase == FRAME_PREFACE) {
            bytes += meter_preface(m, bytes, rest);
        } else if (m->phase == FRAME_HEADER) {
            bytes += meter_header(m, bytes, rest);
            if (m->have == sizeof(m->header))
                excess = meter_begin_frame(m, now_ms);
        } else {
            bytes += meter_payload(m, bytes, rest);
        }
        if (excess == NULL && m->phase == FRAME_PAYLOAD && m->left == 0)
            excess = meter_end_frame(m, now_ms);
    }
    return excess;
}
