/* IDX: 00 00 type rank, then rank big-endian u32 dimensions, then the elements, big-endian. */
#include "base/buf.h"
#include "data/arrays.h"
#include "data/file_kind.h"

static const enum dtype IDX_TYPES[] = {
    [0x08] = DT_UINT8, [0x09] = DT_INT8, [0x0B] = DT_INT16, [0x0C] = DT_INT32, [0x0D] = DT_FLOAT, [0x0E] = DT_DOUBLE,
};

static int parse_magic(const unsigned char *magic, const char *name, struct array *a, struct err *e)
{
    if (magic[0] != 0 || magic[1] != 0 || magic[2] >= COUNT_OF(IDX_TYPES) || IDX_TYPES[magic[2]] == 0)
        return err_set(e, ERR_INPUT, "%s: begins with %02x %02x %02x %02x, which is not IDX (00 00 type rank)", name,
                       magic[0], magic[1], magic[2], magic[3]);
    if (magic[3] == 0 || magic[3] > SHAPE_MAX_RANK)
        return err_set(e, ERR_INPUT, "%s: %d dimensions, 1 to %d can be read", name, magic[3], SHAPE_MAX_RANK);
    a->dtype = IDX_TYPES[magic[2]];
    a->swap = dtype_size(a->dtype) > 1;
    a->shape.rank = magic[3];
    return 0;
}

int idx_parse(const void *data, size_t n, const char *name, struct array *ret, struct err *e)
{
    struct reader r = reader_of(data, n);
    struct array a = { .data = NULL };
    const void *magic;

    if (file_kind_check(data, n, name, "idx", e) < 0)
        return -1;
    if (reader_bytes(&r, 4, &magic) < 0)
        return err_set(e, ERR_INPUT, "%s: has %zu bytes, too short for an IDX file", name, n);
    if (parse_magic(magic, name, &a, e) < 0)
        return -1;
    for (int i = 0; i < a.shape.rank; i++) {
        uint32_t dim;
        if (reader_u32be(&r, &dim) < 0)
            return err_set(e, ERR_INPUT, "%s: has %zu bytes, ends within its header", name, n);
        a.shape.dim[i] = dim;
    }
    a.data = r.p;
    if (array_check_size(&a, n - reader_left(&r), n, name, e) < 0)
        return -1;
    *ret = a;
    return 0;
}
