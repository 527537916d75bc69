/* Decides the next step for a job's certificates. A replica keeps the Secret in which its leaf is, because its pod
 * mounts that Secret. */
#include "plan/identity_plan.h"

#include <string.h>

#include "base/str.h"
#include "plan/plan_internal.h"

void identity_step_fini(struct identity_step *s)
{
    free(s->leaves);
    *s = (struct identity_step){ 0 };
}

static void add_leaf(struct identity_step *s, enum role role, int index)
{
    if ((s->nleaves & (s->nleaves - 1)) == 0) /* full: 0, 1, 2, 4, ... */
        s->leaves = xrealloc(s->leaves, MAX(2 * s->nleaves, (size_t)1) * sizeof(*s->leaves));
    s->leaves[s->nleaves++] = (struct identity_replica){ role, index };
}

/* ---- one leaf ---- */

static bool is_gone(const struct job_identity *has, size_t secret)
{
    return has->secrets[secret].uid[0] == '\0';
}

static bool is_trusted(const struct identity_facts *f, const char *ca)
{
    for (size_t i = 0; i < f->cas.n; i++)
        if (str_eq(f->cas.ids[i], ca))
            return true;
    return false;
}

static bool is_valid(const struct identity_facts *f, const struct identity_leaves *l, int64_t now_ms)
{
    return now_ms < l->not_after_ms && now_ms >= l->not_after_ms - f->lifetime_ms - LEAF_EARLY_SECONDS * 1000;
}

static int64_t due_ms(const struct identity_facts *f, const struct identity_leaves *l)
{
    return l->not_after_ms - f->lifetime_ms / 3;
}

static bool is_due(const struct identity_facts *f, const struct identity_leaves *l, int64_t now_ms)
{
    return !is_trusted(f, l->ca) || !is_valid(f, l, now_ms) || now_ms >= due_ms(f, l);
}

/* ---- Secrets in doubt ---- */

/* The kubelet mounts the Secret before it pulls images, and then says why a pod does not start. A job that waits long
 * costs one write in CONFIRM_MS for each Secret. */
enum { UNSTARTED_MS = 10000, CONFIRM_MS = 60000 };

/* On a node, and for no reason that is known it has not started; the time since when, 0: it is none of these. */
static int64_t waits_since_ms(const struct pod_info *p)
{
    bool waits = p->phase == POD_PENDING && p->node != NULL && p->reason == NULL && !p->creating && p->gone_by_ms == 0;
    return waits ? MAX(p->created_ms, p->started_ms) : 0;
}

struct identity_doubt identity_find_doubt(const struct job_identity *has, const struct pod_info *const pods[],
                                          size_t npods, const int64_t *answered_ms, size_t nanswered, int64_t now_ms)
{
    struct identity_doubt d = { .any = false };
    for (size_t i = 0; i < npods; i++) {
        int64_t since_ms = waits_since_ms(pods[i]);
        const struct identity_leaves *l = since_ms > 0 ? job_identity_find(has, pods[i]->role, pods[i]->index) : NULL;
        if (l == NULL)
            continue;
        int64_t answered = l->secret < nanswered && answered_ms[l->secret] <= now_ms ? answered_ms[l->secret] : 0;
        int64_t at_ms = MAX(since_ms + UNSTARTED_MS, answered + (answered > 0 ? CONFIRM_MS : 0));
        if (at_ms <= now_ms && !d.any) {
            d.any = true;
            d.secret = l->secret;
        } else if (at_ms > now_ms && (d.next_ms == 0 || at_ms < d.next_ms)) {
            d.next_ms = at_ms;
        }
    }
    return d;
}

/* ---- one Secret ---- */

struct search {
    const struct role_spec *roles;
    const struct job_identity *has;
    const struct identity_facts *f;
    int64_t now_ms, next_ms;
};

static void look_again(struct search *q, int64_t at_ms)
{
    if (at_ms > q->now_ms && (q->next_ms == 0 || at_ms < q->next_ms))
        q->next_ms = at_ms;
}

/* Adds leaves that no Secret has, until the step has `most` of them. */
static void add_missing(const struct search *q, struct identity_step *s, size_t most)
{
    for (int o = 0; o < ROLE_COUNT; o++)
        for (int i = 0; i < q->roles[PLAN_ROLES[o]].replicas && s->nleaves < most; i++)
            if (job_identity_find(q->has, PLAN_ROLES[o], i) == NULL)
                add_leaf(s, PLAN_ROLES[o], i);
}

