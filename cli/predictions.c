/* Formats the outputs of a model as CSV, JSON lines or npy. Numbers have the fewest digits that read back as the same
 * float32; numbers that are not finite are strings in JSON. */
#include "predictions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "codec/json.h"

static const char *const NAMES[] = { [PREDICTION_CSV] = "csv", [PREDICTION_JSONL] = "jsonl", [PREDICTION_NPY] = "npy" };

int prediction_format(const char *name, const char *file, enum prediction_format *ret, struct err *e)
{
    const char *slash = strrchr(file, '/'), *base = slash != NULL ? slash + 1 : file, *dot = strrchr(base, '.');
    bool has_extension = dot != NULL && dot != base;
    for (size_t i = 0; i < COUNT_OF(NAMES); i++) {
        if (!str_eq(name != NULL ? name : has_extension ? dot + 1 : "csv", NAMES[i]))
            continue;
        *ret = (enum prediction_format)i;
        return 0;
    }
    if (name != NULL)
        return err_set(e, ERR_INPUT, "--format: '%s' is not known; it must be " PREDICTION_NAMES, name);
    return err_set(e, ERR_INPUT,
                   "-o %s: '%s' is not known; the extension must be .csv, .jsonl or .npy, or give --format", file, dot);
}

static int put(const struct predictions *p, const struct buf *text, struct err *e)
{
    return p->sink->write(p->sink->user, text->data, text->len, e);
}

static void put_number(float v, bool json, struct buf *out)
{
    char text[32];
    if (!isfinite(v)) {
        const char *name = isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity";
        buf_printf(out, json ? "\"%s\"" : "%s", name);
        return;
    }
    buf_str(out, str_float(v, text));
}

/* A field as RFC 4180 wants it. */
static void put_csv_text(const char *text, struct buf *out)
{
    if (text[strcspn(text, ",\"\r\n")] == '\0' && text[0] != ' ' && text[0] != '\t') {
        buf_str(out, text);
        return;
    }
    buf_char(out, '"');
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '"')
            buf_char(out, '"');
        buf_char(out, *p);
    }
    buf_char(out, '"');
}

static const char *output_key(const struct predictions *p, size_t output)
{
    return p->noutputs == 1 ? "prediction" : p->outputs[output].name;
}

static void csv_header(const struct predictions *p, struct buf *out)
{
    if (p->id != NULL) {
        put_csv_text(p->id, out);
        buf_char(out, ',');
    }
    if (p->classes != NULL) {
        buf_str(out, "class,probability\n");
        return;
    }
    for (size_t k = 0; k < p->noutputs; k++) {
        size_t width = shape_elements(&p->outputs[k].shape);
        for (size_t i = 0; i < width; i++) {
            auto_free char *name = width == 1 ? xstrdup(output_key(p, k)) : xasprintf("%s_%zu", output_key(p, k), i);
            if (k + i > 0)
                buf_char(out, ',');
            put_csv_text(name, out);
        }
    }
    buf_char(out, '\n');
}

int predictions_begin(const struct predictions *p, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    if (p->format == PREDICTION_JSONL)
        return 0;
    if (p->format == PREDICTION_CSV) {
        csv_header(p, &text);
        return put(p, &text, e);
    }
    if (p->noutputs > 1)
        return err_set(e, ERR_INPUT, "the model has %zu outputs, and npy holds one array; use csv or jsonl",
                       p->noutputs);
    const struct shape *shape = &p->outputs[0].shape;
    struct tensor_entry t = { .name = "predictions", .type = TENSOR_F32, .rank = shape->rank + 1 };
    if (t.rank > TENSOR_RANK_MAX)
        return err_set(e, ERR_INPUT, "an output of %d dimensions is not possible in npy; use csv or jsonl",
                       shape->rank);
    t.dims[0] = p->examples;
    for (int d = 0; d < shape->rank; d++)
        t.dims[d + 1] = shape->dim[d];
    npy_header(&t, &text);
    return put(p, &text, e);
}

