/* checkpoint_state - the `checkpoint` file of a folder, which names its checkpoints: TensorFlow's CheckpointState in
 * protobuf's text format. */
#ifndef TRAINYARD_TFIO_CHECKPOINT_STATE_H
#define TRAINYARD_TFIO_CHECKPOINT_STATE_H

#include "base/str.h"

/* Prefixes as the file has them (relative ones are relative to dir), oldest first, the latest among them. One that does
 * not exist while dir has files of its name is replaced by that name: the folder was moved. Without the file
 * ERR_NOT_FOUND. *ret_latest is xmalloc'ed. */
MUST_USE int checkpoint_state_read(const char *dir, struct strlist *ret_all, char **ret_latest, struct err *e);
/* The same, and when the file is missing or unusable the prefixes that dir has, by step. *ret_why: what is wrong with
 * the file, or NULL; xmalloc'ed. ERR_NOT_FOUND when there is no checkpoint, ERR_INPUT when the file is unusable and
 * there is no checkpoint beside it. */
MUST_USE int checkpoint_state_find(const char *dir, struct strlist *ret_all, char **ret_latest, char **ret_why,
                                   struct err *e);
int64_t checkpoint_state_step(const char *prefix); /* that its name tells; -1: none */
/* `latest` must be one of `all`. Replaced as a whole. */
MUST_USE int checkpoint_state_write(const char *dir, const char *latest, const struct strlist *all, struct err *e);
/* As checkpoint_state_read, of its text; the outputs must be empty. Errors carry no file name. */
MUST_USE int checkpoint_state_parse(const char *text, size_t n, struct strlist *ret_all, char **ret_latest,
                                    struct err *e);

#endif
