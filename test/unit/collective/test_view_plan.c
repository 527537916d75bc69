/* Each file of test/data/views is a scenario: what is known of the members, and the plan that is wanted. Lines:
 *
 *     now 5000 | min 2 | filled 4000 | snapshots w0
 *     view 3 w0 w1 w2              the view that runs; w0:7 is another process of w0 than w0
 *     w0 training 3 40             state, view, step's first ordinal; then words: dead silent=700 behind=1 gen=4 other
 *                                  terminating trouble retry=6000 unknown
 *     join w3 w0                   a join under way, from w0
 *     want forget w3 | want failed w3 | want join w3 w1 | want change w0 w1 | want terminating | want lost
 *     want waits TEXT
 *     start w0 w1 w3               then: all of these have stopped, as they are above
 *     want start 40 w0 w1(w0)      who needs sums, and from whom
 *
 * All that a plan contains is listed. Groups are of 4 ordinals in epochs of 10. */
#include <dirent.h>

#include "check_main.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "collective/view_plan.h"

#define VIEWS "test/data/views"
enum { PEERS_MAX = 16, GENERATION = 5 };

struct scene {
    struct view_facts f;
    struct view view;
    struct view_member members[PEERS_MAX];
    struct peer_facts peers[PEERS_MAX];
    struct view_join joins[PEERS_MAX];
    size_t start[PEERS_MAX], nstart;
    struct buf want, got;
};
static const struct groups GROUPS = { .size = 4, .batches = 10, .examples = 1, .rest = 1 };

static uint64_t name_of(const char *word, char *name, size_t n)
{
    const char *colon = strchr(word, ':');
    str_fmt(name, n, "%.*s", (int)(colon != NULL ? (size_t)(colon - word) : strlen(word)), word);
    return colon != NULL ? strtoull(colon + 1, NULL, 10) : 1;
}

static size_t peer_named(const struct scene *s, const char *name)
{
    for (size_t i = 0; i < s->f.n; i++)
        if (str_eq(s->peers[i].name, name))
            return i;
    ck_abort_msg("no peer %s", name);
}

static void read_word(const struct scene *s, struct peer_facts *p, const char *word)
{
    const char *value = strchr(word, '=');
    int64_t number = value != NULL ? strtoll(value + 1, NULL, 10) : 0;
    if (str_eq(word, "dead"))
        p->alive = false;
    else if (str_starts(word, "silent="))
        p->since_ms = s->f.now_ms - number;
    else if (str_starts(word, "behind="))
        p->behind = number;
    else if (str_starts(word, "gen="))
        p->generation = (uint64_t)number;
    else if (str_starts(word, "retry="))
        p->retry_ms = number;
    else if (str_eq(word, "other"))
        p->fits = false;
    else if (str_eq(word, "terminating"))
        p->terminating = true;
    else if (str_eq(word, "trouble"))
        p->trouble = true;
    else if (str_eq(word, "unknown"))
        p->answered = false;
    else
        ck_abort_msg("what is %s?", word);
}

static void read_peer(struct scene *s, const struct strlist *w)
{
    static const char *const STATES[] = { "empty", "joining", "holding", "training" };
    struct peer_facts *p = &s->peers[s->f.n++];
    *p = (struct peer_facts){
        .alive = true, .answered = true, .fits = true, .since_ms = -1, .behind = -1, .generation = GENERATION
    };
    p->incarnation = name_of(w->items[0], p->name, sizeof(p->name));
    for (int i = 0; i < 4; i++)
        if (str_eq(w->items[1], STATES[i]))
            p->state = (enum peer_state)i;
    p->view = strtoull(w->items[2], NULL, 10);
    p->at = strtoll(w->items[3], NULL, 10);
    for (size_t i = 4; i < w->n; i++)
        read_word(s, p, w->items[i]);
}

static void read_view(struct scene *s, const struct strlist *w)
{
    s->view = (struct view){ .number = strtoull(w->items[1], NULL, 10), .members = s->members };
    for (size_t i = 2; i < w->n; i++) {
        struct view_member *m = &s->members[s->view.n++];
        m->incarnation = name_of(w->items[i], m->name, sizeof(m->name));
    }
}

