/* column_names - by which names a data set's numbers were read: what a run was trained with. A checkpoint keeps them,
 * so that other files are read by name and not by the order of their columns or directories. csv and jsonl have names
 * of columns and images have names of classes; other formats name their arrays and features in the manifest. The
 * columns of a csv without header are their places, 0, 1, ...: another file is not read by these.
 */
#ifndef TRAINYARD_DATA_COLUMN_NAMES_H
#define TRAINYARD_DATA_COLUMN_NAMES_H

#include "base/str.h"
#include "codec/node.h"

struct column_names {
    struct strlist features; /* in the order of the example's numbers; n 0: there are no names */
    struct strlist labels;
    bool by_place;          /* the names are places */
    char *weight;           /* NULL: none */
    struct strlist classes; /* of images, from class 0 on; n 0: the classes have no names */
};
void column_names_fini(struct column_names *c);
DEFINE_AUTO_FINI(column_names, column_names_fini);

bool column_names_any(const struct column_names *c);
/* "a, b, c", shortened to what fits a message. */
const char *column_names_text(const struct strlist *names, char *out, size_t out_size);
json_t *column_names_json(const struct column_names *c); /* new */
/* What column_names_json() wrote; no names when it is absent. `ret` must be empty. */
MUST_USE int column_names_read(const struct node *n, struct column_names *ret, struct err *e);
/* ERR_INPUT with both lists unless the features and the classes have the same names in the same order. Without names,
 * or with places: no error. */
MUST_USE int column_names_same(const struct column_names *was, const struct column_names *now, struct err *e);

#endif
