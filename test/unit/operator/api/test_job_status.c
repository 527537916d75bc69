#include "check_main.h"

#include <math.h>
#include <string.h>

#include "api/job_status.h"
#include "api/time.h"
#include "codec/json.h"

#define T0 INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

static bool set(struct job_status *s, enum condition_type t, bool is_true, const char *reason, const char *message,
                int64_t at_s)
{
    return job_status_set(s, t, is_true, reason, message, 1, T0 + at_s * 1000);
}

static const char *order(const struct job_status *s, struct buf *out)
{
    buf_clear(out);
    for (size_t i = 0; i < s->nconds; i++)
        buf_printf(out, "%s%s%s", i > 0 ? " " : "", s->conds[i].is_true ? "" : "-", condition_name(s->conds[i].type));
    return out->data;
}

static json_t *json_of(const char *text)
{
    struct err e = { .code = ERR_NONE };
    json_t *v = NULL;
    ck_ok_e(json_parse(text, strlen(text), "test", &v, &e));
    return v;
}

static void assert_patch(const struct job_kind *k, const struct job_status *was, const struct job_status *is,
                         const char *want)
{
    json_auto_t *got = job_status_patch(k, "u1", 0, was, is);
    AUTO_FINI(buf) text = BUF_INIT;
    if (got != NULL)
        json_emit(json_object_get(got, "status"), &text);
    ck_assert_str_eq(text.data, want);
    ck_assert_int_eq(job_status_differs(was, is) == 0, got == NULL);
}

/* ---- conditions ---- */

