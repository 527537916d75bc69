/* str - small helpers on C strings: checked numbers, suggestions, text for people. Pure. */
#ifndef TRAINYARD_BASE_STR_H
#define TRAINYARD_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

bool str_eq(const char *a, const char *b); /* NULL equals only NULL */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* The whole string must be the number, in range; ERR_INPUT names the text and the range. */
MUST_USE int str_i64(const char *s, int64_t min, int64_t max, int64_t *ret, struct err *e);
MUST_USE int str_f64(const char *s, double *ret, struct err *e);
MUST_USE int str_bool(const char *s, bool *ret, struct err *e); /* true false yes no on off 1 0 */

/* The candidate nearest to `word` (edit distance, case-insensitive, at most a third of the word rounded
 * up; swapped neighbours count once), or NULL. names[] may hold NULL entries. */
const char *str_nearest(const char *word, const char *const names[], size_t n);
/* "; did you mean 'Adam'?" or "" - for the end of an error message. Without a near name those of which the word is a
 * part, as far as there is room: "; did you mean 'a_x' or 'b_x'?". Writes into out (cut to n). */
const char *str_did_you_mean(const char *word, const char *const names[], size_t n, char *out, size_t out_size);

/* snprintf that always terminates and reports whether all of it fitted. */
bool str_fmt(char *out, size_t n, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* "1.5 MiB", "812 B"; "2 h 3 min", "42 s", "180 ms". Buffers of 32 bytes are enough. */
const char *str_bytes(uint64_t bytes, char out[32]);
const char *str_duration(double seconds, char out[32]);
/* A number with the fewest digits that read back as the same one: 0.905, not 0.9049999713897705. */
const char *str_double(double v, char out[32]);
const char *str_float(float v, char out[32]);
double str_float_decimal(float v); /* the double that str_double() writes as str_float() writes v */

/* strlist - an owned list of owned strings. */
struct strlist {
    char **items;
    size_t n, cap;
};
void strlist_fini(struct strlist *l);
DEFINE_AUTO_FINI(strlist, strlist_fini);
void strlist_add(struct strlist *l, const char *s);
void strlist_split(struct strlist *l, const char *s, char separator); /* trims spaces, drops empty */
bool strlist_has(const struct strlist *l, const char *s);
bool strlist_same(const struct strlist *a, const struct strlist *b); /* the same strings in the same order */
void strlist_sort(struct strlist *l);                                /* in the order of their bytes */

#endif
