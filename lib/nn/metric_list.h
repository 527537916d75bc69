/* metric_list - compile.metrics, parsed: what model.c holds and metrics.c computes with.
 *
 * "accuracy" becomes what Keras makes of it: sparse_categorical_accuracy for a sparse loss, binary_accuracy
 * when the output's last axis is 1, categorical_accuracy otherwise; its name stays "accuracy".
 */
#ifndef TRAINYARD_NN_METRIC_LIST_H
#define TRAINYARD_NN_METRIC_LIST_H

#include "nn/loss.h"

struct metric_list;

/* n: a list of names or maps, or one of them; absent or null: an empty list. A metric that cannot go with the
 * loss or the output is a placed ERR_INPUT, and so is a name twice (Keras would number it). */
MUST_USE int metric_list_parse(const struct node *n, const struct loss *loss, const struct shape *output,
                               struct metric_list **ret, struct err *e);
void metric_list_free(struct metric_list *l);
DEFINE_AUTO(metric_list, metric_list_free)
size_t metric_list_size(const struct metric_list *l); /* "loss" is not among them */
const char *metric_list_name(const struct metric_list *l, size_t i);
json_t *metric_list_json(const struct metric_list *l); /* compile_config's "metrics"; new reference */

#endif
