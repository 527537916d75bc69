/* view - the members of an all-reduce between two changes, and which of them adds which part of the gradients. Pure:
 * every member computes the same.
 *
 * The chief numbers the views; a later one has a higher number. In a view each member owns a share of the parameter
 * vector: it gets the gradients of that share from all others, adds them in the order of their ordinals, and gives the
 * sums to all. A share is cut into chunks, so that the first ones are sent while the gradients of other layers are
 * computed.
 */
#ifndef TRAINYARD_COLLECTIVE_VIEW_H
#define TRAINYARD_COLLECTIVE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum { VIEW_NAME_SIZE = 64, VIEW_ADDRESS_SIZE = 256, VIEW_MEMBERS_MAX = 1024 };

struct view_member {
    char name[VIEW_NAME_SIZE];       /* "worker-3" */
    char address[VIEW_ADDRESS_SIZE]; /* "host:port" */
    uint64_t incarnation;
};
/* A worker that the chief knows. */
struct known_member {
    char name[VIEW_NAME_SIZE], address[VIEW_ADDRESS_SIZE];
    uint64_t incarnation;
    bool alive; /* it has registered, not left, and was heard lately */
};
struct view {
    uint64_t number; /* 0: none */
    int64_t at;      /* the step at which it began, by the first ordinal of its group */
    struct view_member *members;
    size_t n;
};
void view_fini(struct view *v);
DEFINE_AUTO_FINI(view, view_fini);
void view_copy(struct view *to, const struct view *from); /* replaces `to` */
/* Its index, or -1. incarnation 0: any. */
int view_find(const struct view *v, const char *name, uint64_t incarnation);

/* The chunks of a vector: those of member 0, then those of member 1, ... ascending. A vector with fewer floats than
 * CHUNK_ALIGN for each member leaves some with one empty chunk: every member owns at least one, so that no member can
 * be more than one step behind another. */
enum { CHUNK_ALIGN = 16, CHUNK_FLOATS = 512 * 1024 };
/* The owner of chunks that every member adds for itself: two members that compute one gradient each send it to each
 * other. That is as many bytes as halves of gradients and of sums, and no member waits for a sum. */
#define CHUNK_OF_ALL SIZE_MAX
struct chunk_range {
    size_t from, to; /* floats: half-open */
    size_t owner;    /* index of a member, or CHUNK_OF_ALL */
};
/* group: number of gradients of a step. Returns the number of chunks; *ret: free(). */
size_t view_chunks(size_t floats, size_t members, int64_t group, struct chunk_range **ret);

/* Pieces of a whole vector, of CHUNK_FLOATS each, the last one shorter. */
size_t view_pieces(size_t floats);
struct chunk_range view_piece(size_t floats, size_t index);

#endif
