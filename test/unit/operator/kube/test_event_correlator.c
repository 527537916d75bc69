/* Series of events and their limits, without a server. */
#include "kube/event_correlator.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "check_main.h"

static const struct event_object DIGITS = { "kubeflow.org/v1", "TFJob", "team", "digits", "uid-1", "41" };
#define WALL   1772600767.25 /* 2026-03-04T05:06:07.250Z */
#define MINUTE 60000

static struct event_series *note(struct event_correlator *b, const char *reason, const char *text, int64_t now_ms)
{
    return event_correlator_record(b, &DIGITS, EVENT_NORMAL, reason, "", text, now_ms, WALL + (double)now_ms / 1000);
}

static void sent(struct event_correlator *b, struct event_series *s, int64_t now_ms)
{
    event_correlator_sending(b, s);
    ck_assert(!event_correlator_sent(b, s, EVENT_POSTED, now_ms));
}

static const char *at(const json_t *v, const char *path)
{
    const char *s = json_string_value(json_at(v, path));
    return s != NULL ? s : "(none)";
}

START_TEST(an_event_has_the_form_of_client_go)
{
    struct event_correlator b = { 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    struct event_series *s =
        event_correlator_record(&b, &DIGITS, EVENT_WARNING, "ExitedWithCode", "Worker", "worker 0 ended", 0, WALL);
    ck_assert_int_eq(s->due_ms, 1000);
    event_correlator_sending(&b, s);
    json_auto_t *v = event_create_body(s, "tfjob-controller", "operator-0");
    json_emit(v, &text);
    ck_assert_str_eq(
        text.data,
        "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"digits.18998b0194856800\",\"namespace\":"
        "\"team\"},\"involvedObject\":{\"apiVersion\":\"kubeflow.org/"
        "v1\",\"kind\":\"TFJob\",\"namespace\":\"team\",\"name\":\"digits\",\"uid\":\"uid-1\",\"resourceVersion\":"
        "\"41\"},\"type\":\"Warning\",\"reason\":\"ExitedWithCode\",\"message\":\"worker 0 "
        "ended\",\"source\":{\"component\":\"tfjob-controller\"},\"reportingComponent\":\"tfjob-controller\","
        "\"reportingInstance\":\"operator-0\",\"firstTimestamp\":\"2026-03-04T05:06:07Z\",\"lastTimestamp\":\"2026-03-"
        "04T05:06:07Z\",\"count\":1}");
    event_correlator_fini(&b);
}
END_TEST

START_TEST(what_repeats_within_ten_minutes_is_one_event)
{
    struct event_correlator b = { 0 };
    struct event_series *s = note(&b, "Restarting", "once", 0);
    ck_assert_ptr_eq(note(&b, "Restarting", "twice", 500), s); /* before it was sent */
    sent(&b, s, 1000);
    ck_assert_ptr_eq(note(&b, "Restarting", "thrice", 9 * MINUTE), s);
    ck_assert_ptr_eq(note(&b, "Restarting", "again", 18 * MINUTE), s); /* ten minutes from the last one */
    ck_assert(s->created && s->state == SERIES_WAITING);
    json_auto_t *v = event_patch_body(s);
    ck_assert_int_eq(json_integer_value(json_at(v, "count")), 4);
    ck_assert_str_eq(at(v, "message"), "again");
    ck_assert_str_eq(at(v, "lastTimestamp"), "2026-03-04T05:24:07Z");
    ck_assert_uint_eq(json_object_size(v), 3);
    sent(&b, s, 18 * MINUTE + 1000);
    struct event_series *next = note(&b, "Restarting", "much later", 28 * MINUTE + 1);
    ck_assert_ptr_ne(next, s);
    ck_assert_int_eq(next->count, 1);
    event_correlator_fini(&b);
}
END_TEST

START_TEST(reason_type_and_subject_tell_series_apart)
{
    struct event_correlator b = { 0 };
    struct event_object other = DIGITS;
    char name[EVENT_NAME_MAX], other_name[EVENT_NAME_MAX];
    other.uid = "uid-2";
    struct event_series *s[] = {
        event_correlator_record(&b, &DIGITS, EVENT_NORMAL, "Created", "Worker", "w", 0, WALL),
        event_correlator_record(&b, &DIGITS, EVENT_NORMAL, "Created", "PS", "p", 0, WALL),
        event_correlator_record(&b, &DIGITS, EVENT_WARNING, "Created", "PS", "p", 0, WALL),
        event_correlator_record(&b, &DIGITS, EVENT_NORMAL, "Deleted", "PS", "p", 0, WALL),
        event_correlator_record(&b, &other, EVENT_NORMAL, "Created", "PS", "p", 0, WALL),
    };
    for (size_t i = 0; i < COUNT_OF(s); i++) {
        event_correlator_sending(&b, s[i]);
        for (size_t k = 0; k < i; k++)
            ck_assert(s[i] != s[k] && strcmp(event_name(s[i], name), event_name(s[k], other_name)) !=
                                          0); /* at one moment, five names */
    }
    ck_assert_uint_eq(b.waiting, 5);
    event_correlator_fini(&b);
}
END_TEST

START_TEST(an_object_has_25_series_and_then_one_in_five_minutes)
{
    struct event_correlator b = { 0 };
    char reason[32];
    int taken = 0;
    for (int i = 0; i < 40; i++) {
        snprintf(reason, sizeof(reason), "Reason%d", i);
        taken += note(&b, reason, "x", 0) != NULL;
    }
    ck_assert_int_eq(taken, 25);
    ck_assert_ptr_nonnull(note(&b, "Reason3", "known", 1000)); /* a series that goes on is sent */
    ck_assert_ptr_null(note(&b, "New", "x", 5 * MINUTE - 1));
    ck_assert_ptr_nonnull(note(&b, "New", "x", 5 * MINUTE + 1));
    ck_assert_ptr_null(note(&b, "Newer", "x", 5 * MINUTE + 2));
    event_correlator_fini(&b);
}
END_TEST

static int begin_many(struct event_correlator *b, const char *kind, int64_t now_ms, struct event_series *ret[40])
{
    char reason[32];
    int taken = 0;
    for (int i = 0; i < 40; i++) {
        snprintf(reason, sizeof(reason), "%s%d", kind, i);
        ret[i] = note(b, reason, "x", now_ms);
        taken += ret[i] != NULL;
    }
    return taken;
}

/* An object gains no more than that, neither by days without events nor because the series that were sent have
 * ended. */
START_TEST(an_object_does_not_save_up_for_a_flood)
{
    struct event_correlator b = { 0 };
    struct event_series *s[40];
    ck_assert_int_eq(begin_many(&b, "First", 0, s), 25);
    for (int i = 0; i < 25; i++) {
        sent(&b, s[i], 1000);
        event_correlator_end(&b, s[i], 10 * MINUTE + 1000); /* ten minutes later */
    }
    ck_assert_int_eq(begin_many(&b, "Second", 10 * MINUTE + 2000, s), 2); /* one in five minutes */
    ck_assert_int_eq(begin_many(&b, "Third", 10000 * MINUTE, s), 25);
    event_correlator_fini(&b);
}
END_TEST

START_TEST(so_many_wait_and_no_more)
{
    struct event_correlator b = { 0 };
    struct event_series *first = NULL;
    for (int i = 0; i < EVENT_WAITING_MAX + 100; i++) {
        char uid[16];
        snprintf(uid, sizeof(uid), "uid-%d", i);
        struct event_object o = DIGITS;
        o.uid = uid;
        struct event_series *s = event_correlator_record(&b, &o, EVENT_NORMAL, "R", "", "x", 0, WALL);
        ck_assert_int_eq(s != NULL, i < EVENT_WAITING_MAX);
        first = first != NULL ? first : s;
    }
    ck_assert_uint_eq(b.waiting, EVENT_WAITING_MAX);
    ck_assert_uint_eq(b.subjects.n, EVENT_WAITING_MAX); /* nothing is kept of what was dropped */
    sent(&b, first, 1000);
    ck_assert_uint_eq(b.waiting, EVENT_WAITING_MAX - 1);
    event_correlator_fini(&b);
}
END_TEST

START_TEST(a_series_that_goes_on_is_told_less_often)
{
    struct event_correlator b = { 0 };
    int64_t now = 0;
    int requests = 0;
    struct event_series *s = NULL;
    for (int i = 0; i < 600; i++, now += 1000) { /* ten minutes, an event a second */
        s = note(&b, "Failing", "x", now);
        if (s->state == SERIES_WAITING && s->due_ms <= now) {
            sent(&b, s, now);
            requests++;
        }
    }
    ck_assert_int_ge(requests, 10);
    ck_assert_int_le(requests, 45);
    ck_assert_int_eq(s->count, 600);
    event_correlator_fini(&b);
}
END_TEST

START_TEST(a_series_is_told_every_half_minute_at_least)
{
    struct event_correlator b = { 0 };
    struct event_series *s = note(&b, "Failing", "x", 0);
    for (int i = 0; i < 100; i++) {
        sent(&b, s, i * MINUTE);
        ck_assert_ptr_eq(note(&b, "Failing", "x", i * MINUTE + 1), s);
    }
    ck_assert_int_eq(s->due_ms, 99 * MINUTE + 1 + 30000);
    event_correlator_fini(&b);
}
END_TEST

START_TEST(notes_are_cut_between_characters)
{
    struct event_correlator b = { 0 };
    char text[1100];
    memset(text, 'x', sizeof(text));
    memcpy(text + 1023, "\xc3\xa9", 2); /* its first byte would be the last that fits */
    text[sizeof(text) - 1] = '\0';
    struct event_series *s = note(&b, "R", text, 0);
    ck_assert_uint_eq(strlen(s->note), 1023);
    event_correlator_fini(&b);
}
END_TEST

START_TEST(a_long_name_leaves_room_for_the_time)
{
    struct event_correlator b = { 0 };
    char name[254];
    memset(name, 'a', 253);
    name[253] = '\0';
    name[235] = '-';
    struct event_object o = DIGITS;
    o.name = name;
    o.ns = NULL;
    struct event_series *s = event_correlator_record(&b, &o, EVENT_NORMAL, "R", "", "x", 0, WALL);
    event_correlator_sending(&b, s);
    char got[EVENT_NAME_MAX];
    ck_assert_uint_eq(strlen(event_name(s, got)), 235 + 17);
    ck_assert_str_eq(got + 234, "a.18998b0194856800");
    ck_assert_str_eq(event_namespace(s->subject), "default");
    event_correlator_fini(&b);
}
END_TEST

START_TEST(what_came_while_it_was_sent_is_told_after)
{
    struct event_correlator b = { 0 };
    struct event_series *s = note(&b, "R", "1", 0);
    event_correlator_sending(&b, s);
    note(&b, "R", "2", 1100);
    ck_assert(event_correlator_sent(&b, s, EVENT_POSTED, 1200));
    ck_assert(s->created && s->due_ms == 2200);
    event_correlator_sending(&b, s);
    ck_assert(event_correlator_sent(&b, s, EVENT_GONE, 2300)); /* it expired on the server: created again */
    ck_assert(!s->created);
    event_correlator_sending(&b, s);
    ck_assert(!event_correlator_sent(&b, s, EVENT_FAILED, 2400));
    ck_assert_uint_eq(b.waiting, 0);
    event_correlator_fini(&b);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("event_correlator");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 30);
    tcase_add_test(t, an_event_has_the_form_of_client_go);
    tcase_add_test(t, what_repeats_within_ten_minutes_is_one_event);
    tcase_add_test(t, reason_type_and_subject_tell_series_apart);
    tcase_add_test(t, an_object_has_25_series_and_then_one_in_five_minutes);
    tcase_add_test(t, an_object_does_not_save_up_for_a_flood);
    tcase_add_test(t, so_many_wait_and_no_more);
    tcase_add_test(t, a_series_that_goes_on_is_told_less_often);
    tcase_add_test(t, a_series_is_told_every_half_minute_at_least);
    tcase_add_test(t, notes_are_cut_between_characters);
    tcase_add_test(t, a_long_name_leaves_room_for_the_time);
    tcase_add_test(t, what_came_while_it_was_sent_is_told_after);
    suite_add_tcase(s, t);
    return s;
}
