/* checkpoint_state - the `checkpoint` file of a folder, which names its checkpoints: TensorFlow's CheckpointState in
 * protobuf's text format. */
#ifndef TRAINYARD_TFIO_CHECKPOINT_STATE_H
#define TRAINYARD_TFIO_CHECKPOINT_STATE_H

#include "base/str.h"

/* Prefixes as the file has them (relative ones are relative to dir), oldest first, the latest among them. Without the
 * file ERR_NOT_FOUND. *ret_latest is xmalloc'ed. */
MUST_USE int checkpoint_state_read(const char *dir, struct strlist *ret_all, char **ret_latest, struct err *e);
/* `latest` must be one of `all`. Replaced as a whole. */
MUST_USE int checkpoint_state_write(const char *dir, const char *latest, const struct strlist *all, struct err *e);
/* As checkpoint_state_read, of its text; the outputs must be empty. Errors carry no file name. */
MUST_USE int checkpoint_state_parse(const char *text, size_t n, struct strlist *ret_all, char **ret_latest,
                                    struct err *e);

#endif
