/* Judges a field by the type of its column. */
#include "data/csv_value.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "data/date.h"

/* Any word has a hash: of any length, and with NUL. */
static double hash_word(const struct data_column *c, const struct text_field *field)
{
    AUTO_FINI(buf) word = BUF_INIT;
    if (!field->doubled)
        return (double)column_hashed_word(c, field->p, (size_t)(field->end - field->p));
    for (const unsigned char *p = field->p; p < field->end; p += *p == '"' ? 2 : 1)
        buf_char(&word, (char)*p);
    return (double)column_hashed_word(c, word.data, word.len);
}

static bool find_word(const struct csv_dialect *d, const struct data_column *c, const struct text_field *field,
                      double *ret)
{
    char word[VOCABULARY_WORD_MAX + 1];
    if (c->hash_bins > 0)
        *ret = csv_dialect_missing(d, field) ? -1 : hash_word(c, field);
    else
        *ret = text_copy(field, word, sizeof(word)) ? (double)column_word(c, word) : -1;
    return *ret >= 0;
}

enum csv_found csv_value_number(const struct csv_dialect *d, const struct data_column *c, double v)
{
    if (csv_dialect_missing_number(d, v))
        return CSV_MISSING;
    return fabs(v) > (double)FLT_MAX || (c->type == COLUMN_INT && v != floor(v)) ? CSV_NO_VALUE : CSV_VALUE;
}

static enum csv_found number_value(const struct csv_dialect *d, const struct data_column *c,
                                   const struct text_field *field, double *ret)
{
    if (!csv_dialect_number(d, field, ret))
        return csv_dialect_missing(d, field) ? CSV_MISSING : CSV_NO_VALUE;
    return csv_value_number(d, c, *ret);
}

static enum csv_found word_value(const struct csv_dialect *d, const struct data_column *c,
                                 const struct text_field *field, double *ret)
{
    if (c->type == COLUMN_DATE ? date_parse(field, c->format, ret) : find_word(d, c, field, ret))
        return CSV_VALUE;
    if (csv_dialect_missing(d, field))
        return CSV_MISSING;
    *ret = (double)c->mask; /* of all other words */
    return c->oov > 0 ? CSV_VALUE : CSV_NO_VALUE;
}

enum csv_found csv_value(const struct csv_dialect *d, const struct csv_place *place, const struct text_field *field,
                         double *ret)
{
    const struct data_column *c = place->column;
    if (place->missing || (field->p == field->end && c->has_default))
        return CSV_MISSING;
    if (c->type == COLUMN_TEXT)
        return csv_dialect_missing(d, field) ? CSV_MISSING : CSV_VALUE;
    return (column_is_number(c) ? number_value : word_value)(d, c, field, ret);
}
