#include "operator/controller_case.h"

#include <time.h>

#include "control/in_flight.h"
#include "control/status_writer.h"
#include "control/watch_handlers_internal.h"

#define A_POD                    "/api/v1/namespaces/a/pods/j-worker-0"
#define EVENT_POSTS              "/api/v1/namespaces/a/events[?]*"
#define STATUS                   "/apis/kubeflow.org/v1/namespaces/a/tfjobs/j/status*"
#define JOB_WATCH                "*/tfjobs[?]watch=true*"
#define REFUSED(reason, message) "{\"kind\":\"Status\",\"reason\":\"" reason "\",\"message\":\"" message "\"}"

#define START(kind)                                                                                                    \
    AUTO_FINI(world) w;                                                                                                \
    world_init(&w);                                                                                                    \
    begin(&w, kind)

#define JOB_OF(ns, uid, generation, policy)                                                                            \
    "{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"TFJob\",\"metadata\":{\"namespace\":\"" ns                         \
    "\",\"name\":\"j\",\"uid\":\"" uid "\","                                                                           \
    "\"resourceVersion\":\"2" generation "\",\"generation\":" generation                                               \
    ",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"                                                                \
    "\"spec\":{\"runPolicy\":{" policy                                                                                 \
    "},\"tfReplicaSpecs\":{\"Worker\":{\"replicas\":1,\"template\":{\"spec\":{\"containers\":"                         \
    "[{\"name\":\"tensorflow\",\"image\":\"x\"}]}}}}}}"
#define JOB(uid, generation, policy) JOB_OF("a", uid, generation, policy)
#define POD(uid, owner, version)                                                                                       \
    "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\",\"name\":\"j-worker-0\",\"uid\":\"" uid                       \
    "\",\"resourceVersion\":\"" version "\","                                                                          \
    "\"labels\":{\"training.kubeflow.org/operator-name\":\"tfjob-controller\",\"training.kubeflow.org/"                \
    "job-name\":\"j\","                                                                                                \
    "\"training.kubeflow.org/replica-type\":\"worker\",\"training.kubeflow.org/replica-index\":\"0\"},"                \
    "\"ownerReferences\":[{\"uid\":\"" owner "\",\"controller\":true}]}}"

static size_t posts(struct world *w)
{
    return fake_api_count(w->api, "POST", POD_POSTS);
}

static struct cache_entry *cache_entry(struct world *w)
{
    return cache_find(&w->controller->env.cache, "a/j");
}

static bool has_real_pod(void *user)
{
    const struct cache_entry *r = cache_entry(user);
    return r != NULL && r->npods == 1 && !r->pods[0]->creating;
}

static bool is_waiting(void *user)
{
    const struct cache_entry *r = cache_entry(user);
    return r != NULL && r->ticket.fair.waits && r->status_ticket.line != NULL;
}

static bool is_synced(void *user)
{
    return controller_synced(((struct world *)user)->controller);
}

static bool is_empty(void *user)
{
    return ((struct world *)user)->controller->env.cache.entries.n == 0;
}

static void no_job_is_counted(struct world *w)
{
    AUTO_FINI(buf) text = BUF_INIT;
    ck_assert_uint_eq(w->controller->watches->jobs, 0);
    registry_emit(w->registry, &text);
    ck_assert_msg(strstr(text.data, "trainyard_operator_jobs{kind=\"TFJob\"} 0\n") != NULL, "%s", text.data);
}

/* ---- creates and their answers ---- */

/* The watch never delivers the pod: it is not created twice, whatever else happens. */
START_TEST(a_pod_is_made_once_though_the_watch_is_late)
{
    START(&KIND_TFJOB);
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    wait_for(&w, "PATCH", STATUS, 1);
    fake_until(w.loop, has_real_pod, &w);
    push(&w, JOB_WATCH, "MODIFIED", JOB("1", "2", "\"backoffLimit\":3"));
    wait_for(&w, "PATCH", STATUS, 2);
    ck_assert_uint_eq(posts(&w), 1);
    ck_assert_uint_eq(w.controller->watches->jobs, 1);
}
END_TEST

/* ADDED and DELETED are delivered before the create's answer, which comes late: the pod is gone, and is re-created. */
START_TEST(a_pod_that_is_gone_before_its_create_is_answered_stays_gone)
{
    START(&KIND_TFJOB);
    on(&w, "POST", POD_POSTS,
       (struct fake_answer){ .status = 201, .body = POD("p-1", "1", "50"), .delay_ms = 400, .times = 1 });
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    wait_for(&w, "POST", POD_POSTS, 1);
    push(&w, POD_WATCH, "ADDED", POD("p-1", "1", "50"));
    push(&w, POD_WATCH, "DELETED", POD("p-1", "1", "51"));
    wait_for(&w, "POST", POD_POSTS, 2);
    fake_until(w.loop, has_real_pod, &w);
    ck_assert_str_ne(cache_entry(&w)->pods[0]->uid, "p-1");
}
END_TEST

static bool one_pod_is_counted(void *user)
{
    AUTO_FINI(buf) text = BUF_INIT;
    registry_emit(((struct world *)user)->registry, &text);
    return strstr(text.data, "training_operator_created_pods_total{framework=\"tensorflow\"} 1\n") != NULL;
}

/* The answer to a create has only the pod's metadata. What the watch has delivered of that pod before is not
 * forgotten. */
START_TEST(a_late_answer_forgets_nothing)
{
    START(&KIND_TFJOB);
    auto_free char *gated = xasprintf("{\"status\":{\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","
                                      "\"reason\":\"SchedulingGated\"}]},%s",
                                      &POD("p-1", "1", "50")[1]);
    on(&w, "POST", POD_POSTS, (struct fake_answer){ .status = 201, .body = POD("p-1", "1", "50"), .delay_ms = 400 });
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    wait_for(&w, "POST", POD_POSTS, 1);
    push(&w, POD_WATCH, "ADDED", gated);
    fake_until(w.loop, one_pod_is_counted, &w);
    ck_assert_str_eq(cache_entry(&w)->pods[0]->reason, "SchedulingGated");
}
END_TEST

/* The end of an earlier pod of that name, delivered late, is not the end of the one being created. */
START_TEST(an_end_told_late_is_not_that_of_the_next_pod)
{
    START(&KIND_TFJOB);
    on(&w, "POST", POD_POSTS, (struct fake_answer){ .status = 201, .body = POD("p-2", "1", "60"), .delay_ms = 400 });
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    wait_for(&w, "POST", POD_POSTS, 1);
    push(&w, POD_WATCH, "DELETED", POD("p-1", "1", "51"));
    fake_until(w.loop, has_real_pod, &w);
    ck_assert_str_eq(cache_entry(&w)->pods[0]->uid, "p-2");
    ck_assert_uint_eq(posts(&w), 1);
}
END_TEST

/* Created by a request whose answer was lost: the pod is found, and counts. */
START_TEST(a_pod_that_exists_and_is_ours_is_taken)
{
    START(&KIND_TFJOB);
    on(&w, "POST", POD_POSTS, (struct fake_answer){ .status = 409, .body = REFUSED("AlreadyExists", "it exists") });
    on(&w, "GET", A_POD, (struct fake_answer){ .body = POD("p-1", "1", "50") });
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    fake_until(w.loop, has_real_pod, &w);
    ck_assert_str_eq(cache_entry(&w)->pods[0]->uid, "p-1");
    ck_assert_uint_eq(posts(&w), 1);
}
END_TEST

static const struct {
    int status;
    const char *body;
} REFUSALS[] = {
    { 403, REFUSED("Forbidden", "exceeded quota: pods=0") },
    { 422, REFUSED("Invalid", "spec.containers: Required value") },
    { 500, REFUSED("InternalError", "a webhook does not answer") },
    { 404, REFUSED("NotFound", "namespaces a not found") },
};
START_TEST(a_refused_create_is_told_and_tried_again_after_a_pause)
{
    START(&KIND_TFJOB);
    struct fake_request r;
    on(&w, "POST", POD_POSTS, (struct fake_answer){ .status = REFUSALS[_i].status, .body = REFUSALS[_i].body });
    int64_t began = loop_now(w.loop);
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    wait_for(&w, "POST", POD_POSTS, 1);
    wait_for(&w, "POST", POD_POSTS, 2);
    ck_assert_int_ge(loop_now(w.loop) - began, 900);
    wait_for(&w, "POST", EVENT_POSTS, 2);
    bool told = false;
    for (size_t i = 0; fake_api_request(w.api, "POST", EVENT_POSTS, i, &r); i++)
        told |= strstr(r.body, "FailedCreatePod") != NULL;
    ck_assert(told);
    ck_assert_uint_eq(posts(&w), 2);
}
END_TEST

/* A pod of another owner has the name: it is read again and again, with longer delays, and left alone. */
START_TEST(a_foreign_pod_is_waited_for)
{
    START(&KIND_TFJOB);
    on(&w, "POST", POD_POSTS, (struct fake_answer){ .status = 409, .body = REFUSED("AlreadyExists", "it exists") });
    on(&w, "GET", A_POD,
       (struct fake_answer){ .body = "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"j-worker-0\",\"uid\":\"x\"}}" });
    int64_t began = loop_now(w.loop);
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    wait_for(&w, "GET", A_POD, 1);
    wait_for(&w, "GET", A_POD, 2);
    ck_assert_int_ge(loop_now(w.loop) - began, 1900);
    ck_assert_uint_eq(fake_api_count(w.api, "DELETE", A_POD "*"), 0);
}
END_TEST

