#include "check_main.h"

#include <stdio.h>
#include <string.h>

#include "plan/identity_plan.h"

/* Cases are tables of steps of one job: what changes before the step (time, replicas, CAs, an answer that was lost, a
 * Secret that was deleted), and what is decided then. Each decision is carried out, unless the step says otherwise.
 * Hours from the start; a leaf lives 24 h. */
#define T0   INT64_C(1767225600000)
#define HOUR (INT64_C(3600) * 1000)
#define NEW  "aaaaaaaaaaaaaaaa"
#define OLD  "bbbbbbbbbbbbbbbb"

struct world {
    struct job_identity has, confirmed;
    struct identity_facts facts;
    struct role_spec roles[ROLE_COUNT];
    int made; /* Secrets */
};

static void world_fini(struct world *w)
{
    job_identity_fini(&w->has);
    job_identity_fini(&w->confirmed);
}
DEFINE_AUTO_FINI(world, world_fini);

/* "a" or "b,a": the first letter issues */
static void set_cas(struct world *w, const char *letters)
{
    w->facts.cas.n = 0;
    for (const char *p = letters; *p != '\0'; p++)
        if (*p != ',')
            memset(w->facts.cas.ids[w->facts.cas.n++], *p, CA_ID_SIZE - 1);
}

static void confirm(struct world *w)
{
    job_identity_fini(&w->confirmed);
    job_identity_copy(&w->has, &w->confirmed);
}

/* As the answer of the API server does. */
static void carry_out(struct world *w, const struct identity_step *s, int64_t now_ms)
{
    size_t at = s->secret;
    char name[32];
    if (s->kind == IDENTITY_NOTHING)
        return;
    str_fmt(name, sizeof(name), "j-identity-%d", (int)w->has.nsecrets);
    if (s->kind == IDENTITY_CREATE)
        at = job_identity_add_secret(&w->has, name, "");
    if (s->kind != IDENTITY_PATCH)
        str_fmt(w->has.secrets[at].uid, SECRET_UID_SIZE, "s-%d", ++w->made);
    w->has.secrets[at].cas = w->facts.cas;
    for (size_t i = 0; i < s->nleaves; i++)
        job_identity_put(&w->has, s->leaves[i].role, s->leaves[i].index, at, now_ms + w->facts.lifetime_ms,
                         w->facts.cas.ids[0]);
}

/* "create ps-0 worker-0..3", "patch 0 worker-2", "patch 0" (ca.crt alone), "" */
static void text_of(const struct identity_step *s, struct buf *out)
{
    static const char *const KINDS[] = { "", "create", "again", "patch" };
    buf_clear(out);
    buf_str(out, KINDS[s->kind]);
    if (s->kind == IDENTITY_RECREATE || s->kind == IDENTITY_PATCH)
        buf_printf(out, " %zu", s->secret);
    for (size_t i = 0; i < s->nleaves; i++) {
        size_t last = i;
        while (last + 1 < s->nleaves && s->leaves[last + 1].role == s->leaves[i].role &&
               s->leaves[last + 1].index == s->leaves[last].index + 1)
            last++;
        buf_printf(out, " %s-%d", role_name(s->leaves[i].role), s->leaves[i].index);
        if (last > i)
            buf_printf(out, "..%d", s->leaves[last].index);
        i = last;
    }
    if (s->renewal)
        buf_str(out, " renewed");
}

struct step {
    double hours;    /* from the start; it may go back */
    int ps, workers; /* -1: as before */
    const char *cas; /* NULL: as before */
    const char *want;
    double next; /* when it looks again, in hours; 0: not */
    enum {
        DONE,
        LOST,       /* the Secret was not written, or its answer was lost */
        UNWRITTEN,  /* the Secret was written; the operator restarts before the status is */
        DELETED_0,  /* Secret 0 had been deleted: the patch was answered with 404 */
        REPLACED_0, /* Secret 0 was replaced by another one: 422 */
    } then;
};

static void set_replicas(struct world *w, const struct step *s)
{
    if (s->ps >= 0)
        w->roles[ROLE_PS].replicas = s->ps;
    if (s->workers >= 0)
        w->roles[ROLE_WORKER].replicas = s->workers;
}

