/* csv_layout - what all records of a csv data set have in common: how its fields are written, the names in the header
 * and what the columns mean. The records of JSON Lines (jsonl.h) have one, too: they differ in how a field is found.
 * Inside of lib/data. Immutable once open.
 */
#ifndef TRAINYARD_DATA_CSV_LAYOUT_H
#define TRAINYARD_DATA_CSV_LAYOUT_H

#include "data/columns.h"
#include "data/csv_cause.h"
#include "data/csv_dialect.h"

/* The columns of a file whose header differs from the first one's. */
struct csv_order {
    size_t n;        /* fields in a record */
    int32_t *column; /* of each field; -1: the first file has no such column, so it is ignored */
};

struct csv_layout {
    bool json;  /* the records are JSON objects, and the names are their keys */
    bool texts; /* they are those of text_files.h */
    bool header;
    bool open_end;     /* the header ends with a delimiter: so may the records */
    int64_t skip_rows; /* lines before the header of each file */
    struct csv_dialect dialect;
    struct strlist names;
    char *first_path; /* the file that has these names */
    struct data_columns columns;
    struct map orders; /* csv_order by the path of a file; others are as the first one */
    char *ignored;     /* a sentence about columns that only other files have; NULL: there are none */
};
void csv_layout_fini(struct csv_layout *l);
DEFINE_AUTO_FINI(csv_layout, csv_layout_fini);

/* Columns are those of the first file, and others have them by name, in any order; of JSON, of all. ERR_INPUT with the
 * place in the file, or in the manifest. */
MUST_USE int csv_layout_open(const struct data_place *at, const struct data_files *files, struct csv_layout *ret,
                             struct err *e);
/* Where the records of a file of the data set begin: after the header. */
MUST_USE int csv_layout_begin(const struct csv_layout *l, const struct data_file *f, const unsigned char **ret,
                              struct err *e);

/* Steps over blank lines. */
const unsigned char *csv_layout_next(const struct csv_layout *l, const struct data_file *f, const unsigned char *p);
/* Steps over one record that was read before. */
const unsigned char *csv_layout_skip(const struct csv_layout *l, const struct data_file *f, const unsigned char *p);

/* What is done with the fields of a record. */
struct csv_visit {
    bool all; /* csv: also of the columns that are not used */
    /* The field of a column: 0, 1: the record lacks a value and is left out, or -1. */
    int (*value)(void *user, const struct csv_place *place, const struct text_field *field, struct err *e);
    /* Numbers in the usual form are offered here first, without their text; false: value() gets the field. NULL:
     * value() gets all. */
    bool (*number)(void *user, const struct data_column *column, double v);
    void *user;
};
/* Calls visit for the record at *p, which is not blank, and moves *p to the next line. 1: it is left out. */
MUST_USE int csv_layout_record(const struct csv_layout *l, const struct data_file *f, const unsigned char **p,
                               const struct csv_visit *visit, struct err *e);

/* csv: which field of a file's records has a column; -1: none has it. */
int64_t csv_layout_field(const struct csv_layout *l, const struct data_file *f, size_t column);

/* Of everything that affects values. */
uint64_t csv_layout_hash(const struct csv_layout *l, const struct data_spec *spec);

static inline const unsigned char *csv_end_of(const struct data_file *f)
{
    return f->map->data + f->map->size;
}

#endif
