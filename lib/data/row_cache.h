/* row_cache - the rows of numbers that the records of a data set became, in a file of the cache folder: a record is
 * parsed once, in the first epoch, and is copied from then on. Inside of lib/data.
 *
 * The processes of a host share the file: each writes the rows that it parsed first. A row counts once its stamp is
 * there, the CRC-32C of the row, and is parsed again where the two disagree, as after a power failure. The cache only
 * saves time: without a place for it, or behind the last row that has one, records are parsed each time.
 */
#ifndef TRAINYARD_DATA_ROW_CACHE_H
#define TRAINYARD_DATA_ROW_CACHE_H

#include "data/dataset.h"
#include "data/read_team.h"

/* How many of n rows are kept: none where they would take more than four times the bytes of the files, as a long
 * one_hot does; and as many as fit into a quarter of the free bytes and into 1 GiB, or 64 MiB where a file is memory.
 * Pure. */
size_t row_cache_rows(const struct records *r, size_t n, uint64_t free_bytes, bool memory);

/* Of the records first .. first + n. r must outlive it. Any number of processes may open it at once. An error says why
 * there can be none. */
struct row_cache;
MUST_USE int row_cache_open(const struct records *r, const struct row_space *space, int64_t first, size_t n,
                            struct row_cache **ret, struct err *e);
void row_cache_free(struct row_cache *c);
DEFINE_AUTO(row_cache, row_cache_free);

/* As records_ops.read. Any thread. */
MUST_USE int row_cache_read(struct row_cache *c, const struct read_rows *rows, struct err *e);

#endif
