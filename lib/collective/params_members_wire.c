/* Calls to members over gRPC: a connection to each, which is opened again when its address changes. */
#include <string.h>

#include "base/clock.h"
#include "collective/params_members_internal.h"

struct wire_lane {
    char name[VIEW_NAME_SIZE], address[VIEW_ADDRESS_SIZE];
    struct rpc_channel *channel;
};
struct grpc_wire {
    const struct rpc_credentials *credentials;
    const struct layout *layout;
    struct placement *placement; /* all in one */
    struct params_identity id;
    struct wire_lane **lanes; /* one for each name */
    size_t n;
};

/* No call of the earlier address is in flight: a process that moved was replaced (params_members_poll.c). */
static struct rpc_channel *wire_channel(struct grpc_wire *w, const struct known_member *to)
{
    struct wire_lane *l = NULL;
    for (size_t i = 0; i < w->n && l == NULL; i++)
        if (strcmp(w->lanes[i]->name, to->name) == 0)
            l = w->lanes[i];
    if (l == NULL) {
        w->lanes = xrealloc(w->lanes, (w->n + 1) * sizeof(struct wire_lane *));
        l = w->lanes[w->n++] = xcalloc(1, sizeof(*l));
        str_fmt(l->name, sizeof(l->name), "%s", to->name);
    }
    if (l->channel != NULL && strcmp(l->address, to->address) == 0)
        return l->channel;
    rpc_channel_free(l->channel);
    str_fmt(l->address, sizeof(l->address), "%s", to->address);
    l->channel = rpc_channel_new(l->address, w->credentials, &(struct rpc_channel_options){ .peer = l->name });
    return l->channel;
}

static void *wire_start(void *user, const struct known_member *to, const char *path, const struct buf *head,
                        int64_t deadline_ms)
{
    return rpc_start(wire_channel(user, to), 0, path, head->data, head->len, NULL, 0, deadline_ms);
}

static bool wire_ready(void *user, void *call, int64_t wait_ms)
{
    (void)user;
    return rpc_ready(call, wait_ms);
}

static int wire_finish(void *user, void *call, struct rpc_message **ret, struct err *e)
{
    (void)user;
    return rpc_wait(call, ret, e);
}

static void wire_cancel(void *user, void *call)
{
    (void)user;
    rpc_cancel(call);
}

static struct params *wire_open(void *user, const struct known_member *to, float *vector)
{
    const struct grpc_wire *w = user;
    const struct params_peer peer = { .name = to->name, .host = to->address, .vector = vector };
    return params_new_peer(w->layout, w->placement, &peer, &w->id, w->credentials);
}

static int64_t wire_now(void *user)
{
    (void)user;
    return clock_ms();
}

static void wire_free(void *user)
{
    struct grpc_wire *w = user;
    for (size_t i = 0; i < w->n; i++) {
        rpc_channel_free(w->lanes[i]->channel);
        free(w->lanes[i]);
    }
    free(w->lanes);
    placement_free(w->placement);
    free(w);
}

struct member_wire member_wire_grpc(const struct members_config *config)
{
    struct grpc_wire *w = xcalloc(1, sizeof(*w));
    *w = (struct grpc_wire){ .credentials = config->credentials,
                             .layout = config->layout,
                             .placement = placement_new(config->layout, PLACEMENT_GREEDY, 1),
                             .id = config->id };
    return (struct member_wire){ .start = wire_start,
                                 .ready = wire_ready,
                                 .finish = wire_finish,
                                 .cancel = wire_cancel,
                                 .open = wire_open,
                                 .now_ms = wire_now,
                                 .free = wire_free,
                                 .user = w };
}
