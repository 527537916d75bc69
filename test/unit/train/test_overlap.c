/* When a worker computes while a push is under way: the rows are what W workers of equal speed see. */
#include "check_main.h"

#include "train/overlap.h"

enum { PUSHES = 500 };

/* The staleness that follows from whether all overlap: 2W - 1 or W - 1. */
static void live(struct overlap *o, int workers)
{
    for (int i = 0; i < PUSHES; i++)
        overlap_observe(o, o->on ? 2 * workers - 1 : workers - 1);
}

START_TEST(few_workers_overlap_and_many_do_not)
{
    static const struct row { int workers; bool on; } ROWS[] = { { 1, true }, { 2, true }, { 3, true }, { 4, false }, { 16, false } };
    const struct row *row = &ROWS[_i];
    struct overlap o = overlap_init(true);

    ck_assert(o.on);
    live(&o, row->workers);
    ck_assert_int_eq(o.on, row->on);
    int changes = 0;
    for (int i = 0; i < PUSHES; i++) {
        bool before = o.on;
        overlap_observe(&o, o.on ? 2 * row->workers - 1 : row->workers - 1);
        changes += o.on != before;
    }
    ck_assert_int_eq(changes, 0);
}
END_TEST

START_TEST(it_begins_again_when_workers_leave)
{
    struct overlap o = overlap_init(true);

    live(&o, 8);
    ck_assert(!o.on);
    live(&o, 4);
    ck_assert(!o.on);
    live(&o, 2);
    ck_assert(o.on);
}
END_TEST

START_TEST(one_late_gradient_does_not_end_it_for_good)
{
    struct overlap o = overlap_init(true);

    live(&o, 2);
    overlap_observe(&o, 5000); /* its ps was away */
    live(&o, 2);
    ck_assert(o.on);
}
END_TEST

/* A short job has not many pushes to learn from. */
START_TEST(many_workers_are_noticed_soon)
{
    struct overlap o = overlap_init(true);

    for (int i = 0; i < 8; i++)
        overlap_observe(&o, i == 0 ? 0 : 7);
    ck_assert(!o.on);
}
END_TEST

START_TEST(not_allowed_is_never)
{
    struct overlap o = overlap_init(false);

    ck_assert(!o.on);
    live(&o, 1);
    ck_assert(!o.on);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("overlap");
    TCase *c = tcase_create("overlap");
    tcase_add_loop_test(c, few_workers_overlap_and_many_do_not, 0, 5);
    tcase_add_test(c, it_begins_again_when_workers_leave);
    tcase_add_test(c, one_late_gradient_does_not_end_it_for_good);
    tcase_add_test(c, many_workers_are_noticed_soon);
    tcase_add_test(c, not_allowed_is_never);
    suite_add_tcase(s, c);
    return s;
}
