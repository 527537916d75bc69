/* The numbers of all batches of a group are added in the order of their ordinals, whatever the order they come in. */
#include "check_main.h"

#include "shard/group_sums.h"

enum { AT = 8, END = 12, BATCHES = END - AT, WIDTH = 3 };

/* Their sum depends on the order: 0.1 is lost beside 2^60, which the next one takes away. */
static const double NUMBERS[BATCHES][WIDTH] = {
    { 0x1p60, 1, 0.1 }, { 0.1, 1e-17, 0.2 }, { -0x1p60, 1e-17, 0.3 }, { 0.7, -1, 0.4 }
};

struct outcome {
    enum group_answer answer;
    const double *totals;
    bool is_new;
};

static struct group_sums *begun(int64_t at, int64_t end)
{
    struct group_sums *g = group_sums_new();
    group_sums_begin(g, at, end);
    return g;
}

static int add(struct group_sums *g, const struct group_part *p, struct outcome *ret, struct err *e)
{
    *ret = (struct outcome){ 0 };
    return group_sums_add(g, p, &ret->answer, &ret->totals, &ret->is_new, e);
}

/* One batch gives its numbers, each multiplied by `factor`. */
static int give_times(struct group_sums *g, uint32_t phase, int64_t ordinal, double factor, struct outcome *ret,
                      struct err *e)
{
    double numbers[WIDTH];
    for (size_t i = 0; i < WIDTH; i++)
        numbers[i] = factor * NUMBERS[ordinal - AT][i];
    const struct group_part p = {
        .at = AT, .phase = phase, .ordinals = &ordinal, .n = 1, .numbers = numbers, .width = WIDTH
    };
    return add(g, &p, ret, e);
}

static int give(struct group_sums *g, uint32_t phase, int64_t ordinal, struct outcome *ret, struct err *e)
{
    return give_times(g, phase, ordinal, 1, ret, e);
}

static int ask(struct group_sums *g, uint32_t phase, struct outcome *ret, struct err *e)
{
    const struct group_part p = { .at = AT, .phase = phase, .width = WIDTH };
    return add(g, &p, ret, e);
}

static void want_totals(const struct outcome *o, double factor)
{
    double want[WIDTH] = { 0 };
    for (size_t k = 0; k < BATCHES; k++)
        for (size_t i = 0; i < WIDTH; i++)
            want[i] += factor * NUMBERS[k][i];
    ck_assert_int_eq((int)o->answer, GROUP_TOTALS);
    ck_assert_mem_eq(o->totals, want, sizeof(want));
}

static void complete(struct group_sums *g, uint32_t phase, double factor)
{
    struct err e = { 0 };
    struct outcome o;
    for (int64_t i = AT; i < END - 1; i++)
        ck_fails(give_times(g, phase, i, factor, &o, &e), ERR_PENDING, "");
    ck_ok_e(give_times(g, phase, END - 1, factor, &o, &e));
    want_totals(&o, factor);
}

static void swap(int64_t *a, int64_t *b)
{
    int64_t t = *a;
    *a = *b;
    *b = t;
}

static void check_order(const int64_t order[BATCHES])
{
    struct err e = { 0 };
    struct outcome o;
    struct group_sums *g = begun(AT, END);
    for (size_t i = 0; i < BATCHES - 1; i++) {
        ck_fails(give(g, 0, order[i], &o, &e), ERR_PENDING, "the batch statistics of batch");
        ck_assert(!o.is_new);
    }
    ck_ok_e(give(g, 0, order[BATCHES - 1], &o, &e));
    ck_assert(o.is_new);
    want_totals(&o, 1);
    group_sums_free(g);
}

static void permute(int64_t *order, size_t from)
{
    if (from == BATCHES)
        check_order(order);
    for (size_t i = from; i < BATCHES; i++) {
        swap(&order[from], &order[i]);
        permute(order, from + 1);
        swap(&order[from], &order[i]);
    }
}

