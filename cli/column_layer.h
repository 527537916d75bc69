/* column_layer - the preprocessing layer of Keras that makes of a column's values the numbers that lib/data makes of
 * them. `item` is what the run's job.yaml says of the column, an item of data.train.columns; NULL: nothing. Pure.
 */
#ifndef TRAINYARD_CLI_COLUMN_LAYER_H
#define TRAINYARD_CLI_COLUMN_LAYER_H

#include "codec/json.h"

struct column_layer {
    const char *type, *field; /* field NULL: none is needed */
    const char *input;        /* the type of the column's values */
    const char *class_name;   /* NULL: the numbers are used as they are */
    const char *suffix;       /* of the layer's name */
    const char *output;       /* the type of the layer's values */
    json_t *(*config)(const json_t *item);
    int64_t (*width)(const json_t *item); /* numbers of an example */
    bool reshape;                         /* unless they are int: Keras 3.15 plans one axis more than it computes */
};
/* The first row of the column's type whose field the column has; NULL: Keras has no layer for it. */
const struct column_layer *column_layer_of(const json_t *item);
int64_t column_width(const json_t *item);   /* numbers of an example */
bool column_is_int(const json_t *item);     /* its encoding */
bool column_is_weighed(const json_t *item); /* tf_idf: the layer has `idf_weights`, and its values are float32 */
/* Its words or ranges are not known: training learns them, and writes them into the job. */
bool column_is_open(const json_t *item);
/* Among the words of a text is "", which Keras refuses: it is the end of a text. */
bool column_has_empty_word(const json_t *item);
const char *column_type(const json_t *item);
const char *column_text(const json_t *item, const char *key, const char *fallback); /* borrowed */

#endif