/* The values of dimensions d and up, as nested lists; returns the position after them. */
static const float *put_nested(const struct shape *s, int d, const float *at, struct buf *out)
{
    if (d == s->rank) {
        put_number(*at, true, out);
        return at + 1;
    }
    buf_char(out, '[');
    for (int64_t i = 0; i < s->dim[d]; i++) {
        if (i > 0)
            buf_char(out, ',');
        at = put_nested(s, d + 1, at, out);
    }
    buf_char(out, ']');
    return at;
}

/* JSON is UTF-8: another byte becomes U+FFFD. */
static void put_json_text(const char *text, struct buf *out)
{
    AUTO_FINI(buf) valid = BUF_INIT;
    const unsigned char *p = (const unsigned char *)text;
    for (size_t i = 0, n = strlen(text), len; i < n; i += len) {
        len = p[i] < 0x80 ? 1 : utf8_length(p + i, n - i);
        buf_add(&valid, len > 0 ? (const char *)p + i : "\xEF\xBF\xBD", len > 0 ? len : 3);
        len = MAX(len, 1);
    }
    json_auto_t *v = json_stringn(valid.len > 0 ? valid.data : "", valid.len);
    json_emit(v, out);
}

/* Of example i. */
static const float *values_of(const struct predictions *p, const float *const *values, size_t output, size_t i)
{
    return values[output] + i * shape_elements(&p->outputs[output].shape);
}

static void put_object(const struct predictions *p, const float *const *values, size_t i, const char *id,
                       struct buf *out)
{
    /* (1,) is one number, as users expect */
    const struct shape scalar = { .rank = 0 };
    char number[32];
    buf_char(out, '{');
    if (id != NULL) {
        put_json_text(p->id, out);
        buf_char(out, ':');
        put_json_text(id, out);
        buf_char(out, ',');
    }
    if (p->classes != NULL) {
        struct predicted_class c = predicted_class(p->classes, values_of(p, values, 0, i));
        buf_str(out, "\"class\":");
        put_json_text(predicted_class_name(p->classes, c.number, number), out);
        buf_str(out, ",\"probability\":");
        put_number((float)c.probability, true, out);
    }
    for (size_t k = 0; p->classes == NULL && k < p->noutputs; k++) {
        const struct shape *shape = &p->outputs[k].shape;
        if (k > 0)
            buf_char(out, ',');
        put_json_text(output_key(p, k), out);
        buf_char(out, ':');
        put_nested(shape_elements(shape) == 1 ? &scalar : shape, 0, values_of(p, values, k, i), out);
    }
    buf_str(out, "}\n");
}

static void put_line(const struct predictions *p, const float *const *values, size_t i, const char *id, struct buf *out)
{
    char number[32];
    if (id != NULL) {
        put_csv_text(id, out);
        buf_char(out, ',');
    }
    if (p->classes != NULL) {
        struct predicted_class c = predicted_class(p->classes, values_of(p, values, 0, i));
        put_csv_text(predicted_class_name(p->classes, c.number, number), out);
        buf_char(out, ',');
        put_number((float)c.probability, false, out);
    }
    for (size_t k = 0; p->classes == NULL && k < p->noutputs; k++) {
        const float *v = values_of(p, values, k, i);
        for (size_t j = 0; j < shape_elements(&p->outputs[k].shape); j++) {
            if (k + j > 0)
                buf_char(out, ',');
            put_number(v[j], false, out);
        }
    }
    buf_char(out, '\n');
}

int predictions_write(const struct predictions *p, const float *const *values, const struct strlist *ids, size_t n,
                      struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    if (p->format == PREDICTION_NPY) /* little endian, as this processor */
        return p->sink->write(p->sink->user, values[0], n * shape_elements(&p->outputs[0].shape) * sizeof(float), e);
    for (size_t i = 0; i < n; i++)
        (p->format == PREDICTION_JSONL ? put_object : put_line)(p, values, i, p->id != NULL ? ids->items[i] : NULL,
                                                                &text);
    return put(p, &text, e);
}
