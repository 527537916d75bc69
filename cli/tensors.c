/* Writes named tensors as safetensors or npz, one at a time, so that memory is bounded by the largest tensor. */
#include "tensors.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "codec/json.h"
#include "zip_write.h"

static const struct {
    size_t size;
    const char *safetensors, *numpy; /* names of the type in each format; NULL: it has none */
} TYPES[TENSOR_TYPES] = {
    [TENSOR_F32] = { 4, "F32", "<f4" },   [TENSOR_F64] = { 8, "F64", "<f8" }, [TENSOR_I8] = { 1, "I8", "|i1" },
    [TENSOR_I16] = { 2, "I16", "<i2" },   [TENSOR_I32] = { 4, "I32", "<i4" }, [TENSOR_I64] = { 8, "I64", "<i8" },
    [TENSOR_U8] = { 1, "U8", "|u1" },     [TENSOR_U16] = { 2, "U16", "<u2" }, [TENSOR_U32] = { 4, "U32", "<u4" },
    [TENSOR_U64] = { 8, "U64", "<u8" },   [TENSOR_F16] = { 2, "F16", "<f2" }, [TENSOR_BF16] = { 2, "BF16", NULL },
    [TENSOR_BOOL] = { 1, "BOOL", "|b1" },
};

static int put(const struct tensor_sink *sink, const struct buf *b, struct err *e)
{
    return sink->write(sink->user, b->data, b->len, e);
}

static int read_entry(const struct tensor_source *source, size_t i, void **ret, struct err *e)
{
    auto_free void *data = NULL;
    if (mem_alloc(source->entries[i].bytes, source->entries[i].name, &data, e) < 0 ||
        source->read(source->user, i, data, e) < 0)
        return -1;
    *ret = TAKE(data);
    return 0;
}

/* ---- safetensors: u64le N, N bytes of JSON (padded to 8), the tensors end to end ---- */

static bool before(const struct tensor_entry *a, const struct tensor_entry *b)
{
    size_t sa = TYPES[a->type].size, sb = TYPES[b->type].size;
    return sa != sb ? sa > sb : strcmp(a->name, b->name) < 0;
}

/* Largest element first, then by name, as the safetensors library does: so every tensor is aligned to its element size.
 */
static size_t *sorted(const struct tensor_source *source)
{
    size_t *order = xcalloc(source->n, sizeof(order[0]));
    for (size_t i = 0; i < source->n; i++) { /* by insertion: hundreds of tensors, not millions */
        size_t k = i;
        for (; k > 0 && before(&source->entries[i], &source->entries[order[k - 1]]); k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    return order;
}

static json_t *header_of(const struct tensor_source *source, const size_t *order)
{
    json_t *header = json_object();
    size_t offset = 0;

    if (source->step != NULL)
        json_object_set_new(header, "__metadata__",
                            json_pack("{s:s, s:s}", "format", "trainyard", "step", source->step));
    for (size_t k = 0; k < source->n; k++) {
        const struct tensor_entry *t = &source->entries[order[k]];
        json_t *shape = json_array();
        for (int d = 0; d < t->rank; d++)
            json_array_append_new(shape, json_integer(t->dims[d]));
        json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", TYPES[t->type].safetensors, "shape", shape,
                                  "data_offsets", (json_int_t)offset, (json_int_t)(offset + t->bytes));
        json_object_set_new(header, t->name, entry);
        offset += t->bytes;
    }
    return header;
}

int safetensors_write(const struct tensor_source *source, const struct tensor_sink *sink, struct err *e)
{
    auto_free size_t *order = sorted(source);
    json_auto_t *header = header_of(source, order);
    AUTO_FINI(buf) text = BUF_INIT, size = BUF_INIT;

    json_emit(header, &text);
    while (text.len % 8 != 0)
        buf_char(&text, ' ');
    buf_u64le(&size, text.len);
    if (put(sink, &size, e) < 0 || put(sink, &text, e) < 0)
        return -1;
    for (size_t k = 0; k < source->n; k++) {
        auto_free void *data = NULL;
        if (read_entry(source, order[k], &data, e) < 0 ||
            sink->write(sink->user, data, source->entries[order[k]].bytes, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- npz: a zip (PKWARE APPNOTE) of NAME.npy members, method 0 ---- */

/* numpy.lib.format, version 1.0: magic, u16le length, a Python dict, spaces and \n up to a multiple of 64. */
void npy_header(const struct tensor_entry *t, struct buf *out)
{
    AUTO_FINI(buf) dict = BUF_INIT;

    buf_printf(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", TYPES[t->type].numpy);
    for (int d = 0; d < t->rank; d++)
        buf_printf(&dict, "%s%" PRId64, d > 0 ? ", " : "", t->dims[d]);
    buf_str(&dict, t->rank == 1 ? ",), }" : "), }");
    while ((10 + dict.len + 1) % 64 != 0)
        buf_char(&dict, ' ');
    buf_char(&dict, '\n');
    buf_add(out, "\x93NUMPY\x01\x00", 8);
    buf_u16le(out, (uint16_t)dict.len);
    buf_add(out, dict.data, dict.len);
}

static int npz_member(const struct tensor_source *source, size_t i, struct zip_writer *zip, struct err *e)
{
    const struct tensor_entry *t = &source->entries[i];
    AUTO_FINI(buf) header = BUF_INIT;
    auto_free void *data = NULL;
    auto_free char *name = xasprintf("%s.npy", t->name);

    if (TYPES[t->type].numpy == NULL)
        return err_set(e, ERR_INPUT, "%s: numpy has no %s; export as safetensors", t->name, TYPES[t->type].safetensors);
    if (t->bytes > UINT32_MAX)
        return err_set(e, ERR_INPUT, "more than 4 GiB do not fit into an npz; export as safetensors");
    npy_header(t, &header);
    if (read_entry(source, i, &data, e) < 0)
        return -1;
    return zip_add(zip, name, &header, data, t->bytes, e) < 0 ? err_wrap(e, "npz; export as safetensors") : 0;
}

int npz_write(const struct tensor_source *source, const struct tensor_sink *sink, struct err *e)
{
    AUTO_FINI(zip_writer) zip = ZIP_WRITER(sink);

    for (size_t i = 0; i < source->n; i++)
        if (npz_member(source, i, &zip, e) < 0)
            return -1;
    return zip_finish(&zip, e);
}
