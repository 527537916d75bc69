/* Reads the classes of a data set of images or texts, and the size of images. */
#include "job/image_spec.h"

#include "job/data_parts.h"

enum { DEFAULT_SIDE = 256, SIZE_AXES = 2 };

static int image_spec_size(struct data_spec *d, const struct node *n, struct err *e)
{
    struct node size = node_get(n, "imageSize");
    int64_t *const sides[SIZE_AXES] = { &d->images.height, &d->images.width };
    d->images.height = d->images.width = DEFAULT_SIDE;
    if (!node_present(&size))
        return 0;
    if (node_size(&size) != SIZE_AXES || !json_is_array(size.v))
        return node_error(&size, e, "must be [height, width], such as [180, 180]");
    for (size_t i = 0; i < SIZE_AXES; i++) {
        struct node side = node_item(&size, i);
        if (node_i64(&side, 1, IMAGE_SIDE_MAX, sides[i], e) < 0)
            return -1;
    }
    if (d->images.height * d->images.width > IMAGE_PIXELS_MAX)
        return node_error(&size, e, "is an image of more than %d pixels", IMAGE_PIXELS_MAX);
    return 0;
}

static int image_spec_classes(struct data_spec *d, const struct node *n, struct err *e)
{
    AUTO_FINI(map) seen = { 0 };
    struct node names = node_get(n, "classNames");
    if (!node_present(&names))
        return 0;
    if (!json_is_array(names.v) || node_size(&names) == 0)
        return node_error(&names, e, "must be a list of directories, such as [cat, dog]");
    if (d->label.n == 0)
        return node_error(&names, e, "belongs to labels, and the data set has none");
    for (size_t i = 0; i < node_size(&names); i++) {
        struct node item = node_item(&names, i);
        char number[COLUMN_NUMBER_MAX];
        const char *name;
        if (data_parts_column(&item, number, &name, e) < 0)
            return -1;
        if (map_put(&seen, name, d) != NULL)
            return node_error(&item, e, "class '%s' is named twice", name);
        strlist_add(&d->images.class_names, name);
    }
    return 0;
}

int image_spec_read(struct data_spec *d, const struct node *n, struct err *e)
{
    struct node label = node_get(n, "label"), directory = node_get(n, "directory");
    const char *what = d->format == DATA_TEXT ? "text" : "image";
    if (d->images.directory == NULL && d->files.n == 0)
        return node_error(n, e, "'directory' is missing: the directory that has a directory of %ss for each class",
                          what);
    if (d->images.directory != NULL && d->files.n > 0)
        return node_error(&directory, e, "give directory or files, not both; files have no labels");
    if (d->images.directory != NULL && d->images.directory[0] == '\0')
        return node_error(&directory, e, "is empty");
    if (node_present(&label) && !str_eq(json_string_value(label.v), ""))
        return node_error(&label, e,
                          "the label of %s %s is the directory it is in; remove 'label', or write label: \"\" for %ss "
                          "without labels",
                          d->format == DATA_TEXT ? "a" : "an", what, what);
    if (d->format == DATA_IMAGES && image_spec_size(d, n, e) < 0)
        return -1;
    return image_spec_classes(d, n, e);
}
