/* yaml - YAML 1.1 core subset (libyaml) read into JSON values, with the place of every value.
 *
 * Scalars follow the rules of kubectl: plain true/false/null/~, integers and floats are
 * typed, everything quoted is a string; anchors, aliases (bounded expansion) and merge keys work;
 * duplicate keys, tags, complex keys, depth > JSON_DEPTH_MAX are errors with file:line:column.
 * JSON text is YAML too, so a .json manifest gets places in the same way.
 */
#ifndef TRAINYARD_CODEC_YAML_H
#define TRAINYARD_CODEC_YAML_H

#include "base/str.h"
#include "codec/json.h"

/* source - positions of the values of one document: JSON path -> line and column (from 1). */
struct source;
struct source *source_new(const char *name); /* no places known: messages carry the name and path only */
void source_free(struct source *s);
DEFINE_AUTO(source, source_free);
const char *source_name(const struct source *s);
/* Place of the value at the path (or of its nearest known ancestor); false when nothing is known. */
bool source_find(const struct source *s, const char *path, int *ret_line, int *ret_column);
/* Place of the key itself (for "unknown key"). */
bool source_find_key(const struct source *s, const char *path, int *ret_line, int *ret_column);
/* The value at the path, and all below it, did not come from the document but from `origin` ("--set fit.epochs=x"):
 * messages about it name that, without line and column. */
void source_override(struct source *s, const char *path, const char *origin);
/* The origin that overrides the path, or NULL. */
const char *source_origin(const struct source *s, const char *path);
/* The value at the path `to`, which is not in the document, has the place of that at `from`, if it has one. */
void source_copy(struct source *s, const char *from, const char *to);

/* From now on each node_error() about this document is also added to the list (at most FAULTS_MAX, each once). The
 * readers of tables continue after a fault; their result is still -1. For callers that show all faults at once. */
enum { FAULTS_MAX = 100 };
void source_collect(struct source *s, struct strlist *faults);
bool source_collects(const struct source *s);                /* false for NULL, and once there are FAULTS_MAX */
void source_fault(const struct source *s, const char *text); /* for codec/node.c */

/* First document of the text whose top is a mapping. Multi-document files: yaml_parse_all. */
MUST_USE int yaml_parse(const char *text, size_t n, const char *name, json_t **ret, struct source **ret_source,
                        struct err *e);
/* The same for the first such document that is selected. *ret is NULL (and the result 0) when none is. */
MUST_USE int yaml_parse_wanted(const char *text, size_t n, const char *name,
                               bool (*wanted)(void *user, const json_t *v), void *user, json_t **ret,
                               struct source **ret_source, struct err *e);
/* Calls each(user, value, source) for every non-empty document; both are borrowed during the call. */
MUST_USE int yaml_parse_all(const char *text, size_t n, const char *name,
                            int (*each)(void *user, json_t *v, const struct source *s, struct err *e), void *user,
                            struct err *e);
void yaml_emit(const json_t *v, struct buf *out);

#endif
