/* Decides about views and joins from the last answers of all members. A member belongs to the next view only if it
 * answers, has the state of this generation, and is at most one step behind the first. */
#include "collective/view_plan.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

void view_plan_fini(struct view_plan *p)
{
    free(p->forget);
    free(p->begin);
    free(p->next);
}

void view_start_fini(struct view_start *s)
{
    free(s->members);
}

/* ---- a member ---- */

static bool peer_is_silent(const struct view_facts *f, const struct peer_facts *p, int64_t longer_than_ms)
{
    return p->since_ms >= 0 && f->now_ms - p->since_ms > longer_than_ms;
}

bool peer_is_lost(const struct view_facts *f, const struct peer_facts *p)
{
    return !p->alive || peer_is_silent(f, p, PEER_SILENCE_MS);
}

bool peer_has_state(const struct view_facts *f, const struct peer_facts *p)
{
    return p->answered && p->fits && p->generation == f->generation && p->state >= PEER_HOLDING;
}

static bool peer_answers(const struct view_facts *f, const struct peer_facts *p)
{
    return p->answered && !peer_is_lost(f, p);
}

static bool peer_trains(const struct view_facts *f, const struct peer_facts *p)
{
    return f->view->number != 0 && peer_answers(f, p) && peer_has_state(f, p) && p->state == PEER_TRAINING &&
           p->view == f->view->number && view_find(f->view, p->name, p->incarnation) >= 0;
}

/* May its state still come back? */
static bool peer_may_hold(const struct view_facts *f, const struct peer_facts *p)
{
    return peer_has_state(f, p) && !peer_is_silent(f, p, p->terminating ? PEER_SILENCE_MS : STATE_SILENCE_MS);
}

static size_t peer_find(const struct view_facts *f, const char *name, uint64_t incarnation)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->peers[i].incarnation == incarnation && strcmp(f->peers[i].name, name) == 0)
            return i;
    return f->n;
}

static bool peer_within_a_step(const struct view_facts *f, const struct peer_facts *p, int64_t at)
{
    return p->at == at || groups_end(f->groups, p->at) == at;
}

/* ---- who goes on ---- */

enum { STAYS = 1, READY = 2, WANTED = 4 }; /* marks of peers */

struct marks {
    unsigned char *of; /* [peers] */
    size_t stays, ready;
};

static void mark_fini(struct marks *m)
{
    free(m->of);
}
DEFINE_AUTO_FINI(marks, mark_fini);

/* Members of the view that runs, or, when none of them is left, all that have the state of the highest step. */
static void mark_candidates(const struct view_facts *f, struct marks *m)
{
    int64_t highest = -1;
    size_t training = 0;
    for (size_t i = 0; i < f->n; i++)
        training += peer_trains(f, &f->peers[i]);
    for (size_t i = 0; i < f->n; i++)
        if (peer_answers(f, &f->peers[i]) && peer_has_state(f, &f->peers[i]))
            highest = MAX(highest, f->peers[i].at);
    for (size_t i = 0; i < f->n; i++) {
        const struct peer_facts *p = &f->peers[i];
        bool stays = training > 0 ? peer_trains(f, p)
                                  : peer_answers(f, p) && peer_has_state(f, p) && peer_within_a_step(f, p, highest);
        m->of[i] = stays ? STAYS : 0;
        m->stays += stays;
    }
}

/* Those that terminate leave, unless no other has the state. */
static bool mark_all_terminate(const struct view_facts *f, struct marks *m)
{
    size_t terminating = 0;
    for (size_t i = 0; i < f->n; i++)
        terminating += (m->of[i] & STAYS) && f->peers[i].terminating;
    if (terminating == m->stays)
        return m->stays > 0;
    for (size_t i = 0; i < f->n; i++)
        if ((m->of[i] & STAYS) && f->peers[i].terminating)
            m->of[i] = 0;
    m->stays -= terminating;
    return false;
}

static bool view_is_whole(const struct view_facts *f, const struct marks *m)
{
    if (f->view->number == 0)
        return false;
    for (size_t i = 0; i < f->view->n; i++) {
        size_t peer = peer_find(f, f->view->members[i].name, f->view->members[i].incarnation);
        if (peer == f->n || !(m->of[peer] & STAYS) || !peer_trains(f, &f->peers[peer]))
            return false;
    }
    return true;
}

/* ---- newcomers ---- */

static bool join_has_failed(const struct peer_facts *p)
{
    return p->trouble || p->state != PEER_JOINING;
}