static void end_step(struct world *w, const struct step *s, const struct identity_step *step, int64_t now_ms)
{
    if (s->then == DONE)
        carry_out(w, step, now_ms);
    if (s->then == DELETED_0)
        w->has.secrets[0].uid[0] = '\0';
    if (s->then == REPLACED_0)
        w->facts.first = 1;
    if (s->then != UNWRITTEN)
        confirm(w);
    /* a restart: only the status is known, as it is read from the API server */
    json_auto_t *v = job_identity_json(&w->confirmed);
    job_identity_fini(&w->has);
    job_identity_parse(v, &w->has);
}

static void run(const struct step *steps, size_t n)
{
    AUTO_FINI(world) w = { .facts = { .lifetime_ms = 24 * HOUR } };
    set_cas(&w, "a");
    for (size_t i = 0; i < n; i++) {
        const struct step *s = &steps[i];
        AUTO_FINI(identity_step) step = { 0 };
        AUTO_FINI(buf) text = BUF_INIT;
        int64_t next_ms, now_ms = T0 + (int64_t)(s->hours * (double)HOUR);
        set_replicas(&w, s);
        if (s->cas != NULL)
            set_cas(&w, s->cas);
        identity_plan(w.roles, &w.has, &w.facts, now_ms, &step, &next_ms);
        text_of(&step, &text);
        ck_assert_msg(strcmp(text.data, s->want) == 0, "step %zu: '%s', not '%s'", i, text.data, s->want);
        ck_assert_msg(next_ms == (s->next == 0 ? 0 : T0 + (int64_t)(s->next * (double)HOUR)),
                      "step %zu: looks again at %.3f h, not %.3f h", i, (double)(next_ms - T0) / (double)HOUR, s->next);
        end_step(&w, s, &step, now_ms);
    }
}
#define RUN(...)                                                                                                       \
    run((const struct step[]){ __VA_ARGS__ }, sizeof((const struct step[]){ __VA_ARGS__ }) / sizeof(struct step))

START_TEST(the_first_secret_and_its_renewals)
{
    RUN({ 0, 1, 3, NULL, "create ps-0 worker-0..2", 0, DONE }, { 0.1, -1, -1, NULL, "", 16, DONE },
        { 15.9, -1, -1, NULL, "", 16, DONE }, { 16, -1, -1, NULL, "patch 0 ps-0 worker-0..2 renewed", 0, DONE },
        { 16.1, -1, -1, NULL, "", 32, DONE });
}
END_TEST

START_TEST(nothing_without_master_keys)
{
    RUN({ 0, 1, 3, "", "", 0, DONE }, { 1, -1, -1, "a", "create ps-0 worker-0..2", 0, DONE });
}
END_TEST

START_TEST(scaling_up_adds_leaves_and_scaling_down_changes_nothing)
{
    RUN({ 0, 1, 2, NULL, "create ps-0 worker-0..1", 0, DONE }, { 4, -1, 4, NULL, "patch 0 worker-2..3", 16, DONE },
        { 5, -1, 1, NULL, "", 16, DONE }, { 16, -1, -1, NULL, "patch 0 ps-0 worker-0 renewed", 0, DONE },
        /* those that were scaled away are made again before their pods, although the old leaf has not expired */
        { 20.5, -1, 4, NULL, "patch 0 ps-0 worker-0..3 renewed", 32, DONE }, { 21, -1, -1, NULL, "", 36.5, DONE });
}
END_TEST

START_TEST(an_answer_that_is_lost)
{
    RUN({ 0, 1, 1, NULL, "create ps-0 worker-0", 0, LOST }, { 0, -1, -1, NULL, "create ps-0 worker-0", 0, DONE },
        { 16, -1, -1, NULL, "patch 0 ps-0 worker-0 renewed", 0, LOST },
        { 16.1, -1, -1, NULL, "patch 0 ps-0 worker-0 renewed", 0, DONE }, { 16.2, -1, -1, NULL, "", 32.1, DONE });
}
END_TEST

/* The status does not know the first Secret; no pod mounts it, and the job owns it. */
START_TEST(a_status_that_is_lost)
{
    RUN({ 0, 1, 1, NULL, "create ps-0 worker-0", 0, UNWRITTEN }, { 0.5, -1, -1, NULL, "create ps-0 worker-0", 0, DONE },
        { 1, -1, -1, NULL, "", 16.5, DONE });
}
END_TEST

