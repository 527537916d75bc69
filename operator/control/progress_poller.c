/* Polls each running chief for /progress: soon after the start, then at growing intervals. The longest interval keeps
 * all polls together below POLLS_A_SECOND. Guarantees that in a job with certificates an answer counts only when it
 * comes from the job's leader. */
#include "control/progress_poller.h"

#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "build/pod_ports.h"
#include "control/operator_leaf.h"
#include "control/training_progress.h"
#include "kube/http_client.h"

enum { POLL_TIMEOUT_MS = 5000, POLL_FIRST_MS = 1000, POLL_DELAY_MS = 500, POLLS_A_SECOND = 10, POLLS_AT_ONCE = 16 };

struct progress_poll {
    struct progress_poll *next, **link;
    struct progress_poller *poller;
    char *key, *uid;
    bool tls;
    struct http_call *call;
};

struct progress_poller {
    struct controller_env *env;
    struct http_client *http;
    struct operator_leaves *leaves;  /* NULL: no job has certificates */
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
    workqueue_add_at(p->queue, entry->key,
                     env_clock(p->env) + MIN(progress_poller_interval_ms(p), MAX(POLL_FIRST_MS, age)));
}

static void set_progress(const struct controller_env *env, struct cache_entry *entry, struct training_progress *heard)
{
    training_progress_fini(&entry->progress);
    entry->progress = *heard;
    heard->metrics = NULL;
    entry->progress_ms = env_now(env);
}

/* The progress in the answer, or why there is none. */
static int read_answer(const struct progress_poll *poll, const struct cache_entry *entry, const struct http_answer *a,
                       struct training_progress *ret, struct err *e)
{
    if (a->status == 0) {
        *e = *a->err;
        return -1;
    }
    if (poll->tls && operator_leaf_check_leader(&entry->spec, a->peer, e) < 0)
        return err_wrap(e, "the process at the address of the leader's pod");
    if (a->status != 200)
        return err_set(e, ERR_INPUT, "the leader answers with status %d", a->status);
    if (training_progress_parse(a->body, a->len, ret) < 0)
        return err_set(e, ERR_INPUT, "not understood");
    return 0;
}

static void on_answer(void *user, const struct http_answer *a)
{
    struct progress_poll *poll = user;
    struct controller_env *env = poll->poller->env;
    struct cache_entry *entry = cache_find(&env->cache, poll->key);
    AUTO_FINI(training_progress) heard = { 0 };
    if (entry != NULL && entry->known && str_eq(entry->spec.uid, poll->uid)) {
        struct err e = { .code = ERR_NONE };
        entry->poll_in_flight = false;
        if (read_answer(poll, entry, a, &heard, &e) == 0) {
            set_progress(env, entry, &heard);
            env_enqueue(env, entry);
        } else if (e.code == ERR_REFUSED) {
            log_warning("%s %s: no progress: %s", env->kind->resource.kind, entry->key, e.msg);
        } else {
            log_debug("%s %s: no progress: %s", env->kind->resource.kind, entry->key, e.msg);
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

/* In a job with certificates the leader serves the page by TLS only. Own images serve what they want. */
static bool has_certificates(const struct progress_poller *p, const struct cache_entry *entry)
{
    return p->leaves != NULL && entry->spec.has_model &&
           job_identity_secret(&entry->status.identity, job_spec_leader(&entry->spec), 0) != NULL;
}

static char *url_of(const struct job_spec *v, const char *ip, bool tls)
{
    struct pod_ports ports = pod_ports_of(v, job_spec_leader(v), 0);
    bool six = strchr(ip, ':') != NULL;
    return xasprintf("%s://%s%s%s:%d/progress", tls ? "https" : "http", six ? "[" : "", ip, six ? "]" : "",
                     tls ? ports.https : ports.http);
}

static struct progress_poll *poll_new(struct progress_poller *p, const struct cache_entry *entry, bool tls)
{
    struct progress_poll *poll = xcalloc(1, sizeof(*poll));

    *poll = (struct progress_poll){ .poller = p,
                                    .key = xstrdup(entry->key),
                                    .uid = xstrdup(entry->spec.uid),
                                    .tls = tls,
                                    .next = p->in_flight,
                                    .link = &p->in_flight };
    if (poll->next != NULL)
        poll->next->link = &poll->next;
    p->in_flight = poll;
    return poll;
}

static void start_poll(struct progress_poller *p, struct cache_entry *entry, const char *ip)
{
    bool tls = has_certificates(p, entry);
    struct http_own_tls own;
    struct err e = { .code = ERR_NONE };

    if (tls && operator_leaves_get(p->leaves, &entry->spec, env_now(p->env), &own, &e) < 0) {
        log_debug("%s %s: no progress: %s", p->env->kind->resource.kind, entry->key, e.msg);
        schedule_next(p, entry);
        return;
    }
    auto_free char *url = url_of(&entry->spec, ip, tls);
    struct progress_poll *poll = poll_new(p, entry, tls);
    entry->poll_in_flight = true;
    poll->call = http_client_start(p->http, &(struct http_transfer){ .method = "GET",
                                                                     .url = url,
                                                                     .tls = tls ? &own : NULL,
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
        workqueue_add_at(p->queue, entry->key, env_clock(p->env) + POLL_DELAY_MS);
    else
        workqueue_drop(p->queue, entry->key);
    if (!wanted && p->leaves != NULL)
        operator_leaves_drop(p->leaves, entry->key);
}

struct progress_poller *progress_poller_new(struct controller_env *env)
{
    struct progress_poller *p = xcalloc(1, sizeof(*p));
    struct loop *loop = kube_client_loop(env->client);

    p->env = env;
    p->queue =
        workqueue_new(loop, env->kind->own_processes ? "progress" : "progress-other", POLLS_AT_ONCE, poll_job, p, NULL);
    p->http = http_client_new(loop, NULL, false, POLLS_AT_ONCE);
    if (env->settings->issuer != NULL)
        p->leaves = operator_leaves_new(env->settings->issuer);
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
    operator_leaves_free(p->leaves);
    workqueue_free(p->queue);
    free(p);
}