static bool join_is_over(const struct view_facts *f, const struct marks *m, const struct view_join *j, bool *ret_failed)
{
    size_t peer = peer_find(f, j->name, j->incarnation), donor = peer_find(f, j->donor, j->donor_incarnation);
    *ret_failed = false;
    if (peer == f->n || peer_is_lost(f, &f->peers[peer]) || f->peers[peer].terminating)
        return true;
    if (donor == f->n || !(m->of[donor] & STAYS))
        return true;
    *ret_failed = join_has_failed(&f->peers[peer]);
    return *ret_failed;
}

/* Ends joins that cannot succeed; marks newcomers that are ready, and those that want a donor. */
static void plan_joins(const struct view_facts *f, struct marks *m, struct view_plan *ret)
{
    auto_free bool *joining = xcalloc(f->n + 1, sizeof(*joining));
    ret->forget = xcalloc(f->njoins + 1, sizeof(*ret->forget));
    for (size_t i = 0; i < f->njoins; i++) {
        bool failed;
        size_t peer = peer_find(f, f->joins[i].name, f->joins[i].incarnation);
        if (join_is_over(f, m, &f->joins[i], &failed)) {
            ret->forget[ret->nforget++] = (struct forget_join){ .join = i, .failed = failed };
            joining[peer] = failed; /* again later */
            continue;
        }
        const struct peer_facts *p = &f->peers[peer];
        bool ready = p->behind >= 0 && p->behind <= 1 && p->generation == f->generation;
        joining[peer] = true;
        m->of[peer] |= ready ? READY : 0;
        m->ready += ready;
    }
    for (size_t i = 0; i < f->n; i++)
        if (m->of[i] == 0 && !joining[i] && peer_answers(f, &f->peers[i]) && !f->peers[i].terminating &&
            f->peers[i].generation <= f->generation && f->peers[i].retry_ms <= f->now_ms)
            m->of[i] = WANTED;
}

static size_t *count_joins(const struct view_facts *f, const struct view_plan *plan)
{
    size_t *joins = xcalloc(f->n + 1, sizeof(*joins));
    for (size_t i = 0; i < f->njoins; i++)
        joins[peer_find(f, f->joins[i].donor, f->joins[i].donor_incarnation)]++;
    for (size_t i = 0; i < plan->nforget; i++) {
        const struct view_join *j = &f->joins[plan->forget[i].join];
        joins[peer_find(f, j->donor, j->donor_incarnation)]--;
    }
    return joins;
}

/* The holder with the fewest joins; among equals not the one whose snapshots the chief reads. f->n: all have enough. */
static size_t choose_donor(const struct view_facts *f, const struct marks *m, const size_t *joins)
{
    size_t best = f->n, least = 2 * DONOR_JOINS_MAX;
    for (size_t i = 0; i < f->n; i++) {
        size_t load = 2 * joins[i] + (f->snapshots != NULL && strcmp(f->snapshots, f->peers[i].name) == 0);
        if (!(m->of[i] & STAYS) || load >= least)
            continue;
        best = i;
        least = load;
    }
    return best;
}

static void plan_donors(const struct view_facts *f, const struct marks *m, struct view_plan *ret)
{
    auto_free size_t *joins = count_joins(f, ret);
    ret->begin = xcalloc(f->n + 1, sizeof(*ret->begin));
    for (size_t i = 0; i < f->n; i++) {
        size_t donor = m->of[i] == WANTED ? choose_donor(f, m, joins) : f->n;
        if (donor == f->n)
            continue;
        joins[donor]++;
        ret->begin[ret->nbegin++] = (struct begin_join){ .peer = i, .donor = donor };
    }
}

/* ---- the next view ---- */

/* A worker that is alive can be in the first view: it joins a member at rest. */
static bool first_view_waits(const struct view_facts *f, const struct marks *m)
{
    if (f->filled_ms < 0 || f->now_ms - f->filled_ms >= FIRST_VIEW_WAIT_MS)
        return false;
    for (size_t i = 0; i < f->n; i++) {
        const struct peer_facts *p = &f->peers[i];
        if (!(m->of[i] & (STAYS | READY)) && !peer_is_lost(f, p) && !p->terminating && p->retry_ms <= f->now_ms)
            return true;
    }
    return false;
}

/* worker-2 before worker-10 */
static bool peer_is_before(const struct peer_facts *a, const struct peer_facts *b)
{
    size_t na = strlen(a->name), nb = strlen(b->name);
    return na != nb ? na < nb : strcmp(a->name, b->name) < 0;
}

static void plan_next(const struct view_facts *f, const struct marks *m, struct view_plan *ret)
{
    ret->change = true;
    ret->next = xcalloc(f->n + 1, sizeof(*ret->next));
    for (size_t i = 0; i < f->n; i++) {
        if (!(m->of[i] & (STAYS | READY)))
            continue;
        size_t k = ret->nnext++;
        for (; k > 0 && peer_is_before(&f->peers[i], &f->peers[ret->next[k - 1]]); k--)
            ret->next[k] = ret->next[k - 1];
        ret->next[k] = i;
    }
}

