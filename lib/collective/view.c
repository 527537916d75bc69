/* Shares are contiguous ranges of the vector, so that small variables travel together. */
#include "collective/view.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

void view_fini(struct view *v)
{
    free(v->members);
    *v = (struct view){ 0 };
}

void view_copy(struct view *to, const struct view *from)
{
    struct view copy = *from;
    copy.members = xmemdup(from->members, from->n * sizeof(*from->members));
    view_fini(to);
    *to = copy;
}

int view_find(const struct view *v, const char *name, uint64_t incarnation)
{
    for (size_t i = 0; i < v->n; i++)
        if (str_eq(v->members[i].name, name) && (incarnation == 0 || v->members[i].incarnation == incarnation))
            return (int)i;
    return -1;
}

/* Where the share of a member begins; `members` of them: the end of the vector. */
static size_t share_begin(size_t floats, size_t members, size_t index)
{
    size_t blocks = (floats + CHUNK_ALIGN - 1) / CHUNK_ALIGN;
    size_t block = blocks / members * index + MIN(blocks % members, index);
    return MIN(block * CHUNK_ALIGN, floats);
}

static size_t chunks_in(size_t floats)
{
    return MAX((floats + CHUNK_FLOATS - 1) / CHUNK_FLOATS, (size_t)1);
}

/* Adds the chunks of a share at next; returns where it ends. */
static struct chunk_range *cut(size_t from, size_t end, size_t owner, struct chunk_range *next)
{
    for (size_t left = chunks_in(end - from); left > 0; left--, next++) {
        *next = (struct chunk_range){ .from = from, .to = left == 1 ? end : from + CHUNK_FLOATS, .owner = owner };
        from = next->to;
    }
    return next;
}

size_t view_chunks(size_t floats, size_t members, int64_t group, struct chunk_range **ret)
{
    bool all = members == 2 && group <= 2;
    size_t n = 0, shares = all ? 1 : members;
    for (size_t i = 0; i < shares; i++)
        n += chunks_in(share_begin(floats, shares, i + 1) - share_begin(floats, shares, i));
    struct chunk_range *next = *ret = xcalloc(n, sizeof(**ret));
    for (size_t i = 0; i < shares; i++)
        next = cut(share_begin(floats, shares, i), share_begin(floats, shares, i + 1), all ? CHUNK_OF_ALL : i, next);
    return n;
}

size_t view_pieces(size_t floats)
{
    return chunks_in(floats);
}

struct chunk_range view_piece(size_t floats, size_t index)
{
    size_t from = MIN(index * CHUNK_FLOATS, floats);
    return (struct chunk_range){ .from = from, .to = MIN(from + CHUNK_FLOATS, floats) };
}