START_TEST(a_deleted_secret_is_made_again_under_its_name)
{
    RUN({ 0, 1, 1, NULL, "create ps-0 worker-0", 0, DONE },
        { 16, -1, -1, NULL, "patch 0 ps-0 worker-0 renewed", 0, DELETED_0 },
        { 16, -1, -1, NULL, "again 0 ps-0 worker-0 renewed", 0, LOST },
        { 16, -1, -1, NULL, "again 0 ps-0 worker-0 renewed", 0, DONE }, { 17, -1, -1, NULL, "", 32, DONE });
}
END_TEST

START_TEST(six_hundred_and_one_replicas_have_two_secrets)
{
    RUN({ 0, 1, 600, NULL, "create ps-0 worker-0..598", 0, DONE }, { 0, -1, -1, NULL, "create worker-599", 16, DONE },
        { 1, -1, 700, NULL, "patch 1 worker-600..699", 16, DONE },
        { 16, -1, -1, NULL, "patch 0 ps-0 worker-0..598 renewed", 0, REPLACED_0 },
        { 16, -1, -1, NULL, "patch 1 worker-599..699 renewed", 17, DONE },
        { 16.5, -1, -1, NULL, "patch 0 ps-0 worker-0..598 renewed", 32, DONE });
}
END_TEST

START_TEST(the_master_key_changes)
{
    RUN({ 0, 1, 1, NULL, "create ps-0 worker-0", 0, DONE },
        { 2, -1, -1, "a,b", "patch 0", 16, DONE },                                        /* trusted at once */
        { 2.1, -1, -1, NULL, "", 16, DONE }, { 2.2, -1, -1, "b,a", "patch 0", 16, DONE }, /* issues now */
        { 3, -1, 2, NULL, "patch 0 worker-1", 16, DONE },
        { 16, -1, -1, NULL, "patch 0 ps-0 worker-0..1 renewed", 19, DONE }, { 27.2, -1, -1, "b", "patch 0", 32, DONE },
        { 28, -1, -1, NULL, "", 32, DONE });
}
END_TEST

/* Somebody removes the entry that issued: its leaves are made again at once. */
START_TEST(a_master_key_that_is_not_trusted_any_more)
{
    RUN({ 0, 1, 1, NULL, "create ps-0 worker-0", 0, DONE },
        { 1, -1, -1, "b", "patch 0 ps-0 worker-0 renewed", 16, DONE }, { 2, -1, -1, NULL, "", 17, DONE });
}
END_TEST

START_TEST(a_clock_that_jumps_back)
{
    RUN({ 48, 1, 1, NULL, "create ps-0 worker-0", 0, DONE },
        { 47.95, -1, -1, NULL, "", 64, DONE }, /* leaves are valid from 5 min before */
        { 0, -1, -1, NULL, "patch 0 ps-0 worker-0 renewed", 64, DONE }, { 0.5, -1, -1, NULL, "", 16, DONE });
}
END_TEST

START_TEST(a_job_that_waited_longer_than_its_leaves_lived)
{
    RUN({ 0, 1, 1, NULL, "create ps-0 worker-0", 0, DONE },
        { 60, -1, -1, NULL, "patch 0 ps-0 worker-0 renewed", 0, DONE }, { 61, -1, -1, NULL, "", 76, DONE });
}
END_TEST

START_TEST(cas_that_change_by_themselves)
{
    AUTO_FINI(world) w = { .facts = { .lifetime_ms = 24 * HOUR, .cas_until_ms = T0 + HOUR } };
    AUTO_FINI(identity_step) step = { 0 };
    int64_t next_ms;
    set_cas(&w, "a");
    w.roles[ROLE_WORKER].replicas = 1;
    identity_plan(w.roles, &w.has, &w.facts, T0, &step, &next_ms);
    ck_assert_int_eq(next_ms, T0 + HOUR);
}
END_TEST

/* ---- when a pod may be created ---- */

static bool ready(const struct world *w, int worker, double hours)
{
    return identity_ready(&w->has, &w->facts, ROLE_WORKER, worker, T0 + (int64_t)(hours * (double)HOUR));
}

static void make(struct world *w)
{
    AUTO_FINI(identity_step) step = { 0 };
    int64_t next_ms;
    identity_plan(w->roles, &w->has, &w->facts, T0, &step, &next_ms);
    carry_out(w, &step, T0);
}

