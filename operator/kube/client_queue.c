/* Which call starts next: shares by priority, and the queues of tickets. */
#include "kube/client_calls.h"

/* While at most `beside` more urgent requests run (the server then has spare capacity), up to `most` at once (0: any
 * number). Otherwise one of `many` requests, or one of `few` once the first has waited for long_ms. */
static const struct {
    int beside, most, many, few;
    int64_t long_ms;
} SHARES[KUBE_PRIORITIES] = {
    [KUBE_LOW] = { 16, 0, 32, 4, 30 * 1000 },
    [KUBE_BACKGROUND] = { 0, 8, 64, 16, 60 * 1000 },
};

static bool is_owed(const struct priority_shares *s, enum kube_priority u, int64_t waited_ms)
{
    if (SHARES[u].many == 0)
        return false;
    return s->passed[u] + 1 >= (waited_ms >= SHARES[u].long_ms ? SHARES[u].few : SHARES[u].many);
}

static bool is_free(const struct priority_shares *s, enum kube_priority u)
{
    int before = 0;
    if (SHARES[u].many == 0)
        return true;
    for (enum kube_priority v = KUBE_NORMAL; v < u; v++)
        before += s->running[v];
    return before <= SHARES[u].beside && (SHARES[u].most == 0 || s->running[u] < SHARES[u].most);
}

enum kube_priority priority_shares_next(const struct priority_shares *s, const int64_t waited_ms[KUBE_PRIORITIES])
{
    enum kube_priority u;

    for (u = 0; u < KUBE_PRIORITIES; u++)
        if (waited_ms[u] >= 0 && is_owed(s, u, waited_ms[u]))
            return u;
    for (u = 0; u < KUBE_PRIORITIES && (waited_ms[u] < 0 || !is_free(s, u));)
        u++;
    return u;
}

void priority_shares_took(struct priority_shares *s, enum kube_priority took, const int64_t waited_ms[KUBE_PRIORITIES])
{
    for (int u = (int)took + 1; u < KUBE_PRIORITIES; u++)
        s->passed[u] = waited_ms[u] >= 0 ? s->passed[u] + 1 : 0;
    s->passed[took] = 0;
}

/* ---- tickets ---- */

void ticket_queue_add(struct ticket_queue *l, struct kube_ticket *t, int64_t now_ms, void (*fn)(void *user), void *user)
{
    t->fn = fn;
    t->user = user;
    if (t->line == l)
        return;
    kube_ticket_cancel(t);
    t->line = l;
    t->since_ms = now_ms;
    t->prev = l->last;
    *(l->last != NULL ? &l->last->next : &l->first) = t;
    l->last = t;
}

void kube_ticket_cancel(struct kube_ticket *t)
{
    struct ticket_queue *l = t->line;

    if (l == NULL)
        return;
    *(t->prev != NULL ? &t->prev->next : &l->first) = t->next;
    *(t->next != NULL ? &t->next->prev : &l->last) = t->prev;
    t->prev = t->next = NULL;
    t->line = NULL;
}

void ticket_queue_serve(struct ticket_queue *l)
{
    struct kube_ticket *t = l->first;

    kube_ticket_cancel(t);
    t->fn(t->user);
}

/* ---- the next ---- */

/* The priority to serve, and how long the first of each priority has waited. */
static enum kube_priority next_priority(const struct kube_client *k, int64_t now_ms,
                                        int64_t ret_waited_ms[KUBE_PRIORITIES])
{
    for (int u = 0; u < KUBE_PRIORITIES; u++) {
        const struct kube_call *c = k->waiting[u].first;
        const struct kube_ticket *t = k->tickets[u].first;
        int64_t since_ms = c != NULL ? c->queued_ms : t != NULL ? t->since_ms : INT64_MAX;
        ret_waited_ms[u] = since_ms == INT64_MAX ? -1 : MAX(now_ms - since_ms, 0); /* it may be newer than now_ms */
    }
    return priority_shares_next(&k->shares, ret_waited_ms);
}

struct kube_call *client_next(struct kube_client *k, int64_t now_ms, int64_t *ret_wait)
{
    int64_t waited_ms[KUBE_PRIORITIES];

    *ret_wait = 0;
    if (k->waiting[KUBE_URGENT].first != NULL)
        return k->waiting[KUBE_URGENT].first;
    while (!k->dead && k->limited < concurrency_limit_now(&k->concurrency)) {
        enum kube_priority u = next_priority(k, now_ms, waited_ms);
        if (u == KUBE_PRIORITIES)
            return NULL;
        while (!k->dead && k->waiting[u].first == NULL && k->tickets[u].first != NULL)
            ticket_queue_serve(&k->tickets[u]);
        if (k->waiting[u].first == NULL)
            continue; /* the tickets' owners had nothing to send */
        if ((*ret_wait = bucket_take(&k->bucket, now_ms)) > 0)
            return NULL;
        priority_shares_took(&k->shares, u, waited_ms);
        return k->waiting[u].first;
    }
    return NULL;
}

/* ---- the interface ---- */

void kube_ticket_wait(struct kube_client *k, struct kube_ticket *t, enum kube_priority priority, void (*fn)(void *user),
                      void *user)
{
    ticket_queue_add(&k->tickets[priority], t, loop_now(k->loop), fn, user);
    client_pump_soon(k);
}

bool kube_has_room(const struct kube_client *k)
{
    return k->limited < concurrency_limit_now(&k->concurrency) && k->waiting[KUBE_NORMAL].first == NULL &&
           k->tickets[KUBE_NORMAL].first == NULL;
}
