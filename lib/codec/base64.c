/* A decoder that refuses what the alphabet, the padding or the unused bits do not allow, so that one value has one
 * text. */
#include "codec/base64.h"

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* 0 to 63, or -1. */
static int digit_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

struct quad {
    unsigned bits;
    int digits, padding;
};

static int quad_add(struct quad *q, char c, size_t at, struct err *e)
{
    int d = digit_value(c);

    if (c == '=' && q->digits + q->padding >= 2)
        q->padding++;
    else if (d < 0 || q->padding > 0)
        return err_set(e, ERR_INPUT, "byte %zu is not valid base64", at + 1);
    else
        q->digits++;
    q->bits = q->bits << 6 | (unsigned)(c == '=' ? 0 : d);
    return 0;
}

static int decode_text(const char *text, size_t n, struct buf *out, struct err *e)
{
    struct quad q = { .bits = 0 };
    bool over = false;

    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n' || text[i] == '\r')
            continue;
        if (over)
            return err_set(e, ERR_INPUT, "byte %zu follows the end of the base64", i + 1);
        if (quad_add(&q, text[i], i, e) < 0)
            return -1;
        if (q.digits + q.padding < 4)
            continue;
        if ((q.padding > 0 && (q.bits & 0xff) != 0) || (q.padding > 1 && (q.bits & 0xffff) != 0))
            return err_set(e, ERR_INPUT, "byte %zu is not a valid end of base64", i + 1);
        for (int k = 0; k < 3 - q.padding; k++)
            buf_char(out, (char)(unsigned char)(q.bits >> (16 - 8 * k) & 0xff));
        over = q.padding > 0;
        q = (struct quad){ .bits = 0 };
    }
    return q.digits == 0 ? 0 : err_set(e, ERR_INPUT, "the base64 is cut off");
}

int base64_decode(const char *text, size_t n, struct buf *out, struct err *e)
{
    size_t before = out->len;

    if (decode_text(text, n, out, e) == 0)
        return 0;
    out->len = before;
    if (out->cap > 0)
        out->data[before] = '\0';
    return -1;
}

void base64_encode(const void *data, size_t n, struct buf *out)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < n; i += 3) {
        unsigned bits = (unsigned)p[i] << 16 | (i + 1 < n ? (unsigned)p[i + 1] << 8 : 0U) | (i + 2 < n ? p[i + 2] : 0U);
        buf_char(out, ALPHABET[bits >> 18]);
        buf_char(out, ALPHABET[bits >> 12 & 63]);
        buf_char(out, i + 1 < n ? ALPHABET[bits >> 6 & 63] : '=');
        buf_char(out, i + 2 < n ? ALPHABET[bits & 63] : '=');
    }
}
