/* A data set: the records of one format, its fingerprint, and the split into training and validation part. The parts
 * share the open files. */
#include "data/dataset.h"

#include <inttypes.h>
#include <math.h>

#include "base/log.h"
#include "base/rng.h"
#include "base/thread.h"
#include "data/dataset_internal.h"
#include "data/values.h"

struct content { /* what the parts of a data set share */
    struct records *records;
    struct read_team *team; /* NULL: batches are read as a whole */
    struct binding inputs, outputs;
    int users;
    struct index_range *indices; /* of each number of a row of features; NULL: any numbers */
};

struct dataset {
    struct content *content;
    int64_t first, n; /* of its records */
    uint64_t fingerprint;
    struct row_cache *rows; /* NULL: records are read each time */
};

static int (*const OPEN[])(const struct data_place *at, struct records **ret, struct err *e) = {
    [DATA_IDX] = arrays_open,        [DATA_NPY] = arrays_open, [DATA_CSV] = csv_open,
    [DATA_TFRECORD] = tfrecord_open, [DATA_NPZ] = arrays_open, [DATA_CIFAR] = cifar_open,
    [DATA_IMAGES] = images_open,     [DATA_JSONL] = csv_open,  [DATA_TEXT] = csv_open,
};

const struct column_names *dataset_like(const struct data_spec *spec, const struct column_names *like)
{
    if (like == NULL)
        return NULL;
    bool applies =
        spec->format == DATA_IMAGES ? like->classes.n > 0 : like->features.n > 0 && !like->by_place && spec->header;
    return applies ? like : NULL;
}

int dataset_open(const struct data_spec *spec, const char *base_dir, const char *cache_dir,
                 const struct column_names *like, struct dataset **ret, struct err *e)
{
    const struct data_place at = {
        .spec = spec, .base_dir = base_dir, .cache_dir = cache_dir, .like = dataset_like(spec, like)
    };
    AUTO(records) *r = NULL;

    if (OPEN[spec->format](&at, &r, e) < 0)
        return -1;
    struct dataset *d = xcalloc(1, sizeof(*d));
    d->n = r->n;
    d->fingerprint = hash64_mix(r->fingerprint, (uint64_t)spec->format);
    d->content = xcalloc(1, sizeof(*d->content));
    d->content->users = 1;
    d->content->team = r->cost == READ_DECODES ? read_team_new(r, thread_cpus() - 1) : NULL;
    d->content->records = TAKE(r);
    *ret = d;
    return 0;
}

void dataset_free(struct dataset *d)
{
    if (d == NULL)
        return;
    row_cache_free(d->rows);
    if (--d->content->users == 0) {
        read_team_free(d->content->team);
        records_free(d->content->records);
        binding_fini(&d->content->inputs);
        binding_fini(&d->content->outputs);
        free(d->content->indices);
        free(d->content);
    }
    free(d);
}

int dataset_split(struct dataset *d, double fraction, struct dataset **ret, struct err *e)
{
    int64_t kept = (int64_t)floor((double)d->n * (1.0 - fraction)); /* in doubles, as Keras computes it */
    if (kept < 1 || kept >= d->n)
        return err_set(e, ERR_INPUT,
                       "%lld example%s with the validation fraction %g leave none %s; use more data, or another "
                       "fraction",
                       (long long)d->n, d->n == 1 ? "" : "s", fraction, kept < 1 ? "to train on" : "for validation");
    struct dataset *rest = xcalloc(1, sizeof(*rest));
    *rest = (struct dataset){ .content = d->content,
                              .first = d->first + kept,
                              .n = d->n - kept,
                              .fingerprint = hash64_mix(d->fingerprint, (uint64_t)(d->first + kept)) };
    d->content->users++;
    d->n = kept;
    *ret = rest;
    return 0;
}

void dataset_keep_rows(struct dataset *d, const struct row_space *space)
{
    const struct records *r = d->content->records;
    struct err why = { .code = ERR_NONE };
    if (d->rows == NULL && space->dir != NULL && r->cost == READ_PARSES_TEXT &&
        row_cache_open(r, space, d->first, (size_t)d->n, &d->rows, &why) < 0)
        log_debug("records are parsed each time they are read: %s", why.msg);
}

struct row_cache *dataset_rows(const struct dataset *d)
{
    return d->rows;
}

const struct records *dataset_records(const struct dataset *d)
{
    return d->content->records;
}

struct read_team *dataset_team(const struct dataset *d)
{
    return d->content->team;
}

const struct binding *dataset_inputs(const struct dataset *d)
{
    return &d->content->inputs;
}

const struct binding *dataset_outputs(const struct dataset *d)
{
    return &d->content->outputs;
}

const struct index_range *dataset_indices(const struct dataset *d)
{
    return d->content->indices;
}

int64_t dataset_first(const struct dataset *d)
{
    return d->first;
}

int64_t dataset_size(const struct dataset *d)
{
    return d->n;
}

const struct shape *dataset_example(const struct dataset *d)
{
    return &d->content->records->x;
}

const struct column_names *dataset_columns(const struct dataset *d)
{
    return &d->content->records->names;
}

uint64_t dataset_fingerprint(const struct dataset *d)
{
    return d->fingerprint;
}

void dataset_warnings(const struct dataset *d, struct strlist *ret)
{
    const struct records *r = d->content->records;
    if (r->ops->warn != NULL)
        r->ops->warn(r, ret);
    if (d->n < r->n)
        values_warn_part(r, d->first, d->n, NOTHING_TO_LEARN, ret);
}

