#include "tfio/events_value.h"

#include <string.h>

#include "codec/pb.h"
#include "tensor/tensor.h"
#include "tfio/events_proto.h"

enum { NUMBERS_MAX = 1 << 16, RANK_MAX = 8 }; /* tensors with more are not shown */

void event_record_fini(struct event_record *r)
{
    buf_fini(&r->text);
}

void event_value_fini(struct event_value *v)
{
    buf_fini(&v->tag);
    buf_fini(&v->plugin);
    buf_fini(&v->text);
    free(v->buckets);
}

static void take_text(const struct pb_field *f, struct buf *ret)
{
    buf_clear(ret);
    buf_add(ret, f->data, f->size);
}

static struct reader inside(const struct pb_field *f)
{
    return reader_of(f->data, f->size);
}

static int read_session(struct reader r, struct event_record *ret)
{
    struct pb_field f;
    int more;

    ret->has_session = true;
    while ((more = pb_next(&r, &f)) == 1) {
        if (f.number == SESSION_STATUS && f.type == PB_VARINT)
            ret->status = f.u;
        else if ((f.number == SESSION_PATH || f.number == SESSION_MSG) && f.type == PB_BYTES && f.size > 0)
            take_text(&f, &ret->text);
    }
    return more;
}

int event_record_read(const void *data, size_t n, struct event_record *ret)
{
    struct reader r = reader_of(data, n);
    struct pb_field f;
    int more;

    ret->wall = 0;
    ret->step = 0;
    ret->has_session = false;
    ret->status = 0;
    ret->summary = reader_of(data, 0);
    buf_clear(&ret->text);
    while ((more = pb_next(&r, &f)) == 1) {
        if (f.number == EVENT_WALL && f.type == PB_FIXED64)
            ret->wall = pb_as_double(&f);
        else if (f.number == EVENT_STEP && f.type == PB_VARINT)
            ret->step = (int64_t)f.u;
        else if (f.number == EVENT_SUMMARY && f.type == PB_BYTES)
            ret->summary = inside(&f);
        else if (f.number == EVENT_SESSION_LOG && f.type == PB_BYTES && read_session(inside(&f), ret) < 0)
            return -1;
    }
    return more;
}

/* ---- numbers of a tensor ---- */

struct numbers {
    double *v;
    size_t n, cap;
};

static void add_number(struct numbers *a, double v)
{
    if (a->n == NUMBERS_MAX)
        return;
    if (a->n == a->cap)
        a->v = xrealloc(a->v, (a->cap = a->cap * 2 + 8) * sizeof(*a->v));
    a->v[a->n++] = v;
}

/* One element off the front of tensor_content. */
static int take_element(struct reader *r, uint64_t dtype, double *ret)
{
    uint32_t u32;
    uint64_t u64;
    struct pb_field f;

    switch (dtype) {
    case DT_FLOAT:
    case DT_INT32:
        if (reader_u32le(r, &u32) < 0)
            return -1;
        f = (struct pb_field){ .u = u32 };
        *ret = dtype == DT_FLOAT ? (double)pb_as_float(&f) : (double)(int32_t)u32;
        return 0;
    case DT_DOUBLE:
    case DT_INT64:
        if (reader_u64le(r, &u64) < 0)
            return -1;
        f = (struct pb_field){ .u = u64 };
        *ret = dtype == DT_DOUBLE ? pb_as_double(&f) : (double)(int64_t)u64;
        return 0;
    default:
        return -1;
    }
}

/* A number, or many packed into bytes. */
static void add_packed(struct numbers *a, const struct pb_field *f)
{
    struct reader r = inside(f);
    uint64_t u;
    double v;

    if (f->type == PB_FIXED32)
        add_number(a, (double)pb_as_float(f));
    else if (f->type == PB_FIXED64)
        add_number(a, pb_as_double(f));
    else if (f->type == PB_VARINT)
        add_number(a, (double)(int64_t)f->u);
    else if (f->number == TENSOR_FLOATS || f->number == TENSOR_DOUBLES)
        while (a->n < NUMBERS_MAX && take_element(&r, f->number == TENSOR_FLOATS ? DT_FLOAT : DT_DOUBLE, &v) == 0)
            add_number(a, v);
    else
        while (a->n < NUMBERS_MAX && reader_varint(&r, &u) == 0)
            add_number(a, (double)(int64_t)u);
}

struct tensor_message {
    uint64_t dtype;
    uint64_t dim[RANK_MAX];
    int rank;
    struct numbers numbers;
    bool has_text;
};

