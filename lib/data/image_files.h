/* image_files - finds the images of a data set and their classes. Inside of lib/data.
 *
 * With labels, each directory in spec.images.directory is a class, and all images below it belong to it. Without, all
 * images below spec.images.directory count, or those that spec.files names: files, or directories of them. Names that
 * begin with a dot are skipped, as are files whose names do not end like those of PNG and JPEG files. A class may be a
 * link to a directory; links to directories below it are not followed.
 */
#ifndef TRAINYARD_DATA_IMAGE_FILES_H
#define TRAINYARD_DATA_IMAGE_FILES_H

#include "data/files.h"

struct image_file {
    uint64_t order; /* of mixed files: the hash of the name */
    size_t name;    /* where it begins in `names` */
    int32_t label;  /* its class, if there are classes */
};
struct image_files {
    char *root;       /* the names are paths below it */
    struct buf names; /* each ends with a NUL */
    struct image_file *v;
    size_t n;
    struct strlist classes; /* n 0: no labels */
    size_t unread;          /* images of other kinds, such as GIF, which are left out */
    char *unread_name;      /* one of them */
    size_t others;          /* directories that spec.images.class_names does not list, which are left out */
};
void image_files_fini(struct image_files *f);
DEFINE_AUTO_FINI(image_files, image_files_fini);

/* At least one, in the order of their names, or mixed. The classes are those that the run was trained with, else those
 * of spec.images.class_names, else the directories by name. ERR_INPUT, with a place where there is one. */
MUST_USE int image_files_find(const struct data_place *at, struct image_files *ret, struct err *e);
static inline const char *image_files_name(const struct image_files *f, size_t i)
{
    return f->names.data + f->v[i].name;
}
char *image_files_path(const struct image_files *f, size_t i); /* xmalloc'ed */

#endif
