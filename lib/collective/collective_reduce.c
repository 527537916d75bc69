/* Batch statistics of synchronized layers: the first member of the view adds those of all batches. When that is another
 * one in the next view, it has no sums of earlier phases, and all begin the step again (GROUP_AGAIN). */
#include "collective/collective_internal.h"
#include "params/params_reduce.h"

enum { ANSWER_MS = 5000 }; /* a change of the view ends a call sooner */

static int reduce_here(struct collective *c, struct group_request *q, struct err *e)
{
    const struct shard_caller who = { .job_uid = c->giving.job_uid,
                                      .sender = c->config.name,
                                      .generation = reduction_frame(c->giving.to)->generation,
                                      .incarnation = c->config.incarnation };
    return shard_reduce_wait(c->config.shard, &who, q, e);
}

static int reduce_call(struct collective *c, struct peer_call *k, struct group_request *q, struct err *e)
{
    AUTO(rpc_message) *message = NULL;
    PROTOBUF_AUTO *answer = NULL;
    Trainyard__V1__Header header = peer_header(c, c->giving.job_uid, reduction_frame(c->giving.to)->generation);
    const struct peer_method method = { .path = ps_method_path(PS_REDUCE),
                                        .epoch = c->giving.epoch,
                                        .deadline_ms = ANSWER_MS + q->wait_ms };
    reduce_pack(&header, q, &k->head);
    k->piece = reduce_piece(q);
    if (!peer_start_call(c, k, &method))
        return err_set(e, ERR_PENDING, "the workers that train change");
    if (peer_finish_call(c, k, &trainyard__v1__reduce_reply__descriptor, &message, &answer, e) < 0)
        return -1;
    return reduce_read(message, (const void *)answer, q, e);
}

static int reduce_there(struct collective *c, struct peer *first, struct group_request *q, struct err *e)
{
    struct peer_call *k = peer_calls_new(1);
    k->peer = first;
    int rc = reduce_call(c, k, q, e);
    peer_calls_free(k, 1);
    return rc;
}

int collective_reduce(struct collective *c, struct group_request *q, struct err *e)
{
    struct err cause = { 0 };
    struct peer *first = c->giving.owners[0];
    int rc = first == NULL ? reduce_here(c, q, &cause) : reduce_there(c, first, q, &cause);
    if (rc < 0 && peer_worth_retry(&cause))
        return err_set(e, ERR_PENDING, "%s", cause.msg);
    return rc < 0 ? err_set(e, cause.code, "%s", cause.msg) : 0;
}
