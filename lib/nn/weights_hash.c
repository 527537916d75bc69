/* Hashes the variables where they are in the parameter vector. */
#include "nn/weights_hash.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a big-endian port must swap bytes here");

int weights_hash(const struct model *m, const float *vector, char ret[SHA256_TEXT], struct err *e)
{
    size_t n = model_variables(m); /* the trainable ones come first */
    auto_free struct sha256_range *ranges = xcalloc(n + 1, sizeof(*ranges));
    for (size_t i = 0; i < n; i++) {
        const struct variable *v = model_variable(m, i);
        ranges[i] = (struct sha256_range){ vector + v->offset, v->count * sizeof(float) };
    }
    return sha256_ranges(ranges, n, ret, e);
}
