/* Kubernetes' suffixes and exponents. */
#include "job/quantity.h"

#include <math.h>
#include <string.h>

#include "base/str.h"

static const struct quantity_suffix {
    const char *text;
    double milli; /* of one unit */
    bool binary;
} SUFFIXES[] = {
    { "", 1e3, false },           { "n", 1e-6, false },
    { "u", 1e-3, false },         { "m", 1, false },
    { "k", 1e6, false },          { "M", 1e9, false },
    { "G", 1e12, false },         { "T", 1e15, false },
    { "P", 1e18, false },         { "E", 1e21, false },
    { "Ki", 0x1p10 * 1e3, true }, { "Mi", 0x1p20 * 1e3, true },
    { "Gi", 0x1p30 * 1e3, true }, { "Ti", 0x1p40 * 1e3, true },
    { "Pi", 0x1p50 * 1e3, true }, { "Ei", 0x1p60 * 1e3, true },
};

/* "1e3" and "1E3" are decimal exponents, "1E" is the suffix. */
static int quantity_parse_text(const char *s, double *ret_milli, bool *ret_binary)
{
    size_t digits = strspn(s, "0123456789."), n = digits;
    char number[64];
    double value;

    if ((s[n] == 'e' || s[n] == 'E') && s[n + 1 + strspn(s + n + 1, "+-")] != '\0' && s[n + 1] != 'i')
        n = strlen(s);
    if (digits == 0 || n >= sizeof(number))
        return -1;
    str_fmt(number, sizeof(number), "%.*s", (int)n, s);
    if (str_f64(number, &value, NULL) < 0)
        return -1;
    for (size_t i = 0; i < COUNT_OF(SUFFIXES); i++)
        if (str_eq(s + n, SUFFIXES[i].text)) {
            *ret_milli = ceil(value * SUFFIXES[i].milli); /* Kubernetes rounds up */
            *ret_binary = SUFFIXES[i].binary;
            return 0;
        }
    return -1;
}

int quantity_parse(const json_t *v, double *ret_milli, bool *ret_binary)
{
    *ret_binary = false;
    if (!json_is_number(v))
        return json_is_string(v) ? quantity_parse_text(json_string_value(v), ret_milli, ret_binary) : -1;
    *ret_milli = ceil(json_number_value(v) * 1e3);
    return 0;
}

int quantity_check_map(const struct node *resources, struct err *e)
{
    const char *key;
    double milli;
    bool binary;
    for (size_t i = 0; (key = node_key(resources, i)) != NULL; i++) {
        struct node value = node_get(resources, key);
        const char *text = json_string_value(value.v);
        if (quantity_parse(value.v, &milli, &binary) == 0 && milli >= 0)
            continue;
        if (text == NULL)
            return node_error(&value, e, "must be a quantity, such as 2, 500m or 4Gi");
        return node_error(&value, e, "must be a quantity, such as 2, 500m or 4Gi, not '%s'", text);
    }
    return 0;
}
