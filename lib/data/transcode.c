/* Detects UTF-16, checks UTF-8, and converts UTF-16 and Windows-1252 to UTF-8 through a buffer of fixed size. What it
 * writes is valid UTF-8 whatever it reads. */
#include "data/transcode.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

enum { SAMPLE = 4096, MARK = 2, PIECE = 64 << 10 };

/* ---- detection ---- */

static enum text_encoding mark_of(const unsigned char *p, size_t n)
{
    if (n >= MARK && p[0] == 0xFF && p[1] == 0xFE)
        return TEXT_UTF16LE;
    if (n >= MARK && p[0] == 0xFE && p[1] == 0xFF)
        return TEXT_UTF16BE;
    return TEXT_UTF8;
}

enum text_encoding transcode_guess(const unsigned char *p, size_t n)
{
    enum text_encoding marked = mark_of(p, n);
    size_t half = MIN(n, (size_t)SAMPLE) / 2, even = 0, odd = 0;
    if (marked != TEXT_UTF8 || half == 0)
        return marked;
    for (size_t i = 0; i < half; i++) {
        even += p[2 * i] == 0;
        odd += p[2 * i + 1] == 0;
    }
    if (odd * 10 >= half * 9 && even * 10 <= half)
        return TEXT_UTF16LE;
    if (even * 10 >= half * 9 && odd * 10 <= half)
        return TEXT_UTF16BE;
    return TEXT_UTF8;
}

/* Bytes of ASCII have no high bit: 64 are tested at once. */
size_t transcode_ascii(const unsigned char *p, size_t n)
{
    static const uint64_t HIGH = UINT64_C(0x8080808080808080);
    uint64_t w[8];
    size_t i = 0;
    for (; n - i >= sizeof(w); i += sizeof(w)) {
        memcpy(w, p + i, sizeof(w));
        if (((w[0] | w[1] | w[2] | w[3] | w[4] | w[5] | w[6] | w[7]) & HIGH) != 0)
            break;
    }
    for (; n - i >= sizeof(w[0]); i += sizeof(w[0])) {
        memcpy(w, p + i, sizeof(w[0]));
        if ((w[0] & HIGH) != 0)
            break;
    }
    while (i < n && p[i] < 0x80)
        i++;
    return i;
}

size_t transcode_utf8(const unsigned char *p, size_t n)
{
    size_t i = 0;
    while (i < n) {
        i += transcode_ascii(p + i, n - i);
        while (i < n && p[i] >= 0x80) {
            size_t len = utf8_length(p + i, n - i);
            if (len == 0)
                return i;
            i += len;
        }
    }
    return n;
}

/* ---- conversion ---- */

struct output {
    transcode_sink *sink;
    void *user;
    unsigned char *piece;
    size_t n;
};

static int flush(struct output *out, struct err *e)
{
    size_t n = out->n;
    out->n = 0;
    return n > 0 ? out->sink(out->user, out->piece, n, e) : 0;
}

/* c is neither ASCII nor a surrogate. */
static size_t utf8_put(unsigned char *out, uint32_t c)
{
    static const unsigned char LEAD[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (unsigned char)(0x80 | (c & 0x3F));
    out[0] = (unsigned char)(LEAD[n] | c);
    return n;
}

static inline int put(struct output *out, uint32_t c, struct err *e)
{
    if (out->n > PIECE - UTF8_MAX && flush(out, e) < 0)
        return -1;
    if (c < 0x80)
        out->piece[out->n++] = (unsigned char)c;
    else
        out->n += utf8_put(out->piece + out->n, c);
    return 0;
}

static int from_windows_1252(const struct encoded_text *t, struct output *out, struct err *e)
{
    static const uint16_t HIGH[32] = {
        0x20AC, 0x0081, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
        0x2039, 0x0152, 0x008D, 0x017D, 0x008F, 0x0090, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
        0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x009D, 0x017E, 0x0178,
    };
    for (size_t i = 0; i < t->n; i++) {
        uint32_t c = t->p[i];
        if (put(out, c >= 0x80 && c <= 0x9F ? HIGH[c - 0x80] : c, e) < 0)
            return -1;
    }
    return 0;
}

static inline uint32_t unit_at(const struct encoded_text *t, size_t i)
{
    bool big = t->encoding == TEXT_UTF16BE;
    return (uint32_t)t->p[i + big] | (uint32_t)t->p[i + !big] << 8;
}

static inline bool is_high(uint32_t unit)
{
    return (unit & 0xFC00) == 0xD800;
}

static inline bool is_low(uint32_t unit)
{
    return (unit & 0xFC00) == 0xDC00;
}

static int from_utf16(const struct encoded_text *t, struct output *out, struct err *e)
{
    if (t->n % 2 != 0)
        return err_set(e, ERR_INPUT,
                       "%s: is UTF-16, but ends within a character, at byte %zu: the file is truncated, copy it again",
                       t->path, t->n);
    for (size_t i = mark_of(t->p, t->n) == t->encoding ? MARK : 0; i < t->n; i += 2) {
        uint32_t c = unit_at(t, i);
        uint32_t next = is_high(c) && i + 2 < t->n ? unit_at(t, i + 2) : 0;
        if (is_low(next)) {
            c = 0x10000 + ((c & 0x3FF) << 10 | (next & 0x3FF));
            i += 2;
        } else if (is_high(c) || is_low(c)) {
            return err_set(e, ERR_INPUT, "%s: byte %zu: half of a surrogate pair, which is not valid UTF-16", t->path,
                           i);
        }
        if (put(out, c, e) < 0)
            return -1;
    }
    return 0;
}

int transcode_pieces(const struct encoded_text *t, transcode_sink *sink, void *user, struct err *e)
{
    auto_free unsigned char *piece = xmalloc(PIECE);
    struct output out = { .sink = sink, .user = user, .piece = piece };
    int rc = t->encoding == TEXT_WINDOWS_1252 ? from_windows_1252(t, &out, e) : from_utf16(t, &out, e);
    return rc == 0 ? flush(&out, e) : -1;
}
