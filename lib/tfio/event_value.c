/* Converts TensorFlow's messages to what an event file shows: a scalar, a histogram or a text, written as simple
 * values (V1) or as tensors of a plugin (V2). Content that is too large to be shown is shortened. */
#include "tfio/event_value.h"

#include <string.h>

#include "tensor/tensor.h"
#include "tfio/event.pb-c.h"

enum {
    NUMBERS_MAX = 1 << 16, /* of a tensor or histogram; more are not shown */
    LARGE_TIMES = 2,       /* a large record is an image or a sound, which is copied once */
};

void event_record_fini(struct event_record *r)
{
    if (r->message != NULL)
        protobuf_c_message_free_unpacked(r->message, NULL);
    *r = (struct event_record){ .message = NULL };
}

void event_value_fini(struct event_value *v)
{
    buf_fini(&v->text);
    free(v->buckets);
}

static const Tensorflow__Event *event_of(const struct event_record *r)
{
    return (const Tensorflow__Event *)r->message;
}

int event_record_read(const void *data, size_t n, struct event_record *ret)
{
    PROTOBUF_AUTO *message = NULL;
    event_record_fini(ret);
    if (protobuf_unpack(&tensorflow__event__descriptor, data, n, LARGE_TIMES, &message) < 0)
        return -1;
    ret->message = TAKE(message);
    ret->wall = event_of(ret)->wall_time;
    ret->step = event_of(ret)->step;
    return 0;
}

/* ---- numbers of a tensor ---- */

static size_t element_size(int32_t dtype)
{
    return dtype == DT_FLOAT || dtype == DT_INT32 ? 4 : dtype == DT_DOUBLE || dtype == DT_INT64 ? 8 : 0;
}

static double content_at(const Tensorflow__TensorProto *t, size_t i)
{
    const uint8_t *at = t->tensor_content.data + i * element_size(t->dtype);
    float f;
    double d;
    int32_t i32;
    int64_t i64;
    switch (t->dtype) {
    case DT_FLOAT:
        memcpy(&f, at, sizeof(f));
        return (double)f;
    case DT_INT32:
        memcpy(&i32, at, sizeof(i32));
        return (double)i32;
    case DT_DOUBLE:
        memcpy(&d, at, sizeof(d));
        return d;
    default:
        memcpy(&i64, at, sizeof(i64));
        return (double)i64;
    }
}

/* A tensor has its numbers in the list of its type, or as bytes in tensor_content. */
static size_t count_numbers(const Tensorflow__TensorProto *t)
{
    size_t size = element_size(t->dtype);
    if (size > 0 && t->tensor_content.len > 0)
        return MIN(t->tensor_content.len / size, (size_t)NUMBERS_MAX);
    switch (t->dtype) {
    case DT_FLOAT:
        return MIN(t->n_float_val, (size_t)NUMBERS_MAX);
    case DT_DOUBLE:
        return MIN(t->n_double_val, (size_t)NUMBERS_MAX);
    case DT_INT64:
        return MIN(t->n_int64_val, (size_t)NUMBERS_MAX);
    default: /* the smaller integers, too */
        return MIN(t->n_int_val, (size_t)NUMBERS_MAX);
    }
}

static double number_at(const Tensorflow__TensorProto *t, size_t i)
{
    if (element_size(t->dtype) > 0 && t->tensor_content.len > 0)
        return content_at(t, i);
    switch (t->dtype) {
    case DT_FLOAT:
        return (double)t->float_val[i];
    case DT_DOUBLE:
        return t->double_val[i];
    case DT_INT64:
        return (double)t->int64_val[i];
    default:
        return (double)t->int_val[i];
    }
}

static void init_buckets(struct event_value *v, size_t n)
{
    v->kind = EVENT_HISTOGRAM;
    v->buckets = n > 0 ? xmalloc(n * sizeof(*v->buckets)) : NULL;
}

static void add_bucket(struct event_value *v, struct event_bucket b)
{
    v->buckets[v->nbuckets++] = b;
    v->value += b.count;
}

/* Rows of left edge, right edge, count. */
static void set_rows(const Tensorflow__TensorProto *t, struct event_value *ret)
{
    size_t n = count_numbers(t) / 3;
    init_buckets(ret, n);
    for (size_t i = 0; i < n; i++)
        add_bucket(ret, (struct event_bucket){ .left = number_at(t, 3 * i),
                                               .right = number_at(t, 3 * i + 1),
                                               .count = number_at(t, 3 * i + 2) });
}

