/* Sums of Kubernetes quantities, in thousandths. */
#include "build/quantity.h"

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
static int parse(const char *s, double *ret_milli, bool *ret_binary)
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

int quantity_add(struct quantity_sum *sum, const json_t *v, int times)
{
    double milli, total;
    bool binary = false;

    if (json_is_number(v))
        milli = ceil(json_number_value(v) * 1e3);
    else if (!json_is_string(v) || parse(json_string_value(v), &milli, &binary) < 0)
        return -1;
    total = (double)sum->milli + milli * times;
    if (!(milli >= 0 && total < 0x1p62))
        return -1;
    sum->milli += (int64_t)milli * times;
    sum->binary |= binary;
    return 0;
}

json_t *quantity_value(const struct quantity_sum *sum)
{
    static const char *const BINARY[] = { "", "Ki", "Mi", "Gi", "Ti", "Pi" };
    int64_t whole = sum->milli / 1000;
    size_t i = 0;

    if (sum->milli % 1000 != 0)
        return json_sprintf("%lldm", (long long)sum->milli);
    for (; sum->binary && whole != 0 && whole % 1024 == 0 && i + 1 < COUNT_OF(BINARY); i++)
        whole /= 1024;
    return json_sprintf("%lld%s", (long long)whole, BINARY[i]);
}
