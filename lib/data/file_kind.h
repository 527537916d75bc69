/* file_kind - names the format of a file that is not what its reader expects, by its first bytes. Inside of lib/data.
 * Pure. */
#ifndef TRAINYARD_DATA_FILE_KIND_H
#define TRAINYARD_DATA_FILE_KIND_H

#include <stddef.h>

#include "base/err.h"

/* What each reader does first. ERR_INPUT, with the cure, if the n bytes of the file `name` are of a known format other
 * than `format` (as spec.data has it). 0: they may be of `format`; the reader's own checks follow. */
MUST_USE int file_kind_check(const void *data, size_t n, const char *name, const char *format, struct err *e);

#endif