START_TEST(a_pod_waits_for_its_secret_and_for_the_status)
{
    AUTO_FINI(world) w = { .facts = { .lifetime_ms = 24 * HOUR } };
    set_cas(&w, "a");
    w.facts.confirmed = &w.confirmed;
    w.roles[ROLE_WORKER].replicas = 2;
    ck_assert(!ready(&w, 0, 0));
    make(&w);
    ck_assert(!ready(&w, 0, 0)); /* the status does not have it yet */
    confirm(&w);
    ck_assert(ready(&w, 0, 0) && ready(&w, 1, 0) && !ready(&w, 2, 0));
    w.facts.confirmed = NULL; /* a change of the status is being written */
    ck_assert(!ready(&w, 0, 0));
    w.facts.confirmed = &w.confirmed;
    ck_assert(!ready(&w, 0, 24)); /* expired */
    ck_assert(!ready(&w, 0, -1)); /* not valid yet */
    w.has.secrets[0].uid[0] = '\0';
    ck_assert(!ready(&w, 0, 0)); /* deleted */
    str_fmt(w.has.secrets[0].uid, SECRET_UID_SIZE, "s-9");
    ck_assert(!ready(&w, 0, 0)); /* made again, and the status does not say so yet */
}
END_TEST

START_TEST(a_pod_without_a_certificate_waits_for_the_status_that_says_so)
{
    AUTO_FINI(world) w = { .facts = { .lifetime_ms = 24 * HOUR } };
    w.facts.confirmed = &w.confirmed;
    w.has.insecure = true;
    ck_assert(!ready(&w, 0, 0));
    confirm(&w);
    ck_assert(ready(&w, 0, 0));
}
END_TEST

/* ---- a Secret that may have been deleted ---- */

/* Worker 0 is in Secret 0, worker 1 in Secret 1. */
static void two_secrets(struct world *w)
{
    for (int i = 0; i < 2; i++)
        job_identity_put(&w->has, ROLE_WORKER, i, job_identity_add_secret(&w->has, i == 0 ? "a" : "b", "u"),
                         T0 + 24 * HOUR, NEW);
}

/* A worker's pod on a node, made after 1 s unless it says otherwise. Times in seconds from T0; 0: never. */
static const struct doubt_case {
    const char *name;
    int worker;
    double created, started;
    struct pod_info pod;
    bool nowhere;       /* on no node */
    double answered[2]; /* for each Secret */
    double now;
    int secret; /* -1: none is in doubt */
    double next;
} DOUBTS[] = {
    { "waits not long yet", 1, .now = 10.9, .secret = -1, .next = 11 },
    { "waits long", 1, .now = 11, .secret = 1 },
    { "the kubelet saw it late", 1, .started = 5, .now = 11, .secret = -1, .next = 15 },
    { "confirmed before it began to wait", 0, .created = 70, .answered = { 1, 0 }, .now = 80, .secret = 0 },
    { "confirmed a moment ago", 0, .answered = { 15, 0 }, .now = 20, .secret = -1, .next = 75 },
    { "the other Secret was confirmed", 0, .answered = { 0, 15 }, .now = 20, .secret = 0 },
    { "confirmed a minute ago", 0, .answered = { 15, 0 }, .now = 75, .secret = 0 },
    { "the clock was set back", 0, .answered = { 500, 0 }, .now = 20, .secret = 0 },
    { "runs", 0, .pod.phase = POD_RUNNING, .now = 20, .secret = -1 },
    { "pulls no image", 0, .pod.reason = (char *)(uintptr_t) "ImagePullBackOff", .now = 20, .secret = -1 },
    { "is deleted", 0, .pod.gone_by_ms = T0 + 50000, .now = 20, .secret = -1 },
    { "is being created", 0, .pod.creating = true, .now = 20, .secret = -1 },
    { "on no node", 0, .nowhere = true, .now = 20, .secret = -1 },
    { "has no leaf", 7, .now = 20, .secret = -1 },
};

static int64_t at(double seconds)
{
    return seconds == 0 ? 0 : T0 + (int64_t)(seconds * 1000);
}

static struct pod_info pod_of(const struct doubt_case *c)
{
    struct pod_info p = c->pod;
    p.role = ROLE_WORKER;
    p.index = c->worker;
    p.node = c->nowhere ? NULL : (char *)(uintptr_t) "n";
    p.created_ms = at(MAX(c->created, 1.0));
    p.started_ms = at(c->started);
    return p;
}