/* ---- pods that another client changed ---- */

#define POD_LABELLED(uid, version, job, operator)                                                                      \
    "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\",\"name\":\"j-worker-0\",\"uid\":\"" uid                       \
    "\",\"resourceVersion\":\"" version "\","                                                                          \
    "\"labels\":{\"training.kubeflow.org/operator-name\":\""                                                           \
    operator"\",\"training.kubeflow.org/job-name\":\"" job "\","                                                       \
            "\"training.kubeflow.org/replica-type\":\"worker\",\"training.kubeflow.org/replica-index\":\"0\"},"        \
            "\"ownerReferences\":[{\"apiVersion\":\"kubeflow.org/"                                                     \
            "v1\",\"kind\":\"TFJob\",\"name\":\"j\",\"uid\":\"1\",\"controller\":true}]}}"
#define A_PATCH "/api/v1/namespaces/a/pods/j-worker-0[?]*"

static void with_pod(struct world *w)
{
    on(w, "POST", POD_POSTS,
       (struct fake_answer){ .status = 201, .body = POD_LABELLED("p-1", "50", "j", "tfjob-controller"), .times = 1 });
    push(w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    fake_until(w->loop, has_real_pod, w);
    fake_until(w->loop, is_synced, w);
}

/* The labels are restored, with a precondition, and not again at once, however often another client changes them. */
static void labels_go_back(struct world *w)
{
    struct fake_request r;
    wait_for(w, "PATCH", A_PATCH, 1);
    ck_assert(fake_api_request(w->api, "PATCH", A_PATCH, 0, &r));
    ck_assert_ptr_nonnull(strstr(r.body, "\"uid\":\"p-1\",\"resourceVersion\":\"51\""));
    ck_assert_ptr_nonnull(strstr(r.body, "\"training.kubeflow.org/job-name\":\"j\""));
    ck_assert_ptr_nonnull(strstr(r.body, "\"training.kubeflow.org/operator-name\":\"tfjob-controller\""));
    ck_assert_uint_eq(posts(w), 1);
}

START_TEST(a_pod_whose_job_name_is_edited_stays_ours)
{
    START(&KIND_TFJOB);
    on(&w, "PATCH", A_PATCH, (struct fake_answer){ .body = POD_LABELLED("p-1", "52", "j", "tfjob-controller") });
    with_pod(&w);
    push(&w, POD_WATCH, "MODIFIED", POD_LABELLED("p-1", "51", "other", "tfjob-controller"));
    labels_go_back(&w);
    ck_assert_uint_eq(w.controller->env.cache.entries.n, 1);
}
END_TEST

/* The watch reports its deletion: it has left the selection, or is really gone. */
START_TEST(a_pod_that_leaves_the_watch_is_asked_for)
{
    START(&KIND_TFJOB);
    on(&w, "GET", A_POD, (struct fake_answer){ .body = POD_LABELLED("p-1", "51", "j", "nobody"), .times = 1 });
    on(&w, "PATCH", A_PATCH, (struct fake_answer){ .body = POD_LABELLED("p-1", "52", "j", "tfjob-controller") });
    with_pod(&w);
    push(&w, POD_WATCH, "DELETED", POD_LABELLED("p-1", "51", "j", "tfjob-controller"));
    labels_go_back(&w);
    push(&w, POD_WATCH, "ADDED", POD_LABELLED("p-1", "52", "j", "tfjob-controller"));
    push(&w, POD_WATCH, "DELETED", POD_LABELLED("p-1", "53", "j", "tfjob-controller"));
    wait_for(&w, "POST", POD_POSTS, 2);
    ck_assert_uint_eq(fake_api_count(w.api, "GET", A_POD), 2);
}
END_TEST

/* An orphan that is labelled as another job's no longer counts for this job. */
static bool is_of_k(void *user)
{
    const struct cache_entry *k = cache_find(&((struct world *)user)->controller->env.cache, "a/k");
    return k != NULL && k->npods == 1;
}
START_TEST(a_pod_is_of_one_job_at_a_time)
{
    START(&KIND_TFJOB);
    with_pod(&w);
    push(&w, POD_WATCH, "MODIFIED",
         "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\",\"name\":\"j-worker-0\",\"uid\":\"p-1\","
         "\"resourceVersion\":\"51\",\"labels\":{\"training.kubeflow.org/"
         "operator-name\":\"tfjob-controller\",\"training.kubeflow.org/job-name\":\"k\",\"training.kubeflow.org/"
         "replica-type\":\"worker\",\"training.kubeflow.org/replica-index\":\"0\"}}}");
    fake_until(w.loop, is_of_k, &w);
    wait_for(&w, "POST", POD_POSTS, 2); /* j's is missing */
}
END_TEST

/* ---- turns ---- */

/* While other jobs have more requests than can be sent, a new job waits. Then its pod is created and its status
 * written, the pod first. */
START_TEST(a_job_begins_when_there_is_room)
{
    START(&KIND_TFJOB);
    struct fake_request r;
    on(&w, "GET", "/slow", (struct fake_answer){ .silent = true });
    fake_until(w.loop, is_synced, &w);
    struct kube_call *slow[100];
    for (size_t i = 0; i < COUNT_OF(slow); i++)
        slow[i] = kube_send(
            w.client,
            &(struct kube_request){ .verb = KUBE_GET, .priority = KUBE_NORMAL, .path = "/slow" }); /* cancelled below */
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    fake_until(w.loop, is_waiting, &w);
    ck_assert_ptr_null(w.controller->env.in_flight);
    for (size_t i = 0; i < COUNT_OF(slow); i++)
        kube_cancel(slow[i]);
    wait_for(&w, "PATCH", STATUS, 1);
    fake_until(w.loop, has_real_pod, &w);
    ck_assert_uint_eq(posts(&w), 1);
    ck_assert(fake_api_request(w.api, "PATCH", STATUS, 0, &r));
    ck_assert_ptr_nonnull(strstr(r.body, "\"type\":\"Created\""));
}
END_TEST

/* ---- many replicas ---- */

#define ROLE_OF(role, count)                                                                                           \
    "\"" role "\":{\"replicas\":" count                                                                                \
    ",\"template\":{\"spec\":{\"containers\":[{\"name\":\"tensorflow\",\"image\":\"x\"}]}}}"
#define JOB_WITH(name, uid, roles)                                                                                     \
    "{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"TFJob\",\"metadata\":{\"namespace\":\"a\",\"name\":\"" name        \
    "\",\"uid\":\"" uid "\","                                                                                          \
    "\"resourceVersion\":\"2" uid "\",\"generation\":1,\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"               \
    "\"spec\":{\"tfReplicaSpecs\":{" roles "}}}"

static size_t posts_of(struct world *w, const char *pattern, const char *part)
{
    struct fake_request r;
    size_t n = 0;
    for (size_t i = 0; fake_api_request(w->api, "POST", pattern, i, &r); i++)
        n += strstr(r.body, part) != NULL;
    return n;
}

struct wanted_posts {
    struct world *w;
    const char *pattern, *part;
    size_t n, seen, found;
};
static bool have_come(void *user)
{
    struct wanted_posts *p = user;
    struct fake_request r;
    for (; fake_api_request(p->w->api, "POST", p->pattern, p->seen, &r); p->seen++)
        p->found += strstr(r.body, p->part) != NULL;
    return p->found >= p->n;
}
static void wait_for_posts(struct world *w, const char *pattern, const char *part, size_t n)
{
    fake_until(w->loop, have_come, &(struct wanted_posts){ .w = w, .pattern = pattern, .part = part, .n = n });
}

/* No job is queued, and only the creates of pods have no answer. */
static bool waits_for_pods_only(void *user)
{
    const struct controller_env *env = &((struct world *)user)->controller->env;
    for (const struct in_flight_request *req = env->in_flight; req != NULL; req = req->next)
        if (req->action.kind != ACT_CREATE_POD)
            return false;
    return workqueue_length(env->queue) == 0;
}

/* One round trip: no worker is created before ps and chief are accepted. */
START_TEST(ps_and_chief_are_accepted_before_workers_are_sent)
{
    START(&KIND_TFJOB);
    on(&w, "POST", POD_POSTS, (struct fake_answer){ .handle = take_create, .user = &w, .held = true });
    push(&w, JOB_WATCH, "ADDED",
         JOB_WITH("j", "1", ROLE_OF("Worker", "3") "," ROLE_OF("PS", "2") "," ROLE_OF("Chief", "1")));
    wait_for(&w, "POST", POD_POSTS, 3);
    wait_for(&w, "POST", "*/services*", 6); /* each answer is followed by a reconcile */
    wait_for(&w, "PATCH", STATUS, 1);
    fake_until(w.loop, waits_for_pods_only, &w);
    ck_assert_uint_eq(posts(&w), 3);
    ck_assert_uint_eq(posts_of(&w, POD_POSTS, "\"name\":\"j-worker-"), 0);
    ck_assert_uint_eq(cache_entry(&w)->npods, 3);
    fake_api_release(w.api);
    wait_for(&w, "POST", POD_POSTS, 6);
    ck_assert_uint_eq(posts_of(&w, POD_POSTS, "\"name\":\"j-worker-"), 3);
    ck_assert_uint_eq(cache_entry(&w)->npods, 6);
}
END_TEST

/* A quota of services prevents no pod from being created. Services are then tried again one at a time. */
START_TEST(refused_services_are_tried_again_one_at_a_time)
{
    START(&KIND_TFJOB);
    on(&w, "POST", "*/services*",
       (struct fake_answer){ .status = 403, .body = REFUSED("Forbidden", "exceeded quota") });
    push(&w, JOB_WATCH, "ADDED", JOB_WITH("j", "1", ROLE_OF("Worker", "40")));
    wait_for(&w, "POST", POD_POSTS, 40);
    size_t at_first = fake_api_count(w.api, "POST", "*/services*");
    ck_assert_uint_le(at_first, 40);
    wait_for(&w, "POST", "*/services*", at_first + 1);
    int64_t began = loop_now(w.loop);
    wait_for(&w, "POST", "*/services*", at_first + 2);
    ck_assert_int_ge(loop_now(w.loop) - began, 1900);
    ck_assert_uint_eq(posts_of(&w, EVENT_POSTS, "FailedCreateService"),
                      1); /* the events of a round are the same: one of them is sent */
}
END_TEST

/* A pod that is always refused does not hold up the others. */
START_TEST(the_next_try_is_for_another_replica)
{
    START(&KIND_TFJOB);
    on(&w, "POST", POD_POSTS, (struct fake_answer){ .status = 403, .body = REFUSED("Forbidden", "no"), .times = 4 });
    push(&w, JOB_WATCH, "ADDED", JOB_WITH("j", "1", ROLE_OF("Worker", "3")));
    wait_for(&w, "POST", POD_POSTS, 4);
    struct fake_request r[2];
    ck_assert(fake_api_request(w.api, "POST", POD_POSTS, 2, &r[0]) &&
              fake_api_request(w.api, "POST", POD_POSTS, 3, &r[1]));
    ck_assert_ptr_nonnull(strstr(r[0].body, "\"name\":\"j-worker-2\""));
    ck_assert_ptr_nonnull(strstr(r[1].body, "\"name\":\"j-worker-0\""));
}
END_TEST

/* A small job beside a large one whose requests are slow: the small job's pods are created next. */
START_TEST(a_small_job_does_not_wait_for_a_large_one)
{
    START(&KIND_TFJOB);
    on(&w, "POST", POD_POSTS, (struct fake_answer){ .handle = take_create, .user = &w, .delay_ms = 10 });
    push(&w, JOB_WATCH, "ADDED", JOB_WITH("large", "1", ROLE_OF("Worker", "400")));
    wait_for_posts(&w, POD_POSTS, "\"name\":\"large-worker-", 40);
    push(&w, JOB_WATCH, "ADDED", JOB_WITH("small", "2", ROLE_OF("Worker", "1") "," ROLE_OF("PS", "1")));
    wait_for_posts(&w, POD_POSTS, "\"name\":\"small-worker-0\"", 1);
    ck_assert_uint_lt(posts_of(&w, POD_POSTS, "\"name\":\"large-worker-"), 300);
}
END_TEST

/* ---- a status the API server does not take ---- */

static bool status_is_refused(void *user)
{
    const struct cache_entry *r = cache_entry(user);
    return r != NULL && r->status_backoff.failures >= 2 && !r->status_in_flight;
}

static bool has_news(void *user)
{
    return cache_entry(user)->status.observed_generation == 2;
}

static bool suspension_is_told(void *user)
{
    struct fake_request r;
    for (size_t i = 0; fake_api_request(((struct world *)user)->api, "PATCH", STATUS, i, &r); i++)
        if (strstr(r.body, "\"type\":\"Suspended\"") != NULL)
            return true;
    return false;
}

/* Reported once, tried again after growing delays however often the job is enqueued, and at once when the status
 * changes. */
START_TEST(a_refused_status_waits_until_there_is_news)
{
    START(&KIND_TFJOB);
    struct fake_request r;
    size_t told = 0;
    on(&w, "PATCH", STATUS,
       (struct fake_answer){ .status = 422, .body = REFUSED("Invalid", "status.ready: Invalid value") });
    int64_t began = loop_now(w.loop);
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    wait_for(&w, "PATCH", STATUS, 1);
    fake_until(w.loop, has_real_pod, &w); /* which enqueues it */
    push(&w, POD_WATCH, "MODIFIED", POD("u-1", "1", "900"));
    fake_until(w.loop, status_is_refused, &w);
    ck_assert_int_ge(loop_now(w.loop) - began, 900);
    ck_assert_uint_eq(fake_api_count(w.api, "PATCH", STATUS), 2);
    push(&w, JOB_WATCH, "MODIFIED", JOB("1", "2", "\"suspend\":true"));
    fake_until(w.loop, has_news, &w);
    ck_assert_int_le(cache_entry(&w)->status_backoff.failures, 1); /* counted from zero: it waits no longer */
    fake_until(w.loop, suspension_is_told, &w);
    wait_for(&w, "POST", EVENT_POSTS, 1);
    for (size_t i = 0; fake_api_request(w.api, "POST", EVENT_POSTS, i, &r); i++)
        told += strstr(r.body, "FailedUpdateStatus") != NULL;
    ck_assert_uint_le(told, 1);
}
END_TEST

/* ---- deletes ---- */

static bool is_idle(void *user)
{
    const struct world *w = user;
    return w->controller->env.in_flight == NULL && workqueue_length(w->controller->env.queue) == 0;
}

/* A webhook refuses it: tried again after a delay, not as fast as it answers. */
START_TEST(a_refused_delete_is_tried_again_after_a_pause)
{
    START(&KIND_TFJOB);
    on(&w, "DELETE", A_POD "*", (struct fake_answer){ .status = 403, .body = REFUSED("Forbidden", "no") });
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    fake_until(w.loop, has_real_pod, &w);
    int64_t began = loop_now(w.loop);
    push(&w, JOB_WATCH, "MODIFIED", JOB("1", "2", "\"suspend\":true"));
    wait_for(&w, "DELETE", A_POD "*", 1);
    wait_for(&w, "DELETE", A_POD "*", 2);
    ck_assert_int_ge(loop_now(w.loop) - began, 900);
    wait_for(&w, "DELETE", A_POD "*", 3);
    ck_assert_int_ge(loop_now(w.loop) - began, 2800);
}
END_TEST

/* The watch has delivered the pod's deletion before the delete is answered. */
START_TEST(a_deleted_pod_does_not_come_back_with_the_answer)
{
    START(&KIND_TFJOB);
    on(&w, "DELETE", A_POD "*",
       (struct fake_answer){ .delay_ms = 300,
                             .body = "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"j-worker-0\",\"namespace\":\"a\","
                                     "\"uid\":\"p-1\",\"resourceVersion\":\"60\",\"deletionTimestamp\":\"2026-01-01T00:"
                                     "00:00Z\",\"deletionGracePeriodSeconds\":30}}" });
    on(&w, "POST", POD_POSTS, (struct fake_answer){ .status = 201, .body = POD("p-1", "1", "50") });
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    fake_until(w.loop, has_real_pod, &w);
    push(&w, JOB_WATCH, "MODIFIED", JOB("1", "2", "\"suspend\":true"));
    wait_for(&w, "DELETE", A_POD "*", 1);
    push(&w, POD_WATCH, "DELETED", POD("p-1", "1", "61"));
    fake_until(w.loop, is_idle, &w);
    ck_assert_uint_eq(cache_entry(&w)->npods, 0);
}
END_TEST

/* ---- a status that another client changes ---- */

static bool lacks_something(void *user)
{
    return cache_entry(user)->observed != NULL;
}

static bool lacks_nothing(void *user)
{
    return cache_entry(user)->observed == NULL;
}

static bool is_told(void *user)
{
    const struct cache_entry *r = cache_entry(user);
    return r->acked == NULL && !r->status_in_flight && r->npods == 1 && !r->pods[0]->creating;
}

/* The object as the watch delivers it later: each change has its own version. status: JSON, or NULL. */
static char *later(const char *object, int version, const char *status)
{
    char text[32];
    json_auto_t *o = NULL;
    AUTO_FINI(buf) b = BUF_INIT;
    str_fmt(text, sizeof(text), "%d", version);
    ck_assert_int_eq(json_parse(object, strlen(object), "object", &o, NULL), 0);
    json_object_set_new(json_object_get(o, "metadata"), "resourceVersion", json_string(text));
    if (status != NULL)
        json_object_set_new(o, "status", json_loads(status, 0, NULL));
    json_emit(o, &b);
    return buf_detach(&b);
}

/* What the latest patch wrote. */
static char *newest_status(struct world *w)
{
    struct fake_request r = { .body = NULL };
    json_auto_t *patch = NULL;
    AUTO_FINI(buf) b = BUF_INIT;
    for (size_t i = 0; fake_api_request(w->api, "PATCH", STATUS, i, &r); i++)
        continue;
    ck_assert_int_eq(json_parse(r.body, r.body_len, "patch", &patch, NULL), 0);
    json_emit(json_object_get(patch, "status"), &b);
    return buf_detach(&b);
}

/* A user edits it, for example. It is restored once for each change. An older state that the watch delivers late is not
 * a change. */
START_TEST(what_somebody_takes_away_is_written_again)
{
    START(&KIND_TFJOB);
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    wait_for(&w, "PATCH", STATUS, 1);
    fake_until(w.loop, is_told, &w);
    size_t n = fake_api_count(w.api, "PATCH", STATUS);
    auto_free char *empty = later(JOB("1", "1", ""), 30, NULL), *again = later(JOB("1", "1", ""), 31, NULL);
    push(&w, JOB_WATCH, "MODIFIED", empty);
    fake_until(w.loop, lacks_something, &w);
    fake_until(w.loop, is_idle, &w);
    ck_assert_uint_eq(fake_api_count(w.api, "PATCH", STATUS), n);
    cache_entry(&w)->observed_ms -= status_writer_restore_delay_ms(0);
    env_enqueue(&w.controller->env, cache_entry(&w));
    wait_for(&w, "PATCH", STATUS, n + 1);
    fake_until(w.loop, is_told, &w);
    auto_free char *status = newest_status(&w), *whole = later(JOB("1", "1", ""), 32, status);
    ck_assert_ptr_nonnull(strstr(status, "\"type\":\"Created\""));
    push(&w, JOB_WATCH, "MODIFIED", again);
    fake_until(w.loop, lacks_something, &w);
    push(&w, JOB_WATCH, "MODIFIED", whole);
    fake_until(w.loop, lacks_nothing, &w);
    cache_entry(&w)->observed_ms -= status_writer_restore_delay_ms(1);
    env_enqueue(&w.controller->env, cache_entry(&w));
    fake_until(w.loop, is_idle, &w);
    ck_assert_uint_eq(fake_api_count(w.api, "PATCH", STATUS), n + 1);
}
END_TEST

/* The server's clock is an hour behind: deadlines are computed with that clock. */
START_TEST(the_servers_clock_counts)
{
    START(&KIND_TFJOB);
    char date[80];
    time_t there = time(NULL) - 3600;
    struct tm tm;
    strftime(date, sizeof(date), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", gmtime_r(&there, &tm));
    on(&w, "PATCH", STATUS, (struct fake_answer){ .body = "{}", .headers = date });
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    wait_for(&w, "PATCH", STATUS, 1);
    fake_until(w.loop, is_told, &w);
    int64_t off = env_now(&w.controller->env) - (int64_t)there * 1000;
    ck_assert_int_ge(off, 0);
    ck_assert_int_le(off, 60000); /* the test may have waited */
}
END_TEST

START_TEST(what_the_server_warns_of_is_told)
{
    START(&KIND_TFJOB);
    struct fake_request r;
    on(&w, "POST", POD_POSTS,
       (struct fake_answer){ .status = 201,
                             .body = POD("p-1", "1", "50"),
                             .headers = "Warning: 299 - \"unknown field \\\"spec.containers[0].resource\\\"\"\r\n" });
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    wait_for(&w, "POST", POD_POSTS, 1);
    ck_assert(fake_api_request(w.api, "POST", POD_POSTS, 0, &r));
    ck_assert_ptr_nonnull(strstr(r.path, "fieldValidation=Warn"));
    size_t i = 0;
    do {
        wait_for(&w, "POST", EVENT_POSTS, i + 1);
        ck_assert(fake_api_request(w.api, "POST", EVENT_POSTS, i++, &r));
    } while (strstr(r.body, "PodTemplateWarning") == NULL);
    ck_assert_ptr_nonnull(strstr(r.body, "pod j-worker-0: unknown field \\\"spec.containers[0].resource\\\""));
}
END_TEST

static size_t place_of(struct world *w, const char *method, const char *words)
{
    struct fake_request r;
    size_t i = 0;
    for (; fake_api_request(w->api, "*", "*", i, &r); i++)
        if (str_eq(r.method, method) && strstr(r.body, words) != NULL)
            break;
    return i;
}

#define FAILED_POD                                                                                                     \
    "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\",\"name\":\"j-worker-0\",\"uid\":\"u-2\",\"resourceVersion\":" \
    "\"900\","                                                                                                         \
    "\"labels\":{\"training.kubeflow.org/operator-name\":\"tfjob-controller\",\"training.kubeflow.org/"                \
    "job-name\":\"j\","                                                                                                \
    "\"training.kubeflow.org/replica-type\":\"worker\",\"training.kubeflow.org/replica-index\":\"0\"},"                \
    "\"ownerReferences\":[{\"uid\":\"1\",\"controller\":true}]},\"status\":{\"phase\":\"Failed\","                     \
    "\"containerStatuses\":[{\"name\":\"tensorflow\","                                                                 \
    "\"state\":{\"terminated\":{\"exitCode\":137}}}]}}"

#define RETRIED                                                                                                        \
    "{\"apiVersion\":\"kubeflow.org/"                                                                                  \
    "v1\",\"kind\":\"TFJob\",\"metadata\":{\"namespace\":\"a\",\"name\":\"j\",\"uid\":\"1\","                          \
    "\"resourceVersion\":\"21\",\"generation\":1,\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{"           \
    "\"tfReplicaSpecs\":{\"Worker\":"                                                                                  \
    "{\"replicas\":1,\"restartPolicy\":\"ExitCode\",\"template\":{\"spec\":{\"containers\":[{\"name\":\"tensorflow\"," \
    "\"image\":\"x\"}]}}}}}}"

/* An operator that is killed between the two steps has counted the pod, or the pod is still there. */
START_TEST(a_restart_is_written_before_the_delete)
{
    START(&KIND_TFJOB);
    on(&w, "DELETE", A_POD "*", (struct fake_answer){ .body = "{\"kind\":\"Status\"}" });
    push(&w, JOB_WATCH, "ADDED", RETRIED);
    wait_for(&w, "PATCH", STATUS, 1);
    fake_until(w.loop, is_told, &w);
    on(&w, "PATCH", STATUS, (struct fake_answer){ .body = "{}", .delay_ms = 500 });
    push(&w, POD_WATCH, "ADDED", FAILED_POD);
    wait_for(&w, "DELETE", A_POD "*", 1);
    ck_assert_uint_lt(place_of(&w, "PATCH", "\"restartsByIndex\":\"0:1\""), place_of(&w, "DELETE", ""));
}
END_TEST

/* A job goes on although the server never accepts its status. */
START_TEST(a_restart_that_cannot_be_written_is_done_nevertheless)
{
    START(&KIND_TFJOB);
    on(&w, "DELETE", A_POD "*", (struct fake_answer){ .body = "{\"kind\":\"Status\"}" });
    on(&w, "PATCH", STATUS, (struct fake_answer){ .status = 422, .body = REFUSED("Invalid", "no") });
    push(&w, JOB_WATCH, "ADDED", RETRIED);
    wait_for(&w, "POST", POD_POSTS, 1);
    fake_until(w.loop, has_real_pod, &w);
    push(&w, POD_WATCH, "ADDED", FAILED_POD);
    wait_for(&w, "DELETE", A_POD "*", 1);
}
END_TEST

#define QUOTA(status) "{\"conditions\":[{\"type\":\"QuotaReserved\",\"status\":\"" status "\",\"note\":7}]}"

static bool has_conflict(void *user)
{
    const struct cache_entry *r = cache_entry(user);
    return r != NULL && r->conflicts > 0;
}

/* The patch writes the whole list, so it includes their entries. It has a precondition: it fails when another client
 * has written since. */
START_TEST(conditions_of_others_survive)
{
    START(&KIND_TFJOB);
    struct fake_request r;
    on(&w, "PATCH", STATUS,
       (struct fake_answer){ .status = 409, .body = REFUSED("Conflict", "the object has been modified"), .times = 1 });
    auto_free char *first = later(JOB("1", "1", ""), 40, QUOTA("False")),
                   *next = later(JOB("1", "1", ""), 47, QUOTA("True"));
    push(&w, JOB_WATCH, "ADDED", first);
    wait_for(&w, "PATCH", STATUS, 1);
    ck_assert(fake_api_request(w.api, "PATCH", STATUS, 0, &r));
    ck_assert_ptr_nonnull(strstr(r.body, "\"resourceVersion\":\"40\""));
    ck_assert_ptr_nonnull(strstr(r.body, "[{\"type\":\"QuotaReserved\",\"status\":\"False\",\"note\":7},"));
    fake_until(w.loop, has_conflict, &w);
    push(&w, JOB_WATCH, "MODIFIED", next);
    wait_for(&w, "PATCH", STATUS, 2);
    for (size_t i = 1; fake_api_request(w.api, "PATCH", STATUS, i, &r) && strstr(r.body, "\"47\"") == NULL; i++)
        wait_for(&w, "PATCH", STATUS, i + 2); /* one may have been sent before the watch delivered the change */
    ck_assert_ptr_nonnull(strstr(r.body, "[{\"type\":\"QuotaReserved\",\"status\":\"True\",\"note\":7},"));
    fake_until(w.loop, is_told, &w);
    ck_assert_int_eq(cache_entry(&w)->conflicts, 0);
}
END_TEST

static bool has_generation_2(void *user)
{
    return cache_entry(user) != NULL && cache_entry(user)->spec.generation == 2;
}

#define ELSEWHERE "\"managedBy\":\"kueue.x-k8s.io/multikueue\""

START_TEST(the_status_of_a_job_of_another_controller_is_left_alone)
{
    START(&KIND_TFJOB);
    auto_free char *first = later(JOB("1", "1", ELSEWHERE), 30, "{\"state\":\"Running\"}"),
                   *next = later(JOB("1", "2", ELSEWHERE), 31, "{\"state\":\"Running\"}");
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ELSEWHERE));
    push(&w, JOB_WATCH, "MODIFIED", first);
    push(&w, JOB_WATCH, "MODIFIED", next);
    fake_until(w.loop, has_generation_2, &w);
    ck_assert_ptr_null(cache_entry(&w)->observed);
    ck_assert_uint_eq(fake_api_count(w.api, "PATCH", STATUS), 0);
}
END_TEST

