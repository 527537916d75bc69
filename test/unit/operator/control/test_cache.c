#include "check_main.h"

#include <string.h>

#include "base/str.h"
#include "control/cache.h"

struct world {
    struct cache cache;
};
static void world_fini(struct world *w)
{
    cache_fini(&w->cache);
}
DEFINE_AUTO_FINI(world, world_fini);

static struct pod_info *pod(const char *name, const char *uid, int64_t version)
{
    struct pod_info *p = xcalloc(1, sizeof(*p));
    *p = (struct pod_info){ .name = xstrdup(name),
                            .uid = uid != NULL ? xstrdup(uid) : NULL,
                            .version = version,
                            .creating = uid == NULL,
                            .owner_uid = xstrdup("1"),
                            .exit_code = -1 };
    return p;
}
static struct service_info *service(const char *name, const char *uid)
{
    struct service_info *s = xcalloc(1, sizeof(*s));
    *s = (struct service_info){ .name = xstrdup(name),
                                .uid = uid != NULL ? xstrdup(uid) : NULL,
                                .creating = uid == NULL,
                                .owner_uid = xstrdup("1") };
    return s;
}

START_TEST(an_older_state_of_a_pod_does_not_replace_a_newer_one)
{
    AUTO_FINI(world) w = { 0 };
    struct cache_entry *r = cache_get_or_add(&w.cache, "a", "j");
    ck_assert(cache_entry_put_pod(r, pod("p", "1", 5)));
    ck_assert(!cache_entry_put_pod(r, pod("p", "1", 4)));
    ck_assert_int_eq(cache_entry_pod(r, "p")->version, 5);
    ck_assert(cache_entry_put_pod(r, pod("p", "1", 6)));
    ck_assert(cache_entry_put_pod(r, pod("p", "2", 2))); /* another one of that name */
    ck_assert_str_eq(cache_entry_pod(r, "p")->uid, "2");
    ck_assert_uint_eq(r->npods, 1);
}
END_TEST

START_TEST(what_is_being_made_is_ended_by_its_answer_alone)
{
    AUTO_FINI(world) w = { 0 };
    struct cache_entry *r = cache_get_or_add(&w.cache, "a", "j");
    cache_entry_put_pod(r, pod("x", NULL, 0));
    cache_entry_put_service(r, service("x", NULL));
    ck_assert(!cache_entry_remove_pod(r, "x", "an earlier one"));
    ck_assert(!cache_entry_remove_service(r, "x", "an earlier one"));
    cache_entry_drop_expected_pod(r, "x", "of another life");
    cache_entry_drop_expected_service(r, "x", "of another life");
    ck_assert_uint_eq(r->npods + r->nservices, 2);
    cache_entry_drop_expected_pod(r, "x", "1");
    ck_assert_uint_eq(r->npods, 0);
    ck_assert_uint_eq(r->nservices, 1);
    cache_entry_put_pod(r, pod("x", "1", 1));
    cache_entry_drop_expected_pod(r, "x", NULL); /* it is there */
    ck_assert_uint_eq(r->npods, 1);
    ck_assert(!cache_entry_remove_pod(r, "x", "2"));
    ck_assert(cache_entry_remove_pod(r, "x", "1"));
}
END_TEST

START_TEST(a_record_goes_with_the_last_of_it)
{
    AUTO_FINI(world) w = { 0 };
    struct cache_entry *r = cache_get_or_add(&w.cache, "a", "j");
    cache_entry_put_pod(r, pod("p", "1", 5));
    cache_entry_put_service(r, service("p", "2"));
    ck_assert_ptr_eq(cache_find(&w.cache, "a/j"), r);
    r->known = true;
    r->claims_in_flight = 3;
    cache_entry_forget_job(r);
    ck_assert(!r->known);
    ck_assert_uint_eq(r->claims_in_flight, 0);
    cache_remove_if_empty(&w.cache, r);
    ck_assert_uint_eq(w.cache.entries.n, 1);
    cache_entry_remove_pod(r, "p", NULL);
    cache_entry_remove_service(r, "p", NULL);
    cache_remove_if_empty(&w.cache, r);
    ck_assert_uint_eq(w.cache.entries.n, 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cache_entry");
    TCase *t = tcase_create("cache_entry");

    tcase_add_test(t, an_older_state_of_a_pod_does_not_replace_a_newer_one);
    tcase_add_test(t, what_is_being_made_is_ended_by_its_answer_alone);
    tcase_add_test(t, a_record_goes_with_the_last_of_it);
    suite_add_tcase(s, t);
    return s;
}
