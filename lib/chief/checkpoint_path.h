/* checkpoint_path - resolves a path that the user gave to a checkpoint. */
#ifndef TRAINYARD_CHIEF_CHECKPOINT_PATH_H
#define TRAINYARD_CHIEF_CHECKPOINT_PATH_H

#include "base/err.h"

/* Prefix of the checkpoint. An output folder means the run's result (output_dir_model); a checkpoints folder, its
 * newest one; a prefix, its .index or one of its .data files, that checkpoint. xmalloc'ed. ERR_NOT_FOUND when a folder
 * has none.
 */
MUST_USE int checkpoint_path(const char *path, char **ret_prefix, struct err *e);

#endif