START_TEST(the_order_of_arrival_does_not_matter)
{
    double forward = 0, back = 0;
    int64_t order[BATCHES] = { 8, 9, 10, 11 };
    for (size_t k = 0; k < BATCHES; k++) {
        forward += NUMBERS[k][0];
        back += NUMBERS[BATCHES - 1 - k][0];
    }
    ck_assert_mem_ne(&forward, &back, sizeof(back)); /* or this test has nothing to find */
    permute(order, 0);
}
END_TEST

START_TEST(a_part_may_have_several_batches)
{
    static const int64_t ORDINALS[] = { 11, 8, 9 };
    struct err e = { 0 };
    struct outcome o;
    double numbers[3 * WIDTH];
    struct group_sums *g = begun(AT, END);
    for (size_t k = 0; k < 3; k++)
        memcpy(numbers + k * WIDTH, NUMBERS[ORDINALS[k] - AT], sizeof(NUMBERS[0]));
    const struct group_part p = { .at = AT, .ordinals = ORDINALS, .n = 3, .numbers = numbers, .width = WIDTH };
    ck_fails(add(g, &p, &o, &e), ERR_PENDING, "the batch statistics of batch 10");
    ck_ok_e(give(g, 0, 10, &o, &e));
    want_totals(&o, 1);
    group_sums_free(g);
}
END_TEST

START_TEST(numbers_that_come_twice_count_once)
{
    static const int64_t TWICE[] = { 8, 8 };
    struct err e = { 0 };
    struct outcome o;
    double numbers[2 * WIDTH] = { 0 };
    struct group_sums *g = begun(AT, END);
    memcpy(numbers, NUMBERS[0], sizeof(NUMBERS[0]));
    const struct group_part p = { .at = AT, .ordinals = TWICE, .n = 2, .numbers = numbers, .width = WIDTH };
    ck_fails(add(g, &p, &o, &e), ERR_PENDING, "of batches 9, 10, 11"); /* the first ones count */
    ck_fails(give(g, 0, 9, &o, &e), ERR_PENDING, "of batches 10, 11");
    ck_fails(give_times(g, 0, 9, 5, &o, &e), ERR_PENDING, "of batches 10, 11");
    ck_fails(give(g, 0, 10, &o, &e), ERR_PENDING, "of batch 11");
    ck_ok_e(give(g, 0, 11, &o, &e));
    want_totals(&o, 1);
    ck_ok_e(give_times(g, 0, 11, 5, &o, &e)); /* the phase is complete */
    ck_assert(!o.is_new);
    want_totals(&o, 1);
    group_sums_free(g);
}
END_TEST

START_TEST(complete_phases_answer_again)
{
    struct err e = { 0 };
    struct outcome o;
    struct group_sums *g = begun(AT, END);
    for (uint32_t phase = 0; phase < 5; phase++)
        complete(g, phase, 1 + phase);
    ck_fails(give_times(g, 5, 9, 6, &o, &e), ERR_PENDING, "of batches 8, 10, 11");
    for (uint32_t phase = 0; phase < 5; phase++) {
        ck_ok_e(ask(g, phase, &o, &e));
        want_totals(&o, 1 + phase);
        ck_assert(!o.is_new);
    }
    group_sums_free(g);
}
END_TEST

START_TEST(a_phase_begins_when_all_before_it_are_complete)
{
    struct err e = { 0 };
    struct outcome o;
    struct group_sums *g = begun(AT, END);
    ck_ok_e(give(g, 1, 8, &o, &e));
    ck_assert_int_eq((int)o.answer, GROUP_AGAIN);
    complete(g, 0, 1);
    ck_ok_e(give(g, 2, 8, &o, &e));
    ck_assert_int_eq((int)o.answer, GROUP_AGAIN);
    complete(g, 1, 2); /* what was refused was not taken */
    group_sums_free(g);
}
END_TEST

START_TEST(a_part_without_batches_asks)
{
    struct err e = { 0 };
    struct outcome o;
    struct group_sums *g = begun(AT, END);
    ck_fails(ask(g, 0, &o, &e), ERR_PENDING, "the batch statistics of batches 8, 9, 10, 11");
    const struct group_part wide = { .at = AT, .width = WIDTH + 1 };
    ck_fails(add(g, &wide, &o, &e), ERR_PENDING, "of batches 8, 9, 10, 11");
    complete(g, 0, 1); /* who asked first did not decide the width */
    ck_ok_e(ask(g, 0, &o, &e));
    want_totals(&o, 1);
    group_sums_free(g);
}
END_TEST

