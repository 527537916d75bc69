/* Writes values to the places of their columns. */
#include "data/column_row.h"

#include <string.h>

#include "data/bins.h"
#include "data/date.h"
#include "data/tokens.h"

static void put_tokens(const struct data_column *c, const struct text_field *text, float *x)
{
    struct token_reader tokens = token_reader(text, c->text);
    memset(x, 0, c->count * sizeof(*x));
    for (size_t i = 0; (c->encoding != COLUMN_INT_ENCODING || i < c->count) && token_next(&tokens); i++) {
        int64_t word = tokens.whole ? column_word(c, tokens.token) : -1;
        size_t number = word < 0 ? c->mask : (size_t)word;
        if (c->encoding == COLUMN_INT_ENCODING)
            x[i] = (float)number;
        else
            x[number] = c->encoding == COLUMN_MULTI_HOT ? 1 : x[number] + 1;
    }
    for (size_t i = 0; c->encoding == COLUMN_TF_IDF && i < c->count; i++)
        x[i] *= c->idf[i];
}

void column_row_put_number(const struct data_column *c, size_t i, double number, struct column_row *row)
{
    float *x = (c->is_label ? row->y : row->x) + c->place + i;
    *x = (float)number;
    if (c->type == COLUMN_INT && !c->is_label && row->rounded == NULL && (double)*x != number) {
        row->rounded = c;
        row->rounded_from = number;
    }
}

static void put_feature(const struct data_column *c, const struct column_value *v, struct column_row *row)
{
    float *x = row->x + c->place;
    double number = c->n_bounds > 0 ? (double)bins_place(c->bounds, c->n_bounds, v->number) : v->number;
    if (c->type == COLUMN_TEXT) {
        put_tokens(c, &v->text, x);
        return;
    }
    if (c->encoding != COLUMN_INT_ENCODING) {
        memset(x, 0, c->count * sizeof(*x));
        x[(size_t)number] = c->encoding == COLUMN_TF_IDF ? c->idf[(size_t)number] : 1;
        return;
    }
    if (c->type == COLUMN_DATE) {
        date_parts(v->number, c->parts, c->count, x);
        return;
    }
    column_row_put_number(c, 0, number, row);
}

void column_row_put(const struct data_columns *all, const struct data_column *c, const struct column_value *v,
                    struct column_row *row)
{
    if (c->is_weight)
        row->weight = (float)v->number;
    else if (c->is_label && all->n_labels > 1)
        row->y[c->place] = (float)v->number;
    else if (c->is_label)
        row->label = v->number;
    else
        put_feature(c, v, row);
}
