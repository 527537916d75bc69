/* Does what the plan says: joins, and changes of the view. A change stops all, looks how far they are, and starts those
 * that answered; whoever fails meanwhile is seen at the next poll. Each change is one line of the log. */
#include <string.h>

#include "collective/params_members_internal.h"

enum { RETRY_MIN_MS = 1000, RETRY_MAX_MS = 30000, NAMES_MAX = 8 };

/* ---- what people read ---- */

static const char *views_number(const char *name)
{
    return str_starts(name, "worker-") ? name + strlen("worker-") : NULL;
}

/* "workers 0, 1 and 4", "worker-0", "12 workers" */
static void views_names(const struct view *v, char *out, size_t n)
{
    AUTO_FINI(buf) text = BUF_INIT;
    bool all = v->n <= NAMES_MAX;
    for (size_t i = 0; i < v->n && all; i++) {
        all = views_number(v->members[i].name) != NULL;
        buf_printf(&text, "%s%s", i > 0 ? ", " : "", all ? views_number(v->members[i].name) : "");
    }
    if (v->n == 1)
        str_fmt(out, n, "%s", v->members[0].name);
    else if (all)
        str_fmt(out, n, "workers %s", text.data);
    else
        str_fmt(out, n, "%zu workers", v->n);
}

static const char *views_ordinal(int n)
{
    static const char *const ENDS[] = { "th", "st", "nd", "rd" };
    bool teen = n % 100 >= 11 && n % 100 <= 13;
    return ENDS[!teen && n % 10 <= 3 ? n % 10 : 0];
}

/* "worker-1 is lost for the 3rd time" */
static void views_tell_loss(struct holders *h, const struct view_member *m, struct buf *out)
{
    size_t i = 0;
    while (i < h->n && strcmp(h->peers[i].name, m->name) != 0)
        i++;
    const char *how = "is lost";
    if (i < h->n && h->peers[i].incarnation != m->incarnation)
        how = "was restarted";
    else if (i < h->n && h->peers[i].terminating)
        how = "terminates";
    int losses = i < h->n ? ++h->links[i].losses : 1;
    buf_printf(out, "%s%s %s", out->len > 0 ? ", " : "", m->name, how);
    if (losses > 1)
        buf_printf(out, " for the %d%s time", losses, views_ordinal(losses));
}

/* It stopped, and would be in the next view. */
static bool views_is_there(const struct holders *h, const struct view_start *start, const struct view_member *m)
{
    size_t peer = holders_find(h, m->name, m->incarnation);
    for (size_t i = 0; i < start->n; i++)
        if (start->members[i].peer == peer)
            return true;
    return false;
}

static void views_tell(struct holders *h, const struct view *from, const struct view_start *start)
{
    int64_t step = start->n > 0 ? h->links[start->first].version : 0;
    char names[120];
    AUTO_FINI(buf) text = BUF_INIT;
    const struct view *to = &h->view;
    for (size_t i = 0; i < from->n; i++)
        if (!views_is_there(h, start, &from->members[i]))
            views_tell_loss(h, &from->members[i], &text);
    bool lost = text.len > 0;
    for (size_t i = 0; i < to->n && from->n > 0; i++)
        if (view_find(from, to->members[i].name, to->members[i].incarnation) < 0)
            buf_printf(&text, "%s%s joined", text.len > 0 ? ", " : "", to->members[i].name);
    views_names(to, names, sizeof(names));
    if (to->n == 0)
        report_info(h->config.report, "%s: training waits", text.len > 0 ? text.data : "too few workers answer");
    else if (text.len == 0)
        report_info(h->config.report, "%s %s from step %lld on", names, to->n > 1 ? "train" : "trains",
                    (long long)step);
    else if (lost)
        report_info(h->config.report, "%s: %s %s on from step %lld", text.data, names, to->n > 1 ? "go" : "goes",
                    (long long)step);
    else
        report_info(h->config.report, "%s at step %lld: %zu workers", text.data, (long long)step, to->n);
}

/* ---- joins ---- */

static void views_postpone(struct holders *h, size_t peer, const char *why)
{
    struct peer_link *l = &h->links[peer];
    int64_t pause = MIN((int64_t)RETRY_MIN_MS << MIN(l->failures, 5), (int64_t)RETRY_MAX_MS);
    l->failures++;
    h->peers[peer].retry_ms = holders_now(h) + pause;
    report_info(h->config.report, "%s could not join; again in %lld s: %s", h->peers[peer].name,
                (long long)pause / 1000, why);
}

