/* files - the data files a job names: found, mapped, unpacked when they are gzip, converted to UTF-8 when they are csv,
 * put into one file when they are texts, and fingerprinted.
 *
 * Errors about missing files have the place in the manifest, and name the folder that was searched. A file
 * that another process truncates while it is mapped raises SIGBUS, as with every mapped file: data
 * files are replaced by renaming a new one over them, never edited in place.
 */
#ifndef TRAINYARD_DATA_FILES_H
#define TRAINYARD_DATA_FILES_H

#include "base/file.h"
#include "data/records.h"

struct data_file {
    struct file_map *map; /* of the content: of a file in the cache when it was unpacked or converted */
    char *path;           /* as the path was found; for messages */
    uint64_t fingerprint; /* name without folder and .gz, size and sampled bytes of the content */
    uint64_t cache_key;   /* fingerprint and modification time: names what is derived from the content */
    uint64_t changed;     /* when the file was last touched in any way; 0: it was made of several files */
};
void data_file_fini(struct data_file *f);

/* The file that spec key `key` ("features", "labels") names. `name` or `name`.gz must exist. */
MUST_USE int data_file_open(const struct data_place *at, const char *key, const char *name, struct data_file *ret,
                            struct err *e);

/* One of the data set's files is in the folder. */
bool data_files_found(const struct data_spec *spec, const char *base_dir);

/* The paths of the files that spec.files names, patterns expanded: in the order of the list, a pattern's matches by
 * name; at least one. */
MUST_USE int data_files_paths(const struct data_place *at, struct strlist *ret, struct err *e);

/* The same files, opened. */
struct data_files {
    struct data_file *file;
    size_t n;
    struct strlist classes; /* text: of the labels, from 0 on */
    struct strlist notes;   /* text: what a user should know of the directory, each a sentence */
};
void data_files_fini(struct data_files *f);
MUST_USE int data_files_open(const struct data_place *at, struct data_files *ret, struct err *e);

/* -1, ERR_INPUT, at the place of `key` in the manifest when the spec came from one. */
int data_error(const struct data_place *at, const char *key, struct err *e, const char *fmt, ...) PRINTF_LIKE(4, 5);

/* Size, the first and last 64 KiB and 64 samples of 4 KiB between; all bytes up to 512 KiB. */
uint64_t data_fingerprint(const void *data, size_t n);

/* "FOLDER/NAME-KEY.SUFFIX" for what is derived from the file of that name. xmalloc'ed. */
char *cache_path(const struct data_place *at, const char *name, uint64_t key, const char *suffix);

#endif
