/* catalog - what can be named in a manifest: optimizers, schedules, losses, metrics, initializers, ...
 *
 * A catalog is a table of rows. Every row begins with a `struct kind`: its Keras names and its arguments. Parsing,
 * error messages ("'Adamm' is not known; did you mean 'Adam'?"), the config for model.json and docs/layers.md all use
 * that one table. Adding an optimizer is one row plus its functions.
 *
 *     static const struct arg SGD_ARGS[] = { ARG_OF("momentum", ARG_NUMBER, 0, ARG_UNIT), ... };
 *
 * Argument values are doubles in the order of the table: numbers and integers as they are (within float32's range),
 * flags 0 or 1, choices as the index into `choices`, Python's None as NAN.
 */
#ifndef TRAINYARD_NN_CATALOG_H
#define TRAINYARD_NN_CATALOG_H

#include <float.h>
#include <math.h>

#include "codec/node.h"

/* KIND_ARGS_MAX: for everything that keeps its values in a fixed array: all but layers (test_catalog.c checks the
 * tables). */
enum { KIND_NAMES_MAX = 6, KIND_ARGS_MAX = 24 };

enum arg_kind {
    ARG_NUMBER,
    ARG_INTEGER,
    ARG_FLAG,
    ARG_CHOICE,      /* one of `choices` */
    ARG_IGNORED,     /* Keras has it; it has no effect here (jit_compile) */
    ARG_UNSUPPORTED, /* Keras has it; only its default is accepted */
    ARG_LIST,        /* a tuple of integers; where one or a fixed number fits: also one. arg_list_read() gives it */
    ARG_OTHER        /* the owner parses it: a schedule, a list, a regularizer */
};

/* X(name, condition on v, text) */
#define ARG_RANGES(X)                                                                                                  \
    X(ARG_ANY, v == v, "a number")                                                                                     \
    X(ARG_POSITIVE, v > 0, "greater than 0")                                                                           \
    X(ARG_NOT_NEGATIVE, v >= 0, "0 or greater")                                                                        \
    X(ARG_NOT_POSITIVE, v <= 0, "0 or less")                                                                           \
    X(ARG_UNIT, v >= 0 && v <= 1, "between 0 and 1")                                                                   \
    X(ARG_DECAY, v >= 0 && v < 1, "at least 0 and less than 1")                                                        \
    X(ARG_AT_LEAST_ONE, v >= 1, "1 or greater")                                                                        \
    X(ARG_AT_LEAST_TWO, v >= 2, "2 or greater")                                                                        \
    X(ARG_SIZE_OR_REST, v >= 1 || v == -1, "1 or greater, or -1 for what is left")                                     \
    X(ARG_COUNT_OR_CHANNELS, v >= 1 || v == -1, "1 or greater, or -1 for one of each channel")
enum arg_range {
#define X(name, condition, text) name,
    ARG_RANGES(X)
#undef X
};

#define ARG_NONE __builtin_nan("")

struct arg {
    const char *name;
    enum arg_kind kind;
    double fallback; /* ARG_NONE: Python's None */
    enum arg_range range;
    bool required;
    const char *const *choices; /* NULL-terminated, for ARG_CHOICE */
    int least, most;            /* entries of an ARG_LIST, at most ARG_LIST_MAX */
    bool or_one;                /* a list of any length may be one number, too */
    const char *text; /* its default as Python writes it: "False", "1", "'x'"; NULL: None. Of ARG_OTHER, ARG_LIST and
                         ARG_UNSUPPORTED */
    bool unwritten;   /* args_config leaves it out */
};
#define ARG_OF(name_, kind_, fallback_, range_)                                                                        \
    {                                                                                                                  \
        .name = (name_), .kind = (kind_), .fallback = (fallback_), .range = (range_)                                   \
    }
#define ARG_NEEDED(name_, kind_, range_)                                                                               \
    {                                                                                                                  \
        .name = (name_), .kind = (kind_), .fallback = ARG_NONE, .range = (range_), .required = true                    \
    }
#define ARG_ONE_OF(name_, choices_)                                                                                    \
    {                                                                                                                  \
        .name = (name_), .kind = ARG_CHOICE, .choices = (choices_)                                                     \
    }
#define ARG_SKIP(name_)                                                                                                \
    {                                                                                                                  \
        .name = (name_), .kind = ARG_IGNORED                                                                           \
    }