static void plan_without_state(const struct view_facts *f, struct view_plan *ret)
{
    size_t answering = 0;
    ret->outcome = VIEW_LOST;
    for (size_t i = 0; i < f->n; i++) {
        answering += peer_answers(f, &f->peers[i]);
        if (!peer_may_hold(f, &f->peers[i]) || ret->outcome == VIEW_WAITS)
            continue;
        ret->outcome = VIEW_WAITS;
        str_fmt(ret->waits, sizeof(ret->waits), "%s, which has the state, does not answer", f->peers[i].name);
    }
    if (ret->outcome == VIEW_WAITS || answering > 0)
        return;
    ret->outcome = VIEW_WAITS;
    str_fmt(ret->waits, sizeof(ret->waits), f->n > 0 ? "no worker answers" : "no worker has joined yet");
}

static void plan_wait_for_more(const struct view_facts *f, size_t n, struct view_plan *ret)
{
    ret->outcome = VIEW_WAITS;
    str_fmt(ret->waits, sizeof(ret->waits), "%zu of at least %zu workers are there", n, f->min_members);
}

void view_plan_make(const struct view_facts *f, struct view_plan *ret)
{
    AUTO_FINI(marks) m = { .of = xcalloc(f->n + 1, 1) };
    *ret = (struct view_plan){ .outcome = VIEW_SERVES };
    mark_candidates(f, &m);
    ret->terminating = mark_all_terminate(f, &m);
    bool whole = view_is_whole(f, &m);
    plan_joins(f, &m, ret);
    plan_donors(f, &m, ret);
    if (m.stays == 0)
        plan_without_state(f, ret);
    else if (whole ? m.ready > 0 : f->view->number != 0)
        plan_next(f, &m, ret);
    else if (!whole && first_view_waits(f, &m))
        return;
    else if (!whole && m.stays + m.ready < f->min_members)
        plan_wait_for_more(f, m.stays + m.ready, ret);
    else if (!whole)
        plan_next(f, &m, ret);
}

/* ---- the beginning of a view ---- */

static size_t donor_of(const struct view_facts *f, size_t peer)
{
    for (size_t i = 0; i < f->njoins; i++)
        if (peer_find(f, f->joins[i].name, f->joins[i].incarnation) == peer)
            return peer_find(f, f->joins[i].donor, f->joins[i].donor_incarnation);
    return f->n;
}

static bool start_has(const struct view_start *s, size_t peer)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->members[i].peer == peer)
            return true;
    return false;
}

static void start_add(struct view_start *s, size_t peer, size_t other)
{
    s->members[s->n++] = (struct view_starter){ .peer = peer, .other = other };
}

/* Its donor keeps all sums since the copy; the others only those of their last step. */
static void start_add_newcomer(const struct view_facts *f, size_t peer, struct view_start *s)
{
    const struct peer_facts *p = &f->peers[peer];
    size_t donor = donor_of(f, peer);
    if (p->since_ms >= 0 || p->state != PEER_JOINING || p->behind < 0 || p->at > s->at)
        return;
    if (p->at == s->at)
        start_add(s, peer, peer);
    else if (start_has(s, donor))
        start_add(s, peer, donor);
    else if (peer_within_a_step(f, p, s->at))
        start_add(s, peer, s->first);
}

/* Every chief lists them in one order. */
static void start_sort(const struct view_facts *f, struct view_start *s)
{
    for (size_t i = 1; i < s->n; i++)
        for (size_t k = i; k > 0; k--) {
            struct view_starter *a = &s->members[k - 1], *b = &s->members[k], swap = *a;
            if (!peer_is_before(&f->peers[b->peer], &f->peers[a->peer]))
                break;
            *a = *b;
            *b = swap;
        }
}

void view_plan_start(const struct view_facts *f, const size_t *next, size_t n, struct view_start *ret)
{
    struct view_start s = { .at = -1 };
    s.members = xcalloc(n + 1, sizeof(*s.members));
    for (size_t i = 0; i < n; i++) {
        const struct peer_facts *p = &f->peers[next[i]];
        if (p->since_ms >= 0 || !peer_has_state(f, p) || p->at <= s.at)
            continue;
        s.at = p->at;
        s.first = next[i];
    }
    for (size_t i = 0; i < n && s.at >= 0; i++) {
        const struct peer_facts *p = &f->peers[next[i]];
        if (p->since_ms < 0 && peer_has_state(f, p) && peer_within_a_step(f, p, s.at))
            start_add(&s, next[i], p->at == s.at ? next[i] : s.first);
    }
    for (size_t i = 0; i < n && s.at >= 0; i++)
        start_add_newcomer(f, next[i], &s);
    start_sort(f, &s);
    *ret = s;
}
