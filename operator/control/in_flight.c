/* The list of requests in flight: each counts against its job's limits, and its answer is passed to done() only while
 * the same job still has that name. */
#include "control/in_flight.h"

#include "base/str.h"

static void count_request(struct in_flight_request *req, struct cache_entry *entry)
{
    req->counted = true;
    req->bytes = kube_call_bytes(req->call);
    dispatch_sent(req->env->dispatch, req->bytes);
    fair_queue_count(&entry->ticket.fair, req->sent_ms);
    struct create_backoff *b = cache_entry_create_backoff(entry, req->action.kind);
    if (b != NULL)
        b->in_flight++;
}

/* entry NULL: the job was deleted together with its counts. */
static void uncount_request(struct in_flight_request *req, struct cache_entry *entry)
{
    if (!req->counted)
        return;
    req->counted = false;
    dispatch_ended(req->env->dispatch, req->bytes);
    struct create_backoff *b = entry != NULL ? cache_entry_create_backoff(entry, req->action.kind) : NULL;
    if (b != NULL)
        b->in_flight--;
}

static void in_flight_free(struct in_flight_request *req)
{
    uncount_request(req, NULL);
    job_status_release(&req->before);
    *req->link = req->next;
    if (req->next != NULL)
        req->next->link = req->link;
    free(req->key);
    free(req->uid);
    free(req->name);
    free(req->object_uid);
    free(req);
}

/* Removes the expectation of a create for an earlier job of the name. */
static void drop_expectation(struct in_flight_request *req, struct cache_entry *entry)
{
    if (req->name != NULL && req->action.kind == ACT_CREATE_POD)
        cache_entry_drop_expected_pod(entry, req->name, req->uid);
    if (req->name != NULL && req->action.kind == ACT_CREATE_SERVICE)
        cache_entry_drop_expected_service(entry, req->name, req->uid);
    env_enqueue(req->env, entry);
    cache_remove_if_empty(&req->env->cache, entry);
}

static void on_done(void *user, const struct kube_answer *a)
{
    struct in_flight_request *req = user;
    struct cache_entry *entry = cache_find(&req->env->cache, req->key);
    if (entry != NULL && (!entry->known || !str_eq(entry->spec.uid, req->uid))) {
        drop_expectation(req, entry);
        entry = NULL;
    }
    uncount_request(req, entry);
    req->done(req, entry, a);
    in_flight_free(req);
}

void in_flight_send(struct controller_env *env, struct cache_entry *entry, const struct action *a,
                    struct kube_request request, in_flight_done *done)
{
    struct in_flight_request *req = xcalloc(1, sizeof(*req));
    req->env = env;
    req->key = xstrdup(entry->key);
    req->uid = xstrdup(entry->spec.uid);
    req->done = done;
    if (a != NULL) {
        req->name = a->name != NULL ? xstrdup(a->name) : NULL;
        req->object_uid = a->uid != NULL ? xstrdup(a->uid) : NULL;
        req->action = *a;
        req->action.name = req->name;
        req->action.uid = req->object_uid;
    }
    req->next = env->in_flight;
    req->link = &env->in_flight;
    if (req->next != NULL)
        req->next->link = &req->next;
    env->in_flight = req;
    request.done = on_done;
    request.user = req;
    req->sent_ms = env_clock(env);
    req->call = kube_send(env->client, &request);
    if (a != NULL)
        count_request(req, entry);
}

struct in_flight_request *in_flight_last(struct controller_env *env)
{
    return env->in_flight;
}

void in_flight_cancel_all(struct controller_env *env)
{
    while (env->in_flight != NULL) {
        kube_cancel(env->in_flight->call);
        in_flight_free(env->in_flight);
    }
}
