/* zip_write - a zip archive (PKWARE APPNOTE) of stored members, written front to back: npz, .keras.
 *
 * The same members give the same bytes: all have the date 1980-01-01. No ZIP64: less than 4 GiB in all.
 */
#ifndef TRAINYARD_CLI_ZIP_WRITE_H
#define TRAINYARD_CLI_ZIP_WRITE_H

#include "tensors.h"

struct zip_writer {
    const struct tensor_sink *sink;
    uint64_t offset;
    size_t members;
    struct buf directory;
};
#define ZIP_WRITER(sink_)                                                                                              \
    {                                                                                                                  \
        .sink = (sink_), .directory = BUF_INIT                                                                         \
    }
void zip_writer_fini(struct zip_writer *z);
DEFINE_AUTO_FINI(zip_writer, zip_writer_fini);

/* A member whose content is `head` and then `body`; ERR_INPUT when it does not fit. */
MUST_USE int zip_add(struct zip_writer *z, const char *name, const struct buf *head, const void *body, size_t body_len,
                     struct err *e);
MUST_USE int zip_finish(struct zip_writer *z, struct err *e);

#endif
