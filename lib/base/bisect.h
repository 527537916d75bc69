/* bisect - finds a number's place among ascending ones, as Python's bisect_right(). Pure. */
#ifndef TRAINYARD_BASE_BISECT_H
#define TRAINYARD_BASE_BISECT_H

#include <stddef.h>
#include <stdint.h>

/* How many of n ascending numbers are not above x. The first is at `first`, the others follow each `stride` bytes on:
 * it may be a member of an array of structures. */
static inline size_t bisect_right(const int64_t *first, size_t stride, size_t n, int64_t x)
{
    size_t low = 0, high = n; /* all below `low` are not above x, all from `high` on are */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (*(const int64_t *)(const void *)((const char *)first + middle * stride) <= x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