static int read_dim(struct reader r, uint64_t *ret)
{
    struct pb_field f;
    int more;

    *ret = 0;
    while ((more = pb_next(&r, &f)) == 1)
        if (f.number == DIM_SIZE && f.type == PB_VARINT)
            *ret = f.u;
    return more;
}

static int read_shape(struct reader r, struct tensor_message *t)
{
    struct pb_field f;
    int more;

    while ((more = pb_next(&r, &f)) == 1) {
        if (f.number != SHAPE_DIM || f.type != PB_BYTES)
            continue;
        if (t->rank == RANK_MAX || read_dim(inside(&f), &t->dim[t->rank++]) < 0)
            return -1;
    }
    return more;
}

static int read_tensor(struct reader r, struct tensor_message *t, struct buf *text)
{
    struct reader content = reader_of("", 0);
    struct pb_field f;
    double v;
    int more;

    while ((more = pb_next(&r, &f)) == 1) {
        if (f.number == TENSOR_DTYPE && f.type == PB_VARINT) {
            t->dtype = f.u;
        } else if (f.number == TENSOR_SHAPE && f.type == PB_BYTES) {
            if (read_shape(inside(&f), t) < 0)
                return -1;
        } else if (f.number == TENSOR_CONTENT && f.type == PB_BYTES) {
            content = inside(&f);
        } else if (f.number == TENSOR_STRINGS && f.type == PB_BYTES && !t->has_text) {
            take_text(&f, text);
            t->has_text = true;
        } else if (f.number == TENSOR_FLOATS || f.number == TENSOR_DOUBLES || f.number == TENSOR_INTS ||
                   f.number == TENSOR_INT64S) {
            add_packed(&t->numbers, &f);
        }
    }
    while (t->numbers.n < NUMBERS_MAX && take_element(&content, t->dtype, &v) == 0)
        add_number(&t->numbers, v);
    return more;
}

static void add_bucket(struct event_value *v, size_t *cap, struct event_bucket b)
{
    if (v->nbuckets == *cap)
        v->buckets = xrealloc(v->buckets, (*cap = *cap * 2 + 16) * sizeof(b));
    v->buckets[v->nbuckets++] = b;
    v->value += b.count;
}

/* Rows of left edge, right edge, count. */
static void set_rows(struct event_value *v, const struct numbers *a)
{
    size_t cap = 0;
    for (size_t i = 0; i + 2 < a->n; i += 3)
        add_bucket(v, &cap, (struct event_bucket){ .left = a->v[i], .right = a->v[i + 1], .count = a->v[i + 2] });
    v->kind = EVENT_HISTOGRAM;
}

static int take_tensor(struct reader r, const char *plugin, struct event_value *ret)
{
    struct tensor_message t = { .rank = 0 };
    int result = read_tensor(r, &t, &ret->text);
    bool is_rows = t.dtype == DT_DOUBLE && t.rank == 2 && t.dim[1] == 3;

    if (result == 0 && str_eq(plugin, "hparams")) {
        ret->kind = EVENT_OTHER;
    } else if (result == 0 && t.dtype == DT_STRING && t.has_text) {
        ret->kind = EVENT_TEXT;
    } else if (result == 0 && str_eq(plugin, "histograms") && is_rows) {
        set_rows(ret, &t.numbers);
    } else if (result == 0 && t.rank == 0 && t.numbers.n > 0 && (plugin[0] == '\0' || str_eq(plugin, "scalars"))) {
        ret->kind = EVENT_SCALAR;
        ret->value = t.numbers.v[0];
    }
    free(t.numbers.v);
    return result;
}

/* ---- histograms of version 1 ---- */

struct histo {
    double min, max;
    struct numbers limits, counts;
};

static void add_doubles(struct numbers *a, const struct pb_field *f)
{
    struct reader r = inside(f);
    double v;
    if (f->type == PB_FIXED64)
        add_number(a, pb_as_double(f));
    else if (f->type == PB_BYTES)
        while (a->n < NUMBERS_MAX && take_element(&r, DT_DOUBLE, &v) == 0)
            add_number(a, v);
}

static int read_histo(struct reader r, struct histo *h)
{
    struct pb_field f;
    int more;

    while ((more = pb_next(&r, &f)) == 1) {
        if (f.number == HISTO_MIN && f.type == PB_FIXED64)
            h->min = pb_as_double(&f);
        else if (f.number == HISTO_MAX && f.type == PB_FIXED64)
            h->max = pb_as_double(&f);
        else if (f.number == HISTO_LIMITS)
            add_doubles(&h->limits, &f);
        else if (f.number == HISTO_COUNTS)
            add_doubles(&h->counts, &f);
    }
    return more;
}

