/* Finds the values of columns in JSON objects, and judges their types: a text is never read as a number. */
#include "data/jsonl.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "codec/json.h"
#include "data/file_kind.h"
#include "data/jsonl_scan.h"
#include "data/transcode.h"

enum { NAMES_TEXT = 400 };

int jsonl_begin(const struct data_file *f, const unsigned char **ret, struct err *e)
{
    bool bom = f->map->size >= 3 && memcmp(f->map->data, "\xEF\xBB\xBF", 3) == 0;
    *ret = f->map->data + (bom ? 3 : 0);
    if (file_kind_check(f->map->data, f->map->size, f->path, "jsonl", e) < 0)
        return -1;
    if (transcode_guess(f->map->data, f->map->size) != TEXT_UTF8)
        return err_set(e, ERR_INPUT, "%s: is UTF-16, and jsonl is read as UTF-8; convert it: iconv -f UTF-16 -t UTF-8",
                       f->path);
    const unsigned char *p = jsonl_next(f, *ret);
    if (p < csv_end_of(f) && *jsonl_space(p, csv_end_of(f)) == '[')
        return csv_error_at(f, p, e,
                            "is a JSON array, not JSON Lines; convert it: pandas.read_json(...).to_json(..., "
                            "orient='records', lines=True)");
    return 0;
}

const unsigned char *jsonl_next(const struct data_file *f, const unsigned char *p)
{
    const unsigned char *end = csv_end_of(f);
    for (const unsigned char *at = p; at < end; p = ++at) {
        at = jsonl_space(at, end);
        at += at < end && *at == '\r';
        if (at < end && *at != '\n')
            return p;
        if (at == end)
            break;
    }
    return end;
}

static const unsigned char *line_end(const struct data_file *f, const unsigned char *p)
{
    const unsigned char *end = memchr(p, '\n', (size_t)(csv_end_of(f) - p));
    return end != NULL ? end : csv_end_of(f);
}

const unsigned char *jsonl_skip(const struct data_file *f, const unsigned char *p)
{
    const unsigned char *end = line_end(f, jsonl_next(f, p));
    return end + (end < csv_end_of(f));
}

/* The record at *p. */
static int scan(struct jsonl_scan *s, const unsigned char **p, struct err *e)
{
    const unsigned char *end = line_end(s->file, *p);
    s->p = *p;
    s->end = end > *p && end[-1] == '\r' ? end - 1 : end;
    s->path = (struct buf)BUF_INIT;
    *p = end + (end < csv_end_of(s->file));
    return jsonl_scan_record(s, e);
}

/* ---- the value of a column ---- */

/* A value as a text; numbers as word_of() in columns_spec.c writes them. */
static void write_value(const struct jsonl_found *f, struct buf *ret)
{
    size_t n = (size_t)(f->end - f->p);
    struct err ignored;
    json_auto_t *v = NULL;
    if (*f->p == '"')
        jsonl_unescape(&(struct text_field){ .p = f->p + 1, .end = f->end - 1 }, ret);
    else if (strchr("-0123456789", *f->p) != NULL && json_parse((const char *)f->p, n, "", &v, &ignored) == 0)
        json_emit(v, ret);
    else
        buf_add(ret, f->p, n);
}

static bool is_missing(const struct csv_layout *l, const struct jsonl_found *f)
{
    if (f->p == NULL || *f->p == 'n')
        return true;
    if (*f->p != '"')
        return false;
    const struct text_field text = text_trim((struct text_field){ .p = f->p + 1, .end = f->end - 1 });
    return csv_dialect_missing(&l->dialect, &text);
}

static int wrong_type(const struct csv_place *place, struct err *e)
{
    const struct data_column *c = place->column;
    if (*place->at != '[' && *place->at != '{' && c->length > 0)
        return csv_error_at(place->file, place->at, e,
                            "column '%s': this is not a list of numbers; write one, or remove 'outputSequenceLength'",
                            c->name);
    if (*place->at == '"')
        return csv_error_at(place->file, place->at, e,
                            "column '%s': this is a text, not a number: write numbers without quotes, or describe the "
                            "column with %s",
                            c->name,
                            c->is_label ? "type: category and vocabulary: auto" : "type: category or type: text");
    if (c->type == COLUMN_DATE && c->shape.rank == 0 && *place->at != '{' && *place->at != '[')
        return csv_error_at(place->file, place->at, e,
                            "column '%s': this is not a text such as \"2020-01-31\"; pandas writes dates so with "
                            "to_json(..., date_format='iso')",
                            c->name);
    if (*place->at == '{')
        return csv_error_at(place->file, place->at, e,
                            "column '%s': this is an object; name one of its keys, such as %s.KEY", c->name, c->name);
    if (*place->at == '[')
        return csv_error_at(place->file, place->at, e, "column '%s': this is a list; %s", c->name,
                            column_is_number(c)
                                ? "describe the column with its shape, such as shape: [128], or with "
                                  "outputSequenceLength if lists have different lengths"
                                : "write one value, such as the words of a text with spaces between them");
    return csv_error_at(place->file, place->at, e,
                        "column '%s': this is not a list; remove 'shape', or write a list of %zu numbers", c->name,
                        c->count);
}

