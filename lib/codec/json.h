/* json - the one JSON value of the project: jansson's json_t (this is the only file that includes it).
 *
 * json_auto_t *v = NULL; json_decref()s at the end of the scope; json_get() and friends borrow.
 * Unknown fields stay in the value, so what was read can be written back.
 */
#ifndef TRAINYARD_CODEC_JSON_H
#define TRAINYARD_CODEC_JSON_H

#include <jansson.h>

#include "base/buf.h"

enum { JSON_DEPTH_MAX = 64 };

/* New reference. `name` is for messages ("mnist.json:3:14: ..."). Duplicate keys are refused. */
MUST_USE int json_parse(const char *text, size_t n, const char *name, json_t **ret, struct err *e);
/* The same for data that a program stores for its users, such as an API server. One unusual value must not hide all
 * others. So it accepts duplicate keys (the last counts), NUL in strings, and any depth that the library supports
 * (2048). */
MUST_USE int json_parse_any(const char *text, size_t n, const char *name, json_t **ret, struct err *e);
/* Compact, keys in insertion order; reals with the fewest digits that read back to the same double.
 * NaN and Inf cannot occur in a json_t. */
void json_emit(const json_t *v, struct buf *out);
void json_emit_pretty(const json_t *v, struct buf *out); /* indented by 2, final newline */
/* Borrowed value at "a.b.2.c", or NULL. */
json_t *json_at(const json_t *v, const char *path);
/* How deep lists and maps are nested: 0 for a scalar, 1 for [1]. Recursive. */
int json_depth(const json_t *v);
/* A double as a JSON value: a number, or the string "NaN", "Infinity", "-Infinity". */
json_t *json_number(double v);

#endif
