/* Checks of host:port, for TF_CONFIG and for lists of hosts in flags and variables. */
#include <ctype.h>
#include <string.h>

#include "job/tf_config.h"

enum { PORT_MAX = 65535 };

static bool is_name(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && strchr("-._", s[i]) == NULL)
            return false;
    return n > 0;
}

static bool is_bracketed(const char *s, size_t n)
{
    if (n < 4 || s[0] != '[' || s[n - 1] != ']')
        return false;
    for (size_t i = 1; i + 1 < n; i++)
        if (!isxdigit((unsigned char)s[i]) && strchr(":.%", s[i]) == NULL)
            return false;
    return true;
}

int host_check(const char *host, struct err *e)
{
    const char *colon = strrchr(host, ':');
    int64_t port;

    if (strstr(host, "://") != NULL)
        return err_set(e, ERR_INPUT, "'%.100s' must be host:port, without '%.*s'", host,
                       (int)(strstr(host, "://") - host) + 3, host);
    if (colon == NULL || colon[1] == '\0' || strchr(colon, ']') != NULL)
        return err_set(e, ERR_INPUT, "'%.100s' has no port; it must be host:port, such as localhost:2222", host);
    if (str_i64(colon + 1, 1, PORT_MAX, &port, NULL) < 0)
        return err_set(e, ERR_INPUT, "'%.100s': port '%.20s' is not 1 to %d", host, colon + 1, PORT_MAX);
    size_t n = (size_t)(colon - host);
    if (!is_name(host, n) && !is_bracketed(host, n))
        return err_set(e, ERR_INPUT, "'%.100s' is not host:port", host);
    return 0;
}

void hosts_put(struct strlist *l, size_t index, const char *host)
{
    if (index >= l->cap) {
        l->cap = MAX(index + 1, l->cap * 2);
        l->items = xrealloc(l->items, l->cap * sizeof(l->items[0]));
    }
    while (l->n <= index)
        l->items[l->n++] = NULL;
    free(l->items[index]);
    l->items[index] = xstrdup(host);
}
