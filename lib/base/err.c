/* Error messages, their codes and the exit code of each. The message is formatted before it is stored, so that an
 * error can be wrapped with its own text; what is too long ends in "...". */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* Formats into a separate buffer first, because an argument may point into e->msg. */
static PRINTF_LIKE(3, 0) void format_message(struct err *e, const char *tail, const char *fmt, va_list ap)
{
    char text[ERR_TEXT_MAX + 4];
    int n = vsnprintf(text, ERR_TEXT_MAX, fmt, ap);
    size_t len = n < 0 ? 0 : (size_t)n;

    if (len < ERR_TEXT_MAX && tail != NULL) {
        n = snprintf(text + len, ERR_TEXT_MAX - len, ": %s", tail);
        len += n < 0 ? 0 : (size_t)n;
    }
    if (len >= ERR_TEXT_MAX)
        memcpy(text + ERR_TEXT_MAX - 4, "...", 4);
    text[len < ERR_TEXT_MAX ? len : ERR_TEXT_MAX - 1] = '\0';
    memcpy(e->msg, text, strlen(text) + 1);
}

void err_put(struct err *e, enum err_code code, const char *fmt, ...)
{
    if (e == NULL)
        return;
    va_list ap;
    va_start(ap, fmt);
    format_message(e, NULL, fmt, ap);
    va_end(ap);
    e->code = code;
}

static enum err_code code_of(int number, enum err_code code)
{
    if (number == ENOENT)
        return ERR_NOT_FOUND;
    if (number == EMFILE || number == ENFILE)
        return ERR_LIMIT;
    if (code != ERR_IO)
        return code;
    return number == ENOSPC || number == EDQUOT ? ERR_NO_SPACE : number == EFBIG ? ERR_INPUT : ERR_IO;
}

/* The system's words, and the cure of a shortage that only the user can end. */
static void describe(int number, char out[256])
{
    enum { OUT = 256 };
    char reason[128];
    struct rlimit files = { 0 };
    if (number == EMFILE && getrlimit(RLIMIT_NOFILE, &files) == 0)
        (void)snprintf(out, OUT, "too many open files: the limit is %llu (ulimit -n); raise it",
                       (unsigned long long)files.rlim_cur);
    else if (number == ENFILE)
        (void)snprintf(out, OUT, "too many open files on this machine (sysctl fs.file-max); raise it");
    else
        (void)snprintf(out, OUT, "%s%s", strerror_r(number, reason, sizeof(reason)), /* GNU's: returns the text */
                       number == ENOSPC || number == EDQUOT ? "; free space there, or raise the quota" : "");
}

void err_put_errno(struct err *e, enum err_code code, const char *fmt, ...)
{
    int saved = errno;
    if (e == NULL)
        return;
    char text[256];
    describe(saved, text);
    va_list ap;
    va_start(ap, fmt);
    format_message(e, text, fmt, ap);
    va_end(ap);
    e->code = code_of(saved, code);
    errno = saved;
}

void err_prefix(struct err *e, const char *fmt, ...)
{
    if (e == NULL)
        return;
    va_list ap;
    va_start(ap, fmt);
    char old[ERR_TEXT_MAX];
    memcpy(old, e->msg, sizeof(old));
    format_message(e, old, fmt, ap);
    va_end(ap);
}

bool err_is(const struct err *e, enum err_code code)
{
    return e != NULL && e->code == code;
}

static const int EXIT_CODES[] = {
#define X(name, exit_code) [name] = exit_code,
    ERR_CODES(X)
#undef X
};

static bool is_known(enum err_code code)
{
    return (unsigned)code < sizeof(EXIT_CODES) / sizeof(EXIT_CODES[0]);
}

int err_exit_code(const struct err *e)
{
    return e != NULL && is_known(e->code) ? EXIT_CODES[e->code] : EXIT_CODES[ERR_INTERNAL];
}
