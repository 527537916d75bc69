/* jsonl - JSON Lines: the values that the columns of a csv_layout have in a record, which is a JSON object on one line.
 * Inside of lib/data, for csv_layout.c and csv.c. Pure.
 *
 *     {"text": "fine", "product": {"category": "shoes"}, "embedding": [0.5, 1], "sentiment": 1}
 *
 * A column is a key, or with dots the keys of objects within each other: product.category. null and a key that a record
 * does not have are missing values.
 */
#ifndef TRAINYARD_DATA_JSONL_H
#define TRAINYARD_DATA_JSONL_H

#include "data/csv_layout.h"

/* Where the records of a file begin. */
MUST_USE int jsonl_begin(const struct data_file *f, const unsigned char **ret, struct err *e);
/* Steps over blank lines; the end of the file: there are no more records. */
const unsigned char *jsonl_next(const struct data_file *f, const unsigned char *p);
/* Steps over a line. */
const unsigned char *jsonl_skip(const struct data_file *f, const unsigned char *p);

/* The columns of a data set: those of the job, or the keys of the first record. Each must be in one of the files. */
MUST_USE int jsonl_names(const struct data_place *at, const struct data_files *files, struct strlist *ret,
                         struct err *e);
/* csv_layout_record(). */
MUST_USE int jsonl_record(const struct csv_layout *l, const struct data_file *f, const unsigned char **p,
                          const struct csv_visit *visit, struct err *e);
/* The numbers of a list that the record has in a column with a shape. They are column->count, or with column->length
 * as many whole steps as there are, up to that length: the others are only checked. `ret` has jsonl_numbers_max(). */
MUST_USE int jsonl_numbers(const struct csv_place *place, const struct text_field *list, double *ret, size_t *ret_n,
                           struct err *e);
/* No list of these bytes gives more numbers. */
size_t jsonl_numbers_max(const struct data_column *c, const struct text_field *list);

/* The value of any key in the record at *p as text, "" without one; moves *p to the next line. */
MUST_USE int jsonl_text(const struct data_file *f, const unsigned char **p, const char *key, struct buf *ret,
                        struct err *e);
/* ERR_INPUT when none of the records has the key. */
MUST_USE int jsonl_find_key(const struct data_file *f, const char *key, struct err *e);

#endif
