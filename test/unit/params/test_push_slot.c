/* A slot between two threads: a request is seen whole; a wait ends by a post, a wake or its time-out. */
#include "check_main.h"

#include <string.h>

#include "base/mem.h"
#include "base/thread.h"
#include "params/push_slot.h"

enum { SEGMENTS = 3, LONG_MS = 20000 };

static struct push_slot *slot_new(void)
{
    struct push_slot *s = aligned_alloc(SHM_SLOT_ALIGNMENT, push_slot_size(SEGMENTS));
    ck_assert_ptr_nonnull(s);
    memset(s, 0, push_slot_size(SEGMENTS));
    return s;
}

START_TEST(slots_lie_beside_each_other)
{
    for (size_t n = 0; n < 20; n++) {
        ck_assert_uint_eq(push_slot_size(n) % SHM_SLOT_ALIGNMENT, 0);
        ck_assert_uint_ge(push_slot_size(n), sizeof(struct push_slot) + n * sizeof(int64_t));
    }
}
END_TEST

static void answer(void *user)
{
    struct push_slot *s = user;
    struct push_slot_request q;
    while (!shm_slot_wait(&s->base.asked, 0, LONG_MS))
        continue;
    shm_slot_take(&q, &s->request, sizeof(q));
    s->versions[0] = q.ordinal + 1;
    shm_slot_post(&s->base.answered, 1);
}

START_TEST(a_post_wakes_the_other_side_which_sees_the_request)
{
    auto_free struct push_slot *s = slot_new();
    struct thread t = { 0 };
    struct err e = { 0 };
    ck_assert_int_eq(thread_start(&t, "answer", answer, s, &e), 0);
    s->request = (struct push_slot_request){ .ordinal = 41 };
    shm_slot_post(&s->base.asked, 1);
    ck_assert(shm_slot_wait(&s->base.answered, 0, LONG_MS));
    ck_assert_int_eq(s->versions[0], 42);
    thread_join(&t);
}
END_TEST

START_TEST(a_wait_ends_with_its_time)
{
    auto_free struct push_slot *s = slot_new();
    ck_assert(!shm_slot_wait(&s->base.asked, 0, 1));
    shm_slot_post(&s->base.asked, 1);
    ck_assert(shm_slot_wait(&s->base.asked, 0, LONG_MS)); /* changed before: does not block */
    ck_assert(!shm_slot_wait(&s->base.asked, 1, 1));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("push_slot");
    TCase *t = tcase_create("push_slot");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, slots_lie_beside_each_other);
    tcase_add_test(t, a_post_wakes_the_other_side_which_sees_the_request);
    tcase_add_test(t, a_wait_ends_with_its_time);
    suite_add_tcase(s, t);
    return s;
}
