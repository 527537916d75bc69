/* utf8 - well-formed UTF-8: table 3-7 of the Unicode Standard 15, which is that of RFC 3629. Pure. */
#ifndef TRAINYARD_BASE_UTF8_H
#define TRAINYARD_BASE_UTF8_H

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

#endif