#define ARG_REFUSE(name_)                                                                                              \
    {                                                                                                                  \
        .name = (name_), .kind = ARG_UNSUPPORTED                                                                       \
    }
/* Keras's default is not None but `text_`, which its from_config() requires. */
#define ARG_REFUSE_BUT(name_, text_)                                                                                   \
    {                                                                                                                  \
        .name = (name_), .kind = ARG_UNSUPPORTED, .text = (text_)                                                      \
    }
/* Likewise; one of both Kerases does not know it. */
#define ARG_REFUSE_OLD(name_, text_)                                                                                   \
    {                                                                                                                  \
        .name = (name_), .kind = ARG_UNSUPPORTED, .text = (text_), .unwritten = true                                   \
    }
#define ARG_OWN(name_, text_)                                                                                          \
    {                                                                                                                  \
        .name = (name_), .kind = ARG_OTHER, .text = (text_)                                                            \
    }

#define ARG_OWN_NEEDED(name_)                                                                                          \
    {                                                                                                                  \
        .name = (name_), .kind = ARG_OTHER, .required = true                                                           \
    }

#define ARG_TUPLE(name_, range_, least_, most_, text_)                                                                 \
    {                                                                                                                  \
        .name = (name_), .kind = ARG_LIST, .range = (range_), .least = (least_), .most = (most_), .text = (text_)      \
    }

struct kind {                          /* first member of every row */
    const char *names[KIND_NAMES_MAX]; /* [0] the class, then what Keras accepts for it */
    const struct arg *args;
    size_t nargs;
    const char *about; /* one line for docs/layers.md: the formula */
};

struct elsewhere { /* what Keras has here, and where it is instead */
    const char *name, *where;
};

struct catalog {
    const char *what, *plural; /* "optimizer", "Optimizers" */
    const void *rows;
    size_t count, size;                /* rows, bytes a row */
    const char *const *later;          /* NULL-terminated: in Keras, not here yet */
    const struct elsewhere *elsewhere; /* name NULL ends it */
    const char *const *also;           /* NULL-terminated: names that the owner resolves first, for suggestions */
    bool any_case;                     /* Keras lower-cases the name first (optimizers) */
};
#define CATALOG_ROWS(table) .rows = (table), .count = COUNT_OF(table), .size = sizeof(table)[0]

extern const struct catalog OPTIMIZERS, SCHEDULES, LOSSES, METRICS, ACTIVATION_KINDS, INITIALIZERS, REGULARIZERS,
    CALLBACKS;

const struct kind *catalog_row(const struct catalog *c, size_t i);
bool catalog_knows(const struct catalog *c, const char *word);
/* The row called `word`; a placed error at `at` when there is none. */
MUST_USE int catalog_find(const struct catalog *c, const struct node *at, const char *word, const struct kind **ret,
                          struct err *e);
/* A name or a map: its row and the values of all its arguments. ret_config (may be NULL) for ARG_OTHER. */
MUST_USE int catalog_parse(const struct catalog *c, const struct node *n, const struct kind **ret, double *ret_values,
                           struct node *ret_config, struct err *e);

/* Values of the arguments; defaults for what is absent. Unknown keys are refused, except for `name` and `dtype`,
 * which every Keras object has. */
MUST_USE int args_parse(const struct kind *k, const struct node *config, double *ret_values, struct err *e);
void args_defaults(const struct kind *k, double *ret_values);
/* All arguments as Keras's get_config() has them, ARG_IGNORED, ARG_LIST and ARG_OTHER left out; new reference. */
json_t *args_config(const struct kind *k, const double *values);
enum { ARG_LIST_MAX = 8 };
struct arg_list {
    int n;
    int64_t v[ARG_LIST_MAX];
};
/* The entries of the row's ARG_LIST of that name, n 0 when it is absent. */
MUST_USE int arg_list_read(const struct kind *k, const char *name, const struct node *config, struct arg_list *ret,
                           struct err *e);
/* {"module", "class_name", "config", "registered_name"} as Keras 3 serializes objects; takes config. */
json_t *kind_serialized(const char *module, const char *class_name, json_t *config);
/* A double as a float, Inf beyond its range (a plain cast of such a number is undefined). */
static inline float to_float(double v)
{
    return v > (double)FLT_MAX ? HUGE_VALF : v < -(double)FLT_MAX ? -HUGE_VALF : (float)v;
}

/* The default as Python prints it: "0.9", "None", "False", "'fan_in'". */
const char *arg_default_text(const struct arg *a, char out[32]);

#endif
