/* Which members get batches in MultiWorkerMirrored: 20 batches in two epochs, groups of 4, 4 and 2. */
#include "coordinator_world.h"

/* Of MultiWorkerMirrored: "01" is a view of worker-0 and worker-1, whose incarnations are 1 and 2. */
static void run_view(struct world *d, const char *numbers)
{
    struct view_member members[3] = { { .incarnation = 0 } };
    const struct view v = { .number = 1, .members = members, .n = strlen(numbers) };
    for (size_t i = 0; i < v.n; i++) {
        members[i].incarnation = (uint64_t)(numbers[i] - '0') + 1;
        str_fmt(members[i].name, sizeof(members[i].name), "worker-%c", numbers[i]);
    }
    coordinator_set_view(d->c, &v);
}

static struct world open_members(int workers)
{
    static const char *const NAMES[] = { "worker-0", "worker-1", "worker-2" };
    struct world d = open_views(TOTAL, 4);
    for (int i = 0; i < workers; i++)
        ck_assert_int_eq(enrol(&d, NAMES[i], (uint64_t)i + 1, 0), 0);
    return d;
}

/* A newcomer that takes the state of another worker computes nothing yet: all others would wait for its share. */
START_TEST(only_members_of_the_view_get_batches)
{
    struct world d = open_members(3);
    want_batches(&d, "worker-0", 4, "");
    ck_assert_str_eq(d.reply.message, "its place among the workers that train");
    ck_assert_uint_eq(d.reply.wait_ms, 20);
    ck_assert_int_eq(look(&d).training, 3);
    run_view(&d, "01");
    ck_assert_int_eq(look(&d).training, 2);
    want_batches(&d, "worker-2", 4, "");
    want_batches(&d, "worker-0", 4, "0-2 4-6"); /* worker-2 has no share */
    want_batches(&d, "worker-1", 4, "2-4 6-8");
    ck_assert_int_eq(enrol(&d, "worker-1", 9, 0), 0); /* another process of that name is not a member */
    ck_assert_int_eq(assign(&d, "worker-1", 9, (struct ordinal_ranges){ 0 }, 4, 0), 0);
    run_view(&d, "02");
    want_batches(&d, "worker-2", 4, "2-3 6-8"); /* 2 alone: a worker died of it, perhaps */
    run_view(&d, "");
    want_batches(&d, "worker-2", 4, "");
    ck_assert_int_eq(look(&d).training, 3);
    close_coordinator(&d);
}
END_TEST

/* The others go on with what a lost member held. Its silence here decides nothing. */
START_TEST(who_is_left_out_of_a_view_holds_nothing)
{
    struct world d = open_members(2);
    const struct ordinal_ranges held = { .r = (int64_t[]){ 0, 2, 4, 6 }, .n = 4 };
    struct register_request again = registration("worker-0", 1);
    run_view(&d, "01");
    want_batches(&d, "worker-0", 4, "0-2 4-6");
    coordinator_tick(d.c, SILENCE_MS + 1);
    ck_assert_uint_eq(look(&d).stalls, 0);
    run_view(&d, ""); /* too few: whoever goes on may be the one that holds them */
    run_view(&d, "01");
    want_batches(&d, "worker-1", 2, "2-4");
    ck_assert_int_eq(assign(&d, "worker-1", 2, (struct ordinal_ranges){ 0 }, 1, 0), 2);
    ck_assert_int_eq(d.reply.first, 6);
    coordinator_set_view(d.c, &(struct view){ 0 });
    run_view(&d, "1");
    ck_assert_int_eq(look(&d).poisoned, -1);
    again.held = held; /* it was paused, and speaks of what it held */
    ck_assert_int_eq(coordinator_register(d.c, &again, SILENCE_MS + 2, &d.reply, &d.e), 0);
    ck_assert_int_gt(assign(&d, "worker-1", 2, (struct ordinal_ranges){ 0 }, 4, SILENCE_MS + 2), 0);
    ck_assert_int_eq(d.reply.first, 0);
    close_coordinator(&d);
}
END_TEST

/* The chief was stopped for long and takes all for lost. Those that call are the processes that the view has. */
START_TEST(a_member_that_registers_again_is_in_its_view)
{
    struct world d = open_members(1);
    run_view(&d, "0");
    coordinator_tick(d.c, LEASE_MS + 1);
    ck_assert_int_eq(look(&d).workers, 0);
    ck_assert_int_eq(enrol(&d, "worker-0", 1, LEASE_MS + 2), 0);
    ck_assert_int_eq(look(&d).training, 1);
    want_lease(&d, "worker-0", &(struct lease_request){ .want = 4 }, LEASE_MS + 2, "0-4");
    close_coordinator(&d);
}
END_TEST

