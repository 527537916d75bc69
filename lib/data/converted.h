/* converted - inside of data/files.h: a text that is not UTF-8, as UTF-8, of a csv file in the cache folder. */
#ifndef TRAINYARD_DATA_CONVERTED_H
#define TRAINYARD_DATA_CONVERTED_H

#include "data/files.h"
#include "data/transcode.h"

struct original {
    const char *path;     /* for messages */
    const char *name;     /* of its copy in the cache */
    uint64_t fingerprint; /* data_fingerprint() of the content */
    uint64_t modified;    /* changes with the content, as far as the samples of data_fingerprint() do not */
};

/* A file of another known format (file_kind.h) is refused first. *ret is the conversion of the content, when
 * spec.encoding, or with `auto` the content, says that it is not UTF-8. NULL: it is UTF-8, or ASCII, and used as it is.
 * ERR_INPUT: not valid in its encoding, or there is no cache folder. */
MUST_USE int converted_open(const struct data_place *at, const struct original *o, const struct file_map *content,
                            struct file_map **ret, struct err *e);

/* Appends the text as UTF-8, without a byte order mark, by the same rules. text->encoding is not used. */
MUST_USE int converted_text(enum data_encoding said, const struct encoded_text *text, struct buf *ret, struct err *e);

#endif