void dataset_one_label(const struct dataset *d, struct strlist *ret)
{
    static const char SO[] = "its metrics tell nothing about other labels";
    const struct records *r = d->content->records;
    if (d->n < r->n)
        values_warn_part(r, d->first, d->n, SO, ret);
    else
        values_warn_equal(r, SO, ret);
}

int dataset_texts(const struct dataset *d, const char *column, int64_t first, size_t n, struct strlist *ret,
                  struct err *e)
{
    const struct records *r = d->content->records;
    if (r->ops->texts == NULL)
        return err_set(e, ERR_INPUT, "only csv and jsonl files have columns of text");
    return r->ops->texts(r, column, d->first + first, n, ret, e);
}

void dataset_left_out(const struct dataset *d, struct strlist *ret)
{
    const struct records *r = d->content->records;
    AUTO_FINI(buf) text = BUF_INIT;
    if (r->left_out == 0)
        return;
    buf_printf(&text, "%" PRId64 " of %" PRId64 " examples lack a value and are left out (missing: drop)", r->left_out,
               r->left_out + r->n);
    strlist_add(ret, text.data);
}

/* Of arrays the parts are fields; columns are named by them. */
static bool is_of_arrays(const struct data_spec *spec)
{
    return spec->format == DATA_IDX || spec->format == DATA_NPY || spec->format == DATA_NPZ;
}

/* The manifest says what an image becomes. */
static int check_image(const struct records *r, const struct model *m, struct err *e)
{
    char have[128], want[128];
    if (model_check_input(m, 0, &r->x, NULL) == 0)
        return 0;
    return err_set(e, ERR_INPUT,
                   "the model's input is %s, and imageSize and colorMode make images of %s; change them, or inputShape",
                   shape_text(&model_input(m, 0)->shape, want), shape_text(&r->x, have));
}

static int bind_inputs(struct content *c, const struct data_spec *spec, const struct model *m, struct err *e)
{
    const struct records *r = c->records;
    if (binding_of_inputs(m, &spec->inputs, &r->x_fields, is_of_arrays(spec), &c->inputs, e) < 0)
        return -1;
    if (c->inputs.n > 0)
        return 0;
    return spec->format == DATA_IMAGES ? check_image(r, m, e) : model_check_input(m, 0, &r->x, e);
}

static int bind_outputs(struct content *c, const struct data_spec *spec, const struct model *m, struct err *e)
{
    const struct records *r = c->records;
    const struct label_range range = model_label_range(m, 0);
    if (!r->has_labels)
        return model_check_label(m, 0, NULL, false, e);
    if (binding_of_outputs(m, &spec->outputs, &r->y_fields, is_of_arrays(spec), &c->outputs, e) < 0)
        return -1;
    if (c->outputs.n > 0)
        return 0;
    if (values_check_class_size(r, &range, e) < 0 || model_check_label(m, 0, &r->y, r->integer_labels, e) < 0)
        return -1;
    return values_check_noted(r, &range, e);
}

/* Of a number that several inputs have, the smallest range counts. */
static void narrow_index(struct index_range *of, const struct index_range *range)
{
    if (range->rows > 0 && (of->rows == 0 || range->rows < of->rows))
        *of = *range;
}

static bool takes_indices(const struct model *m)
{
    for (size_t k = 0; k < model_inputs(m); k++)
        if (model_index_range(m, k).rows > 0)
            return true;
    return false;
}

static struct index_range *indices_of(const struct content *c, const struct model *m)
{
    size_t count = shape_elements(&c->records->x);
    if (!takes_indices(m))
        return NULL;
    struct index_range *indices = xcalloc(count, sizeof(*indices));
    for (size_t k = 0; k < model_inputs(m); k++) {
        const struct index_range range = model_index_range(m, k);
        for (size_t i = 0; i < count && c->inputs.n == 0; i++)
            narrow_index(&indices[i], &range);
        for (size_t i = 0; c->inputs.n > 0 && i < c->inputs.v[k].nruns; i++)
            for (size_t at = 0; at < c->inputs.v[k].runs[i].n; at++)
                narrow_index(&indices[c->inputs.v[k].runs[i].at + at], &range);
    }
    return indices;
}

/* A table has a row for each word, also for those that the first batches do not have. */
static int check_words(const struct content *c, struct err *e)
{
    const struct record_fields *fields = &c->records->x_fields;
    for (size_t i = 0; c->indices != NULL && i < fields->n; i++) {
        const struct record_field *f = &fields->v[i];
        const struct index_range *range = &c->indices[f->at];
        if (range->rows > 0 && f->numbers > (size_t)range->rows)
            return err_set(e, ERR_INPUT,
                           "column '%s' has the numbers 0 to %zu, but %s '%s' takes numbers from 0 to %" PRId64
                           "; set its %s to %zu or more",
                           f->name, f->numbers - 1, range->class_name, range->layer, range->rows - 1, range->argument,
                           f->numbers);
    }
    return 0;
}

int dataset_bind(struct dataset *d, const struct data_spec *spec, const struct model *m, struct err *e)
{
    struct content *c = d->content;
    if (bind_inputs(c, spec, m, e) < 0 || bind_outputs(c, spec, m, e) < 0)
        return -1;
    free(c->indices);
    c->indices = indices_of(c, m);
    if (check_words(c, e) < 0)
        return -1;
    if (c->inputs.n > 0)
        d->fingerprint = hash64_mix(d->fingerprint, binding_hash(&c->inputs));
    if (c->outputs.n > 0)
        d->fingerprint = hash64_mix(d->fingerprint, binding_hash(&c->outputs));
    return 0;
}
