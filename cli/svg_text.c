/* Text of SVG pictures. Whatever bytes a name has, what is written is well-formed XML in UTF-8. */
#include "svg_text.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

enum {
    NARROW = 5, /* pixels of a letter at a font size of 13 */
    NORMAL = 8,
    BROAD = 13,
    IDEOGRAPH = 14,
};

/* Bytes of the next character, which is one for ASCII and for a byte that is not UTF-8. */
static size_t svg_text_step(const char *s, bool *ret_valid)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t len = p[0] < 0x80 ? 1 : utf8_length(p, strnlen(s, UTF8_MAX));
    *ret_valid = len > 0;
    return len > 0 ? len : 1;
}

/* U+FFFE and U+FFFF are the characters of several bytes that XML forbids. */
static bool svg_text_is_forbidden(const char *s, size_t len)
{
    unsigned char c = (unsigned char)*s;
    return (len == 1 && (c < 0x20 || c == 0x7f)) ||
           (len == 3 && c == 0xEF && (unsigned char)s[1] == 0xBF && (unsigned char)s[2] >= 0xBE);
}

void svg_text(struct buf *out, const char *s)
{
    bool valid;
    for (size_t len; *s != '\0'; s += len) {
        len = svg_text_step(s, &valid);
        if (*s == '<' || *s == '>' || *s == '&' || *s == '"')
            buf_printf(out, "&#%d;", *s);
        else if (!valid || svg_text_is_forbidden(s, len))
            buf_char(out, '?');
        else
            buf_add(out, s, len);
    }
}

static size_t svg_text_count(const char *s)
{
    size_t n = 0;
    bool valid;
    for (; *s != '\0'; s += svg_text_step(s, &valid))
        n++;
    return n;
}

static const char *svg_text_skip(const char *s, size_t characters)
{
    bool valid;
    for (; characters > 0; characters--)
        s += svg_text_step(s, &valid);
    return s;
}

void svg_text_cut(struct buf *out, const char *s, size_t most)
{
    size_t n = svg_text_count(s), head = most / 2, tail = most - head - 1;
    if (n <= most) {
        buf_str(out, s);
        return;
    }
    buf_add(out, s, (size_t)(svg_text_skip(s, head) - s));
    buf_str(out, "\xE2\x80\xA6");
    buf_str(out, svg_text_skip(s, n - tail));
}

int svg_text_width(const char *s)
{
    int width = 0;
    bool valid;
    for (size_t len; *s != '\0'; s += len) {
        len = svg_text_step(s, &valid);
        if (len > 2 && (unsigned char)*s != 0xE2) /* U+2000 to U+2FFF are punctuation and arrows */
            width += IDEOGRAPH;
        else if (len > 1)
            width += BROAD;
        else
            width += strchr("ijlI|.,:;'!()[]{} ", *s) != NULL ? NARROW
                     : strchr("mwMW@%&<>", *s) != NULL        ? BROAD
                     : *s >= 'A' && *s <= 'Z'                 ? NORMAL + 2
                                                              : NORMAL;
    }
    return width;
}
