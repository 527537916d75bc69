/* A coordinator of a job of 20 batches in two epochs, and the calls of its workers. */
#ifndef TRAINYARD_TEST_COORDINATOR_WORLD_H
#define TRAINYARD_TEST_COORDINATOR_WORLD_H

#include "small_model.h"

#include "coord/coordinator.h"

enum { TOTAL = 20, LEASE_MS = 1000, SILENCE_MS = 300 };

struct world {
    struct model *m;
    struct coordinator *c;
    struct coordinator_reply reply;
    struct err e;
};

/* group_size 0: asynchronous */
static inline struct coordinator_config config_of(int64_t group_size)
{
    const struct groups groups = { .size = group_size, .batches = 10, .examples = 64, .rest = 64 };
    return (struct coordinator_config){
        .job_uid = "uid-1",
        .incarnation = 77,
        .layout_hash = 5,
        .ps_count = 2,
        .batches_per_epoch = 10,
        .total = TOTAL,
        .lease_ms = LEASE_MS,
        .heartbeat_ms = 100,
        .silence_ms = SILENCE_MS,
        .groups = group_size > 0 ? groups : (struct groups){ 0 },
        .space = { .fingerprint = 9, .seed = 1, .examples = 640, .batch_size = 64, .shuffle = true }
    };
}

static inline struct world open_config(struct coordinator_config config, int64_t limit)
{
    struct world d = { .m = small_model(SMALL_DENSE, SMALL_COMPILE) };
    config.model = d.m;
    d.c = coordinator_new(&config);
    coordinator_set(d.c, JOB_TRAINING, 3, "");
    coordinator_allow_below(d.c, limit);
    return d;
}

static inline struct world open_shared(int64_t limit, int64_t group_size, int64_t sharers)
{
    struct coordinator_config config = config_of(group_size);
    config.sharers = sharers;
    return open_config(config, limit);
}

/* Only members of a view get batches. */
static inline struct world open_views(int64_t limit, int64_t group_size)
{
    struct coordinator_config config = config_of(group_size);
    config.views = true;
    return open_config(config, limit);
}

static inline struct world open_groups(int64_t limit, int64_t group_size)
{
    return open_shared(limit, group_size, 0);
}

static inline struct world open_coordinator(int64_t limit)
{
    return open_groups(limit, 0);
}

static inline void close_coordinator(struct world *d)
{
    coordinator_free(d->c);
    model_free(d->m);
}

static inline struct coordinator_sender sender(const char *name, uint64_t incarnation)
{
    return (
        struct coordinator_sender){ .job_uid = "uid-1", .name = name, .role = ROLE_WORKER, .incarnation = incarnation };
}

static inline struct register_request registration(const char *name, uint64_t incarnation)
{
    return (struct register_request){
        .sender = sender(name, incarnation),
        .layout_hash = 5,
        .ps_count = 2,
        .shuffle_version = SHUFFLE_VERSION,
        .space = { .fingerprint = 9, .seed = 1, .examples = 640, .batch_size = 64, .shuffle = true }
    };
}

static inline int enrol(struct world *d, const char *name, uint64_t incarnation, int64_t now)
{
    struct register_request q = registration(name, incarnation);
    return coordinator_register(d->c, &q, now, &d->reply, &d->e);
}

static inline int lease(struct world *d, const char *name, uint64_t incarnation, int64_t now)
{
    struct lease_request q = { .sender = sender(name, incarnation), .want = 4 };
    return coordinator_lease(d->c, &q, now, &d->reply, &d->e);
}

static inline int beat(struct world *d, const char *name, uint64_t incarnation, int64_t now)
{
    struct heartbeat_request q = { .sender = sender(name, incarnation) };
    return coordinator_heartbeat(d->c, &q, now, &d->reply, &d->e);
}

static inline int64_t assign(struct world *d, const char *name, uint64_t incarnation, struct ordinal_ranges held,
                             int64_t want, int64_t now)
{
    struct lease_request q = { .sender = sender(name, incarnation), .held = held, .want = want };
    ck_assert_int_eq(coordinator_lease(d->c, &q, now, &d->reply, &d->e), 0);
    return d->reply.count;
}

static inline struct coordinator_view look(struct world *d)
{
    struct coordinator_view view;
    coordinator_view(d->c, &view);
    return view;
}

/* The ranges of a lease, as text. */
static inline void want_lease(struct world *d, const char *name, const struct lease_request *q, int64_t now,
                              const char *want)
{
    AUTO_FINI(buf) got = BUF_INIT;
    struct lease_request request = *q;
    request.sender = sender(name, (uint64_t)(name[7] - '0') + 1);
    ck_assert_int_eq(coordinator_lease(d->c, &request, now, &d->reply, &d->e), 0);
    const struct coordinator_reply *r = &d->reply;
    buf_printf(&got, "%lld-%lld", (long long)r->first, (long long)(r->first + r->count));
    for (size_t i = 0; i < r->nmore; i += 2)
        buf_printf(&got, " %lld-%lld", (long long)r->more[i], (long long)r->more[i + 1]);
    ck_assert_str_eq(r->count > 0 ? got.data : "", want);
}

static inline void want_batches(struct world *d, const char *name, int64_t want, const char *ranges)
{
    want_lease(d, name, &(struct lease_request){ .want = want }, 0, ranges);
}

#endif
