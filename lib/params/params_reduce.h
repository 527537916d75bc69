/* params_reduce - the call Reduce of the service Parameters: batch statistics of a group (shard/group_sums.h), to a ps
 * or to a worker of MultiWorkerMirrored. */
#ifndef TRAINYARD_PARAMS_PARAMS_REDUCE_H
#define TRAINYARD_PARAMS_PARAMS_REDUCE_H

#include "params/parameters_codec.h"

/* The head of a request. */
void reduce_pack(Trainyard__V1__Header *header, const struct group_request *q, struct buf *ret);
/* Its numbers; data NULL: none. Valid as long as those of q. */
struct rpc_piece reduce_piece(const struct group_request *q);
/* Takes the answer: q->answer and q->totals. ERR_LOST: it is not what was asked for. */
MUST_USE int reduce_read(const struct rpc_message *m, const Trainyard__V1__ReduceReply *answer, struct group_request *q,
                         struct err *e);

#endif