/* Three times the same batch, of a member that was left out of the view before its process ended. */
START_TEST(the_batch_of_members_that_died_is_named)
{
    struct world d = open_views(TOTAL, 4);
    for (uint64_t life = 1; life <= 3; life++) {
        struct view_member m = { .name = "worker-0", .incarnation = life };
        struct view with = { .number = life, .members = &m, .n = 1 };
        ck_assert_int_eq(look(&d).poisoned, -1);
        ck_assert_int_eq(enrol(&d, "worker-0", life, 0), 0);
        coordinator_set_view(d.c, &with);
        ck_assert_int_eq(lease(&d, "worker-0", life, 0), 0);
        ck_assert_int_eq(d.reply.first, 0);
        m.incarnation = 99;
        coordinator_set_view(d.c, &with);
    }
    ck_assert_int_eq(look(&d).poisoned, -1);
    ck_assert_int_eq(enrol(&d, "worker-0", 4, 0), 0);
    ck_assert_int_eq(look(&d).poisoned, 0);
    close_coordinator(&d);
}
END_TEST

/* Views of worker-0 and worker-1, and of worker-1 without it. */
struct pair {
    struct view_member members[2];
    struct view with, without;
};

/* Both register, as processes of this incarnation, and train. */
static void enter_pair(struct world *d, uint64_t life, struct pair *ret)
{
    *ret = (struct pair){ .members = { { .name = "worker-1", .incarnation = life },
                                       { .name = "worker-0", .incarnation = life } } };
    ret->with = (struct view){ .number = life, .members = ret->members, .n = 2 };
    ret->without = (struct view){ .number = life, .members = ret->members, .n = 1 };
    ck_assert_int_eq(enrol(d, "worker-0", life, 0), 0);
    ck_assert_int_eq(enrol(d, "worker-1", life, 0), 0);
    coordinator_set_view(d->c, &ret->with);
}

/* It was left out and came back, still holds what others have now, and got more: it computes the lowest. */
START_TEST(the_lowest_batch_of_a_member_that_came_back_is_named)
{
    struct world d = open_views(TOTAL, 4);
    const struct ordinal_ranges held = { .r = (int64_t[]){ 0, 4 }, .n = 2 };
    for (uint64_t life = 1; life <= 3; life++) {
        struct pair p;
        const struct leave_request leave = { .sender = sender("worker-1", life) };
        enter_pair(&d, life, &p);
        ck_assert_int_eq(lease(&d, "worker-0", life, 0), 0);
        ck_assert_int_eq(d.reply.first, 0);
        coordinator_set_view(d.c, &p.without);
        ck_assert_int_gt(assign(&d, "worker-1", life, (struct ordinal_ranges){ 0 }, 4, 0), 0);
        ck_assert_int_eq(d.reply.first, 0);
        coordinator_set_view(d.c, &p.with);
        ck_assert_int_gt(assign(&d, "worker-0", life, held, 4, 0), 0);
        ck_assert_int_gt(d.reply.first, 0);
        ck_assert_int_eq(coordinator_leave(d.c, &leave, 0, &d.reply, &d.e), 0);
    }
    ck_assert_int_eq(look(&d).poisoned, -1);
    ck_assert_int_eq(enrol(&d, "worker-0", 4, 0), 0);
    ck_assert_int_eq(look(&d).poisoned, 0);
    close_coordinator(&d);
}
END_TEST

/* The same, of a lower one that it got then, and lost with the next view. */
START_TEST(a_lower_batch_of_a_member_that_came_back_is_named)
{
    struct world d = open_views(TOTAL, 4);
    const struct ordinal_ranges held = { .r = (int64_t[]){ 4, 8 }, .n = 2 };
    for (uint64_t life = 1; life <= 3; life++) {
        struct pair p;
        const struct leave_request leave = { .sender = sender("worker-1", life) };
        enter_pair(&d, life, &p);
        while (assign(&d, "worker-1", life, (struct ordinal_ranges){ .r = (int64_t[]){ 0, 4 }, .n = 2 }, 1, 0) > 0 &&
               d.reply.first < 3)
            continue;
        ck_assert_int_gt(assign(&d, "worker-0", life, (struct ordinal_ranges){ 0 }, 1, 0), 0);
        ck_assert_int_ge(d.reply.first, 4);
        coordinator_set_view(d.c, &p.without);
        ck_assert_int_eq(coordinator_leave(d.c, &leave, 0, &d.reply, &d.e), 0);
        coordinator_set_view(d.c, &p.with);
        ck_assert_int_gt(assign(&d, "worker-0", life, held, 1, 0), 0);
        ck_assert_int_eq(d.reply.first, 0);
        coordinator_set_view(d.c, &p.without);
        ck_assert_int_eq(look(&d).poisoned, -1);
    }
    ck_assert_int_eq(enrol(&d, "worker-0", 4, 0), 0);
    ck_assert_int_eq(look(&d).poisoned, 0);
    close_coordinator(&d);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("coordinator_views");
    TCase *t = tcase_create("coordinator_views");
    tcase_add_test(t, only_members_of_the_view_get_batches);
    tcase_add_test(t, who_is_left_out_of_a_view_holds_nothing);
    tcase_add_test(t, a_member_that_registers_again_is_in_its_view);
    tcase_add_test(t, the_batch_of_members_that_died_is_named);
    tcase_add_test(t, the_lowest_batch_of_a_member_that_came_back_is_named);
    tcase_add_test(t, a_lower_batch_of_a_member_that_came_back_is_named);
    suite_add_tcase(s, t);
    return s;
}
