/* node - a JSON value together with its place, so that every error in a manifest or a Keras JSON
 * names file, line, column and path (design invariant 6):
 *
 *     mnist.yaml:14:9: spec.compile.optimizer: 'Adamm' is not known; did you mean 'Adam'?
 *
 * A node is a small value (pass by pointer, copy freely); it borrows the json_t and the source.
 * Getters: -1 with a placed error when the value has the wrong type or range. *_or getters give the
 * default when the key is absent or null. Paths: "spec.model.layers[2].Dense.units".
 */
#ifndef TRAINYARD_CODEC_NODE_H
#define TRAINYARD_CODEC_NODE_H

#include "codec/json.h"
#include "codec/yaml.h"

enum { NODE_PATH_MAX = 256 };

struct node {
    const json_t *v; /* NULL: absent */
    const struct source *src;
    char path[NODE_PATH_MAX];
    /* Written by Keras, which gets new keys with every release. node_only() ignores unknown keys that are null,
     * Python's None. Nodes inside such a node inherit this. */
    bool lenient;
};

struct node node_root(const json_t *v, const struct source *src);
/* All faults are collected: continue after one. */
static inline bool node_collects(const struct node *n)
{
    return source_collects(n->src);
}
bool node_present(const struct node *n);                     /* not absent and not null */
struct node node_get(const struct node *n, const char *key); /* v NULL when absent or n is not an object */
struct node node_item(const struct node *n, size_t i);
size_t node_size(const struct node *n); /* of an object or array, else 0 */
/* i-th key of an object, in order of the document; NULL past the end. Cost O(i). */
const char *node_key(const struct node *n, size_t i);
const char *node_type(const struct node *n); /* "a string", "a number", "nothing", ... for messages */

/* -1 and ERR_INPUT "file:line:col: path: message". */
int node_error(const struct node *n, struct err *e, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Same, at the place of the key `key` of object n. */
int node_key_error(const struct node *n, const char *key, struct err *e, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* Every key of the object must be in the list. The error names the unknown key, with a suggestion. */
MUST_USE int node_only(const struct node *n, const char *const keys[], size_t nkeys, struct err *e);

MUST_USE int node_object(const struct node *n, struct err *e); /* must be an object */
MUST_USE int node_array(const struct node *n, struct err *e);
MUST_USE int node_str(const struct node *n, const char **ret, struct err *e);                       /* borrowed */
MUST_USE int node_i64(const struct node *n, int64_t min, int64_t max, int64_t *ret, struct err *e); /* 3.0 is 3 */
MUST_USE int node_f64(const struct node *n, double *ret, struct err *e); /* also "1e-3" written without a dot */
MUST_USE int node_bool(const struct node *n, bool *ret, struct err *e);
/* One of the names, exactly; error lists or suggests. *ret_index is its place in names[]. */
MUST_USE int node_enum(const struct node *n, const char *const names[], size_t nnames, size_t *ret_index,
                       struct err *e);

MUST_USE int node_str_or(const struct node *n, const char *key, const char *fallback, const char **ret, struct err *e);
MUST_USE int node_i64_or(const struct node *n, const char *key, int64_t fallback, int64_t min, int64_t max,
                         int64_t *ret, struct err *e);
MUST_USE int node_bool_or(const struct node *n, const char *key, bool fallback, bool *ret, struct err *e);

/* "Keras lets this be a name or a map": accepts  "Adam",  {Adam: {learning_rate: 0.1}},
 * {class_name: Adam, config: {...}} and {name: Adam, learning_rate: 0.1}. *ret_config is the map of
 * arguments (v NULL when there are none), lenient in the second form; in the last form it is n itself, its `name`
 * included. {class_name: function, config: relu}, as Keras writes a function, is the name relu. */
MUST_USE int node_named(const struct node *n, const char **ret_name, struct node *ret_config, struct err *e);

#endif