static void set_tensor(const Tensorflow__TensorProto *t, struct event_value *ret)
{
    static const Tensorflow__TensorShapeProto SCALAR = TENSORFLOW__TENSOR_SHAPE_PROTO__INIT;
    const Tensorflow__TensorShapeProto *shape = t->tensor_shape != NULL ? t->tensor_shape : &SCALAR;

    if (strcmp(ret->plugin, "hparams") == 0)
        return;
    if (t->dtype == DT_STRING && t->n_string_val > 0) {
        ret->kind = EVENT_TEXT;
        buf_add(&ret->text, t->string_val[0].data, t->string_val[0].len);
    } else if (strcmp(ret->plugin, "histograms") == 0 && t->dtype == DT_DOUBLE && shape->n_dim == 2 &&
               shape->dim[1]->size == 3) {
        set_rows(t, ret);
    } else if (shape->n_dim == 0 && count_numbers(t) > 0 &&
               (ret->plugin[0] == '\0' || strcmp(ret->plugin, "scalars") == 0)) {
        ret->kind = EVENT_SCALAR;
        ret->value = number_at(t, 0);
    }
}

/* A histogram of version 1, as TensorBoard shows it: empty buckets at both ends are dropped, the outer edges are
 * minimum and maximum. */
static void set_histo(const Tensorflow__HistogramProto *h, struct event_value *ret)
{
    size_t n = MIN(MIN(h->n_bucket_limit, h->n_bucket), (size_t)NUMBERS_MAX), first = 0;
    while (first < n && h->bucket[first] <= 0)
        first++;
    while (n > first && h->bucket[n - 1] <= 0)
        n--;
    init_buckets(ret, n - first);
    for (size_t i = first; i < n; i++)
        add_bucket(ret, (struct event_bucket){ .left = i == first ? h->min : h->bucket_limit[i - 1],
                                               .right = i + 1 == n ? h->max : h->bucket_limit[i],
                                               .count = h->bucket[i] });
}

/* ---- values ---- */

static void value_clear(struct event_value *v)
{
    v->kind = EVENT_OTHER;
    v->tag = v->plugin = "";
    buf_clear(&v->text);
    v->value = 0;
    free(TAKE(v->buckets));
    v->nbuckets = 0;
}

/* The plugin that this or an earlier value of the tag named. */
static const char *plugin_of(const Tensorflow__Summary__Value *v, struct map *plugins)
{
    const char *known = map_get(plugins, v->tag);
    bool named = v->metadata != NULL && v->metadata->plugin_data != NULL;
    const char *name = named ? v->metadata->plugin_data->plugin_name : "";
    if (known == NULL && name[0] != '\0')
        map_put(plugins, v->tag, xstrdup(name));
    return name[0] != '\0' || known == NULL ? name : known;
}

static void set_value(const Tensorflow__Summary__Value *v, struct map *plugins, struct event_value *ret)
{
    ret->tag = v->tag;
    ret->plugin = plugin_of(v, plugins);
    if (v->value_case == TENSORFLOW__SUMMARY__VALUE__VALUE_SIMPLE_VALUE) {
        ret->kind = EVENT_SCALAR;
        ret->value = (double)v->simple_value;
    } else if (v->value_case == TENSORFLOW__SUMMARY__VALUE__VALUE_HISTO) {
        set_histo(v->histo, ret);
    } else if (v->value_case == TENSORFLOW__SUMMARY__VALUE__VALUE_TENSOR) {
        set_tensor(v->tensor, ret);
    }
}

static void set_session(const Tensorflow__SessionLog *s, struct event_value *ret)
{
    ret->kind = EVENT_SESSION;
    ret->value = (double)s->status;
    buf_str(&ret->text, s->msg[0] != '\0' ? s->msg : s->checkpoint_path);
}

bool event_record_next(struct event_record *r, struct map *plugins, struct event_value *ret)
{
    const Tensorflow__Event *event = event_of(r);
    value_clear(ret);
    if (event == NULL)
        return false;
    if (event->what_case == TENSORFLOW__EVENT__WHAT_SESSION_LOG && r->next++ == 0) {
        set_session(event->session_log, ret);
        return true;
    }
    if (event->what_case != TENSORFLOW__EVENT__WHAT_SUMMARY || r->next >= event->summary->n_value)
        return false;
    set_value(event->summary->value[r->next++], plugins, ret);
    return true;
}
