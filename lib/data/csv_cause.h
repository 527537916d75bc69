/* csv_cause - why a csv file cannot be read as the job says, in the words of its user: the place, the text as it
 * stands, the likely cause and its cure. Inside of lib/data, for csv.c. Each function fills *e with ERR_INPUT and
 * returns -1, unless it says otherwise. They run once, before an error ends the job, so they may search the file.
 */
#ifndef TRAINYARD_DATA_CSV_CAUSE_H
#define TRAINYARD_DATA_CSV_CAUSE_H

#include "data/columns.h"
#include "data/csv_dialect.h"

/* "FILE:LINE:COLUMN: ..." for the byte at p. */
int csv_error_at(const struct data_file *f, const unsigned char *p, struct err *e, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* text_field() stopped at p with r, which is not TEXT_MORE or TEXT_LAST. */
int csv_quote_error(const struct data_file *f, const unsigned char *p, enum text_result r, struct err *e);

/* A field that is not a value of its column. at: where it begins in the file. */
struct csv_place {
    const struct data_file *file;
    const unsigned char *at;
    const struct data_column *column;
    bool missing; /* jsonl: the record has no value */
};
int csv_bad_value(const struct csv_dialect *d, const struct csv_place *place, const struct text_field *field,
                  struct err *e);
int csv_no_value(const struct csv_place *place, const struct text_field *field, struct err *e);
/* The record that begins at p does not have n fields. */
int csv_wrong_count(const struct csv_dialect *d, const struct data_file *f, const unsigned char *p, size_t n,
                    const char *as_in, struct err *e);

/* The first line, which begins at p, is judged before its names are used: 0 when it can be the header or the first
 * example of a file with this delimiter. */
MUST_USE int csv_check_first_line(const struct csv_dialect *d, const struct data_file *f, const unsigned char *p,
                                  struct err *e);

#endif
