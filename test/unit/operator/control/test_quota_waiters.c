/* Which other job a job that waits for a quota is told. There is no API server, and the clock stands still. */
#include "operator/controller_case.h"

#define YOUNG 2000
#define OLD   1000

struct jobs {
    struct world w;
    struct controller_env env;
};

static void jobs_init(struct jobs *j)
{
    world_init(&j->w);
    j->env = (struct controller_env){ .client = j->w.client };
}

static void jobs_fini(struct jobs *j)
{
    quota_waiters_fini(&j->env.quota_waiters);
    cache_fini(&j->env.cache);
    world_fini(&j->w);
}
DEFINE_AUTO_FINI(jobs, jobs_fini);

static struct cache_entry *job(struct jobs *j, const char *ns, const char *name, int64_t created_ms)
{
    struct cache_entry *entry = cache_get_or_add(&j->env.cache, ns, name);
    entry->known = true;
    entry->spec = (struct job_spec){
        .kind = &KIND_TRAINJOB, .ns = xstrdup(ns), .name = xstrdup(name), .uid = xstrdup(name), .created_ms = created_ms
    };
    return entry;
}

/* A job whose pod NAME-worker-0 the quota has refused. */
static struct cache_entry *waiter(struct jobs *j, const char *name, int64_t created_ms)
{
    struct cache_entry *entry = job(j, "a", name, created_ms);
    entry->refused = (struct refusal){ .name = xasprintf("%s-worker-0", name), .over_quota = true };
    return entry;
}

static struct observed ask(struct jobs *j, const struct cache_entry *entry)
{
    struct observed o = { .npods = 0 };
    quota_waiters_observe(&j->env, entry, &o);
    return o;
}

static void expect_rival(struct jobs *j, const struct cache_entry *entry, const char *rival, bool is_older)
{
    const struct observed o = ask(j, entry);
    ck_assert_msg(o.quota_rival != NULL && str_eq(o.quota_rival, rival) && o.rival_is_older == is_older,
                  "%s is told %s, older: %d", entry->spec.name, o.quota_rival, o.rival_is_older);
}

START_TEST(each_waiter_is_told_the_oldest_other_one)
{
    AUTO_FINI(jobs) j;
    jobs_init(&j);
    const struct cache_entry *young = waiter(&j, "young", YOUNG), *old = waiter(&j, "old", OLD),
                             *youngest = waiter(&j, "youngest", YOUNG + 1);
    expect_rival(&j, young, "old", true);
    expect_rival(&j, youngest, "old", true);
    expect_rival(&j, old, "young", false);
}
END_TEST

START_TEST(of_the_same_second_the_smaller_uid_is_older)
{
    AUTO_FINI(jobs) j;
    jobs_init(&j);
    const struct cache_entry *a = waiter(&j, "j-a", OLD), *b = waiter(&j, "j-b", OLD);
    expect_rival(&j, a, "j-b", false);
    expect_rival(&j, b, "j-a", true);
}
END_TEST

START_TEST(a_job_that_gave_its_pods_back_asks_and_is_no_rival)
{
    AUTO_FINI(jobs) j;
    jobs_init(&j);
    struct cache_entry *gave = job(&j, "a", "gave", YOUNG);
    const struct cache_entry *old = waiter(&j, "old", OLD);
    job_status_set(&gave->status, COND_REPLICA_FAILURE, true, "WaitingForQuota", "", 1, OLD);
    expect_rival(&j, gave, "old", true);
    ck_assert_ptr_null(ask(&j, old).quota_rival);
}
END_TEST

START_TEST(a_job_that_does_not_wait_is_told_nothing)
{
    AUTO_FINI(jobs) j;
    jobs_init(&j);
    const struct cache_entry *runs = job(&j, "a", "runs", YOUNG);
    struct cache_entry *refused = job(&j, "a", "refused", YOUNG);
    (void)waiter(&j, "old", OLD);
    refused->refused = (struct refusal){ .name = xstrdup("refused-worker-0") }; /* by an admission webhook */
    ck_assert_ptr_null(ask(&j, runs).quota_rival);
    ck_assert_ptr_null(ask(&j, refused).quota_rival);
}
END_TEST

enum { SUSPENDED, DELETED, FINISHED, NEVER_FITS, CREATED, UNKNOWN, ELSEWHERE, WHO };

static void make_no_rival(struct cache_entry *entry, int why)
{
    struct pod_info *pod;
    switch (why) {
    case SUSPENDED:
        entry->spec.suspend = true;
        break;
    case DELETED:
        entry->spec.deleting = true;
        break;
    case FINISHED:
        job_status_set(&entry->status, COND_SUCCEEDED, true, "", "", 1, OLD);
        break;
    case NEVER_FITS:
        entry->refused.never_fits = true;
        break;
    case CREATED: /* since it was refused */
        pod = xcalloc(1, sizeof(*pod));
        *pod = (struct pod_info){ .name = xstrdup("old-worker-0"), .uid = xstrdup("1"), .owner_uid = xstrdup("old") };
        ck_assert(cache_entry_put_pod(entry, pod));
        break;
    case UNKNOWN: /* only its pods were seen */
        entry->known = false;
        break;
    default: /* ELSEWHERE */
        free(entry->spec.ns);
        entry->spec.ns = xstrdup("b");
    }
}

START_TEST(a_job_that_does_not_wait_any_more_is_no_rival)
{
    AUTO_FINI(jobs) j;
    jobs_init(&j);
    const struct cache_entry *young = waiter(&j, "young", YOUNG);
    make_no_rival(waiter(&j, "old", OLD), _i);
    ck_assert_ptr_null(ask(&j, young).quota_rival);
}
END_TEST

/* However often jobs ask, the cache is read once a second. */
START_TEST(who_waits_is_read_once_a_second)
{
    AUTO_FINI(jobs) j;
    jobs_init(&j);
    const struct cache_entry *young = waiter(&j, "young", YOUNG);
    struct cache_entry *old = waiter(&j, "old", OLD);
    expect_rival(&j, young, "old", true);
    old->spec.suspend = true;
    loop_clock(j.w.loop)->now_ms += 999;
    expect_rival(&j, young, "old", true);
    loop_clock(j.w.loop)->now_ms += 1;
    ck_assert_ptr_null(ask(&j, young).quota_rival);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("quota_waiters");
    TCase *t = tcase_create("quota_waiters");
    tcase_add_test(t, each_waiter_is_told_the_oldest_other_one);
    tcase_add_test(t, of_the_same_second_the_smaller_uid_is_older);
    tcase_add_test(t, a_job_that_gave_its_pods_back_asks_and_is_no_rival);
    tcase_add_test(t, a_job_that_does_not_wait_is_told_nothing);
    tcase_add_test(t, who_waits_is_read_once_a_second);
    tcase_add_loop_test(t, a_job_that_does_not_wait_any_more_is_no_rival, 0, WHO);
    suite_add_tcase(s, t);
    return s;
}
