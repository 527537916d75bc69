/* The ps side of shared memory: pushes of workers of this host (params/slot_server.h, params/push_slot.h). */
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "params/push_slot.h"
#include "params/shard_service_internal.h"

/* ---- serving ---- */

/* The places of the request's gradient and values, if they are within the memory of the worker. */
static int find_vectors(const struct slot_client *client, const struct push_slot_request *q, struct shard_vectors *ret,
                        struct err *e)
{
    const struct shm_region *region = client->region;
    size_t size = region->size, from = MAX(q->gradients_at, q->values_at);
    if (q->count == 0 || q->count > client->capacity || from > size)
        return err_set(e, ERR_INPUT, "a push beyond its shared memory");
    size_t floats = (size - from) / sizeof(float);
    struct shard_vectors v = { .grads = shm_region_at(region, q->gradients_at, floats * sizeof(float)),
                               .values = shm_region_at(region, q->values_at, floats * sizeof(float)),
                               .floats = floats };
    if (v.grads == NULL || v.values == NULL)
        return err_set(e, ERR_INPUT, "a push beyond its shared memory");
    *ret = v;
    return 0;
}

/* Waits for the step in this thread, which serves no one else. */
static int pull_step(struct shard *shard, const struct shard_caller *who, const struct push_slot_request *q,
                     const struct shard_vectors *to, int64_t *versions, struct err *e)
{
    int64_t until = clock_ms() + MIN((int64_t)q->wait_ms, (int64_t)PULL_WAIT_MAX_MS);
    for (;;) {
        struct err why = { .code = ERR_NONE };
        uint64_t seen = shard_updates(shard);
        if (shard_pull_vectors_at(shard, who, (struct shard_part){ q->first, q->count }, q->at, to, versions, q->count,
                                  &why) == 0)
            return 0;
        if (!err_is(&why, ERR_PENDING) || clock_ms() >= until)
            return err_set(e, why.code, "%s", why.msg);
        shard_await_update(shard, seen, until);
    }
}

/* A request on its way. */
struct slot_request {
    struct shard *shard;
    const struct slot_client *client;
    struct push_slot *slot;
    struct push_slot_request q;
};

static int serve_request(const struct slot_request *x, bool *ret_duplicate, struct err *e)
{
    const struct push_slot_request *q = &x->q;
    struct shard_vectors vectors;
    struct shard_caller who = { .job_uid = x->client->job_uid,
                                .sender = x->client->sender,
                                .generation = q->generation };
    if (find_vectors(x->client, q, &vectors, e) < 0)
        return -1;
    if (q->ordinal < 0)
        return pull_step(x->shard, &who, q, &vectors, x->slot->versions, e);
    return shard_push_vectors(x->shard, &who, (struct shard_part){ q->first, q->count }, q->ordinal,
                              q->knows_versions != 0 ? x->slot->versions : NULL, &vectors, x->slot->versions, q->count,
                              ret_duplicate, e);
}

int serve_push_slot(void *user, const struct slot_client *client, struct shm_slot *slot, struct err *e)
{
    struct shard_service *v = user;
    struct slot_request x = { .shard = v->shard, .client = client, .slot = (struct push_slot *)(void *)slot };
    bool duplicate = false;
    atomic_store_explicit(&v->heard_ms, clock_ms(), memory_order_relaxed);
    shm_slot_take(&x.q, &x.slot->request, sizeof(x.q));
    int rc = serve_request(&x, &duplicate, e);
    x.slot->answer = (struct push_slot_answer){ .incarnation = shard_incarnation(v->shard),
                                                .generation = x.q.generation,
                                                .duplicate = duplicate };
    return rc;
}

/* ---- attaching ---- */

/* Not more memory than a worker of this job needs, by the chief's description of the model, and no slots longer than
 * the number of segments of this shard. */
static int check_size(const struct exchange *x, const Trainyard__V1__AttachRequest *q, struct err *e)
{
    struct shard_sizes sizes = { 0 };
    size_t most = atomic_load(&x->service->share_max);
    if (q->size > most)
        return err_set(e, ERR_REFUSED, "%llu bytes of shared memory, this job needs %zu at most",
                       (unsigned long long)q->size, most);
    if (shard_measure(x->shard, (struct shard_part){ 0 }, &sizes, e) < 0)
        return -1;
    if (q->slot_segments > sizes.segments)
        return err_set(e, ERR_REFUSED, "slots of %u segments for a ps of %zu", q->slot_segments, sizes.segments);
    return 0;
}

int on_attach(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__AttachRequest *q = REQUEST(x, Trainyard__V1__AttachRequest);
    struct shard_caller who = exchange_caller(x);
    struct shard_service *v = x->service;
    if (!atomic_load(&v->share))
        return err_set(e, ERR_REFUSED, "this ps does not share memory");
    if (q->slot_version != PUSH_SLOT_VERSION)
        return err_set(e, ERR_REFUSED, "unsupported slot version %u; only %d is supported", q->slot_version,
                       PUSH_SLOT_VERSION);
    if (shard_check(x->shard, &who, e) < 0 || check_size(x, q, e) < 0)
        return -1;
    struct slot_offer offer = codec_offer(q, x->caller);
    offer.capacity = q->slot_segments;
    offer.slot_size = push_slot_size(offer.capacity);
    if (slot_server_attach(v->sharers, &offer, e) < 0)
        return -1;
    Trainyard__V1__AttachReply r = TRAINYARD__V1__ATTACH_REPLY__INIT;
    r.incarnation = exchange_incarnation(x);
    codec_pack(&r.base, &x->reply->head);
    return 0;
}

size_t shard_service_shared(struct shard_service *v)
{
    return slot_server_clients(v->sharers);
}