/* Calls visit for what was found. `text` holds a text that is not in the file as it is read. */
static int visit_value(const struct csv_layout *l, const struct jsonl_found *f, struct csv_place *place,
                       struct buf *text, const struct csv_visit *visit, struct err *e)
{
    const struct data_column *c = place->column;
    struct text_field field = { .p = place->at, .end = place->at };
    place->missing = is_missing(l, f);
    if (place->missing && (f->p == NULL || column_is_number(c) || *f->p == 'n'))
        return visit->value(visit->user, place, &field, e);
    bool list = *f->p == '[', string = *f->p == '"';
    bool no_date = c->type == COLUMN_DATE && c->format == NULL && !string; /* a format may be that of a number: %Y */
    if (*f->p == '{' || list != (c->shape.rank > 0) || (string && column_is_number(c)) || no_date)
        return wrong_type(place, e);
    field = (struct text_field){ .p = f->p + string, .end = f->end - string };
    bool word = c->type == COLUMN_CATEGORY || c->type == COLUMN_TEXT;
    if (string ? memchr(field.p, '\\', (size_t)(field.end - field.p)) != NULL : word) {
        buf_clear(text);
        write_value(f, text);
        field.p = (const unsigned char *)text->data;
        field.end = field.p + text->len;
    }
    place->missing = false; /* an empty text may be a word: the column decides */
    return visit->value(visit->user, place, &field, e);
}

int jsonl_record(const struct csv_layout *l, const struct data_file *f, const unsigned char **p,
                 const struct csv_visit *visit, struct err *e)
{
    auto_free struct jsonl_found *found = xcalloc(l->columns.n, sizeof(*found));
    AUTO_FINI(buf) text = BUF_INIT;
    const unsigned char *start = *p;
    AUTO_FINI(jsonl_scan) s = { .file = f, .wanted = &l->columns.by_name, .found = found, .path = BUF_INIT };
    int left_out = 0;
    s.longest = l->columns.longest;
    if (scan(&s, p, e) < 0)
        return -1;
    for (size_t i = 0; i < l->columns.n; i++) {
        const struct data_column *c = &l->columns.c[i];
        struct csv_place place = { .file = f, .at = found[i].p != NULL ? found[i].p : start, .column = c };
        int rc = c->used ? visit_value(l, &found[i], &place, &text, visit, e) : 0;
        if (rc < 0)
            return -1;
        left_out |= rc;
    }
    return left_out;
}

/* ---- lists ---- */

struct list {
    const struct csv_place *place;
    const unsigned char *p, *end;
    double *out;
    size_t n; /* numbers seen; those beyond the count are only counted */
};

static int wrong_list(const struct list *l, struct err *e)
{
    char text[128];
    const struct data_column *c = l->place->column;
    const struct shape step = shape_of(MAX(c->shape.rank, 1) - 1, c->shape.dim + 1);
    if (c->length > 0 && step.rank == 0)
        return csv_error_at(l->place->file, l->p, e, "column '%s': is not a list of numbers", c->name);
    return csv_error_at(l->place->file, l->p, e, "column '%s': is not a list of %s of the shape %s", c->name,
                        c->length > 0 ? "steps" : "numbers", shape_text(c->length > 0 ? &step : &c->shape, text));
}

static int take_number(struct list *l, struct err *e)
{
    struct text_field number = { .p = l->p, .end = l->p };
    double v;
    while (number.end < l->end && strchr(" \t,]", *number.end) == NULL)
        number.end++;
    if (!text_number(&number, &v))
        return wrong_list(l, e);
    if (fabs(v) > (double)FLT_MAX || (l->place->column->type == COLUMN_INT && v != floor(v)))
        return csv_error_at(l->place->file, l->p, e, "column '%s': this number is %s", l->place->column->name,
                            fabs(v) > (double)FLT_MAX ? "too large for a float" : "not whole");
    l->p = number.end;
    if (l->n < l->place->column->count)
        l->out[l->n] = v;
    l->n++;
    return 0;
}

