/* Small allocations abort when memory is exhausted; sizes from outside are checked for overflow and for plausibility
 * first, and their failure is an error that the caller handles. */
#include "base/mem.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

enum { ALIGNMENT = 64 };
static const size_t BLOCK_MAX = (size_t)1 << 39; /* 512 GiB: more in one block is a damaged size */

/* No allocation and no stdio here: there is no memory left to use. */
static __attribute__((noreturn, cold)) void out_of_memory(void)
{
    static const char text[] = "error: out of memory\n";
    ssize_t ignored UNUSED = write(STDERR_FILENO, text, sizeof(text) - 1);
    abort();
}

void *xmalloc(size_t bytes)
{
    void *p = malloc(bytes > 0 ? bytes : 1);
    if (p == NULL)
        out_of_memory();
    return p;
}

void *xcalloc(size_t count, size_t size)
{
    void *p = count > 0 && size > 0 ? calloc(count, size) : calloc(1, 1);
    if (p == NULL)
        out_of_memory();
    return p;
}

void *xrealloc(void *p, size_t bytes)
{
    p = realloc(p, bytes > 0 ? bytes : 1);
    if (p == NULL)
        out_of_memory();
    return p;
}

char *xstrdup(const char *s)
{
    return xmemdup(s, strlen(s) + 1);
}

char *xstrndup(const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *p = xmalloc(len + 1); /* not strndup(): ASan's strict_string_checks wants its source terminated */
    memcpy(p, s, len);
    p[len] = '\0';
    return p;
}

char *xasprintf(const char *fmt, ...)
{
    char *p = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&p, fmt, ap);
    va_end(ap);
    if (n < 0 || p == NULL)
        out_of_memory();
    return p;
}

void *xmemdup(const void *p, size_t n)
{
    void *copy = xmalloc(n);
    if (n > 0)
        memcpy(copy, p, n);
    return copy;
}

int size_mul(size_t a, size_t b, size_t *ret, struct err *e)
{
    size_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return err_set(e, ERR_INPUT, "size overflows: %zu * %zu", a, b);
    *ret = r;
    return 0;
}

int size_add(size_t a, size_t b, size_t *ret, struct err *e)
{
    size_t r;
    if (__builtin_add_overflow(a, b, &r))
        return err_set(e, ERR_INPUT, "size overflows: %zu + %zu", a, b);
    *ret = r;
    return 0;
}

static int no_memory(size_t bytes, const char *what, struct err *e)
{
    char text[32];
    return err_set(e, ERR_NOMEM, "no memory for %s (%s)", what, str_bytes(bytes, text));
}

int mem_alloc(size_t bytes, const char *what, void **ret, struct err *e)
{
    void *p = NULL;

    if (bytes > BLOCK_MAX || posix_memalign(&p, ALIGNMENT, MAX(bytes, 1)) != 0)
        return no_memory(bytes, what, e);
    memset(p, 0, MAX(bytes, 1));
    *ret = p;
    return 0;
}

int mem_alloc_plain(size_t bytes, const char *what, void **ret, struct err *e)
{
    void *p = bytes > BLOCK_MAX ? NULL : malloc(MAX(bytes, 1));
    if (p == NULL)
        return no_memory(bytes, what, e);
    *ret = p;
    return 0;
}

/* A buffer that is freed and made again each step would be unmapped and faulted in page by page; a
 * training process uses the same sizes for its whole life, so it keeps what it has. */
void mem_keep_pages(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, -1);
    mallopt(M_TOP_PAD, 1 << 20);
    mallopt(M_ARENA_MAX, 1); /* the arenas of other threads are of 64 MiB pieces that are unmapped all the same */
}

void mem_give_back(void)
{
    malloc_trim(0);
}

size_t mem_resident(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    if (f == NULL)
        return 0;

    char line[256];
    size_t kib = 0;
    while (kib == 0 && fgets(line, sizeof(line), f) != NULL)
        if (str_starts(line, "VmRSS:")) /* "VmRSS:	  1234 kB" */
            kib = strtoul(line + strlen("VmRSS:"), NULL, 10);
    fclose(f);
    return kib << 10;
}