START_TEST(numbers_that_were_given_before_may_be_gone)
{
    static const int64_t ORDINALS[] = { 8, 9 };
    struct err e = { 0 };
    struct outcome o;
    struct group_sums *g = begun(AT, END);
    const struct group_part given = { .at = AT, .ordinals = ORDINALS, .n = 2, .width = WIDTH };
    ck_fails(give(g, 0, 8, &o, &e), ERR_PENDING, "");
    ck_fails(add(g, &given, &o, &e), ERR_LOST, "the batch statistics of batch 9 must be given again");
    ck_fails(give(g, 0, 9, &o, &e), ERR_PENDING, "");
    ck_fails(add(g, &given, &o, &e), ERR_PENDING, "the batch statistics of batches 10, 11");
    ck_fails(give(g, 0, 10, &o, &e), ERR_PENDING, "");
    ck_ok_e(give(g, 0, 11, &o, &e));
    ck_ok_e(add(g, &given, &o, &e)); /* the sums are what they are for */
    want_totals(&o, 1);
    group_sums_free(g);
}
END_TEST

START_TEST(missing_batches_are_named)
{
    static const double ONE = 1;
    struct err e = { 0 };
    struct outcome o;
    int64_t ordinal = 102;
    struct group_sums *g = begun(100, 107);
    const struct group_part p = { .at = 100, .ordinals = &ordinal, .n = 1, .numbers = &ONE, .width = 1 };
    ck_fails(add(g, &p, &o, &e), ERR_PENDING, "the batch statistics of batches 100, 101, 103, 104 and 2 more");
    group_sums_free(g);
}
END_TEST

START_TEST(all_batches_give_as_many_numbers)
{
    struct err e = { 0 };
    struct outcome o;
    struct group_sums *g = begun(AT, END);
    const struct group_part narrow = { .at = AT, .width = WIDTH - 1 };
    ck_fails(give(g, 0, 9, &o, &e), ERR_PENDING, "");
    ck_fails(add(g, &narrow, &o, &e), ERR_INPUT, "phase 0: 2 numbers of a batch, those of other batches have 3");
    ck_fails(give(g, 0, 8, &o, &e), ERR_PENDING, "");
    ck_fails(give(g, 0, 10, &o, &e), ERR_PENDING, "");
    ck_ok_e(give(g, 0, 11, &o, &e));
    ck_fails(add(g, &narrow, &o, &e), ERR_INPUT, "phase 0: 2 numbers of a batch, those of other batches have 3");
    group_sums_free(g);
}
END_TEST

static void refused(struct group_sums *g, const struct group_part *p, const char *text)
{
    struct err e;
    struct outcome o;
    ck_fails(add(g, p, &o, &e), ERR_INPUT, text);
}

static void refused_of(struct group_sums *g, const int64_t *ordinals, size_t n, const char *text)
{
    static const double N[5 * WIDTH];
    refused(g, &(struct group_part){ .at = AT, .ordinals = ordinals, .n = n, .numbers = N, .width = WIDTH }, text);
}

START_TEST(what_is_out_of_bounds_is_refused)
{
    struct group_sums *g = begun(AT, END);
    refused_of(g, (const int64_t[]){ 12 }, 1, "batch 12 is not in the group of batches 8 to 11");
    refused_of(g, (const int64_t[]){ INT64_MAX }, 1, "batch 9223372036854775807 is not in the group");
    refused_of(g, (const int64_t[]){ INT64_MIN }, 1, "batch -9223372036854775808 is not in the group");
    refused_of(g, (const int64_t[]){ 8, 7 }, 2, "batch 7 is not in the group of batches 8 to 11");
    refused_of(g, (const int64_t[]){ 8, 9, 10, 11, 8 }, 5, "numbers of 5 batches, the group has 4");
    struct group_part p = { .at = AT, .phase = 1 << 16, .width = WIDTH };
    refused(g, &p, "phase 65536, at most 65536 phases");
    p.phase = 0;
    p.width = 0;
    refused(g, &p, "0 numbers of a batch, must be 1 to 65536");
    p.width = GROUP_SUMS_WIDTH_MAX + 1;
    refused(g, &p, "65537 numbers of a batch, must be 1 to 65536");
    complete(g, 0, 1); /* of none of them was a batch taken */
    group_sums_free(g);
}
END_TEST

