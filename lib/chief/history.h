/* history - metrics by epoch as history.json and the checkpoint have them: {"epoch": [0, 1], "loss": [0.5, 0.25],
 * "val_loss": [null, 0.3]}. All lists are of one length: an entry for each epoch, null where no value is known.
 *
 * Plain functions on such an object; not thread-safe.
 */
#ifndef TRAINYARD_CHIEF_HISTORY_H
#define TRAINYARD_CHIEF_HISTORY_H

#include "codec/node.h"
#include "nn/model.h"

json_t *history_new(const struct model *m, bool validation); /* new reference; no entries */
int64_t history_entries(const json_t *h);
void history_add(json_t *h, int64_t epoch); /* an entry of nulls */
/* Sets it in the newest entry of the epoch; does nothing when there is none. */
void history_set(json_t *h, int64_t epoch, const char *name, double value);
/* Reads the newest entry of the epoch; false when the value is not known. A number that is not finite counts as known.
 */
bool history_find(const json_t *h, int64_t epoch, const char *name, double *ret);
double history_last(const json_t *h, const char *name); /* newest that is known, or NaN */
/* Cuts every list to n entries, or fills it up with nulls. */
void history_level(json_t *h, int64_t n);
/* Copies what `from` has, in n entries; absent: n entries of nulls. */
MUST_USE int history_take(json_t *h, const struct node *from, int64_t n, struct err *e);
/* `longer` begins with the entries of h; where h has null, `longer` may have a value. */
bool history_continues(const json_t *longer, const json_t *h);

#endif
