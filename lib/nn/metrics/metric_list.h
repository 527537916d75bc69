/* metric_list - compile.metrics, parsed: held by model.c and used by metrics.c.
 *
 * "accuracy" becomes what Keras makes of it: sparse_categorical_accuracy for a sparse loss, binary_accuracy when the
 * output's last axis is 1, categorical_accuracy otherwise; its name stays "accuracy".
 */
#ifndef TRAINYARD_NN_METRICS_METRIC_LIST_H
#define TRAINYARD_NN_METRICS_METRIC_LIST_H

#include "nn/losses/loss.h"

struct metric_list;

/* n: a list of names or maps, or one of them; absent or null: an empty list. A metric that is not compatible with
 * the loss or the output is a placed ERR_INPUT, and so is a repeated name (Keras would number it). */
MUST_USE int metric_list_parse(const struct node *n, const struct loss *loss, const struct shape *output,
                               struct metric_list **ret, struct err *e);
/* Only the names and arguments, where the loss and the output are not known. */
MUST_USE int metric_list_check(const struct node *n, struct err *e);
/* Appends those of `n`, in which examples count by their weight. One whose name is taken is called weighted_NAME, as in
 * Keras. */
MUST_USE int metric_list_add_weighted(struct metric_list *l, const struct node *n, const struct loss *loss,
                                      const struct shape *output, struct err *e);
void metric_list_free(struct metric_list *l);
DEFINE_AUTO(metric_list, metric_list_free);
size_t metric_list_size(const struct metric_list *l); /* "loss" is not among them */
const char *metric_list_name(const struct metric_list *l, size_t i);
/* The metric of that name, else one whose class is called so ("mae"); -1: none. */
int metric_list_find(const struct metric_list *l, const char *name);
/* What Keras defines for a metric: whether less or more of it is better. */
enum better { BETTER_UNKNOWN, BETTER_DOWN, BETTER_UP };
enum better metric_list_better(const struct metric_list *l, size_t i);
/* compile_config's "metrics", or its "weighted_metrics": null when there are none. New reference. */
json_t *metric_list_json(const struct metric_list *l, bool weighted);

#endif
