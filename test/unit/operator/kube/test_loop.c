#include "check_main.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "kube/loop_internal.h"

static void turn(struct loop *l, int64_t wait_ms)
{
    struct err e = { .code = ERR_NONE };
    ck_ok_e(loop_turn(l, wait_ms, &e));
}

/* ---- timers ---- */

enum { MANY = 500 };

struct heard {
    int64_t due[MANY];
    size_t n;
};

struct item {
    struct timer timer;
    struct heard *heard;
};

static void note(void *user)
{
    struct item *i = user;
    i->heard->due[i->heard->n++] = i->timer.due_ms;
}

/* Set in any order, some moved, some cleared: the rest fires once, in order of time. */
START_TEST(timers_come_in_order)
{
    AUTO(loop) *l = loop_new();
    struct heard heard = { .n = 0 };
    static struct item items[MANY];
    struct rng r = rng_at(1, RNG_TEST, 0, 0);
    int64_t past = clock_ms() - 10000;
    size_t cleared = 0;

    for (size_t i = 0; i < MANY; i++) {
        items[i] = (struct item){ .heard = &heard };
        timer_set(l, &items[i].timer, past + (int64_t)rng_below(&r, 5000), note, &items[i]);
    }
    for (size_t i = 0; i < MANY; i += 3)
        timer_set(l, &items[i].timer, past + (int64_t)rng_below(&r, 5000), note, &items[i]);
    for (size_t i = 0; i < MANY; i += 5, cleared++) {
        timer_clear(l, &items[i].timer);
        ck_assert(!timer_is_set(&items[i].timer));
        timer_clear(l, &items[i].timer);
    }
    turn(l, 0);
    ck_assert_uint_eq(heard.n, MANY - cleared);
    for (size_t i = 1; i < heard.n; i++)
        ck_assert_int_le(heard.due[i - 1], heard.due[i]);
    turn(l, 0);
    ck_assert_uint_eq(heard.n, MANY - cleared);
}
END_TEST

START_TEST(a_timer_is_not_early_and_wakes_the_loop)
{
    AUTO(loop) *l = loop_new();
    struct heard heard = { .n = 0 };
    struct item i = { .heard = &heard };
    int64_t due = clock_ms() + 3600000;

    timer_set(l, &i.timer, due, note, &i);
    turn(l, 0);
    ck_assert_uint_eq(heard.n, 0);
    due = clock_ms() + 50;
    timer_set(l, &i.timer, due, note, &i);
    while (heard.n == 0)
        turn(l, 600000);
    ck_assert_int_ge(clock_ms(), due);
}
END_TEST

struct chain {
    struct loop *l;
    struct timer timer, other;
    int rounds;
};

static void never(void *user)
{
    (void)user;
    ck_abort_msg("a timer that was cleared came");
}

static void again(void *user)
{
    struct chain *c = user;
    timer_clear(c->l, &c->other);
    if (++c->rounds < 5)
        timer_set(c->l, &c->timer, 0, again, c);
    else
        loop_stop(c->l);
}

/* One may clear another that is due. */
START_TEST(a_timer_may_set_itself_and_clear_others)
{
    AUTO(loop) *l = loop_new();
    struct chain c = { .l = l };
    struct err e = { .code = ERR_NONE };

    timer_set(l, &c.timer, 0, again, &c);
    timer_set(l, &c.other, 1, never, &c);
    turn(l, 0);
    ck_assert_int_le(c.rounds, 2);
    ck_ok_e(loop_run(l, &e));
    ck_assert_int_eq(c.rounds, 5);
}
END_TEST

static void for_ever(void *user)
{
    struct chain *c = user;
    timer_set(c->l, &c->timer, 0, for_ever, c);
}

static void stop(void *user)
{
    loop_stop(((struct chain *)user)->l);
}

START_TEST(a_timer_that_is_always_due_keeps_none_from_its_turn)
{
    AUTO(loop) *l = loop_new();
    struct chain c = { .l = l };
    struct err e = { .code = ERR_NONE };

    timer_set(l, &c.timer, 0, for_ever, &c);
    timer_set(l, &c.other, clock_ms() + 5, stop, &c);
    ck_ok_e(loop_run(l, &e));
}
END_TEST

/* ---- descriptors ---- */

struct pipes {
    struct loop *l;
    int a[2], b[2];
    int seen;
};

static void stop_at_byte(void *user)
{
    struct pipes *p = user;
    p->seen++;
    loop_stop(p->l);
}

START_TEST(a_descriptor_wakes_the_loop_until_it_is_forgotten)
{
    AUTO(loop) *l = loop_new();
    struct pipes p = { .l = l };
    struct err e = { .code = ERR_NONE };

    ck_assert_int_eq(pipe(p.a), 0);
    loop_watch_fd(l, p.a[0], stop_at_byte, &p);
    turn(l, 0);
    ck_assert_int_eq(p.seen, 0);
    ck_assert_int_eq(write(p.a[1], "x", 1), 1);
    ck_ok_e(loop_run(l, &e));
    ck_assert_int_eq(p.seen, 1);
    loop_watch_fd(l, p.a[0], NULL, NULL);
    turn(l, 0);
    ck_assert_int_eq(p.seen, 1);
    close(p.a[0]);
    close(p.a[1]);
}
END_TEST

static void forget_both(void *user)
{
    struct pipes *p = user;
    p->seen++;
    loop_watch_fd(p->l, p->a[0], NULL, NULL);
    loop_watch_fd(p->l, p->b[0], NULL, NULL);
}

/* Both are ready in one round; the first callback removes the other. */
START_TEST(a_callback_may_forget_what_is_ready)
{
    AUTO(loop) *l = loop_new();
    struct pipes p = { .l = l };

    ck_assert(pipe(p.a) == 0 && pipe(p.b) == 0);
    loop_watch_fd(l, p.a[0], forget_both, &p);
    loop_watch_fd(l, p.b[0], forget_both, &p);
    ck_assert(write(p.a[1], "x", 1) == 1 && write(p.b[1], "x", 1) == 1);
    turn(l, 0);
    turn(l, 0);
    ck_assert_int_eq(p.seen, 1);
    for (int i = 0; i < 2; i++) {
        close(p.a[i]);
        close(p.b[i]);
    }
}
END_TEST

START_TEST(a_fifth_descriptor_is_an_error)
{
    AUTO(loop) *l = loop_new();
    struct err e = { .code = ERR_NONE };
    int fds[5][2];

    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(pipe(fds[i]), 0);
        loop_watch_fd(l, fds[i][0], never, NULL);
    }
    ck_assert_int_lt(loop_turn(l, 0, &e), 0);
    ck_assert_int_eq(e.code, ERR_INTERNAL);
    for (int i = 0; i < 5; i++) {
        close(fds[i][0]);
        close(fds[i][1]);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("loop");
    TCase *c = tcase_create("loop");
    tcase_add_test(c, timers_come_in_order);
    tcase_add_test(c, a_timer_is_not_early_and_wakes_the_loop);
    tcase_add_test(c, a_timer_may_set_itself_and_clear_others);
    tcase_add_test(c, a_timer_that_is_always_due_keeps_none_from_its_turn);
    tcase_add_test(c, a_descriptor_wakes_the_loop_until_it_is_forgotten);
    tcase_add_test(c, a_callback_may_forget_what_is_ready);
    tcase_add_test(c, a_fifth_descriptor_is_an_error);
    suite_add_tcase(s, c);
    return s;
}