START_TEST(a_changed_condition_is_the_latest)
{
    AUTO_FINI(job_status) s = { .nconds = 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    ck_assert(set(&s, COND_CREATED, true, "TFJobCreated", "m", 0));
    ck_assert(set(&s, COND_RUNNING, true, "TFJobRunning", "m", 1));
    ck_assert(!set(&s, COND_RUNNING, true, "TFJobRunning", "m", 2));
    ck_assert(set(&s, COND_RESTARTING, true, "TFJobRestarting", "m", 3));
    ck_assert_str_eq(order(&s, &text), "Created Restarting");
    ck_assert(set(&s, COND_RUNNING, true, "TFJobRunning", "m", 4));
    ck_assert_str_eq(order(&s, &text), "Created Running");
    ck_assert(set(&s, COND_RUNNING, false, "TFJobSuspended", "m", 5));
    ck_assert(set(&s, COND_SUSPENDED, true, "TFJobSuspended", "m", 5));
    ck_assert_str_eq(order(&s, &text), "Created -Running Suspended");
    ck_assert(set(&s, COND_SUSPENDED, false, "TFJobResumed", "m", 6));
    ck_assert(set(&s, COND_RUNNING, true, "TFJobRunning", "m", 7));
    ck_assert_str_eq(order(&s, &text), "Created -Suspended Running");
    ck_assert(set(&s, COND_SUCCEEDED, true, "TFJobSucceeded", "m", 8));
    ck_assert_str_eq(order(&s, &text), "Created -Suspended -Running Succeeded");
    ck_assert(job_status_finished(&s));
}
END_TEST

START_TEST(another_message_changes_in_place)
{
    AUTO_FINI(job_status) s = { .nconds = 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    set(&s, COND_CREATED, true, "TFJobCreated", "a", 0);
    set(&s, COND_RUNNING, true, "TFJobRunning", "m", 1);
    ck_assert(set(&s, COND_CREATED, true, "TFJobCreated", "b", 2));
    ck_assert_str_eq(order(&s, &text), "Created Running");
    const struct condition *c = job_status_find(&s, COND_CREATED);
    ck_assert_str_eq(c->message, "b");
    ck_assert_int_eq(c->changed_ms, T0);
    ck_assert_int_eq(c->updated_ms, T0 + 2000);
}
END_TEST

START_TEST(another_reason_keeps_the_time_of_the_change)
{
    AUTO_FINI(job_status) s = { .nconds = 0 };
    set(&s, COND_SUSPENDED, false, "One", "m", 1);
    ck_assert(set(&s, COND_SUSPENDED, false, "Two", "m", 5));
    ck_assert_int_eq(job_status_find(&s, COND_SUSPENDED)->changed_ms, T0 + 1000);
    ck_assert_int_eq(job_status_find(&s, COND_SUSPENDED)->updated_ms, T0 + 5000);
}
END_TEST

START_TEST(nothing_changes_after_failed)
{
    AUTO_FINI(job_status) s = { .nconds = 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    set(&s, COND_RESTARTING, true, "R", "m", 0);
    set(&s, COND_FAILED, true, "TFJobFailed", "m", 1);
    ck_assert_str_eq(order(&s, &text), "-Restarting Failed");
    ck_assert(!set(&s, COND_RUNNING, true, "TFJobRunning", "m", 2));
    ck_assert(!set(&s, COND_SUCCEEDED, true, "TFJobSucceeded", "m", 2));
    ck_assert(!set(&s, COND_FAILED, false, "TFJobFailed", "m", 2));
    ck_assert(set(&s, COND_FAILED, true, "Other", "its own message may", 2));
    ck_assert_str_eq(job_status_find(&s, COND_FAILED)->message, "its own message may");
    ck_assert_str_eq(job_status_find(&s, COND_FAILED)->reason, "TFJobFailed");
}
END_TEST

START_TEST(a_refused_change_is_never_the_latest)
{
    AUTO_FINI(job_status) s = { .nconds = 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    set(&s, COND_CREATED, true, "C", "m", 0);
    set(&s, COND_RUNNING, true, "R", "m", 1);
    set(&s, COND_REFUSED, true, "SpecChanged", "m", 2);
    ck_assert_str_eq(order(&s, &text), "SpecChangeRefused Created Running");
    set(&s, COND_REFUSED, false, "SpecRestored", "m", 3);
    ck_assert_str_eq(order(&s, &text), "-SpecChangeRefused Created Running");
}
END_TEST

/* ---- JSON ---- */

START_TEST(the_patch_says_what_changed_and_no_more)
{
    AUTO_FINI(job_status) was = { .nconds = 0 };
    AUTO_FINI(job_status) is = { .nconds = 0 };

    assert_patch(&KIND_TFJOB, &was, &was, "");
    set(&is, COND_CREATED, true, "TFJobCreated", "TFJob tf is created.", 1);
    str_fmt(is.state, sizeof(is.state), "Created");
    is.start_ms = T0 + 1500;
    assert_patch(&KIND_TFJOB, &was, &is,
                 "{\"conditions\":[{\"type\":\"Created\",\"status\":\"True\",\"reason\":\"TFJobCreated\",\"message\":"
                 "\"TFJob tf is "
                 "created.\",\"lastUpdateTime\":\"2026-01-01T00:00:01Z\",\"lastTransitionTime\":\"2026-01-01T00:00:"
                 "01Z\",\"observedGeneration\":1}],\"state\":\"Created\",\"startTime\":\"2026-01-01T00:00:01Z\"}");
    job_status_fini(&was);
    job_status_copy(&is, &was);
    assert_patch(&KIND_TFJOB, &was, &is, "");
    is.roles[ROLE_WORKER].active = 2;
    assert_patch(&KIND_TFJOB, &was, &is, "{\"replicaStatuses\":{\"Worker\":{\"active\":2}}}");
    str_fmt(is.job, sizeof(is.job), "tf");
    is.roles[ROLE_WORKER].active = 0;
    is.roles[ROLE_CHIEF].failed = 1;
    is.master = true;
    assert_patch(&KIND_TFJOB, &was, &is,
                 "{\"replicaStatuses\":{\"Master\":{\"failed\":1,\"selector\":\"training.kubeflow.org/"
                 "operator-name=tfjob-controller,training.kubeflow.org/job-name=tf,training.kubeflow.org/"
                 "replica-type=master\"}}}");
}
END_TEST

START_TEST(what_went_is_nulled)
{
    AUTO_FINI(job_status) was = { .nconds = 0 };
    AUTO_FINI(job_status) is = { .nconds = 0 };
    was.completion_ms = T0;
    was.roles[ROLE_WORKER].counted = 3;
    index_set_add(&was.roles[ROLE_WORKER].completed, 1);
    assert_patch(&KIND_TRAINJOB, &was, &is,
                 "{\"replicaStatuses\":{\"Worker\":{\"completedIndexes\":null,\"countedRestarts\":null}},"
                 "\"completionTime\":null}");
}
END_TEST

START_TEST(progress_is_written_by_member)
{
    AUTO_FINI(job_status) was = { .nconds = 0 };
    AUTO_FINI(job_status) is = { .nconds = 0 };
    was.progress = (struct training_progress){ .present = true,
                                               .step = 10,
                                               .epoch = 1,
                                               .loss = "0.5",
                                               .examples_per_second = 100,
                                               .updated_ms = T0,
                                               .metrics = xstrdup("{\"accuracy\":\"0.9\",\"auc\":\"0.8\"}") };
    is.progress = (struct training_progress){ .present = true,
                                              .step = 11,
                                              .epoch = 1,
                                              .loss = "NaN",
                                              .examples_per_second = 100,
                                              .updated_ms = T0 + 1000,
                                              .metrics = xstrdup("{\"accuracy\":\"0.9\"}") };
    assert_patch(&KIND_TRAINJOB, &was, &is,
                 "{\"progress\":{\"step\":11,\"loss\":\"NaN\",\"lastUpdateTime\":\"2026-01-01T00:00:01Z\","
                 "\"metrics\":{\"accuracy\":\"0.9\",\"auc\":null}}}");
}
END_TEST

START_TEST(what_the_schema_would_refuse_is_left_out)
{
    AUTO_FINI(job_status) was = { .nconds = 0 };
    AUTO_FINI(job_status) is = { .nconds = 0 };
    job_status_set(&is, COND_CREATED, true, "C", "of another controller, without times", 0, 0);
    is.progress =
        (struct training_progress){ .present = true, .step = 1, .loss = "NaN", .examples_per_second = (double)NAN };
    assert_patch(
        &KIND_TFJOB, &was, &is,
        "{\"conditions\":[{\"type\":\"Created\",\"status\":\"True\",\"reason\":\"C\",\"message\":\"of another "
        "controller, without "
        "times\"}],\"progress\":{\"step\":1,\"epoch\":0,\"percent\":0,\"loss\":\"NaN\",\"lastCheckpointStep\":0}}");
}
END_TEST

START_TEST(the_patch_names_the_life_of_the_job)
{
    struct job_status was = { .nconds = 0 }, is = { .completion_ms = T0 };
    json_auto_t *patch = job_status_patch(&KIND_TFJOB, "u1", 0, &was, &is);
    ck_assert_str_eq(json_string_value(json_at(patch, "metadata.uid")), "u1");
    ck_assert_uint_eq(json_object_size(patch), 2);
}
END_TEST

/* Each field alone, written and read back. */
START_TEST(each_difference_is_seen_without_making_the_patch)
{
    AUTO_FINI(job_status) was = { .nconds = 0 };
    set(&was, COND_CREATED, true, "C", "m", 0);
    was.progress.present = true;
    for (int i = 0;; i++) {
        AUTO_FINI(job_status) is = { .nconds = 0 };
        unsigned want = STATUS_REST;
        struct role_status *role = &is.roles[ROLE_PS];
        job_status_copy(&was, &is);
        switch (i) {
        case 0:
            want = STATUS_CONDITIONS;
            set(&is, COND_RUNNING, true, "R", "m", 0);
            break;
        case 1:
            want = STATUS_CONDITIONS;
            set(&is, COND_CREATED, false, "C", "m", 0);
            break;
        case 2:
            want = STATUS_CONDITIONS;
            set(&is, COND_CREATED, true, "other", "m", 0);
            break;
        case 3:
            want = STATUS_CONDITIONS;
            set(&is, COND_CREATED, true, "C", "other", 0);
            break;
        case 4:
            want = STATUS_CONDITIONS;
            is.conds[0].generation = 2;
            break;
        case 5:
            want = STATUS_PROGRESS;
            is.progress.present = false;
            break;
        case 6:
            want = STATUS_PROGRESS;
            is.progress.step = 1;
            break;
        case 7:
            want = STATUS_PROGRESS;
            is.progress.epoch = 1;
            break;
        case 8:
            want = STATUS_PROGRESS;
            is.progress.epochs = 1;
            break;
        case 9:
            want = STATUS_PROGRESS;
            is.progress.last_checkpoint_step = 1;
            break;
        case 10:
            want = STATUS_PROGRESS;
            str_fmt(is.progress.loss, sizeof(is.progress.loss), "1");
            break;
        case 11:
            want = STATUS_PROGRESS;
            is.progress.examples_per_second = 1;
            break;
        case 12:
            want = STATUS_PROGRESS;
            is.progress.metrics = xstrdup("{\"a\":\"1\"}");
            break;
        case 13:
            want = STATUS_PROGRESS;
            is.progress.updated_ms = T0;
            break;
        case 14:
            role->active = 1;
            break;
        case 15:
            role->succeeded = 1;
            break;
        case 16:
            role->failed = 1;
            break;
        case 17:
            role->restarts = 1;
            break;
        case 18:
            role->counted = 1;
            break;
        case 19:
            index_set_add(&role->completed, 1);
            break;
        case 20:
            index_counts_set(&role->again, 1, 1);
            break;
        case 21:
            str_fmt(is.state, sizeof(is.state), "x");
            break;
        case 22:
            str_fmt(is.ready, sizeof(is.ready), "x");
            break;
        case 23:
            str_fmt(is.spec_hash, sizeof(is.spec_hash), "x");
            break;
        case 24:
            is.start_ms = T0;
            break;
        case 25:
            is.completion_ms = T0;
            break;
        case 26:
            is.observed_generation = 1;
            break;
        case 27:
            want = 0;
            is.conds[0].updated_ms += 999;
            break; /* only whole seconds are written */
        case 28:
            want = STATUS_PROGRESS;
            str_fmt(is.progress.weights_sha256, sizeof(is.progress.weights_sha256), "1f0c");
            break;
        case 29:
            want = STATUS_PROGRESS;
            is.progress.highest_step = 1;
            break;
        case 30:
            want = STATUS_PROGRESS;
            is.progress.percent = 1;
            break;
        case 31:
            want = STATUS_PROGRESS;
            is.progress.remaining_s = 1;
            break;
        default:
            return;
        }
        json_auto_t *there = job_status_patch(&KIND_TRAINJOB, "u", 0, &was, &is),
                    *back = job_status_patch(&KIND_TRAINJOB, "u", 0, &is, &was);
        ck_assert_msg(job_status_differs(&was, &is) == want && job_status_differs(&is, &was) == want, "case %d", i);
        ck_assert_msg((there != NULL) == (want != 0) && (back != NULL) == (want != 0), "the patch of case %d", i);
    }
}
END_TEST

START_TEST(what_is_written_reads_back)
{
    struct job_status none = { .nconds = 0 };
    AUTO_FINI(job_status) s = { .nconds = 0 };
    AUTO_FINI(job_status) read = { .nconds = 0 };
    set(&s, COND_CREATED, true, "C", "m", 0);
    set(&s, COND_STALLED, false, "NoProgress", "m", 5);
    s.roles[ROLE_WORKER] =
        (struct role_status){ .active = 2, .succeeded = 3, .failed = 1, .restarts = 7, .counted = -2 };
    index_set_add(&s.roles[ROLE_WORKER].completed, 4);
    index_counts_set(&s.roles[ROLE_WORKER].again, 3, 7);
    s.progress = (struct training_progress){ .present = true,
                                             .step = 9,
                                             .epochs = 5,
                                             .percent = 40,
                                             .remaining_s = 75,
                                             .loss = "0.1",
                                             .updated_ms = T0,
                                             .metrics = xstrdup("{\"a\":\"1\"}") };
    s.start_ms = T0;
    s.observed_generation = 4;
    str_fmt(s.spec_hash, sizeof(s.spec_hash), "abc");
    str_fmt(s.ready, sizeof(s.ready), "3/4");
    json_auto_t *patch = job_status_patch(&KIND_TRAINJOB, "u", 0, &none, &s);
    job_status_parse(json_object_get(patch, "status"), &read);
    assert_patch(&KIND_TRAINJOB, &s, &read, "");
    ck_assert_int_eq(read.roles[ROLE_WORKER].counted, -2);
    ck_assert_int_eq(index_counts_get(&read.roles[ROLE_WORKER].again, 3), 7);
    ck_assert_str_eq(read.progress.metrics, "{\"a\":\"1\"}");
    ck_assert_int_eq(read.progress.percent, 40);
    ck_assert_int_eq(read.progress.remaining_s, 75);
}
END_TEST

/* The API server returns names in its own order. */
START_TEST(the_order_of_metrics_is_no_difference)
{
    static const struct {
        const char *a, *b;
        bool same;
    } CASES[] = {
        { "{\"loss\":\"1\",\"auc\":\"2\"}", "{\"auc\":\"2\",\"loss\":\"1\"}", true },
        { "{\"loss\":\"1\",\"auc\":\"2\"}", "{\"auc\":\"1\",\"loss\":\"2\"}", false },
        { "{\"loss\":\"1\"}", "{\"loss\":\"1\",\"auc\":\"2\"}", false },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        AUTO_FINI(job_status) a = { .nconds = 0 };
        AUTO_FINI(job_status) b = { .nconds = 0 };
        a.progress = (struct training_progress){ .present = true, .metrics = xstrdup(CASES[i].a) };
        b.progress = (struct training_progress){ .present = true, .metrics = xstrdup(CASES[i].b) };
        ck_assert_msg((job_status_differs(&a, &b) == 0) == CASES[i].same, "case %zu", i);
    }
}
END_TEST

/* What training-operator's CRD does not keep is not missed; what it keeps is compared. */
START_TEST(what_the_server_lacks_is_seen)
{
    for (int i = 0;; i++) {
        AUTO_FINI(job_status) written = { .nconds = 0 };
        AUTO_FINI(job_status) has = { .nconds = 0 };
        bool lacks = true;
        set(&written, COND_CREATED, true, "C", "m", 0);
        written.roles[ROLE_WORKER] = (struct role_status){ .active = 1, .succeeded = 2, .failed = 3, .restarts = 4 };
        written.start_ms = written.completion_ms = T0;
        written.observed_generation = 1;
        str_fmt(written.state, sizeof(written.state), "Created");
        job_status_copy(&written, &has);
        switch (i) {
        case 0:
            lacks = false;
            break;
        case 1:
            has.state[0] = '\0';
            break;
        case 2:
            has.observed_generation = 0;
            break;
        case 3:
            has.roles[ROLE_WORKER].restarts = 0;
            break;
        case 4:
            has.conds[0].generation = 0;
            break;
        default: /* a CRD of training-operator's */
            has.state[0] = '\0';
            has.observed_generation = has.conds[0].generation = has.roles[ROLE_WORKER].restarts = 0;
        }
        switch (i) {
        case 5:
            lacks = false;
            break;
        case 6:
            job_status_drop(&has, COND_CREATED);
            break;
        case 7:
            has.roles[ROLE_WORKER].active = 0;
            break;
        case 8:
            has.roles[ROLE_WORKER].succeeded = 0;
            break;
        case 9:
            has.roles[ROLE_WORKER].failed = 0;
            break;
        case 10:
            has.start_ms = 0;
            break;
        case 11:
            has.completion_ms = 0;
            break;
        case 12:
            set(&has, COND_CREATED, true, "C", "other", 0);
            break;
        case 13:
            return;
        default:
            break;
        }
        ck_assert_msg(job_status_lacks(&has, &written) == lacks, "case %d", i);
    }
}
END_TEST

START_TEST(a_strange_status_is_read_as_far_as_it_goes)
{
    static const char *const STRANGE[] = {
        "null",
        "[]",
        "{\"conditions\":7,\"replicaStatuses\":[]}",
        "{\"conditions\":[{\"type\":\"Created\"},{\"type\":\"Created\",\"status\":\"True\"},{\"type\":\"Odd\"},7]}",
        ("{\"replicaStatuses\":{\"Worker\":{\"active\":-4,\"completedIndexes\":\"9-1\",\"restartsByIndex\":\"1:x\"}},"
         "\"startTime\":\"soon\"}"),
        "{\"progress\":{\"step\":\"many\",\"metrics\":[1],\"loss\":3}}",
    };
    for (size_t i = 0; i < COUNT_OF(STRANGE); i++) {
        AUTO_FINI(job_status) s = { .nconds = 0 };
        json_auto_t *v = i == 0 ? NULL : json_of(STRANGE[i]);
        job_status_parse(v, &s);
        ck_assert_uint_le(s.nconds, 1);
        ck_assert_int_eq(s.roles[ROLE_WORKER].active, 0);
        ck_assert_uint_eq(s.roles[ROLE_WORKER].completed.n, 0);
        ck_assert_int_eq(s.start_ms, 0);
        ck_assert(!job_status_finished(&s));
    }
}
END_TEST

START_TEST(a_status_of_training_operator_is_understood)
{
    AUTO_FINI(job_status) s = { .nconds = 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    json_auto_t *v =
        json_of("{\"conditions\":[{\"type\":\"Created\",\"status\":\"True\",\"reason\":\"TFJobCreated\",\"message\":"
                "\"m\"},{\"type\":\"Running\",\"status\":\"True\",\"reason\":\"TFJobRunning\",\"message\":\"m\"}],"
                "\"replicaStatuses\":{\"Master\":{\"active\":1},\"PS\":{}},\"startTime\":\"2026-01-01T00:00:00Z\"}");
    job_status_parse(v, &s);
    ck_assert_str_eq(order(&s, &text), "Created Running");
    ck_assert_int_eq(s.roles[ROLE_CHIEF].active, 1);
    ck_assert(s.master);
    ck_assert_int_eq(s.start_ms, T0);
}
END_TEST

Suite *test_suite(void)
{
    const TTest *const TESTS[] = {
        a_changed_condition_is_the_latest,
        another_message_changes_in_place,
        another_reason_keeps_the_time_of_the_change,
        nothing_changes_after_failed,
        a_refused_change_is_never_the_latest,
        the_patch_says_what_changed_and_no_more,
        what_went_is_nulled,
        progress_is_written_by_member,
        what_the_schema_would_refuse_is_left_out,
        the_patch_names_the_life_of_the_job,
        each_difference_is_seen_without_making_the_patch,
        what_is_written_reads_back,
        the_order_of_metrics_is_no_difference,
        what_the_server_lacks_is_seen,
        a_strange_status_is_read_as_far_as_it_goes,
        a_status_of_training_operator_is_understood,
    };
    Suite *s = suite_create("job_status");
    TCase *t = tcase_create("status");
    for (size_t i = 0; i < COUNT_OF(TESTS); i++)
        tcase_add_test(t, TESTS[i]);
    suite_add_tcase(s, t);
    return s;
}
