/* describe - what the examples of a data set look like: the range, mean and standard deviation of its numbers, the
 * words of its columns, how often each class occurs, and the first examples.
 *
 * The memory does not grow with the number of examples: sums are updated with each number (Welford), and a column
 * counts at most DESCRIBE_WORDS_MAX different texts. A csv data set is described by the rows of its files, also by
 * those that lack a value and are left out (missing: drop); all others by their examples. Numbers are added in the
 * order of the files, so that a mean has the same bits everywhere.
 */
#ifndef TRAINYARD_DATA_DESCRIBE_H
#define TRAINYARD_DATA_DESCRIBE_H

#include "data/dataset.h"

enum { DESCRIBE_TOP = 5, DESCRIBE_WORDS_MAX = 100000, DESCRIBE_CLASSES_MAX = 10000, DESCRIBE_DECODED_MAX = 10000 };

struct moments {
    int64_t n;
    double mean, squares; /* squares: of the differences from the mean */
    double min, max;      /* of at least one number */
};
void moments_add(struct moments *m, double v);
double moments_std(const struct moments *m); /* of a sample, as pandas and R: n - 1; n must be at least 2 */

struct described_word {
    char *text;
    int64_t n;
};
/* A column of a csv, a feature of a tfrecord, or an array. */
struct described_column {
    char *name;
    const char *role; /* "feature", "label", "weight", "unused" */
    const char *type; /* "category" */
    int64_t missing;  /* -1: not known */
    int64_t count;    /* values that are there */
    bool has_numbers, is_date;
    struct moments numbers; /* dates: seconds, as in data/date.h; texts: how many words each has */
    bool has_words;
    int64_t words;                           /* different texts */
    bool more_words;                         /* there are more than were counted */
    struct described_word top[DESCRIBE_TOP]; /* the most frequent first */
    size_t ntop;
};
struct described_class {
    int64_t value, n;
};

struct data_description {
    int64_t examples;
    int64_t seen; /* examples of which the statistics are */
    bool spread;  /* these have equal distances; else they are the first ones */
    int64_t rows; /* of csv files, of which the columns are; 0: the columns are those of the examples */
    struct described_column *columns;
    size_t n;
    struct described_class *classes; /* those that occur, ascending */
    size_t nclasses;
    int64_t other_classes;      /* labels below 0 or from DESCRIBE_CLASSES_MAX on */
    struct strlist class_names; /* from 0 on; n 0: none */
    /* the first examples */
    size_t nfirst, x_count, y_count;
    float *x, *y;
    bool is_uint8, has_labels, integer_labels;
    struct shape y_shape;
};
void data_description_fini(struct data_description *d);
DEFINE_AUTO_FINI(data_description, data_description_fini);

struct describe_options {
    const struct data_spec *spec; /* as the data set was opened with */
    const char *base_dir, *cache_dir;
    const struct column_names *like;
    int64_t limit; /* examples of which the statistics are; 0: all, but DESCRIBE_DECODED_MAX of images */
    size_t first;  /* examples to keep */
};
/* ret must be zeroed. Reads the data once, and csv files once more. ERR_INPUT with the place of a number that is not
 * finite or of a damaged record. */
MUST_USE int describe_dataset(const struct dataset *d, const struct describe_options *o, struct data_description *ret,
                              struct err *e);

#endif