static void read_line(struct scene *s, const char *line)
{
    AUTO_FINI(strlist) w = { 0 };
    strlist_split(&w, line, ' ');
    if (w.n == 0 || line[0] == '#')
        return;
    const char *first = w.items[0];
    if (str_eq(first, "want"))
        buf_printf(&s->want, "%s\n", line + strlen("want "));
    else if (str_eq(first, "now"))
        s->f.now_ms = strtoll(w.items[1], NULL, 10);
    else if (str_eq(first, "min"))
        s->f.min_members = strtoull(w.items[1], NULL, 10);
    else if (str_eq(first, "filled"))
        s->f.filled_ms = strtoll(w.items[1], NULL, 10);
    else if (str_eq(first, "snapshots"))
        s->f.snapshots = s->peers[peer_named(s, w.items[1])].name;
    else if (str_eq(first, "view"))
        read_view(s, &w);
    else if (str_eq(first, "join")) {
        struct view_join *j = &s->joins[s->f.njoins++];
        j->incarnation = name_of(w.items[1], j->name, sizeof(j->name));
        j->donor_incarnation = name_of(w.items[2], j->donor, sizeof(j->donor));
    } else if (str_eq(first, "start"))
        for (size_t i = 1; i < w.n; i++)
            s->start[s->nstart++] = peer_named(s, w.items[i]);
    else
        read_peer(s, &w);
}

static void show_plan(struct scene *s)
{
    __attribute__((cleanup(view_plan_fini))) struct view_plan p;
    view_plan_make(&s->f, &p);
    for (size_t i = 0; i < p.nforget; i++)
        buf_printf(&s->got, "%s %s\n", p.forget[i].failed ? "failed" : "forget", s->joins[p.forget[i].join].name);
    for (size_t i = 0; i < p.nbegin; i++)
        buf_printf(&s->got, "join %s %s\n", s->peers[p.begin[i].peer].name, s->peers[p.begin[i].donor].name);
    if (p.change)
        buf_printf(&s->got, "change");
    for (size_t i = 0; i < p.nnext; i++)
        buf_printf(&s->got, " %s", s->peers[p.next[i]].name);
    if (p.change)
        buf_printf(&s->got, "\n");
    if (p.terminating)
        buf_printf(&s->got, "terminating\n");
    if (p.outcome == VIEW_LOST)
        buf_printf(&s->got, "lost\n");
    if (p.outcome == VIEW_WAITS)
        buf_printf(&s->got, "waits %s\n", p.waits);
}

static void show_start(struct scene *s)
{
    __attribute__((cleanup(view_start_fini))) struct view_start v;
    view_plan_start(&s->f, s->start, s->nstart, &v);
    buf_printf(&s->got, "start %lld", (long long)v.at);
    for (size_t i = 0; i < v.n; i++) {
        buf_printf(&s->got, " %s", s->peers[v.members[i].peer].name);
        if (v.members[i].other != v.members[i].peer)
            buf_printf(&s->got, "(%s)", s->peers[v.members[i].other].name);
    }
    buf_printf(&s->got, "\n");
}

static void play(const char *path, const char *text)
{
    AUTO_FINI(strlist) lines = { 0 };
    struct scene s = { .f = { .now_ms = 100000, .generation = GENERATION, .groups = &GROUPS, .min_members = 1 },
                       .want = BUF_INIT,
                       .got = BUF_INIT };
    s.f.filled_ms = -1;
    s.f.view = &s.view;
    s.f.peers = s.peers;
    s.f.joins = s.joins;
    strlist_split(&lines, text, '\n');
    for (size_t i = 0; i < lines.n; i++)
        read_line(&s, lines.items[i]);
    if (s.nstart > 0)
        show_start(&s);
    else
        show_plan(&s);
    ck_assert_msg(str_eq(s.got.len > 0 ? s.got.data : "", s.want.len > 0 ? s.want.data : ""), "%s: got\n%swanted\n%s",
                  path, s.got.len > 0 ? s.got.data : "nothing\n", s.want.len > 0 ? s.want.data : "nothing\n");
    buf_fini(&s.want);
    buf_fini(&s.got);
}

START_TEST(each_scenario_has_its_plan)
{
    DIR *dir = opendir(VIEWS);
    int n = 0;
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *d; (d = readdir(dir)) != NULL;) {
        struct err e = { 0 };
        AUTO_FINI(buf) text = BUF_INIT;
        auto_free char *path = xasprintf(VIEWS "/%s", d->d_name);
        if (d->d_name[0] == '.')
            continue;
        ck_ok_e(file_read(path, 1 << 16, &text, &e));
        play(d->d_name, text.data);
        n++;
    }
    closedir(dir);
    ck_assert_int_ge(n, 25);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("view_plan");
    TCase *t = tcase_create("all");
    tcase_add_test(t, each_scenario_has_its_plan);
    suite_add_tcase(s, t);
    return s;
}
