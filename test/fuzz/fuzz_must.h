/* fuzz_must - what must hold for every input. */
#ifndef TRAINYARD_FUZZ_MUST_H
#define TRAINYARD_FUZZ_MUST_H

#include <stdio.h>
#include <stdlib.h>

#define must(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                    \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

#endif
