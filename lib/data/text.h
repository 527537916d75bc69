/* text - fields and numbers in the bytes of a CSV file (RFC 4180). Inside of lib/data. Pure.
 *
 * Beyond the RFC: lines may end in LF or CRLF, and the last one may have no line end. A quote within a bare field is an
 * ordinary character. Blank lines are not records.
 */
#ifndef TRAINYARD_DATA_TEXT_H
#define TRAINYARD_DATA_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text_field {
    const unsigned char *p, *end; /* without the quotes around it */
    bool doubled;                 /* has doubled quotes */
};
enum text_result { TEXT_MORE, TEXT_LAST, TEXT_BEHIND_QUOTE, TEXT_OPEN_QUOTE };

/* Reads a field of the record at *p and moves *p past it; TEXT_LAST: *p is at the next line. On an error *p is at
 * its place. */
enum text_result text_field(const unsigned char **p, const unsigned char *end, char delimiter, struct text_field *ret);
/* Steps over blank lines. */
const unsigned char *text_record(const unsigned char *p, const unsigned char *end);
/* Steps over one record whose quotes are known to be valid. */
const unsigned char *text_skip(const unsigned char *p, const unsigned char *end, char delimiter);

static inline bool text_blank(unsigned char c)
{
    return c == ' ' || c == '\t';
}
/* Spaces and tabs around it are taken off. */
static inline struct text_field text_trim(struct text_field f)
{
    while (f.p < f.end && text_blank(*f.p))
        f.p++;
    while (f.end > f.p && text_blank(f.end[-1]))
        f.end--;
    return f;
}
/* Copies to out, undoubling quotes, cut to out_size - 1 and at a NUL; false when it was cut. */
bool text_copy(const struct text_field *f, char *out, size_t out_size);
/* A whole decimal number (also 1e-3, +.5), finite; rounded as strtod does. */
bool text_number(const struct text_field *f, double *ret);

/* Of a field that is a number of at most 15 digits, perhaps with a minus and a point, and nothing else: the number, and
 * *p moves past the field as by text_field(), but in one pass. False: *p stays, and the field may be anything. The
 * delimiter is not a part of numbers. */
bool text_short_number(const unsigned char **p, const unsigned char *end, char delimiter, double *ret,
                       enum text_result *ret_more);

/* Line and column, from 1, of the byte at p. Cost: the bytes before it. */
void text_place(const unsigned char *start, const unsigned char *p, size_t *ret_line, size_t *ret_column);

#endif
