/* The first byte chooses options, the rest is the CSV file. What is not UTF-8 is converted here, as
 * lib/data/converted.c does with a cache folder. */
#include "data/transcode.h"
#include "fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const SPECS[] = {
    "{format: csv, files: t}",
    "{format: csv, files: t, header: false}",
    "{format: csv, files: t, header: false, delimiter: ';', label: 0}",
    "{format: csv, files: t, label: ''}",
    "{format: csv, files: t, label: '', sampleWeight: -1}",
    "{format: csv, files: t, label: '', columns: [{name: a, type: date, default: 2020-01-01}]}",
    "{format: csv, files: t, label: '', dropColumns: [b], columns: [{name: a, type: date, format: '%d.%b.%y %H:%M:%S', "
    "missing: drop}]}",
    "{format: csv, files: t, missing: drop, naValues: [-1, x], skipRows: 1}",
    "{format: csv, files: t, delimiter: ';', decimal: ',', thousands: '.', missing: drop}",
    ("{format: csv, files: t, label: b, columns: [{name: a, type: category, vocabulary: [x, yy, 'q\"r'], encoding: "
     "one_hot}, {name: b, type: int, default: 3}, {name: c, default: 0.5}]}"),
    ("{format: csv, files: t, label: '', columns: [{name: a, type: text, vocabulary: [x, x yy], ngrams: [2, 1], "
     "encoding: tf_idf, idfWeights: [1, 0.5], default: x}, {name: b, type: category, numBins: 9, salt: [1, 2], "
     "encoding: one_hot, default: y}]}"),
};

static int keep(void *user, const void *data, size_t n, struct err *e UNUSED)
{
    buf_add(user, data, n);
    return 0;
}

/* False: it is UTF-16 that is not valid. */
static bool as_utf8(const uint8_t *data, size_t size, struct buf *out)
{
    struct err e = { .code = ERR_NONE };
    struct encoded_text t = { .encoding = transcode_guess(data, size), .p = data, .n = size, .path = "fuzz" };
    if (t.encoding == TEXT_UTF8 && transcode_utf8(data, size) == size) {
        buf_add(out, data, size);
        return true;
    }
    if (t.encoding == TEXT_UTF8)
        t.encoding = TEXT_WINDOWS_1252;
    int rc = transcode_pieces(&t, keep, out, &e);
    if (rc < 0 && (t.encoding == TEXT_WINDOWS_1252 || e.code != ERR_INPUT || e.msg[0] == '\0'))
        abort();
    if (transcode_utf8((const unsigned char *)out->data, out->len) != out->len)
        abort();
    return rc == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FINI(buf) text = BUF_INIT;
    if (size > 0 && as_utf8(data + 1, size - 1, &text))
        fuzz_file(SPECS[data[0] % COUNT_OF(SPECS)], text.data, text.len);
    return 0;
}
