/* Writing of tfio/events.h. */
#include "tfio/events.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/crc32c.h"
#include "codec/pb.h"
#include "tensor/tensor.h"
#include "tfio/events_proto.h"

struct events_writer {
    char *path;
    int fd;
    uint64_t size;  /* whole records so far */
    bool broken;    /* what a failed write left could not be taken back */
    double *limits; /* right edges of TensorFlow's histogram buckets, ascending */
    size_t nlimits;
    uint16_t *first; /* by the upper 12 bits of a float: bucket of the smallest float that has them */
};

/* ---- records ---- */

/* u64le length | masked CRC of the length | data | masked CRC of the data. */
static int write_record(struct events_writer *w, const struct buf *data, struct err *e)
{
    AUTO_FINI(buf) record = BUF_INIT;
    if (w->broken)
        return err_set(e, ERR_IO, "%s: an earlier write failed", w->path);
    buf_u64le(&record, data->len);
    buf_u32le(&record, crc32c_mask(crc32c(0, record.data, sizeof(uint64_t))));
    buf_add(&record, data->data, data->len);
    buf_u32le(&record, crc32c_mask(crc32c(0, data->data, data->len)));
    if (fd_write(w->fd, record.data, record.len, e) < 0) {
        w->broken = ftruncate(w->fd, (off_t)w->size) < 0; /* half a record would end the file for its readers */
        return err_wrap(e, "%s", w->path);
    }
    w->size += record.len;
    return 0;
}

static void put_message(struct buf *b, uint32_t field, const struct buf *message)
{
    pb_put_bytes(b, field, message->data, message->len);
}

static void begin_event(struct buf *event, double wall, int64_t step)
{
    pb_put_double(event, EVENT_WALL, wall);
    if (step != 0)
        pb_put_varint(event, EVENT_STEP, (uint64_t)step);
}

/* An event with one summary value. */
static int write_value(struct events_writer *w, double wall, int64_t step, const struct buf *value, struct err *e)
{
    AUTO_FINI(buf) summary = BUF_INIT;
    AUTO_FINI(buf) event = BUF_INIT;
    put_message(&summary, SUMMARY_VALUE, value);
    begin_event(&event, wall, step);
    put_message(&event, EVENT_SUMMARY, &summary);
    return write_record(w, &event, e);
}

/* ---- life ---- */

/* TensorFlow's bucket limits (core/lib/histogram/histogram.cc InitDefaultBuckets). */
static void make_limits(struct events_writer *w)
{
    size_t n = 0;
    for (double v = 1.0e-12; v < 1.0e20; v *= 1.1)
        n++;
    w->nlimits = 2 * n + 3;
    w->limits = xmalloc(w->nlimits * sizeof(*w->limits));
    double *middle = w->limits + n + 1, v = 1.0e-12;
    middle[0] = 0;
    for (size_t i = 1; i <= n; i++, v *= 1.1) {
        middle[i] = v;
        *(middle - i) = -v;
    }
    middle[n + 1] = DBL_MAX;
    w->limits[0] = -DBL_MAX;
}