static int take_list(struct list *l, int axis, struct err *e);

/* A list of any length. */
static int take_steps(struct list *l, struct err *e)
{
    const unsigned char *p = jsonl_space(l->p + 1, l->end);
    bool more = *p != ']';
    l->p = p;
    while (more) {
        if (take_list(l, 1, e) < 0)
            return -1;
        l->p = jsonl_space(l->p, l->end);
        more = *l->p == ',';
        l->p = jsonl_space(l->p + more, l->end);
    }
    return 0;
}

/* The list is valid JSON. */
static int take_list(struct list *l, int axis, struct err *e)
{
    const struct shape *shape = &l->place->column->shape;
    if (axis == shape->rank)
        return take_number(l, e);
    if (*l->p != '[')
        return wrong_list(l, e);
    l->p = jsonl_space(l->p + 1, l->end);
    for (int64_t i = 0; i < shape->dim[axis]; i++) {
        if (*l->p == ']' || take_list(l, axis + 1, e) < 0)
            return *l->p == ']' ? wrong_list(l, e) : -1;
        l->p = jsonl_space(l->p, l->end);
        if ((*l->p == ',') != (i + 1 < shape->dim[axis]))
            return wrong_list(l, e);
        l->p = jsonl_space(l->p + 1, l->end);
    }
    return 0;
}

int jsonl_numbers(const struct csv_place *place, const struct text_field *list, double *ret, size_t *ret_n,
                  struct err *e)
{
    struct list l = { .place = place, .p = list->p, .end = list->end, .out = ret };
    if ((place->column->length > 0 ? take_steps(&l, e) : take_list(&l, 0, e)) < 0)
        return -1;
    *ret_n = MIN(l.n, place->column->count);
    return 0;
}

/* A number has a digit, and a comma or bracket behind it. */
size_t jsonl_numbers_max(const struct data_column *c, const struct text_field *list)
{
    return MIN(c->count, (size_t)(list->end - list->p) / 2 + 1);
}

/* ---- keys ---- */

int jsonl_text(const struct data_file *f, const unsigned char **p, const char *key, struct buf *ret, struct err *e)
{
    AUTO_FINI(map) wanted = { 0 };
    struct jsonl_found found = { .p = NULL };
    AUTO_FINI(jsonl_scan) s = { .file = f, .wanted = &wanted, .found = &found, .path = BUF_INIT };
    map_put(&wanted, key, (void *)(intptr_t)1);
    s.longest = strlen(key);
    *p = jsonl_next(f, *p);
    if (scan(&s, p, e) < 0)
        return -1;
    if (found.p != NULL && *found.p != 'n')
        write_value(&found, ret);
    return 0;
}

/* Takes off `wanted` what the records of the file have, until nothing is left. keys: those of the first record. */
static int find_keys(const struct data_file *f, struct map *wanted, struct strlist *keys, bool *ret_any, struct err *e)
{
    const unsigned char *p;
    auto_free struct jsonl_found *found = xcalloc(wanted->n + 1, sizeof(*found));
    AUTO_FINI(map) all = { 0 };
    const struct map_slot *slot;
    size_t longest = 0;
    for (size_t i = 0; (slot = map_next(wanted, &i)) != NULL;) {
        map_put(&all, slot->key, (void *)(intptr_t)(all.n + 1));
        longest = MAX(longest, strlen(slot->key));
    }
    if (jsonl_begin(f, &p, e) < 0)
        return -1;
    while ((p = jsonl_next(f, p)) < csv_end_of(f) && (wanted->n > 0 || keys->n == 0)) {
        AUTO_FINI(jsonl_scan) s = { .file = f, .wanted = &all, .found = found, .path = BUF_INIT };
        s.keys = keys->n == 0 ? keys : NULL;
        s.longest = longest;
        memset(found, 0, all.n * sizeof(*found));
        if (scan(&s, &p, e) < 0)
            return -1;
        *ret_any = true;
        for (size_t i = 0; (slot = map_next(&all, &i)) != NULL;)
            if (found[(intptr_t)slot->value - 1].p != NULL)
                map_remove(wanted, slot->key);
    }
    return 0;
}

