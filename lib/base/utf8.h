/* utf8 - well-formed UTF-8: table 3-7 of the Unicode Standard 15, which is that of RFC 3629; and what of it a terminal
 * may be given. Pure. */
#ifndef TRAINYARD_BASE_UTF8_H
#define TRAINYARD_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

enum { UTF8_MAX = 4 }; /* bytes of a character */

/* Length of the character of two to four bytes at p, 0 when there is none within n bytes: overlong forms, surrogates
 * and what is above U+10FFFF are not characters. n is at least 1. */
static inline size_t utf8_length(const unsigned char *p, size_t n)
{
    size_t len = p[0] >= 0xC2 && p[0] <= 0xDF ? 2 : (p[0] & 0xF0) == 0xE0 ? 3 : p[0] >= 0xF0 && p[0] <= 0xF4 ? 4 : 0;
    if (len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF0 && p[1] < 0x90) ||
        (p[0] == 0xF4 && p[1] > 0x8F))
        return 0;
    return len;
}

/* One that a terminal obeys instead of showing it: a control character (U+0000 to U+001F, U+007F to U+009F), a line or
 * paragraph separator, or one that changes the direction of the text behind it (U+202A to U+202E, U+2066 to U+2069). */
static inline bool utf8_is_control(const unsigned char *p, size_t len)
{
    if (len == 1)
        return p[0] < 0x20 || p[0] == 0x7F;
    if (len == 2)
        return p[0] == 0xC2 && p[1] < 0xA0;
    return len == 3 && p[0] == 0xE2 &&
           ((p[1] == 0x80 && p[2] >= 0xA8 && p[2] <= 0xAE) || (p[1] == 0x81 && p[2] >= 0xA6 && p[2] <= 0xA9));
}

/* What stands for the character of *len bytes at p when it is shown: itself (0), a space for a control character, or
 * '?' for a byte that is not UTF-8. n, the bytes that there are, is at least 1. */
static inline char utf8_shown(const unsigned char *p, size_t n, size_t *len)
{
    size_t valid = p[0] < 0x80 ? 1 : utf8_length(p, n);
    *len = valid > 0 ? valid : 1;
    if (valid == 0)
        return '?';
    return utf8_is_control(p, valid) ? ' ' : '\0';
}

#endif
