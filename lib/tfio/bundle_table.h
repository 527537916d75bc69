/* bundle_table - inside of tfio/bundle.h: the LevelDB table that a bundle's index is.
 *
 * Blocks of entries (varint shared | varint unshared | varint value size | rest of the key | value), restart offsets
 * and their count as u32le, then a trailer (type byte, masked CRC32C); data blocks, an empty metaindex block, the index
 * block (key -> varint offset, varint size), a footer of 48 bytes. From leveldb doc/table_format.md.
 */
#ifndef TRAINYARD_TFIO_BUNDLE_TABLE_H
#define TRAINYARD_TFIO_BUNDLE_TABLE_H

#include "base/buf.h"

enum { TABLE_KEY_MAX = 4096 };

/* Keys come in ascending (bytewise) order, each once. The whole table is built in memory. */
struct table_writer;
struct table_writer *table_writer_new(void);
void table_writer_free(struct table_writer *t);
DEFINE_AUTO(table_writer, table_writer_free);
void table_writer_add(struct table_writer *t, const void *key, size_t nkey, const struct buf *value);
void table_writer_finish(struct table_writer *t, struct buf *ret); /* appends the file's bytes */

/* Calls each() for every entry, in order; key ends in a NUL that nkey does not count. Everything about the file is
 * checked; fuzzing leaves out the CRCs. Errors carry no file name. */
typedef int table_fn(void *user, const char *key, size_t nkey, const void *value, size_t nvalue, struct err *e);
MUST_USE int table_read(const void *data, size_t n, bool check_crc, table_fn *each, void *user, struct err *e);

#endif