/* ---- suspended and resumed at once ---- */

#define SUSPENDED_AND_RESUMED                                                                                          \
    JOB("1", "2", "\"suspend\":true") "}\n{\"type\":\"MODIFIED\",\"object\":" JOB("1", "3", "")

/* Both are delivered in one read. Its pod, which waits, may have been created from another template. */
START_TEST(a_pod_that_waits_is_made_again_when_its_job_was_resumed)
{
    START(&KIND_TFJOB);
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    fake_until(w.loop, has_real_pod, &w);
    push(&w, JOB_WATCH, "MODIFIED", SUSPENDED_AND_RESUMED);
    wait_for(&w, "DELETE", A_POD "*", 1);
    wait_for(&w, "POST", POD_POSTS, 2);
    fake_until(w.loop, has_real_pod, &w);
    ck_assert(!job_status_is(&cache_entry(&w)->status, COND_SUSPENDED));
}
END_TEST

/* The create is answered after both. */
START_TEST(a_pod_that_was_being_made_is_made_again_when_its_job_was_resumed)
{
    START(&KIND_TFJOB);
    on(&w, "POST", POD_POSTS,
       (struct fake_answer){ .status = 201, .body = POD("p-1", "1", "50"), .delay_ms = 300, .times = 1 });
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    wait_for(&w, "POST", POD_POSTS, 1);
    push(&w, JOB_WATCH, "MODIFIED", SUSPENDED_AND_RESUMED);
    wait_for(&w, "DELETE", A_POD "*", 1);
    wait_for(&w, "POST", POD_POSTS, 2);
}
END_TEST

