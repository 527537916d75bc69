/* mem - allocation and ownership.
 *
 * Two tiers. Small things whose size the code chooses: xmalloc() and the like, which abort with a message when memory
 * is exhausted. For any size that came from a file, the wire or a user, compute it with size_mul()/size_add(). Then
 * call mem_alloc(), which reports ERR_NOMEM.
 *
 * Every owning local carries a cleanup attribute; ownership leaves a function only through TAKE():
 *
 *     AUTO(dataset) *ds = NULL;             // dataset_free(ds) at the end of the scope
 *     AUTO_FINI(buf) text = BUF_INIT;       // buf_fini(&text)
 *     auto_free char *path = NULL;          // free(path)
 *     *ret = TAKE(ds);
 *
 * Destructors accept NULL and partly built objects.
 */
#ifndef TRAINYARD_BASE_MEM_H
#define TRAINYARD_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"

/* Defines AUTO(name) for `struct name`, freed by free_fn. Put it next to the type's prototypes. */
#define DEFINE_AUTO(name, free_fn)                                                                                     \
    static inline void name##_auto_(struct name **p)                                                                   \
    {                                                                                                                  \
        free_fn(*p);                                                                                                   \
    }                                                                                                                  \
    struct mem_wants_semicolon_ /* without one ctags takes what follows for a part of this */
#define AUTO(name) __attribute__((cleanup(name##_auto_))) struct name

/* Defines AUTO_FINI(name) for an embedded `struct name`, released by fini_fn(&x). */
#define DEFINE_AUTO_FINI(name, fini_fn)                                                                                \
    static inline void name##_auto_fini_(struct name *p)                                                               \
    {                                                                                                                  \
        fini_fn(p);                                                                                                    \
    }                                                                                                                  \
    struct mem_wants_semicolon_
#define AUTO_FINI(name) __attribute__((cleanup(name##_auto_fini_))) struct name

#define TAKE(p)                                                                                                        \
    (__extension__({                                                                                                   \
        __typeof__(p) take_ = (p);                                                                                     \
        (p) = NULL;                                                                                                    \
        take_;                                                                                                         \
    }))

static inline void auto_free_(void *p)
{
    free(*(void **)p);
}
#define auto_free __attribute__((cleanup(auto_free_)))

void fd_close(int fd); /* no-op for -1; keeps errno (implemented in base/file.c) */
static inline void auto_close_(int *fd)
{
    fd_close(*fd);
}
/* auto_close int fd = -1; closes it at the end of the scope and keeps errno. Hand over with TAKE_FD. */
#define auto_close __attribute__((cleanup(auto_close_)))
#define TAKE_FD(fd)                                                                                                    \
    (__extension__({                                                                                                   \
        int take_ = (fd);                                                                                              \
        (fd) = -1;                                                                                                     \
        take_;                                                                                                         \
    }))

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define MIN(a, b)       ((a) < (b) ? (a) : (b))
#define MAX(a, b)       ((a) > (b) ? (a) : (b))
#define UNUSED          __attribute__((unused))

/* For structs of libraries (protobuf-c) whose pointers are not const although the library only reads through them. */
static inline void *unconst(const void *p)
{
    union {
        const void *from;
        void *to;
    } u = { .from = p };
    return u.to;
}

/* Abort with a message when memory is exhausted. Only xcalloc zeroes the memory. */
void *xmalloc(size_t bytes) __attribute__((malloc, returns_nonnull, alloc_size(1)));
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull, alloc_size(1, 2)));
void *xrealloc(void *p, size_t bytes) __attribute__((returns_nonnull, alloc_size(2)));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) __attribute__((malloc, returns_nonnull)) PRINTF_LIKE(1, 2);
void *xmemdup(const void *p, size_t n) __attribute__((malloc, returns_nonnull));

/* Checked size arithmetic; ERR_INPUT "size overflows" on overflow. */
MUST_USE int size_mul(size_t a, size_t b, size_t *ret, struct err *e);
MUST_USE int size_add(size_t a, size_t b, size_t *ret, struct err *e);

/* Zeroed memory for a size from outside, aligned to 64 bytes (AVX-512, cache line); ERR_NOMEM names
 * `what` and the size. Release with free(). bytes 0 gives a valid pointer. */
MUST_USE int mem_alloc(size_t bytes, const char *what, void **ret, struct err *e);
/* The same, neither zeroed nor aligned to more than malloc(): for large buffers that are made and freed again and
 * again. A freed aligned one is too small for the next of its size, so that they would use ever more memory. */
MUST_USE int mem_alloc_plain(size_t bytes, const char *what, void **ret, struct err *e);

/* Makes the allocator keep freed memory, because page faults are expensive. Call it once, at the start of main(). */
void mem_keep_pages(void);
/* Returns memory that is free inside the process to the system; takes some milliseconds. Call it when the process is
 * idle.
 */
void mem_give_back(void);
/* Resident set size of this process in bytes (VmRSS), 0 when unknown. */
size_t mem_resident(void);

#endif
