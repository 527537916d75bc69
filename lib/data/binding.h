/* binding - which numbers of an example's features make each input of a model, and which of its labels belong to each
 * output. By names: those that the manifest gives them, else the names of columns. Inside of lib/data. Pure.
 */
#ifndef TRAINYARD_DATA_BINDING_H
#define TRAINYARD_DATA_BINDING_H

#include "data/records.h"
#include "nn/model.h"

struct binding_run { /* numbers of a row that follow each other */
    size_t at, n;
};
struct bound_tensor {
    const char *name; /* of the input or output, borrowed from the model */
    struct shape shape;
    size_t count; /* numbers an example */
    struct binding_run *runs;
    size_t nruns;
    bool integer; /* class numbers may stand in it */
};
struct binding {
    struct bound_tensor *v; /* in the order of the model */
    size_t n;               /* 0: the row is the only tensor */
};
void binding_fini(struct binding *b);
DEFINE_AUTO_FINI(binding, binding_fini);

/* of_arrays: the parts are fields; else they name fields. Where the whole row is the only input or output the binding
 * is empty. ERR_INPUT without a place. */
MUST_USE int binding_of_inputs(const struct model *m, const struct data_parts *parts,
                               const struct record_fields *fields, bool of_arrays, struct binding *ret, struct err *e);
MUST_USE int binding_of_outputs(const struct model *m, const struct data_parts *parts,
                                const struct record_fields *fields, bool of_arrays, struct binding *ret, struct err *e);
/* Hash of what is bound; 0: nothing is. */
uint64_t binding_hash(const struct binding *b);
/* The rows of one tensor: n examples from rows of `width` numbers each. */
void binding_gather(const struct bound_tensor *t, const float *rows, size_t width, size_t n, float *ret);
/* Writes `mark` to ret[i] of each number i of a row that belongs to the tensor. */
void binding_mark(const struct bound_tensor *t, size_t mark, size_t *ret);

#endif