static bool runs_now(void *user)
{
    return cache_entry(user)->status.roles[ROLE_WORKER].active == 1;
}

static bool has_generation_3(void *user)
{
    return cache_entry(user)->status.observed_generation == 3;
}

START_TEST(a_pod_that_runs_goes_on_when_its_job_was_resumed)
{
    START(&KIND_TFJOB);
    auto_free char *runs = later(POD("p-1", "1", "50"), 60, "{\"phase\":\"Running\"}");
    on(&w, "POST", POD_POSTS, (struct fake_answer){ .status = 201, .body = POD("p-1", "1", "50") });
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    fake_until(w.loop, has_real_pod, &w);
    push(&w, POD_WATCH, "MODIFIED", runs);
    fake_until(w.loop, runs_now, &w);
    push(&w, JOB_WATCH, "MODIFIED", SUSPENDED_AND_RESUMED);
    fake_until(w.loop, has_generation_3, &w);
    fake_until(w.loop, is_idle, &w);
    ck_assert_uint_eq(fake_api_count(w.api, "DELETE", A_POD "*"), 0);
}
END_TEST

/* ---- jobs that are deleted ---- */

START_TEST(nothing_is_left_of_a_job_deleted_while_its_pod_is_made)
{
    START(&KIND_TFJOB);
    on(&w, "POST", POD_POSTS,
       (struct fake_answer){
           .status = 403, .body = REFUSED("Forbidden", "the namespace is being terminated"), .delay_ms = 200 });
    on(&w, "POST", "*/services*",
       (struct fake_answer){
           .status = 403, .body = REFUSED("Forbidden", "the namespace is being terminated"), .delay_ms = 200 });
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    wait_for(&w, "POST", POD_POSTS, 1);
    push(&w, JOB_WATCH, "DELETED", JOB("1", "2", ""));
    fake_until(w.loop, is_empty, &w);
    no_job_is_counted(&w);
    ck_assert_uint_eq(posts(&w), 1);
}
END_TEST

