/* Batch statistics of synchronized layers: small messages, that wait for those of other workers. */
#include "params/shard_service_internal.h"

/* The numbers of a request. One that is handled again has given them before, and they are gone: part->numbers NULL. */
static int read_numbers(const struct exchange *x, struct group_part *part, double **ret, struct err *e)
{
    struct payload_walk walk;
    struct bytes_in in = codec_payload(x->message, &walk);
    size_t bytes;
    void *memory;
    if (x->reply->again)
        return 0;
    if (part->n > GROUP_SUMS_ORDINALS_MAX || in.size != part->n * part->width * sizeof(double))
        return err_set(e, ERR_INPUT, "%zu bytes for %zu numbers of %zu batches", in.size, part->width, part->n);
    if (size_add(in.size, 1, &bytes, e) < 0 || mem_alloc_plain(bytes, "batch statistics", &memory, e) < 0)
        return -1;
    *ret = memory;
    if (!codec_copy(&in, memory))
        return err_set(e, ERR_INTERNAL, "a message ended within its numbers");
    part->numbers = memory;
    return 0;
}

/* Room for the sums. Answers that wait to be read have a limit, as those of a pull have. */
static int take_room(const struct exchange *x, uint32_t width, struct pooled_buffer **ret, struct err *e)
{
    struct shard_sizes sizes;
    if (width > GROUP_SUMS_WIDTH_MAX)
        return err_set(e, ERR_INPUT, "%u numbers of a batch, at most %d", width, GROUP_SUMS_WIDTH_MAX);
    if (shard_measure(x->shard, (struct shard_part){ 0 }, &sizes, e) < 0)
        return -1;
    return buffer_pool_take(x->pool, ((size_t)width + 1) * sizeof(double),
                            answers_limit(&sizes, false, x->caller->client), ret, e);
}

static void room_auto(struct pooled_buffer **room)
{
    buffer_pool_give(*room);
}

static void answer_sums(const struct exchange *x, const struct group_request *q, struct pooled_buffer *room)
{
    Trainyard__V1__ReduceReply r = TRAINYARD__V1__REDUCE_REPLY__INIT;
    r.incarnation = exchange_incarnation(x);
    r.generation = x->caller->generation;
    r.again = q->answer == GROUP_AGAIN;
    codec_pack(&r.base, &x->reply->head);
    if (r.again) {
        buffer_pool_give(room);
        return;
    }
    buffer_pool_hand_over(room);
    x->reply->pieces[x->reply->npieces++] = (struct rpc_piece){
        .data = q->totals, .size = q->part.width * sizeof(double), .done = buffer_pool_give, .user = room
    };
}

int on_reduce(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__ReduceRequest *q = REQUEST(x, Trainyard__V1__ReduceRequest);
    struct shard_caller who = exchange_caller(x);
    struct group_request r = {
        .part = { .at = q->at, .phase = q->phase, .ordinals = q->ordinals, .n = q->n_ordinals, .width = q->width }
    };
    auto_free double *numbers = NULL;
    __attribute__((cleanup(room_auto))) struct pooled_buffer *room = NULL;
    struct err why = { 0 };
    if (take_room(x, q->width, &room, e) < 0 || read_numbers(x, &r.part, &numbers, e) < 0)
        return -1;
    r.totals = room->data;
    if (shard_reduce(x->shard, &who, &r, &why) < 0) {
        if (err_is(&why, ERR_PENDING))
            x->reply->again_ms = MIN(q->wait_ms, (uint32_t)PULL_WAIT_MAX_MS);
        /* ERR_LOST: they came before their step, which has begun meanwhile. The caller gives them again at once. */
        return err_set(e, err_is(&why, ERR_LOST) ? ERR_PENDING : why.code, "%s", why.msg);
    }
    answer_sums(x, &r, TAKE(room));
    return 0;
}
