/* columns - what the columns of a data set mean: names, types, the label. Read from spec.columns, and for csv also from
 * the header of the file. Inside of lib/data. Immutable once read.
 *
 *     columns:                                      # the features, in this order; csv without: all, as float
 *       - {name: sex, type: category, vocabulary: [female, male], default: male}
 *       - {name: age, type: float, default: 29.7}   # default: what a missing value counts as
 *       - {name: city, type: category, numBins: 1000}
 *       - {name: height, type: float, binBoundaries: [1.5, 1.8]}
 *       - {name: sailed, type: date, parts: [month, dayofweek], format: "%d.%m.%Y"}
 *       - {name: review, type: text, vocabulary: [the, and], outputSequenceLength: 200}
 *       - {name: frames, type: float, shape: [8], outputSequenceLength: 30}   # tfrecord, jsonl: shape (30, 8)
 *     label: survived                               # name or index; -1 is the last column
 *
 * The label may be described among the columns too; when nothing else is, all others of a csv are features. With
 * dropColumns all columns that it does not name are features, in the order of the file, and `columns` describes some.
 */
#ifndef TRAINYARD_DATA_COLUMNS_H
#define TRAINYARD_DATA_COLUMNS_H

#include "base/map.h"
#include "data/files.h"
#include "data/image.h"

enum column_type { COLUMN_FLOAT, COLUMN_INT, COLUMN_CATEGORY, COLUMN_BYTES, COLUMN_DATE, COLUMN_IMAGE, COLUMN_TEXT };

struct data_column {
    char *name;
    enum column_type type;
    bool described; /* by the job */
    bool dropped;   /* named in dropColumns */
    bool used;      /* used as a feature, a label or the weight; else ignored */
    bool is_label, is_weight;
    size_t place;          /* of its first number within the example's features, or within its labels */
    struct map vocabulary; /* category, text: word -> its place + 1 */
    bool learns_words;     /* its vocabulary is that of the data, and not known yet */
    size_t max_tokens;     /* the numbers of words that it then has at most; 0: no limit */
    enum column_encoding encoding;
    bool encoded;     /* the job has chosen it */
    float *idf;       /* tf_idf: the weights of its numbers; NULL: that of the data, and not known yet */
    size_t oov;       /* other words are the number before those of the vocabulary; 0: they are errors */
    size_t hash_bins; /* category: without a vocabulary, words have the numbers of their hashes, below this; or 0 */
    bool salted;      /* its hashes have a key */
    uint64_t salt[2];
    double *bounds; /* float, int: of `n_bounds` + 1 ranges whose numbers stand for the values */
    size_t n_bounds;
    size_t learns_bins;    /* as many ranges, whose boundaries are those of the data, and not known yet; or 0 */
    size_t mask;           /* text, int: 1: the number 0 is for what follows the end of a text */
    struct text_form text; /* text: how it becomes tokens */
    bool has_default;
    double fallback;                       /* csv: of a missing value */
    char *fallback_text;                   /* text */
    enum data_missing missing;             /* csv: what becomes of an example without its value */
    enum date_part parts[DATE_PART_COUNT]; /* date: its `count` numbers */
    char *format;                          /* date: NULL: ISO 8601 */
    struct shape shape;                    /* tfrecord; jsonl: of a list; with `length` it is the first dimension */
    size_t length;                         /* a list of any length: the steps that it is padded or cut to; or 0 */
    size_t step;                           /* the numbers of a step; without `length` those of the shape */
    struct image_form image;               /* image: what its bytes become; the same as the shape */
    size_t count;                          /* numbers an example; in csv mostly 1 */
};

enum { COLUMNS_MAX = 1 << 20 };
struct data_columns {
    struct data_column *c;
    size_t n;
    struct map by_name; /* name -> its place in c + 1 */
    size_t longest;     /* bytes of the longest name */
    int64_t label;      /* the place in c of the only or first label, -1: none */
    size_t n_labels;    /* columns that are labels; several labels are all numbers */
    size_t labels;      /* numbers of an example's labels */
    bool weighted;      /* one of them is the weight of an example */
    size_t features;    /* numbers per example, without the labels' */
};
void columns_fini(struct data_columns *c);
DEFINE_AUTO_FINI(data_columns, columns_fini);

/* csv: the names are those of the file `path`, the job may describe some of them. With at->like the features are the
 * columns of these names, in that order, and labels and weights that the job gives by their place have those names. */
MUST_USE int columns_of_names(const struct data_place *at, const char *path, const struct strlist *names,
                              struct data_columns *ret, struct err *e);
/* The column of number i of an example's features, or of its labels; NULL: there is none. */
const struct data_column *columns_find(const struct data_columns *c, bool label, size_t i);
/* Of an example: one feature keeps its shape, several are concatenated into one row. */
struct shape columns_shape(const struct data_columns *c);
/* The features, or the labels, as parts of their row, in its order. The names are borrowed. */
struct record_fields columns_fields(const struct data_columns *c, bool label);
/* Their names, in the order of the numbers. `ret` must be empty. */
void columns_names(const struct data_columns *c, struct column_names *ret);
bool columns_have_images(const struct data_columns *c);
/* tfrecord: the job names them all. */
MUST_USE int columns_of_spec(const struct data_place *at, struct data_columns *ret, struct err *e);

/* Parts of the two above: the type, words, parts, default and rule for missing values that the item n of spec.columns
 * gives a csv column, and the default of any column, whose type is known. */
MUST_USE int column_read_csv(const struct node *n, struct data_column *c, struct err *e);
MUST_USE int column_read_default(const struct node *n, struct data_column *c, struct err *e);
const char *column_type_name(enum column_type type); /* as in spec.columns of csv and jsonl */
/* Something of a csv column is still to be learned from data.train (csv_learn.h): its words, boundaries,
 * or what stands for a missing value. */
bool column_learns(const struct data_column *c);
/* Its fields are numbers. */
static inline bool column_is_number(const struct data_column *c)
{
    return c->type == COLUMN_FLOAT || c->type == COLUMN_INT;
}
/* The number of a word of the vocabulary; -1: it is none. With c->oov that of all others is c->mask. */
int64_t column_word(const struct data_column *c, const char *word);
/* With c->hash_bins: the number of a word of n bytes, which may be NUL, too. */
int64_t column_hashed_word(const struct data_column *c, const void *word, size_t n);
/* The numbers that the words or ranges of the column have, from 0; 0: it has none, or they are not known yet. */
size_t column_words(const struct data_column *c);
/* float, int: its numbers are those of ranges, known or to be learned. */
bool column_is_binned(const struct data_column *c);
/* Hash of everything here that affects values. */
uint64_t columns_hash(const struct data_columns *c);

#endif