/* The wanted leaves of a Secret. *ret_due: they have to be made again. */
static void add_members(struct search *q, size_t secret, struct identity_step *s, bool *ret_due)
{
    *ret_due = is_gone(q->has, secret);
    for (int o = 0; o < ROLE_COUNT; o++)
        for (int i = 0; i < q->roles[PLAN_ROLES[o]].replicas; i++) {
            const struct identity_leaves *l = job_identity_find(q->has, PLAN_ROLES[o], i);
            if (l == NULL || l->secret != secret)
                continue;
            add_leaf(s, PLAN_ROLES[o], i);
            *ret_due |= is_due(q->f, l, q->now_ms);
            look_again(q, due_ms(q->f, l));
        }
}

/* true: the Secret has to be changed. */
static bool plan_secret(struct search *q, size_t secret, struct identity_step *s)
{
    bool due, gone = is_gone(q->has, secret), other_cas = !ca_list_equal(&q->has->secrets[secret].cas, &q->f->cas);
    int count = job_identity_count(q->has, secret);

    add_members(q, secret, s, &due);
    bool used = s->nleaves > 0;
    if (!due)
        s->nleaves = 0;
    *s = (struct identity_step){ .kind = gone ? IDENTITY_RECREATE : IDENTITY_PATCH,
                                 .secret = secret,
                                 .leaves = s->leaves,
                                 .nleaves = s->nleaves,
                                 .renewal = s->nleaves > 0 };
    if (count < IDENTITY_SECRET_LEAVES && !gone)
        add_missing(q, s, s->nleaves + (size_t)(IDENTITY_SECRET_LEAVES - count));
    return s->nleaves > 0 || (used && (other_cas || (q->f->doubt.any && q->f->doubt.secret == secret)));
}

/* ---- all of them ---- */

void identity_plan(const struct role_spec roles[ROLE_COUNT], const struct job_identity *has,
                   const struct identity_facts *f, int64_t now_ms, struct identity_step *ret, int64_t *ret_next_ms)
{
    struct search q = { roles, has, f, now_ms, 0 };

    *ret = (struct identity_step){ .kind = IDENTITY_NOTHING };
    *ret_next_ms = 0;
    if (f->cas.n == 0)
        return;
    for (size_t k = 0; k < has->nsecrets && ret->kind == IDENTITY_NOTHING; k++) {
        AUTO_FINI(identity_step) s = { 0 };
        if (!plan_secret(&q, (f->first + k) % has->nsecrets, &s))
            continue;
        *ret = s;
        s = (struct identity_step){ 0 };
    }
    if (ret->kind == IDENTITY_NOTHING) {
        add_missing(&q, ret, IDENTITY_SECRET_LEAVES);
        ret->kind = ret->nleaves > 0 ? IDENTITY_CREATE : IDENTITY_NOTHING;
    }
    look_again(&q, f->cas_until_ms);
    look_again(&q, f->doubt.next_ms);
    *ret_next_ms = q.next_ms;
}

bool identity_ready(const struct job_identity *has, const struct identity_facts *f, enum role role, int index,
                    int64_t now_ms)
{
    if (f->confirmed == NULL || has->insecure)
        return f->confirmed != NULL && f->confirmed->insecure;
    const struct identity_leaves *l = job_identity_find(has, role, index);
    const struct identity_leaves *confirmed = job_identity_find(f->confirmed, role, index);
    return l != NULL && confirmed != NULL && !is_gone(has, l->secret) && is_valid(f, l, now_ms) &&
           str_eq(has->secrets[l->secret].uid, f->confirmed->secrets[confirmed->secret].uid);
}

int64_t identity_expiry_ms(const struct role_spec roles[ROLE_COUNT], const struct job_identity *has)
{
    int64_t first = 0;
    for (size_t i = 0; i < has->nleaves; i++) {
        const struct identity_leaves *l = &has->leaves[i];
        bool wanted = l->indexes.n > 0 && l->indexes.ranges[0].first < roles[l->role].replicas;
        if (wanted && (first == 0 || l->not_after_ms < first))
            first = l->not_after_ms;
    }
    return first;
}
