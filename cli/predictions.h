/* predictions - outputs of a model as CSV, JSON lines or npy, one example after the other. Pure except for the sink. */
#ifndef TRAINYARD_CLI_PREDICTIONS_H
#define TRAINYARD_CLI_PREDICTIONS_H

#include "predicted_class.h"
#include "tensor/tensor.h"
#include "tensors.h"

enum prediction_format { PREDICTION_CSV, PREDICTION_JSONL, PREDICTION_NPY };
#define PREDICTION_NAMES "csv, jsonl or npy"

/* By name; NULL: by the extension of the file, csv for any other extension. */
MUST_USE int prediction_format(const char *name, const char *file, enum prediction_format *ret, struct err *e);

struct predictions {
    enum prediction_format format;
    const struct named_shape *outputs; /* of one example; of one output the name is not written */
    size_t noutputs;
    int64_t examples;                 /* in all; part of the npy header */
    const char *id;                   /* the name of a column that goes before the outputs, or NULL; not for npy */
    const struct classifier *classes; /* class and probability in place of the outputs, or NULL; not for npy */
    const struct tensor_sink *sink;
};
/* csv: "prediction", or "prediction_0,prediction_1,..." in C order, or "class,probability", or for several outputs
 * their names in place of "prediction"; npy, for one output: its header; jsonl: nothing. */
MUST_USE int predictions_begin(const struct predictions *p, struct err *e);
/* values: of each output, n examples; ids: their n texts, when p->id is not NULL. jsonl: {"prediction": NUMBER or
 * nested lists}. Numbers are the shortest that read back as the same float32. */
MUST_USE int predictions_write(const struct predictions *p, const float *const *values, const struct strlist *ids,
                               size_t n, struct err *e);

#endif