/* The first bucket whose right edge is above v. */
static size_t bucket_of(const struct events_writer *w, double v)
{
    size_t low = 0, high = w->nlimits - 1;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (w->limits[mid] > v)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

enum { KEY_SHIFT = 20, KEYS = 1 << (32 - KEY_SHIFT) };

static void make_first(struct events_writer *w)
{
    w->first = xmalloc(KEYS * sizeof(*w->first));
    for (uint32_t key = 0; key < KEYS; key++) {
        bool negative = key >= KEYS / 2;
        uint32_t bits =
            key << KEY_SHIFT | (negative ? (1U << KEY_SHIFT) - 1 : 0); /* the largest magnitude is the smallest */
        float v;
        memcpy(&v, &bits, sizeof(v));
        w->first[key] = isnan(v) ? 0 : (uint16_t)bucket_of(w, (double)v);
    }
}

/* bucket_of, for floats: a key spans an eighth of an octave, which is at most three buckets. */
static size_t bucket_of_float(const struct events_writer *w, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    size_t b = w->first[bits >> KEY_SHIFT];
    double v = (double)value;
    while (b + 1 < w->nlimits && !(w->limits[b] > v))
        b++;
    return b;
}

/* "events.out.tfevents.<seconds>.<host>", with a number behind it when there is such a file. */
static int create(struct events_writer *w, const char *dir, double wall, const char *host, struct err *e)
{
    for (int n = 0;; n++) {
        char suffix[16] = "";
        if (n > 0)
            str_fmt(suffix, sizeof(suffix), ".%d", n);
        auto_free char *name = xasprintf("events.out.tfevents.%010lld.%s%s", (long long)wall, host, suffix);
        free(w->path);
        w->path = path_join(dir, name);
        if (file_exists(w->path))
            continue;
        if (file_append_new(w->path, &w->fd, e) == 0)
            return 0;
        if (!file_exists(w->path))
            return -1; /* else another process of this host made it just now */
    }
}

int events_open(const char *dir, double wall, const char *host, struct events_writer **ret, struct err *e)
{
    AUTO(events_writer) *w = xcalloc(1, sizeof(*w));
    AUTO_FINI(buf) event = BUF_INIT;

    w->fd = -1;
    if (dir_make(dir, e) < 0 || create(w, dir, wall, host, e) < 0)
        return -1;
    make_limits(w);
    make_first(w);
    pb_put_double(&event, EVENT_WALL, wall);
    pb_put_str(&event, EVENT_FILE_VERSION, "brain.Event:2");
    if (write_record(w, &event, e) < 0 || events_flush(w, e) < 0)
        return -1;
    *ret = TAKE(w);
    return 0;
}

void events_free(struct events_writer *w)
{
    if (w == NULL)
        return;
    fd_close(w->fd);
    free(w->path);
    free(w->limits);
    free(w->first);
    free(w);
}

const char *events_path(const struct events_writer *w)
{
    return w->path;
}

int events_flush(struct events_writer *w, struct err *e)
{
    return fd_sync(w->fd, e) < 0 ? err_wrap(e, "%s", w->path) : 0;
}

/* ---- values ---- */

int events_scalar(struct events_writer *w, double wall, int64_t step, const char *tag, float value, struct err *e)
{
    AUTO_FINI(buf) v = BUF_INIT;
    pb_put_str(&v, VALUE_TAG, tag);
    pb_put_float(&v, VALUE_SIMPLE, value);
    return write_value(w, wall, step, &v, e);
}

/* Runs of empty buckets become one, as in TensorFlow's EncodeToProto. */
static void put_buckets(struct buf *histo, const double *limits, const double *counts, size_t n)
{
    auto_free double *ends = xmalloc(n * sizeof(*ends)), *kept = xmalloc(n * sizeof(*kept));
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && counts[i] <= 0 && kept[m - 1] <= 0)
            m--;
        ends[m] = limits[i];
        kept[m++] = counts[i];
    }
    pb_put_doubles(histo, HISTO_LIMITS, ends, m);
    pb_put_doubles(histo, HISTO_COUNTS, kept, m);
}

static void put_histogram(const struct events_writer *w, const float *values, size_t n, struct buf *histo)
{
    auto_free double *counts = xcalloc(w->nlimits, sizeof(*counts));
    double min = 0, max = 0, num = 0, sum = 0, squares = 0;

    for (size_t i = 0; i < n; i++) {
        double v = (double)values[i];
        if (!isfinite(v))
            continue;
        min = num == 0 ? v : MIN(min, v);
        max = num == 0 ? v : MAX(max, v);
        num++;
        sum += v;
        squares += v * v;
        counts[bucket_of_float(w, values[i])]++;
    }
    pb_put_double(histo, HISTO_MIN, min);
    pb_put_double(histo, HISTO_MAX, max);
    pb_put_double(histo, HISTO_NUM, num);
    pb_put_double(histo, HISTO_SUM, sum);
    pb_put_double(histo, HISTO_SUM_SQUARES, squares);
    put_buckets(histo, w->limits, counts, w->nlimits);
}

int events_histogram(struct events_writer *w, double wall, int64_t step, const char *tag, const float *values, size_t n,
                     struct err *e)
{
    AUTO_FINI(buf) v = BUF_INIT;
    AUTO_FINI(buf) histo = BUF_INIT;
    put_histogram(w, values, n, &histo);
    pb_put_str(&v, VALUE_TAG, tag);
    put_message(&v, VALUE_HISTO, &histo);
    return write_value(w, wall, step, &v, e);
}

static void put_metadata(struct buf *value, const char *plugin_name, const struct buf *content)
{
    AUTO_FINI(buf) plugin = BUF_INIT;
    AUTO_FINI(buf) metadata = BUF_INIT;
    pb_put_str(&plugin, PLUGIN_NAME, plugin_name);
    if (content != NULL)
        put_message(&plugin, PLUGIN_CONTENT, content);
    put_message(&metadata, METADATA_PLUGIN, &plugin);
    pb_put_varint(&metadata, METADATA_CLASS, CLASS_TENSOR);
    put_message(value, VALUE_METADATA, &metadata);
}

int events_text(struct events_writer *w, double wall, int64_t step, const char *tag, const char *markdown,
                struct err *e)
{
    AUTO_FINI(buf) v = BUF_INIT;
    AUTO_FINI(buf) tensor = BUF_INIT;
    pb_put_varint(&tensor, TENSOR_DTYPE, DT_STRING);
    pb_put_bytes(&tensor, TENSOR_SHAPE, "", 0);
    pb_put_str(&tensor, TENSOR_STRINGS, markdown);
    pb_put_str(&v, VALUE_TAG, tag);
    put_message(&v, VALUE_TENSOR, &tensor);
    put_metadata(&v, "text", NULL);
    return write_value(w, wall, step, &v, e);
}

