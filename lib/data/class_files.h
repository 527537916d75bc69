/* class_files - finds the files of a data set of which each is an example, images or texts, and their classes. Inside
 * of lib/data.
 *
 * With labels, each directory in spec.images.directory is a class, and all files below it belong to it. Without, all
 * files below spec.images.directory count, or those that spec.files names: files, or directories of them. Names that
 * begin with a dot are skipped, as are files whose names do not end like those of their kind. A class may be a link to
 * a directory; links to directories below it are not followed.
 */
#ifndef TRAINYARD_DATA_CLASS_FILES_H
#define TRAINYARD_DATA_CLASS_FILES_H

#include "data/files.h"

/* What the files are. */
struct class_suffix {
    const char *text; /* how their names end, in upper or lower case */
    bool read;        /* false: they are left out, with a warning */
};
struct class_files_kind {
    const struct class_suffix *suffixes;
    size_t n;
    const char *what;   /* "images" */
    const char *files;  /* "PNG or JPEG files (.png, .jpg, .jpeg)" */
    const char *unread; /* "they are neither PNG nor JPEG" */
};

struct class_file {
    uint64_t order; /* of mixed files: the hash of the name */
    size_t name;    /* where it begins in `names` */
    int32_t label;  /* its class, if there are classes */
};
struct class_files {
    char *root;       /* the names are paths below it */
    struct buf names; /* each ends with a NUL */
    struct class_file *v;
    size_t n;
    struct strlist classes; /* n 0: no labels */
    size_t unread;          /* files of other kinds, such as GIF, which are left out */
    char *unread_name;      /* one of them */
    size_t others;          /* directories that spec.images.class_names does not list, which are left out */
};
void class_files_fini(struct class_files *f);
DEFINE_AUTO_FINI(class_files, class_files_fini);

/* At least one, in the order of their names, or `mixed`, in one that does not depend on where they are. The classes are
 * those that the run was trained with, else those of spec.images.class_names, else the directories by name. ERR_INPUT,
 * with a place where there is one. */
MUST_USE int class_files_find(const struct data_place *at, const struct class_files_kind *kind, bool mixed,
                              struct class_files *ret, struct err *e);
static inline const char *class_files_name(const struct class_files *f, size_t i)
{
    return f->names.data + f->v[i].name;
}
char *class_files_path(const struct class_files *f, size_t i); /* xmalloc'ed */
/* Adds what a user should know of them, each a sentence with the directory: empty classes, and what was left out. */
void class_files_notes(const struct class_files *f, const struct class_files_kind *kind, struct strlist *ret);

#endif