START_TEST(a_group_has_a_largest_size)
{
    struct err e = { 0 };
    struct outcome o;
    struct group_sums *g = begun(0, GROUP_SUMS_ORDINALS_MAX);
    const struct group_part p = { .width = 1 };
    ck_fails(add(g, &p, &o, &e), ERR_PENDING, "of batches 0, 1, 2, 3 and 60 more");
    group_sums_begin(g, 0, GROUP_SUMS_ORDINALS_MAX + 1);
    ck_fails(add(g, &p, &o, &e), ERR_INPUT, "sums of 65 batches, at most 64");
    group_sums_free(g);
}
END_TEST

START_TEST(the_sums_of_a_step_have_a_largest_size)
{
    static const double WIDE[GROUP_SUMS_WIDTH_MAX];
    static const int64_t ZERO = 0;
    struct err e = { 0 };
    struct outcome o;
    struct group_sums *g = begun(0, 1);
    struct group_part p = { .ordinals = &ZERO, .n = 1, .numbers = WIDE, .width = GROUP_SUMS_WIDTH_MAX };
    for (; p.phase < GROUP_SUMS_KEPT_MAX / GROUP_SUMS_WIDTH_MAX; p.phase++)
        ck_ok_e(add(g, &p, &o, &e));
    p.width = 1;
    ck_fails(add(g, &p, &o, &e), ERR_INPUT, "more than 4194304 sums in a step");
    group_sums_begin(g, 0, 1); /* the next step has room */
    p.phase = 0;
    ck_ok_e(add(g, &p, &o, &e));
    group_sums_free(g);
}
END_TEST

START_TEST(the_next_step_knows_nothing_of_the_one_before)
{
    struct err e = { 0 };
    struct outcome o;
    struct group_sums *g = group_sums_new();
    ck_assert_int_eq(group_sums_at(g), -1);
    group_sums_begin(g, AT, END);
    ck_assert_int_eq(group_sums_at(g), AT);
    complete(g, 0, 1);
    ck_fails(give(g, 1, 9, &o, &e), ERR_PENDING, "of batches 8, 10, 11");
    group_sums_begin(g, AT, END);
    ck_ok_e(ask(g, 1, &o, &e));
    ck_assert_int_eq((int)o.answer, GROUP_AGAIN);
    ck_fails(ask(g, 0, &o, &e), ERR_PENDING, "of batches 8, 9, 10, 11");
    complete(g, 0, 3);
    group_sums_free(g);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("group_sums");
    TCase *t = tcase_create("group_sums");
    tcase_add_test(t, the_order_of_arrival_does_not_matter);
    tcase_add_test(t, a_part_may_have_several_batches);
    tcase_add_test(t, numbers_that_come_twice_count_once);
    tcase_add_test(t, complete_phases_answer_again);
    tcase_add_test(t, a_phase_begins_when_all_before_it_are_complete);
    tcase_add_test(t, a_part_without_batches_asks);
    tcase_add_test(t, numbers_that_were_given_before_may_be_gone);
    tcase_add_test(t, missing_batches_are_named);
    tcase_add_test(t, all_batches_give_as_many_numbers);
    tcase_add_test(t, what_is_out_of_bounds_is_refused);
    tcase_add_test(t, a_group_has_a_largest_size);
    tcase_add_test(t, the_sums_of_a_step_have_a_largest_size);
    tcase_add_test(t, the_next_step_knows_nothing_of_the_one_before);
    suite_add_tcase(s, t);
    return s;
}
