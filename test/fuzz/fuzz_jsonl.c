/* The first byte chooses options, the rest is the file of JSON Lines. What the scan takes must be JSON for jansson,
 * too. */
#include "codec/json.h"
#include "data/jsonl_scan.h"
#include "fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const SPECS[] = {
    "{format: jsonl, files: t}",
    "{format: jsonl, files: t, label: ''}",
    "{format: jsonl, files: t, label: '', sampleWeight: w, missing: drop, naValues: [-1, x]}",
    "{format: jsonl, files: t, label: '', columns: [{name: a, type: date, default: 2020-01-01}]}",
    "{format: jsonl, files: t, dropColumns: [b], columns: [{name: a.b, type: int, missing: drop}]}",
    "{format: jsonl, files: t, label: '', columns: [{name: a, shape: [2, 2], default: 1}, {name: b, type: int, shape: "
    "[1], "
    "missing: drop}]}",
    ("{format: jsonl, files: t, label: b, columns: [{name: a, type: category, vocabulary: [x, yy, 'q\"r'], encoding: "
     "one_hot, numOovIndices: 1}, {name: b, type: int, default: 3}, {name: c, type: text, vocabulary: [x, yy], "
     "outputSequenceLength: 3, default: ''}]}"),
    ("{format: jsonl, files: t, label: '', columns: [{name: a, shape: [2], outputSequenceLength: 3, default: 1}, "
     "{name: "
     "b, type: int, outputSequenceLength: 2, missing: drop}]}"),
};

/* An object that the scan takes. */
static void compare(const uint8_t *data, size_t size)
{
    struct err e = { .code = ERR_NONE };
    json_auto_t *v = NULL;
    struct file_map map = { .data = data, .size = size };
    char path[] = "fuzz";
    struct data_file file = { .path = path, .map = &map };
    AUTO_FINI(jsonl_scan) s = { .file = &file, .p = data, .end = data + size, .path = BUF_INIT };
    bool taken = memchr(data, '\n', size) == NULL && jsonl_scan_record(&s, &e) == 0;
    if (taken && json_parse_any((const char *)data, size, "fuzz", &v, &e) < 0 && strstr(e.msg, "too big") == NULL &&
        strstr(e.msg, "overflow") == NULL)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    fuzz_file(SPECS[data[0] % COUNT_OF(SPECS)], data + 1, size - 1);
    compare(data + 1, size - 1);
    return 0;
}