static void views_forget_at(struct holders *h, size_t donor, size_t peer)
{
    struct member_order o = {
        .peer = donor, .action = TRAINYARD__V1__VIEW_ACTION__VIEW_FORGET, .view = h->view.number, .other = peer
    };
    if (donor < h->n && peer < h->n)
        holders_order(h, &o, 1); /* a donor that is gone keeps nothing */
}

/* A donor that does not answer is not told: it would cost a deadline. The newcomer's process may be another one. */
static void views_forget(struct holders *h, const struct view_plan *plan)
{
    struct view_facts f = holders_facts(h);
    for (size_t i = 0; i < plan->nforget; i++) {
        struct view_join *j = &h->joins[plan->forget[i].join];
        size_t donor = holders_find(h, j->donor, j->donor_incarnation);
        size_t peer = holders_find(h, j->name, j->incarnation);
        if (plan->forget[i].failed)
            views_postpone(h, peer, h->links[peer].trouble[0] != '\0' ? h->links[peer].trouble : "it has no state");
        if (donor < h->n && h->peers[donor].since_ms < 0 && !peer_is_lost(&f, &h->peers[donor]))
            views_forget_at(h, donor, peer);
        j->name[0] = '\0';
    }
    size_t left = 0;
    for (size_t i = 0; i < h->njoins; i++)
        if (h->joins[i].name[0] != '\0')
            h->joins[left++] = h->joins[i];
    h->njoins = left;
}

static void views_add_join(struct holders *h, size_t peer, size_t donor)
{
    h->joins = xrealloc(h->joins, (h->njoins + 1) * sizeof(*h->joins));
    struct view_join *j = &h->joins[h->njoins++];
    *j = (struct view_join){ .incarnation = h->peers[peer].incarnation,
                             .donor_incarnation = h->peers[donor].incarnation };
    str_fmt(j->name, sizeof(j->name), "%s", h->peers[peer].name);
    str_fmt(j->donor, sizeof(j->donor), "%s", h->peers[donor].name);
}

/* Init at all newcomers, then DONATE at their donors, then JOIN: each at once for all that are left. */
static void views_begin(struct holders *h, const struct view_plan *plan)
{
    size_t n = plan->nbegin;
    auto_free struct member_init *inits = xcalloc(n + 1, sizeof(*inits));
    auto_free struct member_order *orders = xcalloc(n + 1, sizeof(*orders));
    auto_free struct begin_join *left = xcalloc(n + 1, sizeof(*left));
    for (size_t i = 0; i < n; i++)
        inits[i].peer = plan->begin[i].peer;
    holders_init(h, false, inits, n);
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (!inits[i].ok)
            views_postpone(h, inits[i].peer, inits[i].error.msg);
        else
            left[k++] = plan->begin[i];
    }
    for (int phase = 0; phase < 2; phase++) {
        for (size_t i = 0; i < k; i++)
            orders[i] = (struct member_order){ .peer = phase == 0 ? left[i].donor : left[i].peer,
                                               .action = phase == 0 ? TRAINYARD__V1__VIEW_ACTION__VIEW_DONATE
                                                                    : TRAINYARD__V1__VIEW_ACTION__VIEW_JOIN,
                                               .view = h->highest_view, /* it may train in one of a lower number */
                                               .other = phase == 0 ? left[i].peer : left[i].donor };
        holders_order(h, orders, k);
        size_t ok = 0;
        for (size_t i = 0; i < k; i++) {
            if (!orders[i].ok)
                views_postpone(h, left[i].peer, orders[i].error.msg);
            if (!orders[i].ok && phase == 1)
                views_forget_at(h, left[i].donor, left[i].peer);
            if (orders[i].ok)
                left[ok++] = left[i];
        }
        k = ok;
    }
    for (size_t i = 0; i < k; i++)
        views_add_join(h, left[i].peer, left[i].donor);
}

/* ---- the view ---- */

static bool views_has(const size_t *list, size_t n, size_t peer)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == peer)
            return true;
    return false;
}

