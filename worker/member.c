/* Opens the shard and the collective; main's thread trains with their vector. */
#include "member.h"

#include "http_pages.h"

bool replica_is_member(const struct replica *r)
{
    return replica_is_collective(r) && replica_trains(r);
}

int member_open(const struct replica *r, struct own_member *ret, struct err *e)
{
    const struct params_identity id = { .job_uid = r->job_uid, .sender = r->name, .incarnation = r->incarnation };
    *ret = (struct own_member){ .shard = shard_new(r->incarnation), .pages = r->pages };
    shard_set_job(ret->shard, r->job_uid);
    shard_take_sums(ret->shard);
    ret->params = params_new_local(r->layout, ret->shard, &id);
    const struct collective_config config = { .layout = r->layout,
                                              .shard = ret->shard,
                                              .name = r->name,
                                              .incarnation = r->incarnation,
                                              .credentials = &r->credentials.rpc,
                                              .share = r->options->share };
    return collective_new(&config, &ret->collective, e);
}

void member_serve(struct own_member *m, struct rpc_server *server)
{
    m->server = server;
    collective_serve(m->collective, server);
    http_pages_set_collective(m->pages, m->collective);
}

void member_end(struct own_member *m)
{
    if (m->server != NULL) {
        http_pages_set_collective(m->pages, NULL);
        collective_serve(m->collective, NULL);
    }
    m->server = NULL;
}

void member_fini(struct own_member *m)
{
    collective_free(m->collective);
    params_free(m->params);
    shard_free(m->shard);
    *m = (struct own_member){ 0 };
}
