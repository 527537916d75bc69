/* svg_checks - for tests of pictures: is the text well-formed XML, as far as the pictures of cli/ use it? */
#ifndef TRAINYARD_TEST_SVG_CHECKS_H
#define TRAINYARD_TEST_SVG_CHECKS_H

#include <check.h>
#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

static inline size_t svg_occurrences(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, word)) != NULL; p += strlen(word))
        n++;
    return n;
}

/* Each character is one that XML allows. */
static inline void svg_check_characters(const char *s)
{
    const unsigned char *p = (const unsigned char *)s;
    for (size_t len; *p != '\0'; p += len) {
        len = *p < 0x80 ? 1 : utf8_length(p, strlen((const char *)p));
        ck_assert_uint_gt(len, 0);
        ck_assert(len > 1 || *p == '\n' || (*p >= 0x20 && *p != 0x7f));
        ck_assert(memcmp(p, "\xEF\xBF\xBE", MIN(len, 3)) != 0 || len != 3);
        ck_assert(memcmp(p, "\xEF\xBF\xBF", MIN(len, 3)) != 0 || len != 3);
    }
}

/* Each element is closed where it was opened, and each < and & is part of a tag or of an entity. */
static inline void svg_check(const char *s)
{
    char stack[32][16];
    int depth = 0;

    svg_check_characters(s);
    while ((s = strpbrk(s, "<&")) != NULL) {
        if (*s == '&') {
            ck_assert(s[1] == '#' && isdigit((unsigned char)s[2]) && strchr(s, ';') != NULL);
            s++;
            continue;
        }
        const char *end = strchr(s, '>');
        size_t n = strcspn(s + 1 + (s[1] == '/'), " />");
        ck_assert(end != NULL && n > 0 && n < sizeof(stack[0]));
        const char *name = s + 1 + (s[1] == '/');
        if (s[1] == '/') {
            ck_assert_int_gt(depth--, 0);
            ck_assert(strncmp(stack[depth], name, n) == 0 && stack[depth][n] == '\0');
        } else if (end[-1] != '/') {
            ck_assert_int_lt(depth, 32);
            memcpy(stack[depth], name, n);
            stack[depth++][n] = '\0';
        }
        s = end;
    }
    ck_assert_int_eq(depth, 0);
}

#endif