/* All of the old view and of the next one. Who does not answer counts as lost until it does. */
static void views_stop(struct holders *h, const struct view_plan *plan, uint64_t number)
{
    struct view_facts f = holders_facts(h);
    auto_free struct member_order *orders = xcalloc(h->n + 1, sizeof(*orders));
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++) {
        const struct peer_facts *p = &h->peers[i];
        bool old = view_find(&h->view, p->name, p->incarnation) >= 0 && !peer_is_lost(&f, p);
        if (old || views_has(plan->next, plan->nnext, i))
            orders[n++] = (struct member_order){
                .peer = i, .action = TRAINYARD__V1__VIEW_ACTION__VIEW_STOP, .view = number, .other = SIZE_MAX
            };
    }
    holders_order(h, orders, n);
    for (size_t i = 0; i < n; i++)
        if (!orders[i].ok)
            h->peers[orders[i].peer].since_ms = holders_now(h) - PEER_SILENCE_MS - 1;
}

static void views_changed(const struct holders *h)
{
    if (h->changed != NULL)
        h->changed(h->source, &h->view);
}

void holders_end_view(struct holders *h)
{
    bool ran = h->view.number != 0;
    view_fini(&h->view);
    if (ran)
        views_changed(h);
}

static void views_compose(struct holders *h, const struct view_start *start, uint64_t number)
{
    h->view = (struct view){ .number = number, .at = start->at, .n = start->n };
    h->view.members = xcalloc(start->n + 1, sizeof(*h->view.members));
    for (size_t i = 0; i < start->n; i++) {
        const struct known_member k = holders_address(h, start->members[i].peer);
        struct view_member *m = &h->view.members[i];
        m->incarnation = k.incarnation;
        memcpy(m->name, k.name, sizeof(m->name));
        memcpy(m->address, k.address, sizeof(m->address));
    }
}

static void views_begin_view(struct holders *h, const struct view_start *start)
{
    auto_free struct member_order *orders = xcalloc(start->n + 1, sizeof(*orders));
    for (size_t i = 0; i < start->n; i++) {
        const struct view_starter *s = &start->members[i];
        orders[i] = (struct member_order){ .peer = s->peer,
                                           .action = TRAINYARD__V1__VIEW_ACTION__VIEW_START,
                                           .view = h->view.number,
                                           .at = start->at,
                                           .members = &h->view,
                                           .other = s->other == s->peer ? SIZE_MAX : s->other };
    }
    holders_order(h, orders, start->n);
    for (size_t i = 0; i < start->n; i++)
        if (!orders[i].ok)
            report_info(h->config.report, "%s", orders[i].error.msg);
}

/* Joins of those that are members now are over. */
static void views_end_joins(struct holders *h)
{
    size_t left = 0;
    for (size_t i = 0; i < h->njoins; i++) {
        const struct view_join *j = &h->joins[i];
        size_t peer = holders_find(h, j->name, j->incarnation);
        if (view_find(&h->view, j->name, j->incarnation) < 0)
            h->joins[left++] = *j;
        else if (peer < h->n)
            h->links[peer].failures = 0;
    }
    h->njoins = left;
}

static void views_change(struct holders *h, const struct view_plan *plan)
{
    uint64_t number = MAX(h->highest_view, h->view.number) + 1;
    __attribute__((cleanup(view_fini))) struct view old = { 0 };
    __attribute__((cleanup(view_start_fini))) struct view_start start = { 0 };
    h->highest_view = number;
    views_stop(h, plan, number);
    struct view_facts f = holders_facts(h);
    view_plan_start(&f, plan->next, plan->nnext, &start);
    old = h->view;
    h->view = (struct view){ 0 };
    if (start.n > 0 && start.n >= h->config.min_members) {
        views_compose(h, &start, number);
        h->filled_ms = -1;
    }
    views_tell(h, &old, &start);
    if (h->view.n > 0) {
        views_begin_view(h, &start);
        views_end_joins(h);
    }
    views_changed(h);
}

void holders_lead(struct holders *h, enum view_outcome *ret, bool *ret_terminating, char *waits, size_t waits_size)
{
    __attribute__((cleanup(view_plan_fini))) struct view_plan plan = { 0 };
    struct view_facts f = holders_facts(h);
    view_plan_make(&f, &plan);
    views_forget(h, &plan);
    if (plan.nbegin > 0)
        views_begin(h, &plan);
    if (plan.change)
        views_change(h, &plan);
    *ret = plan.outcome;
    *ret_terminating = plan.terminating;
    str_fmt(waits, waits_size, "%s", plan.waits);
}
