/* What an unquoted scalar means by kubectl's rules. A number that JSON cannot hold is an error, never rounded
 * silently. */
#include "codec/yaml_plain.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

static bool one_of(const char *text, const char *const words[])
{
    for (; *words != NULL; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static bool is_null(const char *text)
{
    static const char *const WORDS[] = { "", "~", "null", "Null", "NULL", NULL };
    return one_of(text, WORDS);
}

static bool is_bool(const char *text, bool *ret)
{
    static const char *const YES[] = { "true", "True", "TRUE", NULL };
    static const char *const NO[] = { "false", "False", "FALSE", NULL };
    *ret = one_of(text, YES);
    return *ret || one_of(text, NO);
}

static const char *skip_sign(const char *s)
{
    return *s == '-' || *s == '+' ? s + 1 : s;
}

/* The base when the text is a whole number in it, else 0; *ret_digits: where its digits begin. */
static int integer_base(const char *text, const char **ret_digits)
{
    static const struct {
        const char *prefix, *digits;
        int base;
    } FORMS[] = {
        { "0x", "0123456789abcdefABCDEF", 16 },
        { "0o", "01234567", 8 },
        { "0", "01234567", 8 },
        { "", "0123456789", 10 },
    };
    const char *s = skip_sign(text);

    for (size_t i = 0; i < COUNT_OF(FORMS); i++) {
        size_t prefix = strlen(FORMS[i].prefix);
        if (!str_starts(s, FORMS[i].prefix) || s[prefix] == '\0')
            continue;
        if (FORMS[i].base == 10 && s[0] == '0' && s[1] != '\0') /* 08: a name to kubectl's users, not a number */
            continue;
        if (strspn(s + prefix, FORMS[i].digits) == strlen(s + prefix)) {
            *ret_digits = s + prefix;
            return FORMS[i].base;
        }
    }
    return 0;
}

/* [-+]?(.[0-9]+|[0-9]+(.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool is_float(const char *text)
{
    static const char DIGITS[] = "0123456789";
    const char *s = skip_sign(text);
    size_t whole = strspn(s, DIGITS), fraction = 0;

    s += whole;
    if (*s == '.') {
        fraction = strspn(s + 1, DIGITS);
        s += 1 + fraction;
    } else if (*s == '\0') {
        return false; /* 08: whole numbers were recognised before */
    }
    if (whole + fraction == 0)
        return false;
    if (*s == 'e' || *s == 'E') {
        s = skip_sign(s + 1);
        size_t exponent = strspn(s, DIGITS);
        if (exponent == 0)
            return false;
        s += exponent;
    }
    return *s == '\0';
}

static bool is_not_finite(const char *text)
{
    static const char *const WORDS[] = { ".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN", NULL };
    return one_of(skip_sign(text), WORDS);
}

static json_t *integer(const char *text, const char *digits, int base)
{
    errno = 0;
    bool negative = text[0] == '-';
    long long v = strtoll(base == 10 ? text : digits, NULL, base);
    if (errno == ERANGE)
        return json_real(base == 10 ? strtod(text, NULL) : HUGE_VAL); /* the latter is refused */
    return json_integer(negative && base != 10 ? -v : v);
}

int yaml_plain(const char *text, json_t **ret, struct err *e)
{
    const char *digits = text;
    bool yes;
    int base = integer_base(text, &digits);
    json_t *v;

    if (is_null(text))
        v = json_null();
    else if (is_bool(text, &yes))
        v = json_boolean(yes);
    else if (is_not_finite(text))
        return err_set(e, ERR_INPUT, "%s is not a finite number; quote it if it is text", text);
    else if (base > 1)
        v = integer(text, digits, base);
    else if (is_float(text))
        v = json_real(strtod(text, NULL));
    else
        v = json_string(text);
    if (v == NULL)
        return err_set(e, ERR_INPUT, "%.40s is too large for a number or is not UTF-8; quote it if it is text", text);
    *ret = v;
    return 0;
}

bool yaml_plain_is_safe(const char *text)
{
    static const char *const WORDS[] = { "y", "n", "yes", "no", "on", "off", "=", "<<", NULL };

    json_auto_t *v = NULL;
    if (yaml_plain(text, &v, NULL) < 0 || !json_is_string(v))
        return false;
    if (isdigit((unsigned char)*skip_sign(text)) || text[0] == '.') /* dates, versions, 1_000, 12:30 */
        return false;
    for (size_t i = 0; WORDS[i] != NULL; i++)
        if (strcasecmp(text, WORDS[i]) == 0)
            return false;
    return true;
}
