/* Finds the fields of a data set that make the tensors of a model. */
#include "data/binding.h"

#include <string.h>

#include "base/map.h"
#include "base/rng.h"

enum { LIST_TEXT = 300 };

void binding_fini(struct binding *b)
{
    for (size_t i = 0; i < b->n; i++)
        free(b->v[i].runs);
    free(b->v);
    *b = (struct binding){ .v = NULL };
}

/* One side of the data set, and the side of the model that it serves. */
struct binding_side {
    const char *what, *of, *key; /* "input", made of "feature"s; where the manifest says which */
    const struct named_shape *(*port)(const struct model *m, size_t i);
    int (*check)(const struct model *m, size_t i, const struct bound_tensor *t, struct err *e);
    const struct model *m;
    size_t nports;
    const struct data_parts *parts;
    const struct record_fields *fields;
    const struct map *by_name; /* the fields */
    bool of_arrays;
    bool whole;    /* the only part is the whole row */
    bool in_order; /* the parts of the map are the fields, in the same order */
};

/* ---- names ---- */

static const char *port_names(const struct binding_side *s, char out[LIST_TEXT])
{
    AUTO_FINI(strlist) names = { 0 };
    for (size_t i = 0; i < s->nports; i++)
        strlist_add(&names, s->port(s->m, i)->name);
    return column_names_text(&names, out, LIST_TEXT);
}

/* "; did you mean 'age'?", or "; the features are age, sex" */
static const char *known_fields(const struct binding_side *s, const char *name, char out[LIST_TEXT])
{
    AUTO_FINI(strlist) names = { 0 };
    char list[LIST_TEXT - 32];
    for (size_t i = 0; i < s->fields->n; i++)
        strlist_add(&names, s->fields->v[i].name);
    out[0] = '\0';
    if (s->parts->n > 0)
        str_did_you_mean(name, (const char *const *)names.items, names.n, out, LIST_TEXT);
    if (out[0] == '\0' && names.n > 0)
        str_fmt(out, LIST_TEXT, "; the %ss are %s", s->of, column_names_text(&names, list, sizeof(list)));
    return out;
}

static const struct data_part *find_part(const struct binding_side *s, const char *name)
{
    for (size_t i = 0; i < s->parts->n; i++)
        if (str_eq(s->parts->v[i].name, name))
            return &s->parts->v[i];
    return NULL;
}

/* What number `k` of part p names; NULL: no field. */
static const struct record_field *part_field(const struct binding_side *s, const struct data_part *p, size_t k)
{
    if (!s->in_order)
        return map_get(s->by_name, p->from.items[k]);
    for (const struct data_part *before = s->parts->v; before < p; before++)
        k += before->from.n;
    return k < s->fields->n ? &s->fields->v[k] : NULL;
}

/* Every part serves the model. */
static int check_parts(const struct binding_side *s, struct err *e)
{
    char names[LIST_TEXT];
    for (size_t i = 0; i < s->parts->n; i++) {
        size_t k = 0;
        while (k < s->nports && !str_eq(s->port(s->m, k)->name, s->parts->v[i].name))
            k++;
        if (k == s->nports)
            return err_set(e, ERR_INPUT, "%s: '%s' is not an %s of the model, which has %s", s->key,
                           s->parts->v[i].name, s->what, port_names(s, names));
    }
    return 0;
}

/* ---- tensors ---- */

static void add_run(struct bound_tensor *t, const struct record_field *f)
{
    size_t n = shape_elements(&f->shape);
    struct binding_run *last = t->nruns > 0 ? &t->runs[t->nruns - 1] : NULL;
    t->count += n;
    if (last != NULL && last->at + last->n == f->at)
        last->n += n;
    else
        t->runs[t->nruns++] = (struct binding_run){ .at = f->at, .n = n };
}

static int no_field(const struct binding_side *s, const char *name, const struct named_shape *port, struct err *e)
{
    char names[LIST_TEXT], known[LIST_TEXT];
    known_fields(s, name, known);
    if (s->parts->n > 0)
        return err_set(e, ERR_INPUT, "%s: the data have no %s '%s' for %s '%s'%s", s->key, s->of, name, s->what,
                       port->name, known);
    return err_set(e, ERR_INPUT,
                   "the model has the %ss %s, and the data have no %s '%s'%s; say in '%s' what each is made of",
                   s->what, port_names(s, names), s->of, name, known, s->key);
}

static void bind_field(struct bound_tensor *t, const struct record_field *f)
{
    t->runs = xcalloc(1, sizeof(t->runs[0]));
    add_run(t, f);
    t->shape = f->shape;
    t->integer = f->integer;
}

