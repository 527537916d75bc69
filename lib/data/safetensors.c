/* u64le N, N bytes of JSON {"name": {"dtype", "shape", "data_offsets": [begin, end]}, ...}, the tensors. */
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "codec/node.h"
#include "data/safetensors.h"

enum { HEADER_MAX = 32 << 20, NAME_LONGEST = 255 };

static const struct {
    const char *name;
    enum dtype dtype;
} TYPES[] = {
    { "F64", DT_DOUBLE }, { "F32", DT_FLOAT }, { "F16", DT_HALF },  { "BF16", DT_BFLOAT16 }, { "I64", DT_INT64 },
    { "I32", DT_INT32 },  { "I16", DT_INT16 }, { "I8", DT_INT8 },   { "U64", DT_UINT64 },    { "U32", DT_UINT32 },
    { "U16", DT_UINT16 }, { "U8", DT_UINT8 },  { "BOOL", DT_BOOL },
};

bool safetensors_is(const void *data, size_t n)
{
    return n >= 10 && ((const char *)data)[8] == '{';
}

static int read_type(const struct node *n, struct named_array *a, struct err *e)
{
    struct node type = node_get(n, "dtype");
    const char *name = NULL;
    if (node_str(&type, &name, e) < 0)
        return -1;
    for (size_t i = 0; i < COUNT_OF(TYPES); i++) {
        if (str_eq(name, TYPES[i].name)) {
            a->array.dtype = TYPES[i].dtype;
            return 0;
        }
    }
    a->unread = "its type is not known";
    return 0;
}

static int read_shape(const struct node *n, struct named_array *a, struct err *e)
{
    struct node shape = node_get(n, "shape");
    if (node_array(&shape, e) < 0)
        return -1;
    if (node_size(&shape) > SHAPE_MAX_RANK) {
        a->unread = "it has more than 8 axes";
        return 0;
    }
    for (size_t i = 0; i < node_size(&shape); i++) {
        struct node item = node_item(&shape, i);
        if (node_i64(&item, 0, INT64_MAX, &a->array.shape.dim[a->array.shape.rank++], e) < 0)
            return -1;
    }
    return 0;
}

static int read_place(const struct node *n, const unsigned char *data, size_t size, struct named_array *a,
                      struct err *e)
{
    struct node offsets = node_get(n, "data_offsets"), first = node_item(&offsets, 0), second = node_item(&offsets, 1);
    int64_t begin, end;
    size_t count, bytes;
    if (node_i64(&first, 0, INT64_MAX, &begin, e) < 0 || node_i64(&second, 0, INT64_MAX, &end, e) < 0)
        return -1;
    if (begin > end || (uint64_t)end > size)
        return node_error(&offsets, e, "lie beyond the end of the file");
    if (a->unread != NULL)
        return 0;
    if (shape_count(&a->array.shape, &count, e) < 0 || size_mul(count, dtype_size(a->array.dtype), &bytes, e) < 0)
        return -1;
    if (bytes != (uint64_t)(end - begin))
        return node_error(&offsets, e, "cover %lld bytes, but the shape needs %zu", (long long)(end - begin), bytes);
    a->array.data = data + begin;
    return 0;
}

int safetensors_read(const void *data, size_t n, const char *label, struct named_arrays *ret, struct err *e)
{
    AUTO_FINI(named_arrays) list = { 0 };
    struct reader r = reader_of(data, n);
    json_auto_t *header = NULL;
    const void *text;
    uint64_t length;
    const char *name;
    json_t *item;

    if (reader_u64le(&r, &length) < 0 || length > HEADER_MAX || reader_bytes(&r, (size_t)length, &text) < 0)
        return err_set(e, ERR_INPUT, "%s: is not a whole safetensors file: its header is cut off", label);
    if (json_parse(text, (size_t)length, label, &header, e) < 0)
        return -1;
    struct node root = node_root(header, NULL);
    if (node_object(&root, e) < 0)
        return err_wrap(e, "%s", label);
    json_object_foreach(header, name, item)
    {
        struct node entry = { .v = item };
        if (str_eq(name, "__metadata__"))
            continue;
        if (name[0] == '\0' || strlen(name) > NAME_LONGEST)
            return err_set(e, ERR_INPUT, "%s: the name of a tensor is empty or longer than %d bytes", label,
                           NAME_LONGEST);
        struct named_array *a = named_arrays_add(&list, xstrdup(name), NULL);
        if (read_type(&entry, a, e) < 0 || read_shape(&entry, a, e) < 0 ||
            read_place(&entry, r.p, reader_left(&r), a, e) < 0)
            return err_wrap(e, "%s: tensor '%.100s'", label, name);
    }
    *ret = list;
    list = (struct named_arrays){ 0 };
    return 0;
}
