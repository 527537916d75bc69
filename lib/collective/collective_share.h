/* collective_share - memory that members of one host share (collective/transfer_slot.h), so that gradients and sums are
 * not copied through the network of the kernel. Each member makes memory of its own and offers it to the others, which
 * read its gradients there and write sums. Where that is not possible (another host or container) the bytes travel
 * through gRPC.
 *
 * A request without an answer leaves the memory unsettled: the other member may still read or write it. It is then
 * replaced, and offered again.
 */
#ifndef TRAINYARD_COLLECTIVE_COLLECTIVE_SHARE_H
#define TRAINYARD_COLLECTIVE_COLLECTIVE_SHARE_H

#include "collective/collective_internal.h"
#include "collective/transfer_slot.h"

/* ---- the member that sends; the thread that trains calls these ---- */

struct share;
struct share *share_new(size_t floats);
void share_free(struct share *s); /* NULL: nothing */
/* Before a gradient is computed: replaces unsettled memory, and offers memory to the members of the view that have none
 * yet. Blocking: a call to each of them, in parallel. */
void share_prepare(struct collective *c);
/* Memory for the gradient; NULL: nothing is shared. Until the next share_prepare. */
float *share_gradient(const struct share *s);

enum share_start { SHARE_NOT, SHARE_STARTED, SHARE_FULL };
/* SHARE_NOT: this member, or this gradient, is not in shared memory. SHARE_FULL: no slot is free. */
enum share_start share_start(struct collective *c, struct peer_call *k, const struct transfer *t);
/* Waits for the answer. sum: gets the sum of the chunk; NULL: none is wanted. Errors name the member. */
MUST_USE int share_finish(struct collective *c, struct peer_call *k, struct reduction *sum, size_t chunk,
                          struct err *e);

/* ---- the member that receives ---- */

MUST_USE int share_on_attach(struct transfer_request *x, struct err *e);
slot_serve_fn share_serve;

#endif
