/* source - inside of codec/yaml.h: how the reader of a document records where its values are. */
#ifndef TRAINYARD_CODEC_SOURCE_H
#define TRAINYARD_CODEC_SOURCE_H

#include "codec/yaml.h"

struct place {
    int line, column; /* from 1 */
};

/* The value at the path, and its key (same as the value in lists). Paths of NODE_PATH_MAX and longer are not kept:
 * their nearest ancestor is used instead. The first record of a path is kept. */
void source_note(struct source *s, const char *path, struct place value, struct place key);

#endif