int events_session(struct events_writer *w, double wall, enum events_session status, int64_t step, const char *path,
                   const char *msg, struct err *e)
{
    AUTO_FINI(buf) session = BUF_INIT;
    AUTO_FINI(buf) event = BUF_INIT;
    pb_put_varint(&session, SESSION_STATUS, status);
    if (path != NULL)
        pb_put_str(&session, SESSION_PATH, path);
    if (msg != NULL)
        pb_put_str(&session, SESSION_MSG, msg);
    begin_event(&event, wall, step);
    put_message(&event, EVENT_SESSION_LOG, &session);
    return write_record(w, &event, e);
}

/* ---- hparams ---- */

/* Three summaries of the plugin "hparams" at step 0 carry all in their metadata; the tensor is an empty float32 vector.
 */
static int write_hparams(struct events_writer *w, double wall, const char *tag, uint32_t field,
                         const struct buf *message, struct err *e)
{
    AUTO_FINI(buf) v = BUF_INIT;
    AUTO_FINI(buf) content = BUF_INIT;
    AUTO_FINI(buf) shape = BUF_INIT;
    AUTO_FINI(buf) tensor = BUF_INIT;
    put_message(&content, field, message);
    pb_put_bytes(&shape, SHAPE_DIM, "", 0);
    pb_put_varint(&tensor, TENSOR_DTYPE, DT_FLOAT);
    put_message(&tensor, TENSOR_SHAPE, &shape);
    pb_put_str(&v, VALUE_TAG, tag);
    put_message(&v, VALUE_TENSOR, &tensor);
    put_metadata(&v, "hparams", &content);
    return write_value(w, wall, 0, &v, e);
}

static uint64_t hparam_type(const json_t *v)
{
    return json_is_boolean(v) ? HPARAM_TYPE_BOOL : json_is_number(v) ? HPARAM_TYPE_NUMBER : HPARAM_TYPE_STRING;
}

/* A google.protobuf.Value. */
static void put_hparam(struct buf *b, const json_t *v)
{
    AUTO_FINI(buf) text = BUF_INIT;
    switch (hparam_type(v)) {
    case HPARAM_TYPE_BOOL:
        pb_put_varint(b, STRUCT_BOOL, json_is_true(v));
        return;
    case HPARAM_TYPE_NUMBER:
        pb_put_double(b, STRUCT_NUMBER, json_number_value(v));
        return;
    default:
        if (json_is_string(v))
            buf_str(&text, json_string_value(v));
        else
            json_emit(v, &text);
        put_message(b, STRUCT_STRING, &text);
    }
}

static void put_experiment(struct buf *b, double wall, const json_t *hparams, const char *const metrics[],
                           size_t nmetrics)
{
    const char *key;
    json_t *item;

    pb_put_double(b, EXPERIMENT_TIME, wall);
    json_object_foreach((json_t *)(uintptr_t)hparams, key, item)
    {
        AUTO_FINI(buf) info = BUF_INIT;
        pb_put_str(&info, HPARAM_NAME, key);
        pb_put_varint(&info, HPARAM_TYPE, hparam_type(item));
        put_message(b, EXPERIMENT_HPARAM, &info);
    }
    for (size_t i = 0; i < nmetrics; i++) {
        AUTO_FINI(buf) name = BUF_INIT;
        AUTO_FINI(buf) info = BUF_INIT;
        pb_put_str(&name, METRIC_TAG, metrics[i]);
        put_message(&info, METRIC_NAME, &name);
        put_message(b, EXPERIMENT_METRIC, &info);
    }
}

static void put_session_start(struct buf *b, double wall, const json_t *hparams, const char *group)
{
    const char *key;
    json_t *item;

    json_object_foreach((json_t *)(uintptr_t)hparams, key, item)
    {
        AUTO_FINI(buf) value = BUF_INIT;
        AUTO_FINI(buf) pair = BUF_INIT;
        put_hparam(&value, item);
        pb_put_str(&pair, MAP_KEY, key);
        put_message(&pair, MAP_VALUE, &value);
        put_message(b, START_HPARAMS, &pair);
    }
    pb_put_str(b, START_GROUP, group);
    pb_put_double(b, START_TIME, wall);
}

int events_hparams(struct events_writer *w, double wall, const json_t *hparams, const char *const metrics[],
                   size_t nmetrics, const char *group, struct err *e)
{
    AUTO_FINI(buf) experiment = BUF_INIT;
    AUTO_FINI(buf) start = BUF_INIT;
    put_experiment(&experiment, wall, hparams, metrics, nmetrics);
    put_session_start(&start, wall, hparams, group);
    if (write_hparams(w, wall, "_hparams_/experiment", HPARAMS_EXPERIMENT, &experiment, e) < 0)
        return -1;
    return write_hparams(w, wall, "_hparams_/session_start_info", HPARAMS_START, &start, e);
}

int events_hparams_end(struct events_writer *w, double wall, bool success, struct err *e)
{
    AUTO_FINI(buf) end = BUF_INIT;
    pb_put_varint(&end, END_STATUS, success ? END_SUCCESS : END_FAILURE);
    pb_put_double(&end, END_TIME, wall);
    return write_hparams(w, wall, "_hparams_/session_end_info", HPARAMS_END, &end, e);
}
