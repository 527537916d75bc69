/* Events as they reach a server: created, patched, flushed at the end. */
#include "kube/event_recorder.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "check_main.h"
#include "kube/event_correlator.h"
#include "test/fake/api_server.h"

static const struct event_object DIGITS = { "kubeflow.org/v1", "TFJob", "team", "digits", "uid-1", "41" };

struct world {
    struct fake_api *api;
    struct kubeconfig *config;
    struct loop *loop;
    struct kube_client *client;
    struct event_recorder *events;
};

static void world_init(struct world *w)
{
    *w = (struct world){ .api = fake_api_new(), .loop = loop_new() };
    fake_api_share_clock(w->api, w->loop);
    w->config = fake_api_config(w->api, NULL);
    w->client = kube_client_new(w->loop, w->config, &(struct kube_settings){ .user_agent = "test" });
    w->events = event_recorder_new(w->client, "tfjob-controller", "operator-0");
}
static void world_fini(struct world *w)
{
    event_recorder_free(w->events);
    kube_client_free(w->client);
    kubeconfig_free(w->config);
    loop_free(w->loop);
    fake_api_free(w->api);
}
DEFINE_AUTO_FINI(world, world_fini);

static bool none_waits(void *user)
{
    return event_recorder_waiting(((struct world *)user)->events) == 0;
}

#define ALL "/api/v1/namespaces/team/events*"

START_TEST(events_are_created_patched_and_made_anew)
{
    AUTO_FINI(world) w;
    struct fake_request first, patch, again;
    world_init(&w);
    fake_api_on(w.api, "POST", ALL, &(struct fake_answer){ .status = 201, .body = "{}" });
    fake_api_on(w.api, "PATCH", ALL,
                &(struct fake_answer){ .status = 404, .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\"}" });
    event_record(w.events, &DIGITS, EVENT_NORMAL, "Created", "Worker", "one");
    ck_assert_uint_eq(event_recorder_waiting(w.events), 1);
    fake_until(w.loop, none_waits, &w);
    event_record(w.events, &DIGITS, EVENT_NORMAL, "Created", "Worker", "two");
    fake_api_wait(w.api, w.loop, "POST", ALL, 2);
    ck_assert_uint_eq(fake_api_count(w.api, "*", "*"), 3);
    ck_assert(fake_api_request(w.api, "POST", ALL, 0, &first) && fake_api_request(w.api, "PATCH", ALL, 0, &patch) &&
              fake_api_request(w.api, "POST", ALL, 1, &again));
    ck_assert_msg(str_starts(patch.path, "/api/v1/namespaces/team/events/digits."), "%s", patch.path);
    ck_assert_msg(strstr(patch.body, "\"count\":2") != NULL && strstr(patch.body, "\"message\":\"two\"") != NULL, "%s",
                  patch.body);
    ck_assert_msg(strstr(again.body, "\"count\":2") != NULL, "%s", again.body);
}
END_TEST

/* The answer to a create was lost, and the next try finds the event there: it continues as any other. */
START_TEST(an_event_that_is_there_already_is_told)
{
    AUTO_FINI(world) w;
    world_init(&w);
    fake_api_on(w.api, "POST", ALL,
                &(struct fake_answer){ .status = 409, .body = "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\"}" });
    fake_api_on(w.api, "PATCH", ALL, &(struct fake_answer){ .body = "{}" });
    event_record(w.events, &DIGITS, EVENT_NORMAL, "Created", "Worker", "one");
    fake_until(w.loop, none_waits, &w);
    event_record(w.events, &DIGITS, EVENT_NORMAL, "Created", "Worker", "two");
    fake_until(w.loop, none_waits, &w);
    ck_assert_uint_eq(fake_api_count(w.api, "POST", ALL), 1);
    ck_assert_uint_eq(fake_api_count(w.api, "PATCH", ALL), 1);
}
END_TEST

/* Not one Event each: users see a count. */
START_TEST(what_repeats_after_a_while_is_still_one_event)
{
    AUTO_FINI(world) w;
    world_init(&w);
    fake_api_on(w.api, "POST", ALL, &(struct fake_answer){ .status = 201, .body = "{}" });
    fake_api_on(w.api, "PATCH", ALL, &(struct fake_answer){ .body = "{}" });
    event_record(w.events, &DIGITS, EVENT_NORMAL, "Created", "Worker", "one");
    fake_until(w.loop, none_waits, &w);
    fake_pass(w.loop, EVENT_DELAY_MS + 300);
    event_record(w.events, &DIGITS, EVENT_NORMAL, "Created", "Worker", "two");
    fake_until(w.loop, none_waits, &w);
    ck_assert_uint_eq(fake_api_count(w.api, "POST", ALL), 1);
    ck_assert_uint_eq(fake_api_count(w.api, "PATCH", ALL), 1);
}
END_TEST

/* Events about so many objects, due at the same moment: more than the client sends at once. */
enum { OBJECTS = 60 };
static const char *uid_of(int i, char out[16])
{
    snprintf(out, 16, "uid-%d", i);
    return out;
}
static void record_many(struct world *w)
{
    char uid[16];
    for (int i = 0; i < OBJECTS; i++) {
        struct event_object o = DIGITS;
        o.uid = uid_of(i, uid);
        event_record(w->events, &o, EVENT_NORMAL, "R", "", "x");
    }
    ck_assert_uint_eq(event_recorder_waiting(w->events), OBJECTS);
}

START_TEST(those_that_are_due_stand_in_line)
{
    AUTO_FINI(world) w;
    world_init(&w);
    fake_api_on(w.api, "POST", ALL, &(struct fake_answer){ .status = 201, .body = "{}", .delay_ms = 20 });
    record_many(&w);
    fake_until(w.loop, none_waits, &w);
    ck_assert_uint_eq(fake_api_count(w.api, "POST", ALL), OBJECTS);
}
END_TEST

