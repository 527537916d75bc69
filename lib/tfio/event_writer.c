/* Event files: their names, the framing of records with checksums, and the messages of scalars, texts and sessions.
 * A record that could not be written whole is cut off again, because half a record ends the file for its readers. */
#include "tfio/event_writer.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/crc32c.h"
#include "tensor/tensor.h"
#include "tfio/event_writer_internal.h"

struct event_writer {
    char *path;
    int fd;
    uint64_t size; /* whole records so far */
    bool broken;   /* what a failed write left could not be cut off */
    struct histogram_buckets buckets;
};

/* ---- records ---- */

/* u64le length | masked CRC of the length | data | masked CRC of the data. */
static int write_record(struct event_writer *w, const Tensorflow__Event *event, struct err *e)
{
    AUTO_FINI(buf) data = BUF_INIT;
    AUTO_FINI(buf) record = BUF_INIT;
    if (w->broken)
        return err_set(e, ERR_IO, "%s: an earlier write failed", w->path);
    protobuf_append(&event->base, &data);
    buf_u64le(&record, data.len);
    buf_u32le(&record, crc32c_mask(crc32c(0, record.data, sizeof(uint64_t))));
    buf_add(&record, data.data, data.len);
    buf_u32le(&record, crc32c_mask(crc32c(0, data.data, data.len)));
    if (fd_write(w->fd, record.data, record.len, e) < 0) {
        w->broken = ftruncate(w->fd, (off_t)w->size) < 0;
        return err_wrap(e, "%s", w->path);
    }
    w->size += record.len;
    return 0;
}

static Tensorflow__Event new_event(double wall, int64_t step)
{
    Tensorflow__Event event = TENSORFLOW__EVENT__INIT;
    event.wall_time = wall;
    event.step = step;
    return event;
}

int event_writer_value(struct event_writer *w, double wall, int64_t step, Tensorflow__Summary__Value *value,
                       struct err *e)
{
    Tensorflow__Event event = new_event(wall, step);
    Tensorflow__Summary summary = TENSORFLOW__SUMMARY__INIT;
    summary.value = &value;
    summary.n_value = 1;
    event.what_case = TENSORFLOW__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    return write_record(w, &event, e);
}

/* ---- life ---- */

/* "events.out.tfevents.<seconds>.<host>", with a number after it when that file exists. */
static int create_file(struct event_writer *w, const char *dir, double wall, const char *host, struct err *e)
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

int event_writer_open(const char *dir, double wall, const char *host, struct event_writer **ret, struct err *e)
{
    AUTO(event_writer) *w = xcalloc(1, sizeof(*w));
    Tensorflow__Event event = new_event(wall, 0);

    w->fd = -1;
    if (dir_make(dir, e) < 0 || create_file(w, dir, wall, host, e) < 0)
        return -1;
    histogram_buckets_init(&w->buckets);
    event.what_case = TENSORFLOW__EVENT__WHAT_FILE_VERSION;
    event.file_version = unconst("brain.Event:2");
    if (write_record(w, &event, e) < 0 || event_writer_sync(w, e) < 0) {
        (void)!file_remove(w->path, NULL); /* a file without values would stay for each attempt */
        return -1;
    }
    *ret = TAKE(w);
    return 0;
}

void event_writer_free(struct event_writer *w)
{
    if (w == NULL)
        return;
    fd_close(w->fd);
    free(w->path);
    histogram_buckets_fini(&w->buckets);
    free(w);
}

const char *event_writer_path(const struct event_writer *w)
{
    return w->path;
}

int event_writer_sync(struct event_writer *w, struct err *e)
{
    return fd_sync(w->fd, e) < 0 ? err_wrap(e, "%s", w->path) : 0;
}

/* ---- values ---- */

static Tensorflow__Summary__Value new_value(const char *tag)
{
    Tensorflow__Summary__Value value;
    tensorflow__summary__value__init(&value);
    value.tag = unconst(tag);
    return value;
}

int event_writer_scalar(struct event_writer *w, double wall, int64_t step, const char *tag, float value, struct err *e)
{
    Tensorflow__Summary__Value v = new_value(tag);
    v.value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
    v.simple_value = value;
    return event_writer_value(w, wall, step, &v, e);
}

int event_writer_histogram(struct event_writer *w, double wall, int64_t step, const char *tag, const float *values,
                           size_t n, struct err *e)
{
    Tensorflow__Summary__Value v = new_value(tag);
    Tensorflow__HistogramProto histo = TENSORFLOW__HISTOGRAM_PROTO__INIT;
    auto_free double *lists = NULL;
    histogram_buckets_count(&w->buckets, values, n, &histo, &lists);
    v.value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_HISTO;
    v.histo = &histo;
    return event_writer_value(w, wall, step, &v, e);
}

int event_writer_text(struct event_writer *w, double wall, int64_t step, const char *tag, const char *markdown,
                      struct err *e)
{
    Tensorflow__Summary__Value v = new_value(tag);
    Tensorflow__SummaryMetadata metadata = TENSORFLOW__SUMMARY_METADATA__INIT;
    Tensorflow__SummaryMetadata__PluginData plugin;
    tensorflow__summary_metadata__plugin_data__init(&plugin);
    Tensorflow__TensorProto tensor = TENSORFLOW__TENSOR_PROTO__INIT;
    Tensorflow__TensorShapeProto scalar = TENSORFLOW__TENSOR_SHAPE_PROTO__INIT;
    ProtobufCBinaryData text = { .len = strlen(markdown), .data = unconst(markdown) };
    plugin.plugin_name = unconst("text");
    metadata.plugin_data = &plugin;
    metadata.data_class = DATA_CLASS_TENSOR;
    tensor.dtype = DT_STRING;
    tensor.tensor_shape = &scalar;
    tensor.string_val = &text;
    tensor.n_string_val = 1;
    v.metadata = &metadata;
    v.value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_TENSOR;
    v.tensor = &tensor;
    return event_writer_value(w, wall, step, &v, e);
}

int event_writer_session(struct event_writer *w, double wall, enum session_status status, int64_t step,
                         const char *path, const char *msg, struct err *e)
{
    Tensorflow__Event event = new_event(wall, step);
    Tensorflow__SessionLog session;
    tensorflow__session_log__init(&session);
    session.status = (Tensorflow__SessionLog__SessionStatus)status;
    session.checkpoint_path = unconst(path != NULL ? path : "");
    session.msg = unconst(msg != NULL ? msg : "");
    event.what_case = TENSORFLOW__EVENT__WHAT_SESSION_LOG;
    event.session_log = &session;
    return write_record(w, &event, e);
}
