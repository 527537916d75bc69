/* Missing values of a csv data set, and numbers that are not written in the default way. */
#include "data/csv_dialect.h"

#include <string.h>

#include "base/rng.h"

enum { NUMBER_MAX = 512 }; /* bytes of a number that is not written in the default way */

static struct text_field field_of(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    return text_trim((struct text_field){ .p = p, .end = p + strlen(text) });
}

void csv_dialect_init(struct csv_dialect *d, const struct data_spec *spec)
{
    *d = (struct csv_dialect){ .delimiter = spec->delimiter != '\0' ? spec->delimiter : ',',
                               .decimal = spec->decimal != '\0' ? spec->decimal : '.',
                               .thousands = spec->thousands,
                               .takes_empty = spec->format == DATA_TEXT,
                               .first_example =
                                   spec->format == DATA_CSV && !spec->header ? (size_t)spec->skip_rows + 1 : 0 };
    d->plain = d->decimal == '.' && d->thousands == '\0' && strchr("-.0123456789", d->delimiter) == NULL;
    d->missing_numbers = xcalloc(spec->na_values.n + 1, sizeof(*d->missing_numbers));
    for (size_t i = 0; i < spec->na_values.n; i++) {
        struct text_field field = field_of(spec->na_values.items[i]);
        char text[NA_VALUE_MAX + 1];
        text_copy(&field, text, sizeof(text));
        map_put(&d->missing, text, d);
        if (csv_dialect_number(d, &field, &d->missing_numbers[d->n_missing_numbers]))
            d->n_missing_numbers++;
    }
}

void csv_dialect_fini(struct csv_dialect *d)
{
    map_fini(&d->missing);
    free(d->missing_numbers);
}

bool csv_dialect_missing(const struct csv_dialect *d, const struct text_field *field)
{
    char text[NA_VALUE_MAX + 1];
    if (field->p == field->end)
        return !d->takes_empty;
    return text_copy(field, text, sizeof(text)) && map_get(&d->missing, text) != NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits behind a separator of thousands, up to the next one. */
static size_t group_of(const char *p)
{
    size_t n = 0;
    while (is_digit(p[n]))
        n++;
    return n;
}

/* Whether a separator at p, which has a digit before it, ends a group: those behind it have three digits, or two. */
static bool separates(const struct csv_dialect *d, const char *p)
{
    size_t n = group_of(p + 1);
    return n == 3 || (n == 2 && p[1 + n] == d->thousands);
}

/* Rewrites a number in the default way, in place; false when a separator is where none can be. */
static bool normalize(const struct csv_dialect *d, char *text)
{
    char *out = text;
    bool whole = true; /* still left of the decimal point */
    for (const char *p = text; *p != '\0'; p++) {
        if (whole && *p == d->thousands) {
            if (p == text || !is_digit(p[-1]) || !separates(d, p))
                return false;
        } else if (*p == d->decimal) {
            whole = false;
            *out++ = '.';
        } else if (*p == '.' || *p == d->thousands) {
            return false;
        } else {
            *out++ = *p;
        }
    }
    *out = '\0';
    return true;
}

bool csv_dialect_rewritten_number(const struct csv_dialect *d, const struct text_field *field, double *ret)
{
    char text[NUMBER_MAX];
    if (!text_copy(field, text, sizeof(text)) || !normalize(d, text))
        return false;
    struct text_field plain = field_of(text);
    return text_number(&plain, ret);
}

uint64_t csv_dialect_hash(const struct csv_dialect *d, const struct data_spec *spec)
{
    bool plain = d->decimal == '.' && d->thousands == '\0' && spec->skip_rows == 0 && !spec->own_na_values;
    if (plain)
        return 0;
    uint64_t h =
        hash64_mix((uint64_t)(unsigned char)d->decimal << 8 | (unsigned char)d->thousands, (uint64_t)spec->skip_rows);
    for (size_t i = 0; i < spec->na_values.n; i++)
        h = hash64(spec->na_values.items[i], strlen(spec->na_values.items[i]), h);
    return h;
}
