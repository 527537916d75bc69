/* The bytes as a TFRecord file. Also as one message in its own record, because no mutation passes two CRCs. */
#include "fuzz_data.h"

#include "codec/crc32c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char SPEC[] = "{format: tfrecord, files: t, sampleWeight: w, columns: [{name: w, type: float, default: 1},"
                           " {name: x, type: float, shape: [2]},"
                           " {name: i, type: int64, default: 1}, {name: img, type: bytes, shape: [2, 2], default: 0},"
                           " {name: label, type: int64}]}";
static const char LISTS[] =
    "{format: tfrecord, files: t, columns: [{name: rgb, type: bytes, shape: [3],"
    " outputSequenceLength: 4}, {name: sound, type: float, shape: [2], outputSequenceLength: 4,"
    " default: 1}, {name: word, type: int64, outputSequenceLength: 4, default: -1}, {name: tags,"
    " type: int64, outputSequenceLength: 2}, {name: label, type: int64, default: 0}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FINI(buf) record = BUF_INIT;
    uint64_t length = size;
    fuzz_file(SPEC, data, size);
    buf_u64le(&record, length);
    buf_u32le(&record, crc32c_mask(crc32c(0, &length, sizeof(length))));
    buf_add(&record, data, size);
    buf_u32le(&record, crc32c_mask(crc32c(0, data, size)));
    fuzz_file(SPEC, record.data, record.len);
    fuzz_file(LISTS, record.data, record.len);
    return 0;
}