static int bind_part(const struct binding_side *s, const struct named_shape *port, const struct data_part *p,
                     struct bound_tensor *t, struct err *e)
{
    t->runs = xcalloc(p->from.n, sizeof(t->runs[0]));
    for (size_t i = 0; i < p->from.n; i++) {
        const struct record_field *f = part_field(s, p, i);
        if (f == NULL)
            return no_field(s, p->from.items[i], port, e);
        add_run(t, f);
        t->shape = p->from.n == 1 ? f->shape : shape_of(1, (int64_t[]){ (int64_t)t->count });
        t->integer = p->from.n == 1 && f->integer;
    }
    return 0;
}

static int bind_port(const struct binding_side *s, const struct named_shape *port, struct bound_tensor *t,
                     struct err *e)
{
    char names[LIST_TEXT];
    const struct data_part *p = find_part(s, port->name);
    const struct record_field *f = map_get(s->by_name, port->name);
    t->name = port->name;
    if (p != NULL && !s->of_arrays)
        return bind_part(s, port, p, t, e);
    if (p == NULL && s->parts->n > 0)
        return err_set(e, ERR_INPUT, "%s: %s '%s' is missing; the model has %s", s->key, s->what, port->name,
                       port_names(s, names));
    if (f == NULL)
        return no_field(s, port->name, port, e);
    bind_field(t, f);
    return 0;
}

static int bind_side(struct binding_side *s, struct binding *ret, struct err *e)
{
    AUTO_FINI(binding) b = { .v = NULL };
    AUTO_FINI(map) by_name = { 0 };
    if (check_parts(s, e) < 0)
        return -1;
    if (s->nports == 1 && (s->parts->n == 0 || s->whole))
        return 0;
    for (size_t i = 0; i < s->fields->n; i++)
        map_put(&by_name, s->fields->v[i].name, &s->fields->v[i]);
    s->by_name = &by_name;
    b.v = xcalloc(s->nports, sizeof(b.v[0]));
    for (size_t i = 0; i < s->nports; i++) {
        b.n = i + 1;
        if (bind_port(s, s->port(s->m, i), &b.v[i], e) < 0 || s->check(s->m, i, &b.v[i], e) < 0)
            return -1;
    }
    *ret = b;
    b = (struct binding){ .v = NULL };
    return 0;
}

static int check_input(const struct model *m, size_t i, const struct bound_tensor *t, struct err *e)
{
    return model_check_input(m, i, &t->shape, e);
}

static int check_label(const struct model *m, size_t i, const struct bound_tensor *t, struct err *e)
{
    return model_check_label(m, i, &t->shape, t->integer, e);
}

int binding_of_inputs(const struct model *m, const struct data_parts *parts, const struct record_fields *fields,
                      bool of_arrays, struct binding *ret, struct err *e)
{
    struct binding_side s = { .what = "input",
                              .of = "feature",
                              .key = of_arrays ? "features" : "inputs",
                              .port = model_input,
                              .check = check_input,
                              .m = m,
                              .nports = model_inputs(m),
                              .parts = parts,
                              .fields = fields,
                              .of_arrays = of_arrays,
                              .whole = of_arrays };
    return bind_side(&s, ret, e);
}

int binding_of_outputs(const struct model *m, const struct data_parts *parts, const struct record_fields *fields,
                       bool of_arrays, struct binding *ret, struct err *e)
{
    struct binding_side s = { .what = "output",
                              .of = "label",
                              .key = of_arrays ? "labels" : "label",
                              .port = model_output,
                              .check = check_label,
                              .m = m,
                              .nports = model_outputs(m),
                              .parts = parts,
                              .fields = fields,
                              .of_arrays = of_arrays,
                              .whole = true,
                              .in_order = true };
    return bind_side(&s, ret, e);
}

uint64_t binding_hash(const struct binding *b)
{
    uint64_t h = b->n;
    for (size_t i = 0; i < b->n; i++) {
        h = hash64(b->v[i].name, strlen(b->v[i].name), h);
        for (size_t k = 0; k < b->v[i].nruns; k++)
            h = hash64_mix(hash64_mix(h, b->v[i].runs[k].at), b->v[i].runs[k].n);
    }
    return h;
}

void binding_gather(const struct bound_tensor *t, const float *rows, size_t width, size_t n, float *ret)
{
    for (size_t i = 0; i < n; i++, rows += width) {
        for (size_t k = 0; k < t->nruns; k++) {
            memcpy(ret, rows + t->runs[k].at, t->runs[k].n * sizeof(*ret));
            ret += t->runs[k].n;
        }
    }
}

void binding_mark(const struct bound_tensor *t, size_t mark, size_t *ret)
{
    for (size_t k = 0; k < t->nruns; k++)
        for (size_t i = 0; i < t->runs[k].n; i++)
            ret[t->runs[k].at + i] = mark;
}
