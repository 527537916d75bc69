/* Writes docs/manifest.md from the tables of the manifest, so that every field is documented with its type, range and
 * default. */
#include "job/manifest_reference.h"

#include <inttypes.h>

#include "job/fields.h"

static const char HEAD[] =
    "# The manifest\n"
    "\n"
    "<!-- Written from the tables in lib/job (make docs). Change those, not this page. -->\n"
    "\n"
    "One file describes a training job. `trainyard run FILE` runs it on the local machine, and `kubectl apply -f "
    "FILE`\n"
    "on a cluster. `trainyard validate FILE` checks it and reports errors with line, column and field. The file is "
    "YAML\n"
    "or JSON. If it has several documents, the first TrainJob is used. Unknown keys are errors, so that a misspelt "
    "key\n"
    "is never ignored.\n"
    "\n"
    "```yaml\n"
    "apiVersion: trainyard.dev/v1alpha1\n"
    "kind: TrainJob\n"
    "metadata: {name: mnist}\n"
    "spec:\n"
    "  model:\n"
    "    inputShape: [28, 28]\n"
    "    layers:\n"
    "      - Rescaling: {scale: 0.00392156862745098}\n"
    "      - Flatten: {}\n"
    "      - Dense: {units: 128, activation: relu}\n"
    "      - Dense: {units: 10, activation: softmax}\n"
    "  compile: {optimizer: {Adam: {learning_rate: 0.001}}, loss: sparse_categorical_crossentropy, metrics: "
    "[accuracy]}\n"
    "  data:\n"
    "    train: {format: idx, features: train-images-idx3-ubyte, labels: train-labels-idx1-ubyte}\n"
    "    validation: {format: idx, features: t10k-images-idx3-ubyte, labels: t10k-labels-idx1-ubyte}\n"
    "  fit: {epochs: 5, batchSize: 64, seed: 7}\n"
    "  strategy: {name: ParameterServer, updates: async}\n"
    "  replicaSpecs:\n"
    "    Chief: {}\n"
    "    PS: {replicas: 1}\n"
    "    Worker: {replicas: 2}\n"
    "```\n"
    "\n"
    "`--set fit.epochs=1` replaces a value below `spec`. `--set model.layers[2].Dense.units=64` replaces a value in a\n"
    "list, and `--set fit.epochs=null` removes a value. Values are parsed as YAML. Names of layers, losses, metrics,\n"
    "optimizers and their arguments are those of Keras.\n";

static const char *const TYPES[] = {
    [FIELD_INT] = "whole number", [FIELD_NUMBER] = "number", [FIELD_BOOL] = "true or false", [FIELD_STRING] = "string",
    [FIELD_CHOICE] = "choice",    [FIELD_MAP] = "map",       [FIELD_LIST] = "list",          [FIELD_ANY] = "any",
    [FIELD_TABLE] = "map",        [FIELD_OWN] = "any",
};

static void put_names(const struct field *f, size_t from, size_t to, struct buf *out)
{
    for (size_t i = from; i < to; i++)
        buf_printf(out, "%s`%s`", i == from ? "" : ", ", f->names[i]);
}

static void put_range(const struct field *f, struct buf *out)
{
    if (f->kind == FIELD_NUMBER && f->above_min)
        buf_printf(out, " > %" PRId64, f->min);
    else if (f->max != INT64_MAX)
        buf_printf(out, ", %" PRId64 " to %" PRId64, f->min, f->max);
    else
        buf_printf(out, " >= %" PRId64, f->min);
    if (f->below_max)
        buf_printf(out, ", < %" PRId64, f->max);
}

static void put_type(const struct field *f, struct buf *out)
{
    if (f->kind == FIELD_CHOICE) {
        put_names(f, 0, f->nworking, out);
        return;
    }
    buf_str(out, f->type_text != NULL ? f->type_text : TYPES[f->kind]);
    if (f->kind == FIELD_INT || f->kind == FIELD_NUMBER)
        put_range(f, out);
}

static void put_default(const struct field *f, struct buf *out)
{
    if (f->required)
        buf_str(out, "**required**");
    else if (f->fallback_text != NULL)
        buf_str(out, f->fallback_text);
    else if (f->fallback != NULL)
        buf_printf(out, "`%s`", f->fallback);
}

static void put_row(const struct field *f, struct buf *out)
{
    buf_printf(out, "| `%s` | ", f->key);
    put_type(f, out);
    buf_str(out, " | ");
    put_default(f, out);
    buf_printf(out, " | %s", f->help);
    if (f->kind == FIELD_CHOICE && f->nworking < f->nnames) {
        buf_str(out, " Not supported yet: ");
        put_names(f, f->nworking, f->nnames, out);
        buf_char(out, '.');
    }
    buf_str(out, " |\n");
}

/* The table, then those that its rows lead to; one that several rows share comes once, after the first. */
static void put_table(const struct field_table *t, struct buf *out)
{
    buf_printf(out, "\n## %s\n\n%s\n\n| field | type | default | |\n|---|---|---|---|\n", t->title, t->about);
    for (size_t i = 0; i < t->nrows; i++)
        if (t->rows[i].help != NULL)
            put_row(&t->rows[i], out);
    for (size_t i = 0; i < t->nrows; i++) {
        const struct field_table *below = t->rows[i].table;
        bool first = true;
        for (size_t k = 0; k < i; k++)
            first = first && t->rows[k].table != below;
        if (below != NULL && first)
            put_table(below, out);
    }
}

void job_manifest_reference(struct buf *out)
{
    buf_str(out, HEAD);
    put_table(&JOB_FIELDS, out);
}
