/* Checks the columns of a data set of format tfrecord that need no file. Guarantees lib/data that each image has a
 * height, a width and channels within the limits of job/job.h. */
#include "job/tfrecord_columns.h"

#include "base/str.h"
#include "job/fields.h"

enum { AXES = 3 }; /* height, width, channels */

static bool type_is(const struct node *column, const char *type)
{
    struct node value = node_get(column, "type");
    return str_eq(json_string_value(value.v), type);
}

/* The bytes of a PNG or JPEG file, which become an image of the column's shape. */
static int check_image(const struct node *column, struct err *e)
{
    struct node shape = node_get(column, "shape"), fallback = node_get(column, "default"),
                length = node_get(column, "outputSequenceLength");
    int64_t dim[AXES];
    if (node_present(&length))
        return node_error(&length, e, "an image is not a list; remove it");
    if (node_present(&fallback))
        return node_error(&fallback, e, "an image has no default");
    for (size_t i = 0; i < AXES && node_size(&shape) == AXES; i++) {
        struct node item = node_item(&shape, i);
        if (node_i64(&item, 1, INT32_MAX, &dim[i], e) < 0)
            return -1;
    }
    if (node_size(&shape) != AXES || (dim[2] != 1 && dim[2] != 3 && dim[2] != 4))
        return node_error(node_present(&shape) ? &shape : column, e,
                          "an image needs its shape: [height, width, channels], with 1, 3 or 4 channels");
    if (MAX(dim[0], dim[1]) > IMAGE_SIDE_MAX || dim[0] * dim[1] > IMAGE_PIXELS_MAX)
        return node_error(&shape, e, "has more than %d pixels, or more than %d in a row or column", IMAGE_PIXELS_MAX,
                          IMAGE_SIDE_MAX);
    return 0;
}

static int check_images(const struct data_spec *d, struct err *e)
{
    static const char *const KEYS[] = { "interpolation", "cropToAspectRatio" };
    bool some = false;
    for (size_t i = 0; i < node_size(&d->columns); i++) {
        struct node column = node_item(&d->columns, i);
        if (!type_is(&column, "image"))
            continue;
        some = true;
        if (check_image(&column, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < COUNT_OF(KEYS) && !some; i++) {
        struct node value = node_get(&d->node, KEYS[i]);
        if (node_present(&value))
            return node_error(&value, e, "says how images are resized, but no column has type: image");
    }
    return 0;
}

int tfrecord_weight_check(const struct data_spec *d, const struct node *column, struct err *e)
{
    struct node weight = node_get(&d->node, "sampleWeight"), shape = node_get(column, "shape"),
                length = node_get(column, "outputSequenceLength");
    if (node_present(&length))
        return node_error(&length, e, "the weight is one number, not a list; remove it");
    bool one = type_is(column, "float") || type_is(column, "int64");
    for (size_t i = 0; i < node_size(&shape); i++)
        one = one && json_number_value(json_array_get(shape.v, i)) == 1;
    return one ? 0
               : node_error(&weight, e, "feature '%s' must be one number: type float or int64, no shape",
                            json_string_value(json_object_get(column->v, "name")));
}

int tfrecord_columns_check(const struct data_spec *d, struct err *e)
{
    if (check_images(d, e) < 0)
        return -1;
    for (size_t i = 0; i < node_size(&d->columns); i++) {
        struct node column = node_item(&d->columns, i);
        const char *name = json_string_value(json_object_get(column.v, "name"));
        if (d->sample_weight != NULL && str_eq(name, d->sample_weight) && tfrecord_weight_check(d, &column, e) < 0)
            return -1;
    }
    return 0;
}