/* "; did you mean 'label'?", or "; the first record has age, label". */
static const char *near_keys(const char *key, const struct strlist *keys, char out[NAMES_TEXT])
{
    char list[NAMES_TEXT - 64];
    str_did_you_mean(key, (const char *const *)keys->items, keys->n, out, NAMES_TEXT);
    if (out[0] == '\0')
        str_fmt(out, NAMES_TEXT, "; the first record has %s", column_names_text(keys, list, sizeof(list)));
    return out;
}

int jsonl_find_key(const struct data_file *f, const char *key, struct err *e)
{
    AUTO_FINI(map) wanted = { 0 };
    AUTO_FINI(strlist) keys = { 0 };
    char hint[NAMES_TEXT];
    bool any = false;
    map_put(&wanted, key, &wanted);
    if (find_keys(f, &wanted, &keys, &any, e) < 0)
        return -1;
    return wanted.n == 0 ? 0 : err_set(e, ERR_INPUT, "%s has no key '%s'%s", f->path, key, near_keys(key, &keys, hint));
}

/* A column that no record has is a wrong name. A file for a trained model may lack a key that has a default. */
static int check_names(const struct data_place *at, const struct map *absent, const struct strlist *keys, struct err *e)
{
    size_t first = 0;
    const struct map_slot *slot = map_next(absent, &first);
    char hint[NAMES_TEXT];
    if (slot == NULL || at->like != NULL)
        return 0;
    bool label = map_get(&at->spec->label_names, slot->key) != NULL;
    return data_error(at,
                      label                                        ? "label"
                      : str_eq(slot->key, at->spec->sample_weight) ? "sampleWeight"
                                                                   : "columns",
                      e, "no record of the data has the key '%s'%s%s", slot->key, near_keys(slot->key, keys, hint),
                      label ? "; label: \"\" is for data without labels" : "");
}

static void add_name(struct map *seen, const char *name)
{
    if (name != NULL && map_get(seen, name) == NULL)
        map_put(seen, name, seen);
}

/* Of product.category: product is not a column of its own. */
static void add_outer(struct map *seen, const char *name)
{
    const char *dot = name != NULL ? strchr(name, '.') : NULL;
    auto_free char *outer = dot != NULL ? xstrndup(name, (size_t)(dot - name)) : NULL;
    add_name(seen, outer);
}

/* The names that the job has, in its order. */
static void names_of_job(const struct data_place *at, struct map *ret)
{
    const struct data_spec *d = at->spec;
    for (size_t i = 0; i < node_size(&d->columns); i++) {
        struct node column = node_item(&d->columns, i);
        add_name(ret, json_string_value(json_object_get(column.v, "name")));
    }
    for (size_t i = 0; i < d->label.n; i++)
        add_name(ret, d->label.items[i]);
    add_name(ret, d->sample_weight);
}

int jsonl_names(const struct data_place *at, const struct data_files *files, struct strlist *ret, struct err *e)
{
    AUTO_FINI(map) of_job = { 0 }, outer = { 0 }, wanted = { 0 }, all = { 0 };
    AUTO_FINI(strlist) keys = { 0 };
    const struct map_slot *slot;
    bool any = false;
    names_of_job(at, &of_job);
    names_of_job(at, &wanted);
    for (size_t i = 0; (slot = map_next(&of_job, &i)) != NULL;)
        add_outer(&outer, slot->key);
    for (size_t i = 0; i < files->n && (wanted.n > 0 || !any); i++)
        if (find_keys(&files->file[i], &wanted, &keys, &any, e) < 0)
            return -1;
    if (!any)
        return err_set(e, ERR_INPUT, "%s: holds no examples", files->file[0].path);
    if (check_names(at, &wanted, &keys, e) < 0)
        return -1;
    bool described = node_size(&at->spec->columns) > 0 && !node_present(&at->spec->drop_columns);
    for (size_t i = 0; !described && i < keys.n; i++)
        if (map_get(&outer, keys.items[i]) == NULL || map_get(&of_job, keys.items[i]) != NULL)
            add_name(&all, keys.items[i]);
    for (size_t i = 0; at->like != NULL && i < at->like->features.n; i++)
        add_name(&all, at->like->features.items[i]);
    for (size_t i = 0; (slot = map_next(&of_job, &i)) != NULL;)
        add_name(&all, slot->key);
    for (size_t i = 0; (slot = map_next(&all, &i)) != NULL;)
        strlist_add(ret, slot->key);
    return 0;
}
