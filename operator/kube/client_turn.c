/* Who goes next: shares by urgency, and the lines of those that take turns. */
#include "kube/client_calls.h"

#include "base/clock.h"

/* As long as no more than `beside` more urgent ones run (the server has then time to spare), at most `most` at once (0:
 * any number); else one of `many` of them, or of `few` once the first has waited for so long. */
static const struct {
    int beside, most, many, few;
    int64_t long_ms;
} SHARES[KUBE_URGENCIES] = {
    [KUBE_RELAXED] = { 16, 0, 32, 4, 30 * 1000 },
    [KUBE_BACKGROUND] = { 0, 8, 64, 16, 60 * 1000 },
};

static bool is_owed(const struct share *s, enum kube_urgency u, int64_t waited_ms)
{
    if (SHARES[u].many == 0)
        return false;
    return s->passed[u] + 1 >= (waited_ms >= SHARES[u].long_ms ? SHARES[u].few : SHARES[u].many);
}

static bool is_free(const struct share *s, enum kube_urgency u)
{
    int before = 0;
    if (SHARES[u].many == 0)
        return true;
    for (enum kube_urgency v = KUBE_NORMAL; v < u; v++)
        before += s->running[v];
    return before <= SHARES[u].beside && (SHARES[u].most == 0 || s->running[u] < SHARES[u].most);
}

enum kube_urgency share_next(const struct share *s, const int64_t waited_ms[KUBE_URGENCIES])
{
    enum kube_urgency u;

    for (u = 0; u < KUBE_URGENCIES; u++)
        if (waited_ms[u] >= 0 && is_owed(s, u, waited_ms[u]))
            return u;
    for (u = 0; u < KUBE_URGENCIES && (waited_ms[u] < 0 || !is_free(s, u));)
        u++;
    return u;
}

void share_took(struct share *s, enum kube_urgency took, const int64_t waited_ms[KUBE_URGENCIES])
{
    for (int u = (int)took + 1; u < KUBE_URGENCIES; u++)
        s->passed[u] = waited_ms[u] >= 0 ? s->passed[u] + 1 : 0;
    s->passed[took] = 0;
}

/* ---- turns ---- */

void line_add(struct kube_line *l, struct kube_turn *t, int64_t now_ms, void (*fn)(void *user), void *user)
{
    t->fn = fn;
    t->user = user;
    if (t->line == l)
        return;
    kube_turn_clear(t);
    t->line = l;
    t->since_ms = now_ms;
    t->prev = l->last;
    *(l->last != NULL ? &l->last->next : &l->first) = t;
    l->last = t;
}

void kube_turn_clear(struct kube_turn *t)
{
    struct kube_line *l = t->line;

    if (l == NULL)
        return;
    *(t->prev != NULL ? &t->prev->next : &l->first) = t->next;
    *(t->next != NULL ? &t->next->prev : &l->last) = t->prev;
    t->prev = t->next = NULL;
    t->line = NULL;
}

void line_give(struct kube_line *l)
{
    struct kube_turn *t = l->first;

    kube_turn_clear(t);
    t->fn(t->user);
}

/* ---- the next ---- */

/* Whose turn it is, and how long the first of each urgency has waited. */
static enum kube_urgency next_urgency(const struct kube_client *k, int64_t now_ms,
                                      int64_t ret_waited_ms[KUBE_URGENCIES])
{
    for (int u = 0; u < KUBE_URGENCIES; u++) {
        const struct kube_call *c = k->waiting[u].first;
        const struct kube_turn *t = k->turns[u].first;
        int64_t since_ms = c != NULL ? c->queued_ms : t != NULL ? t->since_ms : INT64_MAX;
        ret_waited_ms[u] = since_ms == INT64_MAX ? -1 : MAX(now_ms - since_ms, 0); /* it may have come just now */
    }
    return share_next(&k->share, ret_waited_ms);
}

struct kube_call *client_next(struct kube_client *k, int64_t now_ms, int64_t *ret_wait)
{
    int64_t waited_ms[KUBE_URGENCIES];

    *ret_wait = 0;
    if (k->waiting[KUBE_URGENT].first != NULL)
        return k->waiting[KUBE_URGENT].first;
    while (!k->dead && k->limited < window_size(&k->window)) {
        enum kube_urgency u = next_urgency(k, now_ms, waited_ms);
        if (u == KUBE_URGENCIES)
            return NULL;
        while (!k->dead && k->waiting[u].first == NULL && k->turns[u].first != NULL)
            line_give(&k->turns[u]);
        if (k->waiting[u].first == NULL)
            continue; /* those whose turn it was had nothing to send */
        if ((*ret_wait = bucket_take(&k->bucket, now_ms)) > 0)
            return NULL;
        share_took(&k->share, u, waited_ms);
        return k->waiting[u].first;
    }
    return NULL;
}

/* ---- the contract ---- */

void kube_turn_wait(struct kube_client *k, struct kube_turn *t, enum kube_urgency urgency, void (*fn)(void *user),
                    void *user)
{
    line_add(&k->turns[urgency], t, clock_ms(), fn, user);
    client_pump_soon(k);
}

bool kube_has_room(const struct kube_client *k)
{
    return k->limited < window_size(&k->window) && k->waiting[KUBE_NORMAL].first == NULL &&
           k->turns[KUBE_NORMAL].first == NULL;
}
