/* The first byte chooses options, the rest is the CSV file. */
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
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0)
        fuzz_file(SPECS[data[0] % COUNT_OF(SPECS)], data + 1, size - 1);
    return 0;
}