/* Its pods are deleted after it. */
START_TEST(a_deleted_job_is_not_counted_while_its_pods_remain)
{
    START(&KIND_TFJOB);
    on(&w, "POST", "*/services*", (struct fake_answer){ .status = 403, .body = REFUSED("Forbidden", "no") });
    on(&w, "POST", POD_POSTS, (struct fake_answer){ .status = 201, .body = POD("p-1", "1", "50") });
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    fake_until(w.loop, has_real_pod, &w);
    push(&w, JOB_WATCH, "DELETED", JOB("1", "2", ""));
    push(&w, POD_WATCH, "DELETED", POD("p-1", "1", "51"));
    fake_until(w.loop, is_empty, &w);
    no_job_is_counted(&w);
}
END_TEST

/* Deleted and re-created at once, under the same name, while the first one's pod is being created. */
START_TEST(another_life_of_the_name_gets_pods_of_its_own)
{
    START(&KIND_TFJOB);
    struct fake_request r;
    on(&w, "POST", POD_POSTS,
       (struct fake_answer){ .status = 201, .body = POD("p-1", "1", "50"), .delay_ms = 200, .times = 1 });
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    wait_for(&w, "POST", POD_POSTS, 1);
    push(&w, JOB_WATCH, "MODIFIED", JOB("2", "3", ""));
    wait_for(&w, "POST", POD_POSTS, 2);
    fake_until(w.loop, has_real_pod, &w);
    ck_assert(fake_api_request(w.api, "POST", POD_POSTS, 1, &r));
    ck_assert_ptr_nonnull(strstr(r.body, "\"uid\":\"2\""));
    ck_assert_str_eq(cache_entry(&w)->pods[0]->owner_uid, "2");
    ck_assert_uint_eq(w.controller->watches->jobs, 1);
}
END_TEST

START_TEST(a_controller_ends_with_requests_on_their_way)
{
    START(&KIND_TFJOB);
    on(&w, "POST", "*", (struct fake_answer){ .silent = true });
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    wait_for(&w, "POST", POD_POSTS, 1);
    controller_free(TAKE(w.controller));
    begin(&w, &KIND_TFJOB); /* and another one begins, as when training-operator is stopped and started */
    wait_for(&w, "GET", "*/tfjobs[?]limit=*", 2);
    no_job_is_counted(&w);
}
END_TEST

/* ---- what the controller reads ---- */

static bool has_a_job(void *user)
{
    return ((struct world *)user)->controller->watches->jobs == 1;
}

/* As just after the API server has started, before it has its roles: without its pods a job must not be reconciled. */
START_TEST(nothing_is_made_while_pods_may_not_be_listed)
{
    AUTO_FINI(world) w;
    world_init(&w);
    on(&w, "GET", "*/pods[?]limit=*", (struct fake_answer){ .status = 403, .body = REFUSED("Forbidden", "no") });
    begin(&w, &KIND_TFJOB);
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    fake_until(w.loop, has_a_job, &w);
    fake_until(w.loop, is_synced, &w);
    fake_until(w.loop, is_idle, &w);
    ck_assert_uint_eq(fake_api_count(w.api, "POST", "*"), 0);
    ck_assert_ptr_nonnull(reflector_trouble(w.controller->watches->reflectors[1])); /* that of pods */
}
END_TEST

static bool has_no_job(void *user)
{
    return ((struct world *)user)->controller->watches->jobs == 0;
}

#define GONE_FROM_THE_LIST                                                                                             \
    START(&KIND_TFJOB);                                                                                                \
    on(&w, "POST", POD_POSTS, (struct fake_answer){ .status = 201, .body = POD("p-1", "1", "50") });                   \
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));                                                                   \
    fake_until(w.loop, has_real_pod, &w)
#define EXPIRED "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}"

/* After a gap in the watch the list of pods comes first, without the pods of a deleted job: they are not re-created. */
START_TEST(a_job_that_may_be_gone_is_asked_for_first)
{
    GONE_FROM_THE_LIST;
    on(&w, "GET", "*/tfjobs/j", (struct fake_answer){ .status = 404, .body = REFUSED("NotFound", "no") });
    push(&w, POD_WATCH, "ERROR", EXPIRED);
    wait_for(&w, "GET", "*/tfjobs/j", 2); /* until the watch delivers it */
    ck_assert_uint_eq(posts(&w), 1);
    push(&w, JOB_WATCH, "DELETED", JOB("1", "2", ""));
    fake_until(w.loop, has_no_job, &w);
    fake_until(w.loop, is_idle, &w);
    ck_assert_uint_eq(posts(&w), 1);
}
END_TEST

START_TEST(a_job_that_is_there_gets_its_lost_pods_again)
{
    GONE_FROM_THE_LIST;
    on(&w, "GET", "*/tfjobs/j", (struct fake_answer){ .body = JOB("1", "1", "") });
    push(&w, POD_WATCH, "ERROR", EXPIRED);
    wait_for(&w, "POST", POD_POSTS, 2);
    ck_assert_uint_eq(fake_api_count(w.api, "GET", "*/tfjobs/j"), 1);
}
END_TEST

/* Objects that may not be read do not hold up the job. */
START_TEST(a_job_that_may_not_be_asked_for_goes_on)
{
    GONE_FROM_THE_LIST;
    on(&w, "GET", "*/tfjobs/j", (struct fake_answer){ .status = 403, .body = REFUSED("Forbidden", "no") });
    push(&w, POD_WATCH, "ERROR", EXPIRED);
    wait_for(&w, "POST", POD_POSTS, 2);
}
END_TEST

