#include "check_main.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/thread.h"
#include "shard/generation.h"

static char dir[] = "/tmp/trainyard-generation.XXXXXX";
static const struct generation NONE = { 0 };

static void make(void)
{
    memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_all(void)
{
    auto_free char *command = xasprintf("rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static void put(const char *name, const char *text)
{
    auto_free char *path = path_join(dir, name);
    struct err e = { 0 };
    ck_ok_e(file_write(path, text, strlen(text), &e));
}

static bool there(const char *name)
{
    auto_free char *path = path_join(dir, name);
    return file_exists(path);
}

static void want_file(uint64_t number, uint64_t incarnation)
{
    struct generation now = { 0 };
    struct err e = { 0 };
    ck_ok_e(generation_read(dir, &now, &e));
    ck_assert_msg(now.number == number && now.incarnation == incarnation, "%llu %llx", (unsigned long long)now.number,
                  (unsigned long long)now.incarnation);
}

#define ck_fenced(call, text)                                                                                          \
    do {                                                                                                               \
        e = (struct err){ 0 };                                                                                         \
        ck_assert_int_eq((call), -1);                                                                                  \
        ck_assert_msg(e.code == ERR_FENCED && strstr(e.msg, (text)) != NULL, "%d %s", (int)e.code, e.msg);             \
    } while (0)

static struct generation claim(const struct generation *held, uint64_t incarnation, uint64_t above)
{
    struct generation g = { 0 };
    struct err e = { 0 };
    ck_ok_e(generation_claim(dir, held, incarnation, above, NULL, &g, &e));
    ck_assert_uint_eq(g.incarnation, incarnation);
    return g;
}

static struct generation take(const struct generation *held, uint64_t incarnation, uint64_t above)
{
    struct generation g = claim(held, incarnation, above);
    struct err e = { 0 };
    ck_ok_e(generation_publish(dir, held, &g, &e));
    return g;
}

START_TEST(one_after_the_other)
{
    struct err e = { 0 };
    want_file(0, 0);
    struct generation a = take(&NONE, 0xa1, 0);
    want_file(1, 0xa1);
    a = take(&a, 0xa1, 0);
    want_file(2, 0xa1);
    struct generation b = take(&NONE, 0xb2, 41);
    ck_assert_uint_eq(b.number, 42);
    want_file(42, 0xb2);
    ck_assert(there("generation.42") && !there("generation.2") &&
              !there("generation.1")); /* only its own claim is left */
    ck_fenced(generation_claim(dir, &a, 0xa1, 0, NULL, &a, &e), "generation 42 has begun under another chief");
    want_file(42, 0xb2);
}
END_TEST

START_TEST(the_number_alone_is_understood)
{
    put("generation", "17\n");
    want_file(17, 0);
    (void)take(&NONE, 0xc3, 0);
    want_file(18, 0xc3);
}
END_TEST

START_TEST(other_content_is_refused_with_the_file)
{
    static const char *const bad[] = {
        "many\n", "", "1 2 3\n", "-4\n", "5 x\n", "5 00000000000000001\n", "99999999999999999999 1\n"
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct generation g;
        struct err e = { 0 };
        put("generation", bad[i]);
        ck_assert_int_eq(generation_read(dir, &g, &e), -1);
        ck_assert_msg(e.code == ERR_INPUT && str_starts(e.msg, dir), "%s: %s", bad[i], e.msg);
    }
}
END_TEST

struct waiting {
    struct thread thread;
    struct generation got;
    int result;
    struct err error;
};

static void claim_in_thread(void *user)
{
    struct waiting *w = user;
    w->result = generation_claim(dir, &NONE, 0xb, 0, &REPORT_TO_LOG, &w->got, &w->error);
}

/* The generation is claimed and its chief runs: it is in the file while the second chief waits. */
START_TEST(who_finds_the_number_claimed_is_fenced)
{
    struct generation a = claim(&NONE, 0xa, 0);
    struct waiting b = { 0 };
    struct err e = { 0 };
    int pipes[2];
    char line[400] = "";
    ck_assert(pipe(pipes) == 0 && dup2(pipes[1], STDERR_FILENO) >= 0);
    ck_ok_e(thread_start(&b.thread, "second", claim_in_thread, &b, &e));
    ck_assert_int_gt(read(pipes[0], line, sizeof(line) - 1), 0);
    ck_assert_msg(strstr(line, "waiting for another chief, which has claimed generation 1") != NULL, "%s", line);
    ck_ok_e(generation_publish(dir, &NONE, &a, &e));
    thread_join(&b.thread);
    ck_assert_msg(b.result == -1 && b.error.code == ERR_FENCED, "%s", b.error.msg);
    want_file(1, 0xa);
    ck_assert(there("generation.1"));
}
END_TEST

START_TEST(a_claim_whose_chief_died_is_passed_over)
{
    (void)take(&NONE, 0xa, 0);
    (void)claim(&NONE, 0xdead, 0); /* 2: killed before it started */
    struct generation b = take(&NONE, 0xb, 0);
    ck_assert_uint_eq(b.number, 3);
    want_file(3, 0xb);
    ck_assert(!there("generation.2"));
}
END_TEST

START_TEST(a_chief_that_leads_yields_to_a_claim)
{
    struct err e = { 0 };
    struct generation a = take(&NONE, 0xa, 0), next = { 0 };
    (void)claim(&NONE, 0xb, 0);
    ck_fenced(generation_claim(dir, &a, 0xa, 0, NULL, &next, &e), "another chief has claimed generation 2");
    want_file(1, 0xa);
}
END_TEST

/* The chief was paused between its claim and the file. */
START_TEST(who_comes_too_late_with_its_claim_is_fenced)
{
    struct err e = { 0 };
    struct generation a = claim(&NONE, 0xa, 0);
    struct generation b = take(&NONE, 0xb, 1);
    ck_assert_uint_eq(b.number, 2);
    ck_fenced(generation_publish(dir, &NONE, &a, &e), "generation 2 has begun");
    want_file(2, 0xb);
    ck_assert(there("generation.2"));

    struct generation c = claim(&b, 0xb, 0); /* and while it leads */
    put("generation", "9 000000000000000d\n");
    ck_fenced(generation_publish(dir, &b, &c, &e), "generation 9 has begun");
    want_file(9, 0xd);
}
END_TEST

START_TEST(a_higher_claim_wins)
{
    struct err e = { 0 };
    struct generation a = claim(&NONE, 0xa, 0), b = { .number = 5, .incarnation = 0xb };
    put("generation.5", "5 000000000000000b\n"); /* it has seen a ps of generation 4 */
    ck_fenced(generation_publish(dir, &NONE, &a, &e), "another chief has claimed generation 5");
    ck_ok_e(generation_publish(dir, &NONE, &b, &e));
    want_file(5, 0xb);
}
END_TEST

START_TEST(a_volume_without_hard_links_will_do)
{
    file_fault("link", 1, EPERM);
    struct generation a = claim(&NONE, 0xa, 0), b;
    struct err e = { 0 };
    auto_free char *path = path_join(dir, "generation.1");
    ck_assert_int_eq(file_write_new(path, "x", 1, &e), -1);
    ck_assert_int_eq(e.code, ERR_REFUSED);
    ck_ok_e(generation_publish(dir, &NONE, &a, &e));
    b = take(&NONE, 0xb, 0);
    file_fault(NULL, 0, 0);
    ck_assert_uint_eq(b.number, 2);
    want_file(2, 0xb);
}
END_TEST

START_TEST(an_emptied_folder_gets_its_file_back_once)
{
    struct generation a = take(&NONE, 0xa, 6), gone = { .number = 7, .incarnation = 0xf };
    struct err e = { 0 };
    remove_all();
    ck_ok_e(dir_make(dir, &e));
    ck_ok_e(generation_put_back(dir, &a, &e));
    want_file(7, 0xa);
    ck_fenced(generation_put_back(dir, &gone, &e), "another chief");
    want_file(7, 0xa);
}
END_TEST

/* ---- many at the same moment ---- */

enum { CHIEFS = 8, ROUNDS = 40 };
struct rival {
    struct thread thread;
    atomic_int *start;
    uint64_t incarnation;
    struct generation got;
    int result;
    struct err error;
};

static void compete(void *user)
{
    struct rival *r = user;
    while (atomic_load(r->start) == 0) {
    }
    r->result = generation_claim(dir, &NONE, r->incarnation, 0, NULL, &r->got, &r->error);
    if (r->result == 0)
        r->result = generation_publish(dir, &NONE, &r->got, &r->error);
}

/* Some may start so late that they succeed the first. No two ever have the same generation, and one is in the file. The
 * others are fenced or see in the file that they are not in charge. */
START_TEST(no_number_is_given_twice)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct rival rivals[CHIEFS] = { 0 };
        atomic_int start = 0;
        struct generation file;
        struct err e = { 0 };
        for (int i = 0; i < CHIEFS; i++) {
            rivals[i] = (struct rival){ .start = &start, .incarnation = (uint64_t)(1000 * round + i + 1) };
            ck_ok_e(thread_start(&rivals[i].thread, "rival", compete, &rivals[i], &e));
        }
        atomic_store(&start, 1);
        for (int i = 0; i < CHIEFS; i++)
            thread_join(&rivals[i].thread);
        ck_ok_e(generation_read(dir, &file, &e));
        int standing = 0;
        for (int i = 0; i < CHIEFS; i++) {
            ck_assert_msg(rivals[i].result == 0 || rivals[i].error.code == ERR_FENCED, "%s", rivals[i].error.msg);
            standing += rivals[i].result == 0 && generation_eq(&rivals[i].got, &file);
            for (int j = 0; j < i; j++)
                ck_assert(rivals[i].result < 0 || rivals[j].result < 0 || rivals[i].got.number != rivals[j].got.number);
        }
        ck_assert_int_eq(standing, 1);
    }
}
END_TEST

/* No generation can follow the last one. The error names its source: the file of a chief, or a ps. */
START_TEST(the_last_number)
{
    struct generation g = { 0 };
    struct err e = { 0 };
    auto_free char *of_ps =
        xasprintf("a ps says generation 4611686018427387903, the last one, which no chief of %s has "
                  "given: restart the ps",
                  dir);
    auto_free char *of_file = xasprintf("generation 4611686018427387903 is the last one: remove %s/generation", dir);
    put("generation", "7 00000000000000aa\n");
    ck_assert_int_eq(generation_claim(dir, &NONE, 0xb, GENERATION_MAX, NULL, &g, &e), -1);
    ck_assert_str_eq(e.msg, of_ps);
    want_file(7, 0xaa);
    put("generation", "4611686018427387903 00000000000000aa\n");
    ck_assert_int_eq(generation_claim(dir, &NONE, 0xb, GENERATION_MAX, NULL, &g, &e), -1);
    ck_assert_str_eq(e.msg, of_file);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("generation");
    TCase *t = tcase_create("generation");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, make, remove_all);
    tcase_add_test(t, one_after_the_other);
    tcase_add_test(t, the_last_number);
    tcase_add_test(t, the_number_alone_is_understood);
    tcase_add_test(t, other_content_is_refused_with_the_file);
    tcase_add_test(t, who_finds_the_number_claimed_is_fenced);
    tcase_add_test(t, a_claim_whose_chief_died_is_passed_over);
    tcase_add_test(t, a_chief_that_leads_yields_to_a_claim);
    tcase_add_test(t, who_comes_too_late_with_its_claim_is_fenced);
    tcase_add_test(t, a_higher_claim_wins);
    tcase_add_test(t, a_volume_without_hard_links_will_do);
    tcase_add_test(t, an_emptied_folder_gets_its_file_back_once);
    tcase_add_test(t, no_number_is_given_twice);
    suite_add_tcase(s, t);
    return s;
}
