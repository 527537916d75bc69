/* The threads that decode the records of a batch: every row is written once, whoever reads it, and of several damaged
 * records the first one is the error. */
#include "data/read_team.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "check_main.h"

enum { ROWS = 100, CALLERS = 3, TURNS = 100, YIELDS = 100, WIDTH = 2 };

/* Records whose features are their number, and twice their number. */
struct numbers {
    struct records records;
    atomic_int reads;
    int64_t damaged[2]; /* -1: none */
    int64_t late;       /* lets the others run before it returns */
    struct mutex lock;
    struct cond changed;
    int inside, wanted; /* a read waits until so many are in progress; 0: none waits */
};

static int numbers_read(const struct records *r, const int64_t *which, size_t n, void *x, void *y, float *w,
                        struct err *e)
{
    struct numbers *s = (struct numbers *)(uintptr_t)r;
    ck_assert_uint_eq(n, 1);
    atomic_fetch_add(&s->reads, 1);
    if (s->wanted > 0) {
        MUTEX_GUARD(&s->lock);
        s->inside++;
        cond_broadcast(&s->changed);
        while (s->inside < s->wanted)
            cond_wait(&s->changed, &s->lock);
    }
    for (int i = 0; *which == s->late && i < YIELDS; i++)
        sched_yield();
    if (*which == s->damaged[0] || *which == s->damaged[1])
        return err_set(e, ERR_INPUT, "record %lld", (long long)*which);
    ((float *)x)[0] = (float)*which;
    ((float *)x)[1] = (float)*which * 2;
    *(int32_t *)y = (int32_t)*which * 3;
    *w = (float)*which * 4;
    return 0;
}

static const struct records_ops NUMBERS = { .read = numbers_read };

static void numbers_init(struct numbers *s)
{
    *s = (struct numbers){
        .records = { .ops = &NUMBERS, .n = ROWS, .x_type = DT_FLOAT, .has_labels = true, .has_weights = true },
        .damaged = { -1, -1 },
        .late = -1
    };
    s->records.x = shape_of(1, (int64_t[]){ WIDTH });
    s->records.y = shape_of(0, NULL);
    mutex_init(&s->lock);
    cond_init(&s->changed);
}

static void numbers_fini(struct numbers *s)
{
    cond_fini(&s->changed);
    mutex_fini(&s->lock);
}
DEFINE_AUTO_FINI(numbers, numbers_fini);

struct room {
    int64_t which[ROWS];
    float x[ROWS][WIDTH], w[ROWS];
    int32_t y[ROWS];
};

/* A batch in descending order. */
static struct read_rows rows_of(struct room *r)
{
    for (int i = 0; i < ROWS; i++)
        r->which[i] = ROWS - 1 - i;
    return (struct read_rows){ .which = r->which, .n = ROWS, .x = r->x, .y = r->y, .w = r->w };
}

static void check_rows(const struct room *r)
{
    for (int i = 0; i < ROWS; i++) {
        int number = ROWS - 1 - i;
        ck_assert_int_eq((int)r->x[i][0], number);
        ck_assert_int_eq((int)r->x[i][1], number * 2);
        ck_assert_int_eq(r->y[i], number * 3);
        ck_assert_int_eq((int)r->w[i], number * 4);
    }
}

START_TEST(all_rows_are_read_once)
{
    AUTO_FINI(numbers) s;
    numbers_init(&s);
    AUTO(read_team) *t = read_team_new(&s.records, (size_t)_i);
    struct room room = { .x = { { 0 } } };
    struct read_rows rows = rows_of(&room);
    struct err e;
    ck_ok_e(read_team_read(t, &rows, &e));
    check_rows(&room);
    ck_assert_int_eq(s.reads, ROWS);
    rows.n = 0;
    ck_ok_e(read_team_read(t, &rows, &e));
    ck_assert_int_eq(s.reads, ROWS);
}
END_TEST

/* Each read waits until all threads and the caller are reading. */
START_TEST(all_threads_read)
{
    AUTO_FINI(numbers) s;
    numbers_init(&s);
    AUTO(read_team) *t = read_team_new(&s.records, READ_TEAM_MAX + 5);
    struct room room = { .x = { { 0 } } };
    struct read_rows rows = rows_of(&room);
    struct err e;
    s.wanted = READ_TEAM_MAX + 1;
    ck_ok_e(read_team_read(t, &rows, &e));
    check_rows(&room);
}
END_TEST

/* Two neighbours are damaged and are read at the same time; now one of them is read to its end first, now the other. */
START_TEST(the_first_damaged_record_is_the_error)
{
    AUTO_FINI(numbers) s;
    numbers_init(&s);
    AUTO(read_team) *t = read_team_new(&s.records, 1);
    struct room room;
    struct read_rows rows = rows_of(&room);
    struct err e = { .code = ERR_NONE };
    s.damaged[0] = ROWS - 1;
    s.damaged[1] = ROWS - 2;
    s.wanted = 2;
    for (int i = 0; i < TURNS; i++) {
        s.inside = 0;
        s.late = s.damaged[i % 2];
        ck_assert_int_eq(read_team_read(t, &rows, &e), -1);
        ck_assert_str_eq(e.msg, "record 99");
        ck_assert_int_eq(e.code, ERR_INPUT);
        s.inside = 0;
        ck_assert_int_eq(read_team_read(t, &rows, NULL), -1);
    }
    s.damaged[0] = s.damaged[1] = -1;
    s.wanted = 0;
    ck_ok_e(read_team_read(t, &rows, &e));
    check_rows(&room);
}
END_TEST

/* After the error no further records are read. */
START_TEST(a_damaged_record_ends_the_batch)
{
    AUTO_FINI(numbers) s;
    numbers_init(&s);
    AUTO(read_team) *t = read_team_new(&s.records, 0);
    struct room room;
    struct read_rows rows = rows_of(&room);
    s.damaged[0] = ROWS - 3;
    ck_assert_int_eq(read_team_read(t, &rows, NULL), -1);
    ck_assert_int_eq(s.reads, 3);
}
END_TEST

static void read_many(void *user)
{
    for (int i = 0; i < TURNS; i++) {
        struct room room = { .x = { { 0 } } };
        struct read_rows rows = rows_of(&room);
        ck_assert_int_eq(read_team_read(user, &rows, NULL), 0);
        check_rows(&room);
    }
}

START_TEST(several_callers_share_the_threads)
{
    AUTO_FINI(numbers) s;
    numbers_init(&s);
    AUTO(read_team) *t = read_team_new(&s.records, 2);
    struct thread callers[CALLERS] = { { .started = false } };
    for (int i = 0; i < CALLERS; i++)
        ck_assert_int_eq(thread_start(&callers[i], "caller", read_many, t, NULL), 0);
    for (int i = 0; i < CALLERS; i++)
        thread_join(&callers[i]);
    ck_assert_int_eq(s.reads, CALLERS * TURNS * ROWS);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/read_team");
    TCase *t = tcase_create("read_team");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, all_rows_are_read_once, 0, READ_TEAM_MAX + 2);
    tcase_add_test(t, all_threads_read);
    tcase_add_test(t, the_first_damaged_record_is_the_error);
    tcase_add_test(t, a_damaged_record_ends_the_batch);
    tcase_add_test(t, several_callers_share_the_threads);
    return s;
}
