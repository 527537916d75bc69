/* Adds the tensors of a batch within its fixed bound. */
#include "tensor/batch.h"

static int add_tensor(struct tensor *list, const char **names, size_t *n, const char *name, struct tensor t,
                      struct err *e)
{
    if (*n >= BATCH_TENSORS_MAX)
        return err_set(e, ERR_INPUT, "'%s': a batch has at most %d inputs and %d labels", name, BATCH_TENSORS_MAX,
                       BATCH_TENSORS_MAX);
    list[*n] = t;
    names[(*n)++] = name;
    return 0;
}

void batch_clear(struct batch *b)
{
    b->nx = b->ny = 0;
    b->y[0].data = NULL;
    b->weight = NULL;
}

int batch_add_input(struct batch *b, const char *name, struct tensor t, struct err *e)
{
    return add_tensor(b->x, b->x_name, &b->nx, name, t, e);
}

int batch_add_label(struct batch *b, const char *name, struct tensor t, struct err *e)
{
    return add_tensor(b->y, b->y_name, &b->ny, name, t, e);
}
