/* Small pictures. Each pixel of a picture that is made smaller is the mean of those that it stands for. The PNG file
 * holds its pixels without compression, which needs no library, because a picture is small. */
#include "thumbnail.h"

#include <math.h>

#include "data/gzip.h"

enum { SIDE_MIN = 8, ASPECT_MAX = 4, STORED_MAX = 65535 };

void thumbnail_fini(struct thumbnail *p)
{
    free(p->rgb);
    *p = (struct thumbnail){ .rgb = NULL };
}

bool thumbnail_fits(const struct shape *s)
{
    bool channels = s->rank == 2 || (s->rank == 3 && (s->dim[2] == 1 || s->dim[2] == 3 || s->dim[2] == 4));
    if (!channels)
        return false;
    int64_t small = MIN(s->dim[0], s->dim[1]), large = MAX(s->dim[0], s->dim[1]);
    return small >= SIDE_MIN && large / small <= ASPECT_MAX;
}

/* ---- pixels ---- */

struct thumbnail_source {
    const float *x;
    size_t width, height, channels;
    float low, high;
};

/* The mean of a channel in the part of the source that becomes the pixel (col, row) of p. */
static unsigned char pixel_of(const struct thumbnail_source *s, const struct thumbnail *p, size_t row, size_t col,
                              size_t channel)
{
    size_t top = row * s->height / p->height, bottom = MAX((row + 1) * s->height / p->height, top + 1);
    size_t left = col * s->width / p->width, right = MAX((col + 1) * s->width / p->width, left + 1);
    double sum = 0;
    for (size_t y = top; y < bottom; y++)
        for (size_t x = left; x < right; x++)
            sum += (double)s->x[(y * s->width + x) * s->channels + channel];
    double v = sum / (double)((bottom - top) * (right - left));
    double range = (double)(s->high - s->low);
    return (unsigned char)lround(fmin(fmax(range > 0 ? (v - (double)s->low) / range : 0, 0), 1) * 255);
}

struct thumbnail thumbnail_of(const float *x, const struct shape *s, float low, float high, size_t max_side)
{
    const struct thumbnail_source from = { .x = x,
                                           .height = (size_t)s->dim[0],
                                           .width = (size_t)s->dim[1],
                                           .channels = s->rank == 3 ? (size_t)s->dim[2] : 1,
                                           .low = low,
                                           .high = high };
    size_t side = MAX(from.width, from.height), kept = MIN(side, max_side);
    struct thumbnail p = { .width = MAX(from.width * kept / side, 1), .height = MAX(from.height * kept / side, 1) };
    p.rgb = xcalloc(p.width * p.height, 3);
    for (size_t i = 0; i < p.width * p.height * 3; i++)
        p.rgb[i] = pixel_of(&from, &p, i / 3 / p.width, i / 3 % p.width, from.channels > 1 ? i % 3 : 0);
    return p;
}

/* ---- a terminal ---- */

static void half_blocks(const struct thumbnail *p, size_t row, struct buf *out)
{
    for (size_t x = 0; x < p->width; x++) {
        const unsigned char *top = p->rgb + (row * p->width + x) * 3;
        const unsigned char *below = row + 1 < p->height ? top + p->width * 3 : NULL;
        buf_printf(out, "\033[38;2;%d;%d;%dm", top[0], top[1], top[2]);
        if (below != NULL)
            buf_printf(out, "\033[48;2;%d;%d;%dm", below[0], below[1], below[2]);
        else
            buf_str(out, "\033[49m");
        buf_str(out, "\xE2\x96\x80"); /* U+2580, the upper half */
    }
    buf_str(out, "\033[0m");
}

void thumbnail_ansi(const struct thumbnail *p, size_t n, size_t columns, struct buf *out)
{
    size_t beside = n > 0 ? MAX(columns / (p[0].width + 2), 1) : 1;
    for (size_t first = 0; first < n; first += beside)
        for (size_t row = 0; row < p[0].height; row += 2) {
            for (size_t i = first; i < MIN(first + beside, n); i++) {
                buf_str(out, "  ");
                half_blocks(&p[i], row, out);
            }
            buf_char(out, '\n');
        }
}

/* ---- PNG ---- */

static void put_u32be(uint32_t v, struct buf *out)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        buf_char(out, (char)(v >> shift));
}

static void put_chunk(const char type[4], const struct buf *content, struct buf *out)
{
    put_u32be((uint32_t)content->len, out);
    size_t at = out->len;
    buf_add(out, type, 4);
    buf_add(out, content->data, content->len);
    put_u32be(crc32_update(0, out->data + at, out->len - at), out);
}

static uint32_t adler32_of(const struct buf *b)
{
    uint32_t low = 1, high = 0;
    for (size_t i = 0; i < b->len; i++) {
        low = (low + (unsigned char)b->data[i]) % 65521;
        high = (high + low) % 65521;
    }
    return high << 16 | low;
}

/* A zlib stream (RFC 1950) of blocks that are stored. */
static void put_stored(const struct buf *b, struct buf *out)
{
    buf_str(out, "\x78\x01");
    for (size_t at = 0; at < b->len; at += STORED_MAX) {
        uint16_t n = (uint16_t)MIN(b->len - at, (size_t)STORED_MAX);
        buf_char(out, at + n == b->len);
        buf_u16le(out, n);
        buf_u16le(out, (uint16_t)~n);
        buf_add(out, b->data + at, n);
    }
    put_u32be(adler32_of(b), out);
}

void thumbnail_png(const struct thumbnail *p, struct buf *out)
{
    AUTO_FINI(buf) header = BUF_INIT, rows = BUF_INIT, packed = BUF_INIT, end = BUF_INIT;
    put_u32be((uint32_t)p->width, &header);
    put_u32be((uint32_t)p->height, &header);
    buf_add(&header, "\x08\x02\0\0\0", 5); /* 8 bits, RGB */
    for (size_t y = 0; y < p->height; y++) {
        buf_char(&rows, 0); /* no filter */
        buf_add(&rows, p->rgb + y * p->width * 3, p->width * 3);
    }
    put_stored(&rows, &packed);
    buf_add(out, "\x89PNG\r\n\x1A\n", 8);
    put_chunk("IHDR", &header, out);
    put_chunk("IDAT", &packed, out);
    put_chunk("IEND", &end, out);
}
