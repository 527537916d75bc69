/* csv_layout - what all records of a csv data set have in common: how its fields are written, the names in the header
 * and what the columns mean. Inside of lib/data. Immutable once open.
 */
#ifndef TRAINYARD_DATA_CSV_LAYOUT_H
#define TRAINYARD_DATA_CSV_LAYOUT_H

#include "data/columns.h"
#include "data/csv_dialect.h"

struct csv_layout {
    bool header;
    bool open_end;     /* the header ends with a delimiter: so may the records */
    int64_t skip_rows; /* lines before the header of each file */
    struct csv_dialect dialect;
    struct strlist names;
    char *first_path; /* the file that has these names */
    struct data_columns columns;
};
void csv_layout_fini(struct csv_layout *l);
DEFINE_AUTO_FINI(csv_layout, csv_layout_fini);

/* Of the first file. ERR_INPUT with the place in the file, or in the manifest. */
MUST_USE int csv_layout_open(const struct data_place *at, const struct data_file *first, struct csv_layout *ret,
                             struct err *e);
/* Where the records of a file begin: after the header, which must be equal to that of the first file. */
MUST_USE int csv_layout_begin(const struct csv_layout *l, const struct data_file *f, const unsigned char **ret,
                              struct err *e);

struct csv_record {
    const struct data_file *file;
    const unsigned char *start;
};
/* Behind the last column of a record, whose text_field() was `more`: moves *p to the next line. */
MUST_USE int csv_layout_end(const struct csv_layout *l, const struct csv_record *r, const unsigned char **p,
                            enum text_result more, struct err *e);
int csv_layout_wrong_count(const struct csv_layout *l, const struct csv_record *r, struct err *e); /* -1 */

/* Of everything that affects values. */
uint64_t csv_layout_hash(const struct csv_layout *l, const struct data_spec *spec);

static inline const unsigned char *csv_end_of(const struct data_file *f)
{
    return f->map->data + f->map->size;
}

#endif
