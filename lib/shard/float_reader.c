/* Ranges are read where they lie; only a float that is cut by the end of one is copied. */
#include "shard/float_reader.h"

#include <string.h>

static bool more(struct float_reader *r)
{
    const void *p = NULL;
    while (r->left == 0) {
        if (r->in->next(r->in->user, &p, &r->left) != 1)
            return false;
        r->p = p;
    }
    return true;
}

static bool fill_stash(struct float_reader *r)
{
    for (size_t have = 0; have < sizeof(r->stash);) {
        if (!more(r))
            return false;
        size_t n = MIN(sizeof(r->stash) - have, r->left);
        memcpy(r->stash + have, r->p, n);
        r->p += n;
        r->left -= n;
        have += n;
    }
    return true;
}

size_t floats_next(struct float_reader *r, size_t want, const void **ret)
{
    if (!more(r))
        return 0;
    if (r->left < sizeof(float)) {
        *ret = r->stash;
        return fill_stash(r) ? 1 : 0;
    }
    size_t n = MIN(want, r->left / sizeof(float));
    *ret = r->p;
    r->p += n * sizeof(float);
    r->left -= n * sizeof(float);
    return n;
}

bool floats_skip(struct float_reader *r, size_t n)
{
    const void *p;
    for (size_t done = 0, got; done < n; done += got)
        if ((got = floats_next(r, n - done, &p)) == 0)
            return false;
    return true;
}

bool floats_copy(struct float_reader *r, float *out, size_t n)
{
    const void *p;
    for (size_t done = 0, got; done < n; done += got) {
        if ((got = floats_next(r, n - done, &p)) == 0)
            return false;
        memcpy(out + done, p, got * sizeof(float));
    }
    return true;
}

static int range_next(void *user, const void **ret, size_t *ret_size)
{
    struct one_range *r = user;
    if (r->given || r->size == 0)
        return 0;
    *ret = r->data;
    *ret_size = r->size;
    r->given = true;
    return 1;
}

static void range_again(void *user)
{
    struct one_range *r = user;
    r->given = false;
}

struct bytes_in one_range(struct one_range *range)
{
    return (struct bytes_in){
        .next = range_next, .again = range_again, .user = range, .size = range->size, .element = DT_FLOAT
    };
}