START_TEST(those_whose_object_goes_are_told_all_the_same)
{
    AUTO_FINI(world) w;
    char uid[16];
    world_init(&w);
    fake_api_on(w.api, "POST", ALL, &(struct fake_answer){ .status = 201, .body = "{}", .delay_ms = 20 });
    record_many(&w);
    fake_api_wait(w.api, w.loop, "POST", ALL, 8); /* as many as are sent at once: the rest waits in the queue */
    for (int i = 0; i < OBJECTS; i++)
        event_recorder_forget(w.events, uid_of(i, uid));
    fake_until(w.loop, none_waits, &w);
    ck_assert_uint_eq(fake_api_count(w.api, "POST", ALL), OBJECTS);
}
END_TEST

START_TEST(of_an_object_that_is_gone_nothing_is_kept_but_what_waits)
{
    AUTO_FINI(world) w;
    world_init(&w);
    fake_api_on(w.api, "POST", ALL, &(struct fake_answer){ .status = 201, .body = "{}" });
    event_record(w.events, &DIGITS, EVENT_NORMAL, "Created", "", "told");
    fake_until(w.loop, none_waits, &w);
    event_record(w.events, &DIGITS, EVENT_NORMAL, "Deleted", "", "waits");
    event_recorder_forget(w.events, "uid-1");
    event_recorder_forget(w.events, "uid-1");
    ck_assert_uint_eq(event_recorder_waiting(w.events), 1);
    fake_until(w.loop, none_waits, &w);
    ck_assert_uint_eq(fake_api_count(w.api, "POST", ALL), 2);
    event_record(w.events, &DIGITS, EVENT_NORMAL, "Created", "", "anew: no patch of the first");
    event_record(w.events, &DIGITS, EVENT_NORMAL, "Deleted", "", "anew");
    fake_until(w.loop, none_waits, &w);
    ck_assert_uint_eq(fake_api_count(w.api, "POST", ALL), 4);
    ck_assert_uint_eq(fake_api_count(w.api, "*", "*"), 4);
}
END_TEST

static void count_up(void *user)
{
    (*(int *)user)++;
}
static bool is_up(void *user)
{
    return *(int *)user > 0;
}

START_TEST(at_the_end_what_waits_is_told)
{
    AUTO_FINI(world) w;
    int flushed = 0;
    world_init(&w);
    fake_api_on(w.api, "POST", ALL, &(struct fake_answer){ .status = 201, .body = "{}" });
    event_record(w.events, &DIGITS, EVENT_NORMAL, "Created", "", "one");
    event_record(w.events, &DIGITS, EVENT_NORMAL, "Deleted", "", "two");
    event_recorder_flush(w.events, 60000, count_up, &flushed);
    fake_until(w.loop, is_up, &flushed);
    ck_assert_uint_eq(fake_api_count(w.api, "POST", ALL), 2);
    ck_assert_int_eq(flushed, 1);
}
END_TEST

START_TEST(a_slow_server_keeps_nobody_from_ending)
{
    AUTO_FINI(world) w;
    struct err e = { .code = ERR_NONE };
    int flushed = 0;
    world_init(&w);
    fake_api_on(w.api, "POST", ALL, &(struct fake_answer){ .status = 201, .body = "{}", .delay_ms = 1000 });
    event_record(w.events, &DIGITS, EVENT_NORMAL, "Created", "", "one");
    event_recorder_flush(w.events, 1, count_up, &flushed);
    fake_until(w.loop, is_up, &flushed);
    ck_assert_uint_eq(event_recorder_waiting(w.events), 1);
    fake_until(w.loop, none_waits, &w); /* the answer comes late: nothing is sent a second time */
    ck_ok_e(loop_turn(w.loop, 0, &e));
    ck_assert_int_eq(flushed, 1);
}
END_TEST

START_TEST(at_the_end_nothing_is_waited_for_when_all_is_told)
{
    AUTO_FINI(world) w;
    int flushed = 0;
    world_init(&w);
    event_recorder_flush(w.events, 60000, count_up, &flushed);
    ck_assert_int_eq(flushed, 0); /* never from within */
    fake_until(w.loop, is_up, &flushed);
}
END_TEST

START_TEST(a_namespace_that_ends_takes_no_events_and_that_is_fine)
{
    AUTO_FINI(world) w;
    world_init(&w);
    fake_api_on(
        w.api, "POST", ALL,
        &(struct fake_answer){ .status = 403,
                               .body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"unable to create "
                                       "new content in namespace team because it is being terminated\"}" });
    event_record(w.events, &DIGITS, EVENT_NORMAL, "Created", "", "one");
    fake_until(w.loop, none_waits, &w);
    ck_assert_uint_eq(fake_api_count(w.api, "POST", ALL), 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("event_recorder");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 30);
    tcase_add_test(t, events_are_created_patched_and_made_anew);
    tcase_add_test(t, an_event_that_is_there_already_is_told);
    tcase_add_test(t, what_repeats_after_a_while_is_still_one_event);
    tcase_add_test(t, those_that_are_due_stand_in_line);
    tcase_add_test(t, those_whose_object_goes_are_told_all_the_same);
    tcase_add_test(t, of_an_object_that_is_gone_nothing_is_kept_but_what_waits);
    tcase_add_test(t, at_the_end_what_waits_is_told);
    tcase_add_test(t, a_slow_server_keeps_nobody_from_ending);
    tcase_add_test(t, at_the_end_nothing_is_waited_for_when_all_is_told);
    tcase_add_test(t, a_namespace_that_ends_takes_no_events_and_that_is_fine);
    suite_add_tcase(s, t);
    return s;
}