/* As TensorBoard shows them: empty buckets at both ends are dropped, the outer edges are minimum and maximum. */
static void set_histo(struct event_value *v, const struct histo *h)
{
    size_t n = MIN(h->limits.n, h->counts.n), first = 0, cap = 0;
    while (first < n && h->counts.v[first] <= 0)
        first++;
    while (n > first && h->counts.v[n - 1] <= 0)
        n--;
    for (size_t i = first; i < n; i++)
        add_bucket(v, &cap,
                   (struct event_bucket){ .left = i == first ? h->min : h->limits.v[i - 1],
                                          .right = i + 1 == n ? h->max : h->limits.v[i],
                                          .count = h->counts.v[i] });
    v->kind = EVENT_HISTOGRAM;
}

static int take_histo(struct reader r, struct event_value *ret)
{
    struct histo h = { .min = 0 };
    int result = read_histo(r, &h);
    if (result == 0)
        set_histo(ret, &h);
    free(h.limits.v);
    free(h.counts.v);
    return result;
}

/* ---- values ---- */

static int read_plugin_name(struct reader r, struct buf *ret)
{
    struct pb_field f;
    int more;
    while ((more = pb_next(&r, &f)) == 1)
        if (f.number == PLUGIN_NAME && f.type == PB_BYTES)
            take_text(&f, ret);
    return more;
}

static int read_metadata(struct reader r, struct buf *ret_plugin)
{
    struct pb_field f;
    int more;
    while ((more = pb_next(&r, &f)) == 1)
        if (f.number == METADATA_PLUGIN && f.type == PB_BYTES && read_plugin_name(inside(&f), ret_plugin) < 0)
            return -1;
    return more;
}

/* The plugin that this or an earlier value of the tag named. */
static void settle_plugin(struct event_value *v, struct strmap *plugins)
{
    const char *known = strmap_get(plugins, v->tag.data);
    if (known == NULL && v->plugin.len > 0)
        strmap_set(plugins, v->tag.data, xstrdup(v->plugin.data));
    else if (v->plugin.len == 0 && known != NULL)
        buf_str(&v->plugin, known);
}

static void value_clear(struct event_value *v)
{
    v->kind = EVENT_OTHER;
    buf_clear(&v->tag);
    buf_clear(&v->plugin);
    buf_clear(&v->text);
    v->value = 0;
    free(TAKE(v->buckets));
    v->nbuckets = 0;
}

static int read_value(struct reader r, struct strmap *plugins, struct event_value *ret)
{
    struct pb_field f, body = { .number = 0 };
    int more;

    value_clear(ret);
    while ((more = pb_next(&r, &f)) == 1) {
        if (f.number == VALUE_TAG && f.type == PB_BYTES)
            take_text(&f, &ret->tag);
        else if (f.number == VALUE_METADATA && f.type == PB_BYTES && read_metadata(inside(&f), &ret->plugin) < 0)
            return -1;
        else if (f.number == VALUE_SIMPLE || f.number == VALUE_HISTO || f.number == VALUE_TENSOR)
            body = f;
    }
    if (more < 0)
        return -1;
    settle_plugin(ret, plugins);
    if (body.number == VALUE_SIMPLE && body.type == PB_FIXED32) {
        ret->kind = EVENT_SCALAR;
        ret->value = (double)pb_as_float(&body);
    }
    if (body.number == VALUE_HISTO && body.type == PB_BYTES)
        return take_histo(inside(&body), ret);
    if (body.number == VALUE_TENSOR && body.type == PB_BYTES)
        return take_tensor(inside(&body), ret->plugin.data, ret);
    return 0;
}

int event_record_next(struct event_record *r, struct strmap *plugins, struct event_value *ret)
{
    struct pb_field f;
    int more;

    if (r->has_session) {
        value_clear(ret);
        r->has_session = false;
        ret->kind = EVENT_SESSION;
        ret->value = (double)r->status;
        buf_str(&ret->text, r->text.data);
        return 1;
    }
    while ((more = pb_next(&r->summary, &f)) == 1)
        if (f.number == SUMMARY_VALUE && f.type == PB_BYTES)
            return read_value(inside(&f), plugins, ret) < 0 ? -1 : 1;
    return more;
}
