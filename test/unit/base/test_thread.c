#include "base/thread.h"
#include "check_main.h"

#include <sched.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"

struct shared {
    struct mutex lock;
    struct cond changed;
    int count;
    bool go, signals_blocked;
    char name[16];
};

static void work(void *user)
{
    struct shared *s = user;
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    {
        MUTEX_GUARD(&s->lock);
        pthread_getname_np(pthread_self(), s->name, sizeof(s->name));
        s->signals_blocked = sigismember(&set, SIGTERM) == 1;
        while (!s->go)
            cond_wait(&s->changed, &s->lock);
    }
    for (int i = 0; i < 1000; i++) {
        MUTEX_GUARD(&s->lock);
        s->count++;
    }
    MUTEX_GUARD(&s->lock);
    cond_broadcast(&s->changed);
}

START_TEST(threads_count_together)
{
    struct shared s = { 0 };
    struct thread threads[4] = { 0 };
    mutex_init(&s.lock);
    cond_init(&s.changed);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        ck_assert_int_eq(thread_start(&threads[i], "a-name-longer-than-the-kernel-takes", work, &s, NULL), 0);
    {
        MUTEX_GUARD(&s.lock);
        s.go = true;
        cond_broadcast(&s.changed);
        int64_t deadline = clock_ms() + 10000;
        while (s.count < 4000)
            ck_assert(cond_wait_until(&s.changed, &s.lock, deadline));
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        thread_join(&threads[i]);
        thread_join(&threads[i]); /* no-op */
    }
    ck_assert_int_eq(s.count, 4000);
    ck_assert(s.signals_blocked);
    ck_assert_str_eq(s.name, "a-name-longer-t");
    cond_fini(&s.changed);
    mutex_fini(&s.lock);
}
END_TEST

START_TEST(a_deadline_passes)
{
    struct mutex lock;
    struct cond never;
    mutex_init(&lock);
    cond_init(&never);
    MUTEX_GUARD(&lock);
    ck_assert(!cond_wait_until(&never, &lock, clock_ms() - 1));
    ck_assert(!cond_wait_until(&never, &lock, -5));
    int64_t soon = clock_ms() + 2;
    ck_assert(!cond_wait_until(&never, &lock, soon));
    ck_assert_int_ge(clock_ms(), soon);
    cond_signal(&never);
    cond_fini(&never);
}
END_TEST

START_TEST(cpus_are_those_of_the_process)
{
    cpu_set_t all, one;
    int first = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    ck_assert_uint_eq(thread_cpus(), (size_t)CPU_COUNT(&all));
    while (!CPU_ISSET((size_t)first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET((size_t)first, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    size_t cpus = thread_cpus();
    ck_assert_int_eq(sched_setaffinity(0, sizeof(all), &all), 0);
    ck_assert_uint_eq(cpus, 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("thread");
    TCase *t = tcase_create("thread");
    tcase_add_test(t, threads_count_together);
    tcase_add_test(t, a_deadline_passes);
    tcase_add_test(t, cpus_are_those_of_the_process);
    suite_add_tcase(s, t);
    return s;
}
