/* text_files - a directory of texts, each an example, as one file of JSON Lines: the data of format text are read by
 * the code of jsonl. Inside of lib/data/files.h.
 *
 * The file is made once, in the cache folder. A record of it is {"text": "...", "label": 1, "path": "pos/0_9.txt"}: the
 * text as UTF-8, the number of its class, and the path below the directory. Data without labels have no "label".
 */
#ifndef TRAINYARD_DATA_TEXT_FILES_H
#define TRAINYARD_DATA_TEXT_FILES_H

#include "data/files.h"

/* Opens this file, and lists the classes. ERR_INPUT if there is no text or no cache folder, and, with its path, if a
 * text is larger than 64 MiB, has a NUL, or is not valid in spec.encoding. */
MUST_USE int text_files_open(const struct data_place *at, struct data_files *ret, struct err *e);

#endif