static bool has_two_jobs(void *user)
{
    return ((struct world *)user)->controller->watches->jobs == 2;
}

/* Listing one namespace again changes nothing about the jobs of another one. */
START_TEST(namespaces_are_apart)
{
    AUTO_FINI(world) w;
    world_init(&w);
    strlist_add(&w.namespaces, "a");
    strlist_add(&w.namespaces, "b");
    begin(&w, &KIND_TFJOB);
    push(&w, "*/b/tfjobs[?]watch=true*", "ADDED", JOB_OF("b", "2", "1", ""));
    push(&w, "*/a/tfjobs[?]watch=true*", "ADDED", JOB("1", "1", ""));
    fake_until(w.loop, has_two_jobs, &w);
    on(&w, "GET", "*/a/tfjobs[?]limit=*",
       (struct fake_answer){ .body = "{\"metadata\":{\"resourceVersion\":\"30\"},\"items\":[" JOB("1", "1", "") "]}" });
    push(&w, "*/a/tfjobs[?]watch=true*", "ERROR", "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
    wait_for(&w, "GET", "*/a/tfjobs[?]watch=true&resourceVersion=30*", 1);
    ck_assert_uint_eq(w.controller->watches->jobs, 2);
}
END_TEST

#define TRAINJOB_OF(generation, spec, workers)                                                                         \
    "{\"apiVersion\":\"trainyard.dev/"                                                                                 \
    "v1alpha1\",\"kind\":\"TrainJob\",\"metadata\":{\"namespace\":\"a\",\"name\":\"t\",\"uid\":\"1\","                 \
    "\"resourceVersion\":\"2" generation "\",\"generation\":" generation                                               \
    ",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"                                                                \
    "\"spec\":{" spec "\"replicaSpecs\":{\"Worker\":{\"replicas\":" workers ",\"template\":{\"spec\":{\"containers\":" \
    "[{\"name\":\"trainer\",\"image\":\"x\",\"command\":[\"y\"]}]}}}}}}"
#define TRAINJOB(generation, limit)                                                                                    \
    TRAINJOB_OF(generation,                                                                                            \
                "\"runPolicy\":{\"backoffLimit\":" limit                                                               \
                "},\"storage\":{\"data\":{\"persistentVolumeClaim\":{\"claimName\":\"c\"}}},",                         \
                "1")
#define CLAIM "/api/v1/namespaces/a/persistentvolumeclaims/c"

/* The spec changes while its claims are being read: they are read again for the new spec. */
START_TEST(claims_are_asked_for_again_when_the_spec_changes_meanwhile)
{
    START(&KIND_TRAINJOB);
    on(&w, "GET", CLAIM,
       (struct fake_answer){ .delay_ms = 200, .body = "{\"spec\":{\"accessModes\":[\"ReadWriteMany\"]}}" });
    push(&w, "*/trainjobs[?]watch=true*", "ADDED", TRAINJOB("1", "1"));
    wait_for(&w, "GET", CLAIM, 1);
    push(&w, "*/trainjobs[?]watch=true*", "MODIFIED", TRAINJOB("2", "2"));
    wait_for(&w, "GET", CLAIM, 2);
    wait_for(&w, "POST", POD_POSTS, 1);
}
END_TEST

/* A TFJob's pods and services have the same names: an event about one does not affect the other. */
START_TEST(a_refused_service_leaves_the_pod_of_its_name)
{
    START(&KIND_TFJOB);
    on(&w, "POST", "*/services*", (struct fake_answer){ .status = 403, .body = REFUSED("Forbidden", "no") });
    on(&w, "POST", POD_POSTS, (struct fake_answer){ .status = 201, .body = POD("p-1", "1", "50"), .delay_ms = 200 });
    push(&w, JOB_WATCH, "ADDED", JOB("1", "1", ""));
    fake_until(w.loop, has_real_pod, &w);
    wait_for(&w, "POST", "*/services*", 2);
    ck_assert_uint_eq(posts(&w), 1);
}
END_TEST

/* ---- how the job reports refused creates ---- */

static int refuse(void *user, const struct fake_request *r, struct buf *body)
{
    json_auto_t *object = NULL;
    (void)user;
    ck_assert_int_eq(json_parse(r->body, r->body_len, "body", &object, NULL), 0);
    buf_printf(body, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"pods \\\"%s\\\" is forbidden\"}",
               json_string_value(json_at(object, "metadata.name")));
    return 403;
}

static size_t told(const struct world *w, const char *words)
{
    struct fake_request r;
    size_t n = 0;
    for (size_t i = 0; fake_api_request(w->api, "PATCH", "*/trainjobs/t/status*", i, &r); i++)
        n += strstr(r.body, words) != NULL;
    return n;
}

static bool all_is_said(void *user)
{
    return cache_find(&((struct world *)user)->controller->env.cache, "a/t")->acked == NULL;
}

/* Two pods are refused again and again, in changing order: the status is written once. */
START_TEST(a_repeated_refusal_is_written_once)
{
    START(&KIND_TRAINJOB);
    on(&w, "POST", POD_POSTS, (struct fake_answer){ .handle = refuse });
    on(&w, "POST", POD_POSTS, (struct fake_answer){ .handle = refuse, .delay_ms = 300, .times = 1 });
    push(&w, "*/trainjobs[?]watch=true*", "ADDED", TRAINJOB_OF("1", "", "2"));
    wait_for(&w, "POST", POD_POSTS, 4); /* two at once, then one after the other */
    fake_until(w.loop, all_is_said, &w);
    ck_assert_uint_eq(told(&w, "ReplicaFailure"), 1);
    ck_assert_uint_eq(told(&w, "pod t-worker-1: pods \\\"t-worker-1\\\" is forbidden"), 1);
    on(&w, "POST", POD_POSTS, (struct fake_answer){ .handle = take_create, .user = &w });
    wait_for(&w, "POST", POD_POSTS, 6);
    wait_for(&w, "PATCH", "*/trainjobs/t/status*", 3);
    fake_until(w.loop, all_is_said, &w);
    ck_assert_ptr_null(cache_find(&w.controller->env.cache, "a/t")->refused.name);
    ck_assert_uint_eq(told(&w, "ReplicaFailure"), 1);
}
END_TEST

#define MAY_NOT                                                                                                        \
    "Waiting for PersistentVolumeClaim c, which the operator may not read (403): grant its service account get on"
static bool says_what_may_not_be_read(void *user)
{
    return told(user, MAY_NOT) > 0;
}

/* The message is not "it does not exist": it says what to do. */
START_TEST(a_claim_that_may_not_be_read_is_not_called_absent)
{
    START(&KIND_TRAINJOB);
    on(&w, "GET", CLAIM, (struct fake_answer){ .status = 403, .body = REFUSED("Forbidden", "no") });
    push(&w, "*/trainjobs[?]watch=true*", "ADDED", TRAINJOB("1", "1"));
    fake_until(w.loop, says_what_may_not_be_read, &w);
    ck_assert_uint_eq(told(&w, "it does not exist"), 0);
}
END_TEST

#define BOARD_JOB                                                                                                      \
    TRAINJOB_OF("1", "\"tensorboard\":{},\"storage\":{\"output\":{\"persistentVolumeClaim\":{\"claimName\":\"c\"}}},", \
                "1")

#define NO_BOARD_JOB                                                                                                   \
    TRAINJOB_OF("2", "\"storage\":{\"output\":{\"persistentVolumeClaim\":{\"claimName\":\"c\"}}},", "1")
#define BOARD_POSTS(plural) "*/" plural "[?]*"
#define BOARD_OBJECT(uid, owners)                                                                                      \
    "{\"metadata\":{\"namespace\":\"a\",\"name\":\"t-tensorboard\",\"uid\":\"" uid                                     \
    "\",\"resourceVersion\":\"5\",\"labels\":{"                                                                        \
    "\"app.kubernetes.io/managed-by\":\"trainyard-operator\",\"trainyard.dev/job-name\":\"t\","                        \
    "\"trainyard.dev/operator-name\":\"trainjob-controller\",\"trainyard.dev/replica-type\":\"tensorboard\"}" owners   \
    "}}"
#define OWNED_BY(uid) ",\"ownerReferences\":[{\"uid\":\"" uid "\",\"controller\":true}]"

static void with_claim(struct world *w)
{
    on(w, "GET", CLAIM, (struct fake_answer){ .body = "{\"spec\":{\"accessModes\":[\"ReadWriteMany\"]}}" });
}

static void exists(struct world *w, const char *posts, const char *gets, const char *body)
{
    on(w, "POST", posts, (struct fake_answer){ .status = 409, .body = REFUSED("AlreadyExists", "it exists") });
    on(w, "GET", gets, (struct fake_answer){ .body = body });
}

/* The body of the n-th request. */
static const char *body_of(struct world *w, const char *method, const char *pattern, size_t n)
{
    struct fake_request r;
    wait_for(w, method, pattern, n + 1);
    ck_assert(fake_api_request(w->api, method, pattern, n, &r));
    return r.body;
}

static bool board_failure_is_told(void *user)
{
    return told(user, "TensorBoardFailure") > 0 && told(user, "belongs to another owner") > 0;
}
static bool board_failure_is_taken_back(void *user)
{
    const struct cache_entry *r = cache_find(&((struct world *)user)->controller->env.cache, "a/t");
    return job_status_find(&r->status, COND_TENSORBOARD_FAILURE) == NULL && r->acked == NULL;
}

/* Its service is refused at first: TensorBoard is running when both exist. */
START_TEST(a_board_is_its_service_and_its_deployment)
{
    START(&KIND_TRAINJOB);
    with_claim(&w);
    on(&w, "POST", BOARD_POSTS("services"),
       (struct fake_answer){ .status = 403, .body = REFUSED("Forbidden", "exceeded quota"), .times = 2 });
    push(&w, "*/trainjobs[?]watch=true*", "ADDED", BOARD_JOB);
    wait_for(&w, "POST", BOARD_POSTS("services"), 2); /* the job's one, and TensorBoard's */
    ck_assert_uint_eq(fake_api_count(w.api, "POST", BOARD_POSTS("deployments")), 0);
    wait_for(&w, "POST", BOARD_POSTS("services"), 4);
    wait_for(&w, "POST", BOARD_POSTS("deployments"), 1);
}
END_TEST

#define OVER_QUOTA(what, limit) "exceeded quota: few, requested: " what "=1, used: " what "=0, limited: " what "=" limit
static bool pod_and_board_are_refused(void *user)
{
    const struct cache_entry *r = cache_find(&((struct world *)user)->controller->env.cache, "a/t");
    return r != NULL && r->refused.name != NULL && r->tensorboard_refused.name != NULL;
}

/* What the quota lacks for the job's pods is said once. */
START_TEST(a_board_over_quota_says_nothing_about_the_pods)
{
    START(&KIND_TRAINJOB);
    with_claim(&w);
    on(&w, "POST", POD_POSTS,
       (struct fake_answer){ .status = 403, .body = REFUSED("Forbidden", OVER_QUOTA("pods", "0")) });
    on(&w, "POST", BOARD_POSTS("deployments"),
       (struct fake_answer){ .status = 403, .body = REFUSED("Forbidden", OVER_QUOTA("count/deployments", "0")) });
    push(&w, "*/trainjobs[?]watch=true*", "ADDED", BOARD_JOB);
    fake_until(w.loop, pod_and_board_are_refused, &w);
    const struct refusal *f = &cache_find(&w.controller->env.cache, "a/t")->refused;
    ck_assert(f->never_fits);
    ck_assert_msg(strstr(strstr(f->words, "; the job needs") + 1, "; the job needs") == NULL, "%s", f->words);
}
END_TEST

static bool board_has_no_pod(void *user)
{
    return told(user, "TensorBoardFailure") > 0 && told(user, "exceeded quota: few") > 0;
}

#define NO_PODS                                                                                                        \
    ",\"ownerReferences\":[{\"uid\":\"1\",\"controller\":true}]},\"status\":{\"conditions\":[{\"type\":"               \
    "\"ReplicaFailure\","                                                                                              \
    "\"status\":\"True\",\"message\":\"exceeded quota: few\"}]"
#define ONE_POD OWNED_BY("1") "},\"status\":{\"availableReplicas\":1"

/* Its Deployment exists, and cannot create its pod until there is room. */
START_TEST(a_board_without_a_pod_says_why)
{
    START(&KIND_TRAINJOB);
    with_claim(&w);
    on(&w, "GET", "*/t-tensorboard", (struct fake_answer){ .body = BOARD_OBJECT("b-1", NO_PODS) });
    push(&w, "*/trainjobs[?]watch=true*", "ADDED", BOARD_JOB);
    fake_until(w.loop, board_has_no_pod, &w);
    on(&w, "GET", "*/t-tensorboard", (struct fake_answer){ .body = BOARD_OBJECT("b-1", ONE_POD) });
    fake_until(w.loop, board_failure_is_taken_back, &w);
}
END_TEST

static bool board_is_there(void *user)
{
    const struct cache_entry *r = cache_find(&((struct world *)user)->controller->env.cache, "a/t");
    return r != NULL && r->tensorboard_ensured;
}

START_TEST(a_board_that_is_not_wanted_any_more_goes)
{
    START(&KIND_TRAINJOB);
    with_claim(&w);
    on(&w, "GET", "*/t-tensorboard", (struct fake_answer){ .body = BOARD_OBJECT("b-1", OWNED_BY("1")) });
    push(&w, "*/trainjobs[?]watch=true*", "ADDED", BOARD_JOB);
    fake_until(w.loop, board_is_there, &w);
    push(&w, "*/trainjobs[?]watch=true*", "MODIFIED", NO_BOARD_JOB);
    const char *wanted = "\"preconditions\":{\"uid\":\"b-1\",\"resourceVersion\":\"5\"}";
    ck_assert_ptr_nonnull(strstr(body_of(&w, "DELETE", "*/deployments/t-tensorboard*", 0), wanted));
    ck_assert_ptr_nonnull(strstr(body_of(&w, "DELETE", "*/services/t-tensorboard*", 0), wanted));
}
END_TEST

/* Removed from the spec while no operator was running. */
START_TEST(a_board_of_before_goes_as_well)
{
    START(&KIND_TRAINJOB);
    on(&w, "GET", "*/t-tensorboard", (struct fake_answer){ .body = BOARD_OBJECT("s", OWNED_BY("1")) });
    push(&w, "*/services[?]watch=true*", "ADDED", BOARD_OBJECT("s", OWNED_BY("1")));
    push(&w, "*/trainjobs[?]watch=true*", "ADDED", TRAINJOB("1", "1"));
    wait_for(&w, "DELETE", "*/deployments/t-tensorboard*", 1);
    wait_for(&w, "DELETE", "*/services/t-tensorboard*", 1);
}
END_TEST

/* It was created from an earlier spec: it is patched, on condition that it is still the object that was read. */
START_TEST(a_board_that_is_ours_is_changed_on_conditions)
{
    START(&KIND_TRAINJOB);
    with_claim(&w);
    exists(&w, BOARD_POSTS("deployments"), "*/deployments/t-tensorboard", BOARD_OBJECT("b-1", OWNED_BY("1")));
    push(&w, "*/trainjobs[?]watch=true*", "ADDED", BOARD_JOB);
    const char *patch = body_of(&w, "PATCH", "*/deployments/t-tensorboard*", 0);
    ck_assert_ptr_nonnull(strstr(patch, "\"uid\":\"b-1\",\"resourceVersion\":\"5\""));
    ck_assert_ptr_null(strstr(patch, "ownerReferences"));
    fake_until(w.loop, board_is_there, &w);
}
END_TEST

/* Which object has TensorBoard's name, its owner, and whether it may be adopted. */
static const struct {
    const char *plural, *object;
} STRANGERS[] = {
    { "services", BOARD_OBJECT("b-1", OWNED_BY("x")) },
    { "services", "{\"metadata\":{\"name\":\"t-tensorboard\",\"uid\":\"b-1\",\"resourceVersion\":\"5\"}}" },
    { "deployments", BOARD_OBJECT("b-1", OWNED_BY("x")) },
    { "deployments", BOARD_OBJECT("b-1", "") },
};
START_TEST(a_strangers_board_is_left_alone_and_told)
{
    auto_free char *posts = xasprintf("*/%s[?]*", STRANGERS[_i].plural),
                   *it = xasprintf("*/%s/t-tensorboard", STRANGERS[_i].plural);
    START(&KIND_TRAINJOB);
    with_claim(&w);
    exists(&w, posts, it, STRANGERS[_i].object);
    push(&w, "*/trainjobs[?]watch=true*", "ADDED", BOARD_JOB);
    fake_until(w.loop, board_failure_is_told, &w);
    push(&w, "*/trainjobs[?]watch=true*", "MODIFIED", NO_BOARD_JOB);
    push(&w, "*/services[?]watch=true*", "ADDED", BOARD_OBJECT("s", OWNED_BY("1"))); /* lists what there is to delete */
    wait_for(&w, "GET", it, 2);
    fake_until(w.loop, board_failure_is_taken_back, &w);
    auto_free char *all = xasprintf("%s*", it);
    ck_assert_uint_eq(fake_api_count(w.api, "PATCH", all), 0);
    ck_assert_uint_eq(fake_api_count(w.api, "DELETE", all), 0);
}
END_TEST

/* The service has no controller, and its labels are ours: it is adopted, if the job is not being deleted. */
static const struct {
    const char *job;
    size_t adoptions;
} JOBS_ASKED[] = {
    { "{\"metadata\":{\"uid\":\"1\"}}", 1 },
    { "{\"metadata\":{\"uid\":\"1\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}", 0 },
    { "{\"metadata\":{\"uid\":\"2\"}}", 0 },
};
START_TEST(an_orphan_is_adopted_for_a_job_that_stays)
{
    START(&KIND_TRAINJOB);
    with_claim(&w);
    exists(&w, BOARD_POSTS("services"), "*/services/t*", BOARD_OBJECT("b-1", ""));
    on(&w, "GET", "*/trainjobs/t", (struct fake_answer){ .body = JOBS_ASKED[_i].job });
    push(&w, "*/trainjobs[?]watch=true*", "ADDED", BOARD_JOB);
    wait_for(&w, "GET", "*/trainjobs/t", 2);
    if (JOBS_ASKED[_i].adoptions > 0) {
        const char *patch = body_of(&w, "PATCH", "*/services/t-tensorboard*", 0);
        ck_assert_ptr_nonnull(strstr(patch, "\"uid\":\"b-1\",\"resourceVersion\":\"5\",\"ownerReferences\":[{"));
    } else {
        wait_for(&w, "GET", "*/trainjobs/t", 4); /* read again, after a delay */
        ck_assert_uint_eq(fake_api_count(w.api, "PATCH", "*/services/*"), 0);
    }
}
END_TEST

/* ---- the policy, from the watch ---- */

#define POLICY(uid, owner, version)                                                                                    \
    "{\"metadata\":{\"namespace\":\"a\",\"name\":\"t\",\"uid\":\"" uid "\",\"resourceVersion\":\"" version             \
    "\",\"ownerReferences\":"                                                                                          \
    "[{\"uid\":\"" owner "\",\"controller\":true}]}}"
#define POLICY_POSTS "*/networkpolicies[?]*"

static bool t_has_pods(void *user)
{
    const struct cache_entry *r = cache_find(&((struct world *)user)->controller->env.cache, "a/t");
    return r != NULL && r->npods == 1 && !r->pods[0]->creating;
}

static bool t_has_a_policy(void *user)
{
    const struct cache_entry *r = cache_find(&((struct world *)user)->controller->env.cache, "a/t");
    return r != NULL && r->policy.uid != NULL;
}

/* A policy that exists is not created. One that is deleted is re-created, if the job still exists. */
START_TEST(a_policy_that_somebody_deletes_is_made_again)
{
    AUTO_FINI(world) w;
    world_init(&w);
    w.network_policy = true;
    begin(&w, &KIND_TRAINJOB);
    on(&w, "GET", "*/trainjobs/t", (struct fake_answer){ .body = "{\"metadata\":{\"uid\":\"1\"}}" });
    push(&w, "*/networkpolicies[?]watch=true*", "ADDED", POLICY("n-1", "1", "5"));
    fake_until(w.loop, t_has_a_policy, &w);
    push(&w, "*/trainjobs[?]watch=true*", "ADDED", TRAINJOB_OF("1", "", "1"));
    fake_until(w.loop, t_has_pods, &w);
    ck_assert_uint_eq(fake_api_count(w.api, "POST", POLICY_POSTS), 0);
    push(&w, "*/networkpolicies[?]watch=true*", "DELETED", POLICY("n-0", "1", "6")); /* the deletion of another one */
    push(&w, "*/networkpolicies[?]watch=true*", "DELETED", POLICY("n-1", "1", "7"));
    wait_for(&w, "POST", POLICY_POSTS, 1);
    ck_assert_uint_eq(fake_api_count(w.api, "GET", "*/trainjobs/t"), 1);
    push(&w, "*/trainjobs[?]watch=true*", "DELETED", TRAINJOB_OF("1", "", "1"));
}
END_TEST

/* ---- termination messages ---- */

#define LAST_WORDS(uid, owner, index, step)                                                                            \
    "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\",\"name\":\"t-worker-" index "\",\"uid\":\"" uid               \
    "\",\"resourceVersion\":\"5" step "\","                                                                            \
    "\"labels\":{\"trainyard.dev/operator-name\":\"trainjob-controller\",\"trainyard.dev/job-name\":\"t\","            \
    "\"trainyard.dev/replica-type\":\"worker\",\"trainyard.dev/replica-index\":\"" index "\"},"                        \
    "\"ownerReferences\":[{\"uid\":\"" owner                                                                           \
    "\",\"controller\":true}]},\"status\":{\"phase\":\"Succeeded\",\"containerStatuses\":"                             \
    "[{\"name\":\"trainer\",\"state\":{\"terminated\":{\"exitCode\":0,\"message\":\"{\\\"step\\\":" step "}\"}}}]}}"

static bool t_is_known(void *user)
{
    const struct cache_entry *r = cache_find(&((struct world *)user)->controller->env.cache, "a/t");
    return r != NULL && r->known;
}

static bool t_has_progress(void *user)
{
    return cache_find(&((struct world *)user)->controller->env.cache, "a/t")->status.progress.present;
}

static bool t_has_worker_1(void *user)
{
    const struct pod_info *p =
        cache_entry_pod(cache_find(&((struct world *)user)->controller->env.cache, "a/t"), "t-worker-1");
    return p != NULL && str_eq(p->uid, "p-1");
}

/* Only those of the job's leader: not of an earlier job of that name, nor of another worker. */
START_TEST(the_leader_has_the_last_word)
{
    START(&KIND_TRAINJOB);
    push(&w, "*/trainjobs[?]watch=true*", "ADDED", TRAINJOB_OF("1", "", "2"));
    fake_until(w.loop, t_is_known, &w);
    push(&w, POD_WATCH, "ADDED", LAST_WORDS("p-2", "1", "0", "5"));
    fake_until(w.loop, t_has_progress, &w);
    push(&w, POD_WATCH, "ADDED", LAST_WORDS("p-0", "0", "0", "6"));
    push(&w, POD_WATCH, "ADDED", LAST_WORDS("p-1", "1", "1", "7"));
    fake_until(w.loop, t_has_worker_1, &w);
    ck_assert_int_eq(cache_find(&w.controller->env.cache, "a/t")->progress.step, 5);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("control");
    TCase *t = tcase_create("control");

    tcase_set_timeout(t, 30);
    tcase_add_test(t, a_pod_is_made_once_though_the_watch_is_late);
    tcase_add_test(t, a_pod_that_is_gone_before_its_create_is_answered_stays_gone);
    tcase_add_test(t, a_late_answer_forgets_nothing);
    tcase_add_test(t, an_end_told_late_is_not_that_of_the_next_pod);
    tcase_add_test(t, a_pod_that_exists_and_is_ours_is_taken);
    tcase_add_loop_test(t, a_refused_create_is_told_and_tried_again_after_a_pause, 0, COUNT_OF(REFUSALS));
    tcase_add_test(t, a_foreign_pod_is_waited_for);
    tcase_add_test(t, a_pod_whose_job_name_is_edited_stays_ours);
    tcase_add_test(t, a_pod_that_leaves_the_watch_is_asked_for);
    tcase_add_test(t, a_pod_is_of_one_job_at_a_time);
    tcase_add_test(t, a_policy_that_somebody_deletes_is_made_again);
    tcase_add_test(t, a_job_begins_when_there_is_room);
    tcase_add_test(t, ps_and_chief_are_accepted_before_workers_are_sent);
    tcase_add_test(t, refused_services_are_tried_again_one_at_a_time);
    tcase_add_test(t, the_next_try_is_for_another_replica);
    tcase_add_test(t, a_small_job_does_not_wait_for_a_large_one);
    tcase_add_test(t, a_refused_status_waits_until_there_is_news);
    tcase_add_test(t, a_refused_delete_is_tried_again_after_a_pause);
    tcase_add_test(t, a_deleted_pod_does_not_come_back_with_the_answer);
    tcase_add_test(t, nothing_is_left_of_a_job_deleted_while_its_pod_is_made);
    tcase_add_test(t, a_deleted_job_is_not_counted_while_its_pods_remain);
    tcase_add_test(t, another_life_of_the_name_gets_pods_of_its_own);
    tcase_add_test(t, a_controller_ends_with_requests_on_their_way);
    tcase_add_test(t, nothing_is_made_while_pods_may_not_be_listed);
    tcase_add_test(t, a_job_that_may_be_gone_is_asked_for_first);
    tcase_add_test(t, a_job_that_is_there_gets_its_lost_pods_again);
    tcase_add_test(t, a_job_that_may_not_be_asked_for_goes_on);
    tcase_add_test(t, namespaces_are_apart);
    tcase_add_test(t, claims_are_asked_for_again_when_the_spec_changes_meanwhile);
    tcase_add_test(t, a_claim_that_may_not_be_read_is_not_called_absent);
    tcase_add_test(t, a_refused_service_leaves_the_pod_of_its_name);
    tcase_add_test(t, a_repeated_refusal_is_written_once);
    tcase_add_test(t, a_board_is_its_service_and_its_deployment);
    tcase_add_test(t, a_board_over_quota_says_nothing_about_the_pods);
    tcase_add_test(t, a_board_without_a_pod_says_why);
    tcase_add_test(t, a_board_that_is_not_wanted_any_more_goes);
    tcase_add_test(t, a_board_of_before_goes_as_well);
    tcase_add_test(t, a_board_that_is_ours_is_changed_on_conditions);
    tcase_add_loop_test(t, a_strangers_board_is_left_alone_and_told, 0, COUNT_OF(STRANGERS));
    tcase_add_loop_test(t, an_orphan_is_adopted_for_a_job_that_stays, 0, COUNT_OF(JOBS_ASKED));
    tcase_add_test(t, the_leader_has_the_last_word);
    tcase_add_test(t, what_somebody_takes_away_is_written_again);
    tcase_add_test(t, conditions_of_others_survive);
    tcase_add_test(t, a_restart_is_written_before_the_delete);
    tcase_add_test(t, a_restart_that_cannot_be_written_is_done_nevertheless);
    tcase_add_test(t, the_servers_clock_counts);
    tcase_add_test(t, what_the_server_warns_of_is_told);
    tcase_add_test(t, the_status_of_a_job_of_another_controller_is_left_alone);
    tcase_add_test(t, a_pod_that_waits_is_made_again_when_its_job_was_resumed);
    tcase_add_test(t, a_pod_that_was_being_made_is_made_again_when_its_job_was_resumed);
    tcase_add_test(t, a_pod_that_runs_goes_on_when_its_job_was_resumed);
    suite_add_tcase(s, t);
    return s;
}
