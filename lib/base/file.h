/* file - all file access of the project, so that a file that exists is whole (design invariant 5) and so that a test
 * can make any call fail.
 *
 * Errors name the path and the system's message. A missing file is ERR_NOT_FOUND. What only the user can fix (no
 * permission, a folder where a file should be, ...) is ERR_INPUT. The rest is ERR_IO: a retry may help.
 */
#ifndef TRAINYARD_BASE_FILE_H
#define TRAINYARD_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/str.h"

/* Yields -1 with the error for a system call on `path` that just failed, by errno, as described above. */
int file_error(const char *path, struct err *e);

/* fd_close() is in base/mem.h, beside auto_close. */
/* Writes all or fails. */
MUST_USE int fd_write(int fd, const void *data, size_t n, struct err *e);
MUST_USE int fd_pwrite(int fd, const void *data, size_t n, uint64_t offset, struct err *e);
/* To standard output. ERR_OUTPUT_CLOSED: its reader has ended; SIGPIPE must be ignored. */
MUST_USE int file_write_stdout(const void *data, size_t n, struct err *e);

/* A new file to append to; ERR_INPUT when it exists. For logs that grow; whole files use file_write(). */
MUST_USE int file_append_new(const char *path, int *ret_fd, struct err *e);
MUST_USE int fd_sync(int fd, struct err *e); /* fsync */

/* For reading. A pipe, a socket or a device is ERR_INPUT, and is never waited for. */
MUST_USE int file_open(const char *path, int *ret_fd, struct err *e);
/* Whole file as a C string; ERR_INPUT when it is larger than max or not a regular file. "-" reads standard input;
 * /dev/stdin and /dev/fd/N may be pipes. */
MUST_USE int file_read(const char *path, size_t max, struct buf *ret, struct err *e);
/* Temporary beside it, fsync, rename, fsync of the folder. Readers see the old or the new content. A link is followed;
 * devices, pipes and folders are refused. */
MUST_USE int file_write(const char *path, const void *data, size_t n, struct err *e);
/* The same for a file that must not exist yet. When several processes try at once, also on a network volume, one
 * succeeds and the others get ERR_REFUSED. */
MUST_USE int file_write_new(const char *path, const void *data, size_t n, struct err *e);
bool file_exists(const char *path);
bool file_is_dir(const char *path);
MUST_USE int file_size(const char *path, uint64_t *ret, struct err *e);
MUST_USE int file_remove(const char *path, struct err *e); /* absent is success */
MUST_USE int file_rename(const char *from, const char *to, struct err *e);
/* Checks that the folder can be read. ERR_INPUT "PATH: why not". */
MUST_USE int dir_check(const char *path, struct err *e);
MUST_USE int dir_make(const char *path, struct err *e); /* mkdir -p */
MUST_USE int dir_sync(const char *path, struct err *e);
/* Bytes that can still be written there, and whether they are memory (tmpfs). */
MUST_USE int dir_space(const char *path, uint64_t *ret, bool *ret_memory, struct err *e);
/* Names in the folder, sorted, without "." and "..". */
MUST_USE int dir_list(const char *path, struct strlist *ret, struct err *e);
/* The same, and the names of folders end with "/". A link is none. */
MUST_USE int dir_list_marked(const char *path, struct strlist *ret, struct err *e);
/* "dir/name", or name when it is absolute. xmalloc'ed. */
char *path_join(const char *dir, const char *name);
char *path_dir(const char *path); /* "." when there is none */

/* file_out - a file that appears whole or not at all: write into a temporary, then commit.
 * file_out_free() before commit removes the temporary. Not thread-safe. */
struct file_out;
MUST_USE int file_out_open(const char *path, struct file_out **ret, struct err *e);
MUST_USE int file_out_write(struct file_out *f, const void *data, size_t n, struct err *e);
MUST_USE int file_out_pwrite(struct file_out *f, const void *data, size_t n, uint64_t offset, struct err *e);
/* Commit gives the file this name instead, in the same folder. For files whose name depends on their content. */
void file_out_name(struct file_out *f, const char *path);
MUST_USE int file_out_commit(struct file_out *f, struct err *e); /* fsync, rename, fsync folder */
/* As file_write_new(): ERR_REFUSED when the file exists. */
MUST_USE int file_out_commit_new(struct file_out *f, struct err *e);
void file_out_free(struct file_out *f);
DEFINE_AUTO(file_out, file_out_free);

/* Removes from a folder the temporaries of file_out that a killed process left there, for file names that `ours`
 * accepts. A temporary whose writer still runs is kept: a writer holds a lock on it. Where locks do not work,
 * temporaries older than an hour are removed. Returns the number removed. */
size_t file_remove_leftovers(const char *dir, bool (*ours)(const char *name));

/* file_map - a file in memory, read-only and shared (the page cache is the only copy). */
struct file_map {
    const unsigned char *data; /* valid also for an empty file */
    size_t size;
    char *path;
    unsigned char *shared; /* file_map_open_shared(): data, to write to; else NULL */
};
MUST_USE int file_map_open(const char *path, struct file_map **ret, struct err *e);
/* The same of a file that is not empty, to be written to: what one process stores there the others see. The file gets
 * all its blocks here, because a store for which a full disk has no block would end the process. */
MUST_USE int file_map_open_shared(const char *path, struct file_map **ret, struct err *e);
void file_map_free(struct file_map *m);
DEFINE_AUTO(file_map, file_map_free);
void file_map_random(struct file_map *m); /* madvise: access will be random */

/* Fault injection for tests: calls number n, n+1, ... (the first is 1) of `op` ("write", "fsync", "rename", "link",
 * "open") fail with `error`. `op` must stay valid. Off by default; NULL switches it off. */
void file_fault(const char *op, int n, int error);

/* Raises the soft limit of open files to the hard limit, because a server has a descriptor for each connection. */
void file_raise_limit(void);
/* Raises it, and checks that so many more descriptors are free now. ERR_LIMIT names the limit: at the start of a
 * program, because libraries abort or retry for ever when there is none later. */
MUST_USE int file_check_limit(size_t wanted, struct err *e);

#endif
