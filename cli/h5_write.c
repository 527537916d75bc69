/* Writes groups, attributes and float datasets with the HDF5 library into a file in memory. Only this file includes
 * HDF5. */
#include "h5_write.h"

#include <hdf5.h>

enum { GROWTH = 1 << 20 };

struct h5_writer {
    hid_t file;
    hid_t links; /* properties: create missing intermediate groups */
    hid_t plain; /* properties: no times, so that the same model gives the same bytes */
};

/* There are several kinds of hid_t, each with its own close function. */
#define DEFINE_HANDLE(name, close_fn)                                                                                  \
    static void name##_close(const hid_t *h)                                                                           \
    {                                                                                                                  \
        if (*h >= 0)                                                                                                   \
            (void)close_fn(*h);                                                                                        \
    }
#define HANDLE(name) __attribute__((cleanup(name##_close))) hid_t
DEFINE_HANDLE(group, H5Gclose)
DEFINE_HANDLE(space, H5Sclose)
DEFINE_HANDLE(set, H5Dclose)
DEFINE_HANDLE(type, H5Tclose)
DEFINE_HANDLE(attribute, H5Aclose)
DEFINE_HANDLE(properties, H5Pclose)

/* The innermost error that libhdf5 reports. */
static herr_t take_reason(unsigned n, const H5E_error2_t *entry, void *ret)
{
    if (n == 0)
        *(const char **)ret = entry->desc;
    return 0;
}

static int failed(const char *what, const char *name, struct err *e)
{
    const char *reason = "no reason given";
    (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_reason, &reason);
    return err_set(e, ERR_INTERNAL, "HDF5: %s %s: %s", what, name, reason);
}

int h5_writer_new(struct h5_writer **ret, struct err *e)
{
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* the caller prints errors */
    HANDLE(properties) access = H5Pcreate(H5P_FILE_ACCESS);
    AUTO(h5_writer) *w = xcalloc(1, sizeof(*w));
    w->file = w->links = w->plain = H5I_INVALID_HID;
    if (access < 0 || H5Pset_fapl_core(access, GROWTH, 0) < 0)
        return failed("making", "a file in memory", e);
    w->file = H5Fcreate("model.weights.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    w->links = H5Pcreate(H5P_LINK_CREATE);
    w->plain = H5Pcreate(H5P_DATASET_CREATE);
    if (w->file < 0 || w->links < 0 || w->plain < 0 || H5Pset_create_intermediate_group(w->links, 1) < 0 ||
        H5Pset_obj_track_times(w->plain, 0) < 0)
        return failed("making", "a file in memory", e);
    *ret = TAKE(w);
    return 0;
}

void h5_writer_free(struct h5_writer *w)
{
    if (w == NULL)
        return;
    if (w->links >= 0)
        (void)H5Pclose(w->links);
    if (w->plain >= 0)
        (void)H5Pclose(w->plain);
    if (w->file >= 0)
        (void)H5Fclose(w->file);
    free(w);
}

int h5_writer_group(struct h5_writer *w, const char *path, struct err *e)
{
    HANDLE(group) group = H5Gcreate2(w->file, path, w->links, H5P_DEFAULT, H5P_DEFAULT);
    return group < 0 ? failed("group", path, e) : 0;
}

/* Variable-length UTF-8, as h5py writes a str. */
int h5_writer_attribute(struct h5_writer *w, const char *group, const char *name, const char *text, struct err *e)
{
    HANDLE(type) type = H5Tcopy(H5T_C_S1);
    HANDLE(space) space = H5Screate(H5S_SCALAR);
    if (type < 0 || space < 0 || H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)
        return failed("attribute", name, e);
    HANDLE(attribute)
    attribute = H5Acreate_by_name(w->file, group, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    return attribute < 0 || H5Awrite(attribute, type, &text) < 0 ? failed("attribute", name, e) : 0;
}

static int add(struct h5_writer *w, const char *path, hid_t stored, hid_t given, const struct shape *shape,
               const void *data, struct err *e)
{
    hsize_t dims[SHAPE_MAX_RANK + 1] = { 0 };
    for (int i = 0; i < shape->rank; i++)
        dims[i] = (hsize_t)shape->dim[i];
    HANDLE(space) space = shape->rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(shape->rank, dims, NULL);
    if (space < 0)
        return failed("dataset", path, e);
    HANDLE(set) set = H5Dcreate2(w->file, path, stored, space, w->links, w->plain, H5P_DEFAULT);
    return set < 0 || H5Dwrite(set, given, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0 ? failed("dataset", path, e) : 0;
}

int h5_writer_floats(struct h5_writer *w, const char *path, const struct shape *shape, const float *data, struct err *e)
{
    return add(w, path, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, shape, data, e);
}

int h5_writer_integer(struct h5_writer *w, const char *path, int64_t value, struct err *e)
{
    return add(w, path, H5T_STD_I64LE, H5T_NATIVE_INT64, &(struct shape){ 0 }, &value, e);
}

int h5_writer_finish(struct h5_writer *w, void **ret, size_t *ret_n, struct err *e)
{
    auto_free void *image = NULL;
    if (H5Fflush(w->file, H5F_SCOPE_GLOBAL) < 0)
        return failed("the", "file", e);
    ssize_t size = H5Fget_file_image(w->file, NULL, 0);
    if (size <= 0)
        return failed("the", "file", e);
    if (mem_alloc((size_t)size, "the HDF5 file", &image, e) < 0)
        return -1;
    if (H5Fget_file_image(w->file, image, (size_t)size) != size)
        return failed("the", "file", e);
    *ret = TAKE(image);
    *ret_n = (size_t)size;
    return 0;
}
