/* A table of known formats: how their files begin, and how to make a data set of them. Formats whose first bytes may
 * also begin a text are only recognized when control characters follow, because a csv has no header of its own. */
#include "data/file_kind.h"

#include <string.h>

#include "base/str.h"
#include "data/records.h"

enum {
    ENDS = 64 << 10 /* of a zip archive: where the names of its members are */,
    TEXT_SEEN = 64,
    JSON_SEEN = 4 << 10,
    TAR_MAGIC_AT = 257
};
enum { IDX_TYPE_FIRST = 0x08, IDX_TYPE_LAST = 0x0E, IDX_RANK_MAX = 8 };

static bool is_idx(const unsigned char *p, size_t n)
{
    return n >= 4 && p[2] >= IDX_TYPE_FIRST && p[2] <= IDX_TYPE_LAST && p[3] >= 1 && p[3] <= IDX_RANK_MAX;
}

static bool is_tfrecord(const unsigned char *p, size_t n)
{
    return tfrecord_is(p, n);
}

/* A pickle goes on with an opcode; the length of a damaged TFRecord goes on with zeros. */
static bool is_pickle(const unsigned char *p, size_t n)
{
    return n > 2 && p[1] >= 2 && p[1] <= 5 && p[2] != 0;
}

static bool is_binary(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n && i < TEXT_SEEN; i++)
        if (p[i] < ' ' && p[i] != '\t' && p[i] != '\r' && p[i] != '\n')
            return true;
    return false;
}

/* {"key": ... */
static bool is_json(const unsigned char *p, size_t n)
{
    size_t i = 1;
    while (i < n && (p[i] == ' ' || p[i] == '\t' || p[i] == '\r' || p[i] == '\n'))
        i++;
    return i < n && p[i] == '"' && memmem(p + i, MIN(n - i, JSON_SEEN), "\":", 2) != NULL;
}

static bool has_member(const unsigned char *p, size_t n, const char *name)
{
    size_t part = MIN(n, ENDS);
    return memmem(p, part, name, strlen(name)) != NULL || memmem(p + n - part, part, name, strlen(name)) != NULL;
}

static bool is_workbook(const unsigned char *p, size_t n)
{
    return has_member(p, n, "xl/workbook");
}

static bool is_office(const unsigned char *p, size_t n)
{
    return has_member(p, n, "[Content_Types].xml");
}

static bool is_npz(const unsigned char *p, size_t n)
{
    return has_member(p, n, ".npy");
}

#define MAGIC(text)  .magic = (text), .size = sizeof(text) - 1
#define TO_CSV(read) "convert it: pandas." read ".to_csv(..., index=False)"
#define TO_NPZ       "save its arrays with numpy.savez (format: npz)"
#define IMAGES       "put it in a directory of images (format: images)"
#define TO_PNG       "convert it to PNG, and put it in a directory of images (format: images)"
#define TABLE        "save its table as CSV"

static bool is_tar(const unsigned char *p, size_t n)
{
    return n >= TAR_MAGIC_AT + 5 && memcmp(p + TAR_MAGIC_AT, "ustar", 5) == 0;
}

/* The first that fits counts: a TFRecord may begin like IDX, but not the other way round, because it has a CRC. */
static const struct file_kind {
    const char *magic;
    size_t size;
    bool (*is)(const unsigned char *p, size_t n); /* NULL: the magic is enough */
    const char *format;                           /* NULL: no reader has it */
    const char *what, *cure;
} KINDS[] = {
    { MAGIC("\x93NUMPY"), NULL, "npy", "an NPY file", "set format: npy" },
    { MAGIC(""), is_tfrecord, "tfrecord", "a TFRecord file", "set format: tfrecord" },
    { MAGIC("\0\0"), is_idx, "idx", "an IDX file", "set format: idx" },
    { MAGIC("PK\3\4"), is_workbook, NULL, "an Excel workbook", TABLE },
    { MAGIC("PK\3\4"), is_office, NULL, "an Office document", TABLE },
    { MAGIC("PK\3\4"), is_npz, "npz", "an NPZ archive", "set format: npz" },
    { MAGIC("PK\3\4"), NULL, "npz", "a zip archive", "unpack it" },
    { MAGIC("PK\5\6"), NULL, "npz", "an empty zip archive", "write it again" },
    { MAGIC("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"), NULL, NULL, "an old Office document, such as .xls", TABLE },
    { MAGIC("PAR1"), is_binary, NULL, "a Parquet file", TO_CSV("read_parquet(...)") },
    { MAGIC("ARROW1"), is_binary, NULL, "an Arrow (Feather) file", TO_CSV("read_feather(...)") },
    { MAGIC("{"), is_json, "jsonl", "JSON", "set format: jsonl" },
    { MAGIC("\x89HDF\r\n\x1a\n"), NULL, NULL, "an HDF5 file", TO_NPZ },
    { MAGIC("\x80"), is_pickle, NULL, "a Python pickle", TO_NPZ },
    { MAGIC("\x89PNG\r\n\x1a\n"), NULL, NULL, "a PNG image", IMAGES },
    { MAGIC("\xff\xd8\xff"), NULL, NULL, "a JPEG image", IMAGES },
    { MAGIC("GIF8"), is_binary, NULL, "a GIF image", TO_PNG },
    { MAGIC(""), is_tar, NULL, "a tar archive", "unpack it with tar" },
    { MAGIC("%PDF-"), NULL, NULL, "a PDF document", TABLE },
};

static const struct file_kind *kind_of(const void *data, size_t n)
{
    for (size_t i = 0; i < COUNT_OF(KINDS); i++) {
        const struct file_kind *k = &KINDS[i];
        if (n > 0 && n >= k->size && memcmp(data, k->magic, k->size) == 0 && (k->is == NULL || k->is(data, n)))
            return k;
    }
    return NULL;
}

int file_kind_check(const void *data, size_t n, const char *name, const char *format, struct err *e)
{
    const struct file_kind *k = kind_of(data, n);
    if (k == NULL || (k->format != NULL && str_eq(k->format, format)))
        return 0;
    if (str_eq(k->cure, IMAGES) && str_eq(format, "tfrecord")) /* a new photo for a run of encoded images */
        return err_set(e, ERR_INPUT,
                       "%s: is %s, not %s; %s; predict reads it with --data '{format: images, files: [%s], "
                       "imageSize: [height, width]}'",
                       name, k->what, format, k->cure, name);
    return err_set(e, ERR_INPUT, "%s: is %s, not %s; %s", name, k->what, format, k->cure);
}
