#include "check_main.h"

#include "base/mem.h"
#include "data/file_kind.h"

#define ZEROS_32 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define TAR      BYTES("a" ZEROS_32 ZEROS_32 ZEROS_32 ZEROS_32 ZEROS_32 ZEROS_32 ZEROS_32 ZEROS_32 "ustar")

/* Bytes with their number. */
#define BYTES(text) (text), sizeof(text) - 1
#define LENGTH_5    "\5\0\0\0\0\0\0\0\xea\xb2\x04\x3e" /* of a TFRecord, and its CRC */

#define LENGTH_LIKE_IDX                                                                                                \
    "\0\0\x08\1\0\0\0\0"                                                                                               \
    "\x57\x93\xf6\x2c"

static const struct {
    const char *bytes;
    size_t n;
    const char *format;
    const char *error; /* NULL: not of another format */
} FILES[] = {
    { BYTES("\x93NUMPY\1\0"), "idx", "f: is an NPY file, not idx; set format: npy" },
    { BYTES("\x93NUMPY\1\0"), "npy", NULL },
    { BYTES("\0\0\x08\1\0\0\0\1a"), "csv", "f: is an IDX file, not csv; set format: idx" },
    { BYTES("\0\0\x08\1\0\0\0\1a"), "idx", NULL },
    { BYTES("\0\0\x07\1\0\0\0\1a"), "csv", NULL },
    { BYTES("\0\0\x08\x09\0\0\0\1a"), "csv", NULL },
    { BYTES(LENGTH_5 "hello"), "csv", "f: is a TFRecord file, not csv; set format: tfrecord" },
    { BYTES(LENGTH_LIKE_IDX "hello"), "tfrecord", NULL },
    { BYTES("PK\3\4 mimetype xl/workbook.xml"), "csv", "f: is an Excel workbook, not csv; save its table as CSV" },
    { BYTES("PK\3\4 [Content_Types].xml"), "csv", "f: is an Office document, not csv; save its table as CSV" },
    { BYTES("PK\3\4 x_train.npy"), "npy", "f: is an NPZ archive, not npy; set format: npz" },
    { BYTES("PK\3\4 x_train.npy"), "npz", NULL },
    { BYTES("PK\3\4 x_train"), "npz", NULL },
    { BYTES("PK\3\4 xl/workbook.xml"), "npz", "f: is an Excel workbook, not npz; save its table as CSV" },
    { BYTES("PK\5\6"), "npz", NULL },
    { BYTES("PK\3\4 t.csv"), "csv", "f: is a zip archive, not csv; unpack it" },
    { BYTES("PK\5\6"), "csv", "f: is an empty zip archive, not csv; write it again" },
    { BYTES("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"), "csv",
      "f: is an old Office document, such as .xls, not csv; save its table as CSV" },
    { BYTES("PAR1\x15\4"), "csv",
      "f: is a Parquet file, not csv; convert it: pandas.read_parquet(...).to_csv(..., index=False)" },
    { BYTES("PAR1,PAR2\n1,2\n"), "csv", NULL },
    { BYTES("ARROW1\0\0"), "tfrecord",
      "f: is an Arrow (Feather) file, not tfrecord; convert it: pandas.read_feather(...).to_csv(..., index=False)" },
    { BYTES("ARROW1,ARROW2\n"), "csv", NULL },
    { BYTES("{ \"a\": 1}\n{\"a\": 2}\n"), "csv", "f: is JSON, not csv; set format: jsonl" },
    { BYTES("{a},{b}\n"), "csv", NULL },
    { BYTES("{\"a\"},b\n"), "csv", NULL },
    { BYTES("\x89HDF\r\n\x1a\n"), "npz",
      "f: is an HDF5 file, not npz; save its arrays with numpy.savez (format: npz)" },
    { BYTES("\x80\4\x95"), "npy", "f: is a Python pickle, not npy; save its arrays with numpy.savez (format: npz)" },
    { BYTES("\x80\2\0\0\0\0\0\0"), "tfrecord", NULL },
    { BYTES("\x89PNG\r\n\x1a\n"), "idx",
      "f: is a PNG image, not idx; put it in a directory of images (format: images)" },
    { BYTES("\xff\xd8\xff\xe0"), "idx",
      "f: is a JPEG image, not idx; put it in a directory of images (format: images)" },
    { BYTES("\xff\xd8\xff\xe0"), "tfrecord",
      "f: is a JPEG image, not tfrecord; put it in a directory of images (format: images); predict reads it with "
      "--data '{format: images, files: [f], imageSize: [height, width]}'" },
    { BYTES("GIF89a\1\0\1\0"), "idx",
      "f: is a GIF image, not idx; convert it to PNG, and put it in a directory of images (format: images)" },
    { BYTES("GIF8,GIF9\n"), "csv", NULL },
    { TAR, "cifar", "f: is a tar archive, not cifar; unpack it with tar" },
    { BYTES("%PDF-1.4\n"), "csv", "f: is a PDF document, not csv; save its table as CSV" },
    { BYTES(""), "csv", NULL },
    { BYTES("P"), "csv", NULL },
    { BYTES("{"), "csv", NULL },
    { BYTES("a,b\n1,2\n"), "csv", NULL },
    { BYTES("a,b\n1,2\n"), "npy", NULL },
};

START_TEST(a_file_of_another_format_is_named)
{
    struct err e = { .msg = "" };
    auto_free char *exact = xmalloc(FILES[_i].n + 1); /* the sanitizer sees a read beyond */
    memcpy(exact, FILES[_i].bytes, FILES[_i].n);
    int rc = file_kind_check(exact, FILES[_i].n, "f", FILES[_i].format, &e);
    if (FILES[_i].error == NULL) {
        ck_assert_msg(rc == 0, "%s", e.msg);
        return;
    }
    ck_assert_int_eq(rc, -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_str_eq(e.msg, FILES[_i].error);
}
END_TEST

/* The names are in the directory at the end of the archive, also behind a large first member. */
START_TEST(a_workbook_may_be_large)
{
    enum { SIZE = 1 << 20 };
    auto_free char *bytes = xcalloc(1, SIZE);
    struct err e = { .msg = "" };
    memcpy(bytes, "PK\3\4", 4);
    memcpy(bytes + SIZE - 100, "xl/workbook.xml", 15);
    ck_assert_int_eq(file_kind_check(bytes, SIZE, "f", "csv", &e), -1);
    ck_assert_str_eq(e.msg, "f: is an Excel workbook, not csv; save its table as CSV");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/file_kind");
    TCase *t = tcase_create("kinds");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, a_file_of_another_format_is_named, 0, COUNT_OF(FILES));
    tcase_add_test(t, a_workbook_may_be_large);
    return s;
}
