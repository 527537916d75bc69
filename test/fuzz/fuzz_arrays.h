/* fuzz_arrays - any bytes as a file of named arrays: what is listed can be read to its end. */
#include <stdlib.h>

#include "data/named_array.h"

typedef int read_fn(const void *data, size_t n, const char *label, struct named_arrays *ret, struct err *e);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline int fuzz_arrays(read_fn *read, const uint8_t *data, size_t size)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(named_arrays) l = { 0 };

    if (read(data, size, "fuzz", &l, &e) < 0) {
        if (e.msg[0] == '\0')
            abort();
        return 0;
    }
    for (size_t i = 0; i < l.n; i++) {
        const struct array *a = &l.items[i].array;
        size_t count = l.items[i].unread != NULL ? 0 : shape_elements(&a->shape);
        auto_free float *values = count > 0 && count <= size ? xcalloc(count, sizeof(*values)) : NULL;
        if (values != NULL && array_floats(a, values, &e) < 0 && e.msg[0] == '\0')
            abort();
    }
    return 0;
}
