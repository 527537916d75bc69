/* Asks all known workers at once how they are. Who did not answer the last time is not waited for: its request stays in
 * flight, and its answer counts when it comes. */
#include <string.h>

#include "collective/params_members_internal.h"

enum { ASK_MS = 500, ANSWERS_MS = 100 }; /* deadline of a request; at most so long a poll waits */

static void poll_end_ask(struct holders *h, size_t i)
{
    struct peer_link *l = &h->links[i];
    AUTO(rpc_message) *m = NULL;
    struct err e = { 0 };
    int rc = h->wire.finish(h->wire.user, TAKE(l->ask), &m, &e);
    if (!l->outdated && (rc < 0 || holders_take_answer(h, i, m, &e) < 0))
        l->error = e;
    l->outdated = false;
}

static void poll_drop_ask(struct holders *h, size_t i)
{
    struct peer_link *l = &h->links[i];
    if (l->ask == NULL)
        return;
    l->outdated = true;
    h->wire.cancel(h->wire.user, l->ask);
    poll_end_ask(h, i);
}

void holders_drop_asks(struct holders *h)
{
    for (size_t i = 0; i < h->n; i++)
        poll_drop_ask(h, i);
}

/* ---- who is known ---- */

static size_t poll_find_name(const struct holders *h, const char *name)
{
    for (size_t i = 0; i < h->n; i++)
        if (strcmp(h->peers[i].name, name) == 0)
            return i;
    return h->n;
}

static size_t poll_add(struct holders *h, const struct known_member *k)
{
    size_t i = h->n++;
    h->peers = xrealloc(h->peers, h->n * sizeof(*h->peers));
    h->links = xrealloc(h->links, h->n * sizeof(*h->links));
    h->peers[i] = (struct peer_facts){ .since_ms = -1 };
    h->links[i] = (struct peer_link){ .version = 0 };
    str_fmt(h->peers[i].name, sizeof(h->peers[i].name), "%s", k->name);
    return i;
}

/* Another process has the name now: nothing is known of it. */
static void poll_replace(struct holders *h, size_t i, const struct known_member *k)
{
    struct peer_facts *p = &h->peers[i];
    struct peer_link *l = &h->links[i];
    poll_drop_ask(h, i);
    ordinal_set_fini(&l->applied);
    *l = (struct peer_link){ .losses = l->losses };
    str_fmt(l->address, sizeof(l->address), "%s", k->address);
    struct peer_facts fresh = { .since_ms = -1, .incarnation = k->incarnation };
    memcpy(fresh.name, p->name, sizeof(fresh.name));
    *p = fresh;
    if (h->filling == i)
        h->filling = SIZE_MAX;
}

static void poll_list(struct holders *h)
{
    struct known_member *list = NULL;
    size_t n = h->list != NULL ? h->list(h->source, &list) : 0;
    for (size_t i = 0; i < h->n; i++)
        h->peers[i].alive = false;
    for (size_t k = 0; k < n; k++) {
        if (list[k].address[0] == '\0')
            continue;
        size_t i = poll_find_name(h, list[k].name);
        if (i == h->n)
            i = poll_add(h, &list[k]);
        if (h->peers[i].incarnation != list[k].incarnation || !str_eq(h->links[i].address, list[k].address))
            poll_replace(h, i, &list[k]);
        h->peers[i].alive = list[k].alive;
    }
    free(list);
    if (h->n > 0 && h->first_ms < 0)
        h->first_ms = holders_now(h);
}

/* ---- requests ---- */

/* One that has left, and does not answer, is not asked any more. */
static bool poll_is_gone(const struct holders *h, size_t i, int64_t now)
{
    const struct peer_facts *p = &h->peers[i];
    return !p->alive && p->since_ms >= 0 && now - p->since_ms > STATE_SILENCE_MS;
}

void holders_poll(struct holders *h, int64_t deadline_ms)
{
    poll_list(h);
    int64_t now = holders_now(h), until = now + MIN(deadline_ms, (int64_t)ANSWERS_MS);
    auto_free bool *awaited = xcalloc(h->n + 1, sizeof(*awaited));
    AUTO_FINI(buf) head = BUF_INIT;
    holders_pack_ask(h, &head);
    for (size_t i = 0; i < h->n; i++) {
        struct known_member to = holders_address(h, i);
        awaited[i] = h->peers[i].since_ms < 0;
        if (poll_is_gone(h, i, now))
            continue;
        if (awaited[i])
            h->peers[i].since_ms = now;
        if (h->links[i].ask == NULL)
            h->links[i].ask = h->wire.start(h->wire.user, &to, "/trainyard.v1.Peer/View", &head, ASK_MS);
    }
    for (size_t i = 0; i < h->n; i++) {
        int64_t left = awaited[i] ? MAX(until - holders_now(h), (int64_t)0) : 0;
        if (h->links[i].ask != NULL && h->wire.ready(h->wire.user, h->links[i].ask, left))
            poll_end_ask(h, i);
    }
}
