/* Polls each running chief for /progress: soon after the start, then at growing intervals. The longest interval keeps
 * all polls together below POLLS_A_SECOND. */
#include "control/progress_poller.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/training_progress.h"
#include "kube/http_client.h"

enum {
    POLL_TIMEOUT_MS = 5000,
    POLL_PORT = 8080,
    POLL_FIRST_MS = 1000,
    POLL_DELAY_MS = 500,
    POLLS_A_SECOND = 10,
    POLLS_AT_ONCE = 16
};

struct progress_poll {
    struct progress_poll *next, **link;
    struct progress_poller *poller;
    char *key, *uid;
    struct http_call *call;
};

struct progress_poller {
    struct controller_env *env;
    struct http_client *http;
    struct workqueue *queue;         /* keys of jobs to poll */
    struct progress_poll *in_flight; /* list */
    size_t jobs;                     /* polled jobs */
};

static void poll_free(struct progress_poll *p)
{
    *p->link = p->next;
    if (p->next != NULL)
        p->next->link = p->link;
    free(p->key);
    free(p->uid);
    free(p);
}

int64_t progress_poller_interval_ms(const struct progress_poller *p)
{
    return MAX(p->env->settings->progress_ms, (int64_t)p->jobs * 1000 / POLLS_A_SECOND);
}

/* The interval equals the time for which training has run, within bounds. */
static void schedule_next(struct progress_poller *p, const struct cache_entry *entry)
{
    int64_t age = env_now(p->env) - entry->status.start_ms;
    workqueue_add_at(p->queue, entry->key, clock_ms() + MIN(progress_poller_interval_ms(p), MAX(POLL_FIRST_MS, age)));
}

static void set_progress(const struct controller_env *env, struct cache_entry *entry, struct training_progress *heard)
{
    training_progress_fini(&entry->progress);
    entry->progress = *heard;
    heard->metrics = NULL;
    entry->progress_ms = env_now(env);
}

static void on_answer(void *user, const struct http_answer *a)
{
    struct progress_poll *poll = user;
    struct controller_env *env = poll->poller->env;
    struct cache_entry *entry = cache_find(&env->cache, poll->key);
    AUTO_FINI(training_progress) heard = { 0 };
    if (entry != NULL && entry->known && str_eq(entry->spec.uid, poll->uid)) {
        entry->poll_in_flight = false;
        if (a->status == 200 && training_progress_parse(a->body, a->len, &heard) == 0) {
            set_progress(env, entry, &heard);
            env_enqueue(env, entry);
        } else {
            log_debug("%s %s: no progress: %s", env->kind->resource.kind, entry->key,
                      a->status == 0 ? a->err->msg : "not understood");
        }
        if (entry->poll_wanted)
            schedule_next(poll->poller, entry);
    }
    poll_free(poll);
}

/* It becomes a part of a URL. */
static bool is_address(const char *ip)
{
    return ip != NULL && ip[0] != '\0' && ip[strspn(ip, "0123456789abcdefABCDEF.:")] == '\0';
}

static const struct pod_info *leader_pod(const struct cache_entry *entry)
{
    enum role leader = job_spec_leader(&entry->spec);
    for (size_t i = 0; i < entry->npods; i++)
        if (entry->pods[i]->role == leader && entry->pods[i]->index == 0 && entry->pods[i]->phase == POD_RUNNING &&
            is_address(entry->pods[i]->ip) && str_eq(entry->pods[i]->owner_uid, entry->spec.uid))
            return entry->pods[i];
    return NULL;
}

static void start_poll(struct progress_poller *p, struct cache_entry *entry, const char *ip)
{
    auto_free char *url =
        xasprintf(strchr(ip, ':') != NULL ? "http://[%s]:%d/progress" : "http://%s:%d/progress", ip, POLL_PORT);
    struct progress_poll *poll = xcalloc(1, sizeof(*poll));

    *poll = (struct progress_poll){ .poller = p,
                                    .key = xstrdup(entry->key),
                                    .uid = xstrdup(entry->spec.uid),
                                    .next = p->in_flight,
                                    .link = &p->in_flight };
    if (poll->next != NULL)
        poll->next->link = &poll->next;
    p->in_flight = poll;
    entry->poll_in_flight = true;
    poll->call = http_client_start(p->http, &(struct http_transfer){ .method = "GET",
                                                                     .url = url,
                                                                     .timeout_ms = POLL_TIMEOUT_MS,
                                                                     .max_body = PROGRESS_MAX,
                                                                     .on_done = on_answer,
                                                                     .user = poll });
}

static void poll_job(void *user, const char *key)
{
    struct progress_poller *p = user;
    struct cache_entry *entry = cache_find(&p->env->cache, key);
    if (entry == NULL || !entry->known || !entry->poll_wanted || entry->poll_in_flight)
        return;
    const struct pod_info *pod = leader_pod(entry);
    if (pod != NULL)
        start_poll(p, entry, pod->ip);
    else
        schedule_next(p, entry);
}

void progress_poller_set(struct progress_poller *p, struct cache_entry *entry, bool wanted)
{
    if (wanted == entry->poll_wanted)
        return;
    entry->poll_wanted = wanted;
    p->jobs += wanted ? 1 : (size_t)-1;
    if (wanted)
        workqueue_add_at(p->queue, entry->key, clock_ms() + POLL_DELAY_MS);
    else
        workqueue_drop(p->queue, entry->key);
}

struct progress_poller *progress_poller_new(struct controller_env *env)
{
    struct progress_poller *p = xcalloc(1, sizeof(*p));
    struct loop *loop = kube_client_loop(env->client);

    p->env = env;
    p->queue =
        workqueue_new(loop, env->kind->own_processes ? "progress" : "progress-other", POLLS_AT_ONCE, poll_job, p, NULL);
    p->http = http_client_new(loop, NULL, false, POLLS_AT_ONCE);
    return p;
}

void progress_poller_free(struct progress_poller *p)
{
    if (p == NULL)
        return;
    while (p->in_flight != NULL) {
        http_client_cancel(p->in_flight->call);
        poll_free(p->in_flight);
    }
    http_client_free(p->http);
    workqueue_free(p->queue);
    free(p);
}