START_TEST(a_pod_that_does_not_start_puts_its_secret_in_doubt)
{
    const struct doubt_case *c = &DOUBTS[_i];
    const struct pod_info running = { .role = ROLE_WORKER, .phase = POD_RUNNING, .created_ms = T0 }, pod = pod_of(c);
    const struct pod_info *pods[] = { &running, &pod };
    const int64_t answered[] = { at(c->answered[0]), at(c->answered[1]) };
    AUTO_FINI(world) w = { .made = 0 };
    two_secrets(&w);
    struct identity_doubt d = identity_find_doubt(&w.has, pods, 2, answered, 2, at(c->now));
    ck_assert_msg((d.any ? (int)d.secret : -1) == c->secret, "%s: %d", c->name, d.any ? (int)d.secret : -1);
    ck_assert_msg(d.next_ms == at(c->next), "%s: looks again at %lld", c->name, (long long)(d.next_ms - T0));
    if (answered[0] == 0 && answered[1] == 0) /* as after a restart of the operator */
        ck_assert(identity_find_doubt(&w.has, pods, 2, NULL, 0, at(c->now)).any == d.any);
}
END_TEST

START_TEST(a_secret_in_doubt_is_written_again)
{
    AUTO_FINI(world) w = { .facts = { .lifetime_ms = 24 * HOUR } };
    AUTO_FINI(identity_step) step = { 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    int64_t next_ms;
    set_cas(&w, "a");
    w.roles[ROLE_WORKER].replicas = 2;
    make(&w);
    w.facts.doubt = (struct identity_doubt){ .next_ms = T0 + 7 };
    identity_plan(w.roles, &w.has, &w.facts, T0, &step, &next_ms);
    ck_assert(step.kind == IDENTITY_NOTHING && next_ms == T0 + 7);
    w.facts.doubt = (struct identity_doubt){ .any = true };
    identity_plan(w.roles, &w.has, &w.facts, T0, &step, &next_ms);
    text_of(&step, &text);
    ck_assert_str_eq(text.data, "patch 0");
}
END_TEST

START_TEST(leaves_of_replicas_that_are_not_wanted_do_not_count_as_expiring)
{
    AUTO_FINI(world) w = { .facts = { .lifetime_ms = 24 * HOUR } };
    set_cas(&w, "a");
    ck_assert_int_eq(identity_expiry_ms(w.roles, &w.has), 0);
    size_t s = job_identity_add_secret(&w.has, "j", "u");
    job_identity_put(&w.has, ROLE_WORKER, 0, s, T0 + 2 * HOUR, NEW);
    job_identity_put(&w.has, ROLE_WORKER, 1, s, T0 + HOUR, OLD);
    w.roles[ROLE_WORKER].replicas = 1;
    ck_assert_int_eq(identity_expiry_ms(w.roles, &w.has), T0 + 2 * HOUR);
    w.roles[ROLE_WORKER].replicas = 2;
    ck_assert_int_eq(identity_expiry_ms(w.roles, &w.has), T0 + HOUR);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("identity_plan");
    TCase *t = tcase_create("identity_plan");
    tcase_add_test(t, the_first_secret_and_its_renewals);
    tcase_add_test(t, nothing_without_master_keys);
    tcase_add_test(t, scaling_up_adds_leaves_and_scaling_down_changes_nothing);
    tcase_add_test(t, an_answer_that_is_lost);
    tcase_add_test(t, a_status_that_is_lost);
    tcase_add_test(t, a_deleted_secret_is_made_again_under_its_name);
    tcase_add_test(t, six_hundred_and_one_replicas_have_two_secrets);
    tcase_add_test(t, the_master_key_changes);
    tcase_add_test(t, a_master_key_that_is_not_trusted_any_more);
    tcase_add_test(t, a_clock_that_jumps_back);
    tcase_add_test(t, a_job_that_waited_longer_than_its_leaves_lived);
    tcase_add_test(t, cas_that_change_by_themselves);
    tcase_add_test(t, a_pod_waits_for_its_secret_and_for_the_status);
    tcase_add_test(t, a_pod_without_a_certificate_waits_for_the_status_that_says_so);
    tcase_add_loop_test(t, a_pod_that_does_not_start_puts_its_secret_in_doubt, 0, COUNT_OF(DOUBTS));
    tcase_add_test(t, a_secret_in_doubt_is_written_again);
    tcase_add_test(t, leaves_of_replicas_that_are_not_wanted_do_not_count_as_expiring);
    suite_add_tcase(s, t);
    return s;
}
