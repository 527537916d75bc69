/* params_fixture - a job's ps in this process, over gRPC or without it, and its members. Shared by the tests of
 * params. */
#ifndef TRAINYARD_PARAMS_PARAMS_FIXTURE_H
#define TRAINYARD_PARAMS_PARAMS_FIXTURE_H

#include "shard/shard_fixture.h"

#include "base/thread.h"
#include "params/parameters_codec.h"
#include "params/params_admin.h"
#include "params/shard_service.h"
#include "rpc/rpc.h"

enum { PS_MAX = 4, CALL_MS = 20000 };

/* ---- a job's ps, in one of the forms that must behave alike ---- */

struct form {
    const char *name;
    size_t nps; /* 0: local */
    bool share; /* shared memory, with ps of this host */
};

struct world {
    const struct form *form;
    struct layout *layout;
    struct placement *placement;
    struct shard *shard[PS_MAX];
    struct shard_service *service[PS_MAX];
    struct rpc_server *server[PS_MAX];
    char host[PS_MAX][32];
    struct params *worker, *other, *chief;
};

static inline void start_ps(struct world *w, size_t i, uint64_t incarnation, int port)
{
    struct rpc_method methods[SHARD_METHODS];
    char address[32];
    struct err e;
    snprintf(address, sizeof(address), "127.0.0.1:%d", port);
    w->shard[i] = shard_new(incarnation);
    w->service[i] = shard_service_new(w->shard[i]);
    shard_service_share(w->service[i], w->form->share);
    shard_service_methods(w->service[i], methods);
    ck_ok_e(rpc_server_start(address, &RPC_INSECURE, methods, SHARD_METHODS,
                             &(struct rpc_server_options){ .threads = 2, .payload_max = PARAMETERS_PAYLOAD_MAX },
                             &w->server[i], &e));
    shard_service_serve(w->service[i], w->server[i]);
    snprintf(w->host[i], sizeof(w->host[i]), "127.0.0.1:%d", rpc_server_port(w->server[i]));
}

static inline void stop_ps(struct world *w, size_t i)
{
    if (w->service[i] != NULL)
        shard_service_serve(w->service[i], NULL);
    rpc_server_free(TAKE(w->server[i]));
    shard_service_free(TAKE(w->service[i]));
    shard_free(TAKE(w->shard[i]));
}

static inline struct params *member(struct world *w, const char *name, uint64_t incarnation)
{
    struct params_identity id = { .job_uid = UID, .sender = name, .incarnation = incarnation };
    struct params *p;
    if (w->form->nps == 0) {
        p = params_new_local(w->layout, w->shard[0], &id);
    } else {
        char *hosts[PS_MAX];
        for (size_t i = 0; i < w->form->nps; i++)
            hosts[i] = w->host[i];
        p = params_new_grpc(w->layout, w->placement, hosts, &id, &RPC_INSECURE);
    }
    params_set_generation(p, 1);
    return p;
}

static inline void world_open(struct world *w, const struct form *form, struct layout *layout)
{
    *w = (struct world){ .form = form, .layout = layout };
    w->placement = placement_new(layout, PLACEMENT_GREEDY, MAX(form->nps, 1));
    rpc_init();
    for (size_t i = 0; i < form->nps; i++)
        start_ps(w, i, 100 + i, 0);
    if (form->nps == 0)
        w->shard[0] = shard_new(100);
    w->worker = member(w, "worker-0", 1);
    w->other = member(w, "worker-1", 2);
    w->chief = member(w, "chief-0", 3);
}

static inline void world_close(struct world *w)
{
    params_free(w->worker);
    params_free(w->other);
    params_free(w->chief);
    for (size_t i = 0; i < PS_MAX; i++)
        stop_ps(w, i);
    placement_free(w->placement);
    layout_free(w->layout);
    rpc_shutdown();
}

static inline void restore(struct world *w, size_t ps, uint32_t id, const float *vector)
{
    const struct segment_spec *s = &w->layout->segments[id];
    AUTO_FINI(ordinal_set) none = ORDINAL_SET_INIT;
    struct err e;
    ck_ok_e(params_restore(w->chief, ps, id, false, 0, &none, vector + s->offset, s->count, CALL_MS, &e));
}

static inline void fill_ps(struct world *w, size_t ps, const char *optimizer, const float *vector)
{
    struct err e;
    ck_ok_e(params_init(w->chief, ps, optimizer, CALL_MS, &e));
    for (size_t i = 0; i < w->placement->n[ps]; i++)
        restore(w, ps, w->placement->ids[ps][i], vector);
    ck_ok_e(params_serve(w->chief, ps, CALL_MS, &e));
}

static inline void bring_up(struct world *w, const char *optimizer, const float *vector)
{
    for (size_t ps = 0; ps < MAX(w->form->nps, (size_t)1); ps++)
        fill_ps(w, ps, optimizer, vector);
}

static inline void check_segments(const struct layout *l, const float *a, const float *b)
{
    for (size_t i = 0; i < l->n; i++)
        ck_assert_mem_eq(a + l->segments[i].offset, b + l->segments[i].offset, l->segments[i].count * sizeof(float));
}

/* 18 MiB in uneven segments: several parts on several connections. */
static inline struct layout *large_layout(void)
{
    struct variable v[] = {
        { .name = "a", .shape = { 2, { 3000, 1000 } }, .count = 3000000, .kind = VAR_TRAINABLE },
        { .name = "b", .shape = { 1, { 1700007 } }, .offset = 3000016, .count = 1700007, .kind = VAR_TRAINABLE },
        { .name = "k", .shape = { 1, { 5 } }, .offset = 4700032, .count = 5, .kind = VAR_CONST }
    };
    return layout_of((const struct variable *[]){ &v[0], &v[1], &v[2] }, 3, 4700048);
}

static inline float *large_vector(const struct layout *l, size_t modulus)
{
    float *v = xcalloc(l->vector, sizeof(float));
    for (size_t i = 0; i < l->vector; i++)
        v[i] = (float)(i % modulus);
    return v;
}

#endif
