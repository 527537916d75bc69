/* What reflectors tell goes into the records, and wakes the jobs it concerns. */
#include <string.h>

#include "base/str.h"
#include "control/apply_internal.h"
#include "control/training_progress.h"

static const char *meta(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(json_object_get(object, "metadata"), key));
    return s != NULL ? s : "";
}

/* ---- jobs ---- */

static bool same_spec(const struct record *r, const json_t *object)
{
    const json_t *m = json_object_get(object, "metadata");
    return r->known && json_integer_value(json_object_get(m, "generation")) == r->view.generation &&
           r->view.deleting == (json_object_get(m, "deletionTimestamp") != NULL);
}

/* Replicas of a role as they were accepted last; -1: not known. */
static int accepted(const struct record *r, int role)
{
    if (!r->known)
        return -1;
    return r->view.too_large ? r->view.accepted[role] : r->view.roles[role].replicas;
}

static void read_view(struct controller *c, struct record *r, const json_t *object)
{
    int before[ROLE_COUNT];
    for (int i = 0; i < ROLE_COUNT; i++)
        before[i] = accepted(r, i);
    job_spec_fini(&r->view);
    job_spec_parse(c->kind, object, c->settings.default_clean, &r->view);
    auto_free char *fault = build_cluster_fault(&r->view, &c->settings.build);
    r->view.too_large = fault != NULL;
    memcpy(r->view.accepted, before, sizeof(before));
    if (r->view.invalid == NULL)
        r->view.invalid = TAKE(fault);
}

/* A changed spec keeps what is known of the job; what follows from it is looked at again. */
void watch_new_spec(struct controller *c, struct record *r, const json_t *object)
{
    for (size_t i = 0; r->claims != NULL && i < r->view.nclaims; i++)
        free(r->claims[i].name);
    free(TAKE(r->claims));
    free(TAKE(r->claims_fault));
    r->claims_known = false;
    r->group = GROUP_UNKNOWN;
    r->claims_asked = 0;
    r->claims_round++;
    for (int i = 0; i < MAKE_KINDS; i++)
        pace_reset(&r->makes[i]);
    r->deletes = (struct pause){ 0 };
    bool unseen = r->known && r->view.suspend && !job_status_is(&r->status, COND_SUSPENDED);
    read_view(c, r, object);
    r->config_ensured = r->config_ensured && r->view.has_model; /* the addresses may be others now */
    r->resumed_unseen = (r->resumed_unseen || unseen) && !r->view.suspend;
    if (r->view.has_model && r->config.uid != NULL && str_eq(r->config.owner_uid, r->view.uid))
        job_spec_drop_model(&r->view);
    r->tensorboard_ensured =
        r->tensorboard_ensured && !r->view.tensorboard; /* it is made as it should be now, or taken away */
}

static void forget(struct controller *c, struct record *r)
{
    meters_job(c, r, "deleted", 1);
    meters_state(c, r, "");
    event_recorder_forget(c->events, r->view.uid);
    if (r->poll)
        c->polled--;
    workqueue_drop(c->queue, r->key);
    workqueue_drop(c->polls, r->key);
    record_forget_job(r);
    gauge_set(c->metrics.jobs, (double)--c->jobs);
}

static void on_job(void *user, const json_t *object)
{
    struct controller *c = user;
    struct record *r = store_get(&c->store, meta(object, "namespace"), meta(object, "name"));
    if (r->known && !str_eq(r->view.uid, meta(object, "uid")))
        forget(c, r);
    if (same_spec(r, object)) {
        writer_saw(c, r, object);
        return;
    }
    watch_new_spec(c, r, object);
    if (!r->known) {
        job_status_parse(json_object_get(object, "status"), &r->status);
        r->version = writer_version_of(object);
        gauge_set(c->metrics.jobs, (double)++c->jobs);
        meters_job(c, r, "created", 0);
        meters_state(c, r, r->status.state);
    } else {
        writer_saw(c, r, object);
    }
    r->known = true;
    controller_wake(c, r);
}

static void job_gone(void *user, const char *ns, const char *name, const char *uid, const json_t *last)
{
    struct controller *c = user;
    char key[512];
    struct record *r = store_find(&c->store, record_key(ns, name, key));
    (void)last;
    if (r == NULL || !r->known || (uid != NULL && !str_eq(uid, r->view.uid)))
        return;
    forget(c, r);
    store_drop_if_empty(&c->store, r);
}

static void each_job(void *user, void (*tell)(void *reflector, const char *ns, const char *name, const char *uid),
                     void *reflector)
{
    struct controller *c = user;
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&c->store.records, &i)) != NULL;) {
        const struct record *r = slot->value;
        if (r->known)
            tell(reflector, r->view.ns, r->view.name, r->view.uid);
    }
}

/* ---- pods and services ---- */

/* A leader that ended well leaves its last progress behind. */
static void last_words(struct controller *c, struct record *r, const struct pod_info *p, const json_t *object)
{
    AUTO_FINI(training_progress) words = { 0 };
    if (!c->kind->own_processes || !r->known || p->phase != POD_SUCCEEDED || p->role != job_spec_leader(&r->view) ||
        p->index != 0 || !str_eq(p->owner_uid, r->view.uid) || training_progress_of_pod(c->kind, object, &words) < 0)
        return;
    training_progress_fini(&r->progress);
    r->progress = words;
    memset(&words, 0, sizeof(words));
    r->progress_ms = controller_now(c);
}

typedef void tell_fn(void *reflector, const char *ns, const char *name, const char *uid);

struct children { /* pods, or services */
    bool (*has)(const struct record *r, const char *name);
    bool (*remove)(struct record *r, const char *name, const char *uid);
    void (*tell)(const struct record *r, const char *ns, tell_fn *tell,
                 void *reflector); /* those that are not being made */
};
static const struct children POD_CHILDREN, SERVICE_CHILDREN;

/* The record in the same namespace that has it under this name; NULL: none. */
static struct record *who_has(const struct controller *c, const struct children *of, const char *ns, const char *name)
{
    struct map_slot *slot;
    size_t n = strlen(ns);
    for (size_t i = 0; (slot = map_next(&c->store.records, &i)) != NULL;)
        if (strncmp(slot->key, ns, n) == 0 && slot->key[n] == '/' && of->has(slot->value, name))
            return slot->value;
    return NULL;
}

/* Another job's by its owner or labels now: it is no longer of the one it was of. Most are made by us and known to
 * their record before the watch tells of them, so this is rare. */
static void move_here(struct controller *c, const struct children *of, const struct record *to, const char *ns,
                      const char *name, const char *uid)
{
    if (of->has(to, name) || !controller_synced(c))
        return;
    struct record *from = who_has(c, of, ns, name);
    if (from == NULL || !of->remove(from, name, uid))
        return;
    controller_wake(c, from);
    store_drop_if_empty(&c->store, from);
}

static void on_pod(void *user, const json_t *object)
{
    struct controller *c = user;
    const char *job = object_job_name(c->kind, object);
    AUTO(pod_info) *p = xcalloc(1, sizeof(*p));
    if (job == NULL || pod_info_parse(c->kind, object, p) < 0)
        return;
    struct record *r = store_get(&c->store, meta(object, "namespace"), job);
    move_here(c, &POD_CHILDREN, r, meta(object, "namespace"), p->name, p->uid);
    last_words(c, r, p, object);
    if (record_put_pod(r, TAKE(p)))
        controller_wake(c, r);
}

static void found_board(struct controller *c, struct record *r, const json_t *service)
{
    if (json_object_get(json_object_get(service, "metadata"), "deletionTimestamp") != NULL)
        return;
    r->tensorboard_found = true;
    if (!r->view.tensorboard)
        controller_wake(c, r);
}

static void on_service(void *user, const json_t *object)
{
    struct controller *c = user;
    const char *job = object_job_name(c->kind, object);
    if (job != NULL && service_is_tensorboard(c->kind, object)) {
        found_board(c, store_get(&c->store, meta(object, "namespace"), job), object);
        return;
    }
    AUTO(service_info) *s = xcalloc(1, sizeof(*s));
    if (job == NULL || service_info_parse(c->kind, object, s) < 0)
        return;
    struct record *r = store_get(&c->store, meta(object, "namespace"), job);
    move_here(c, &SERVICE_CHILDREN, r, meta(object, "namespace"), s->name, s->uid);
    const struct service_info *old = record_service(r, s->name);
    bool news = old == NULL || old->creating || !str_eq(old->uid, s->uid) || !str_eq(old->owner_uid, s->owner_uid);
    record_put_service(r, TAKE(s));
    if (news)
        controller_wake(c, r);
}

/* ---- their end, and what a relist asks for: the same for both ---- */

static bool has_pod(const struct record *r, const char *name)
{
    return record_pod(r, name) != NULL;
}
static bool has_service(const struct record *r, const char *name)
{
    return record_service(r, name) != NULL;
}
static void tell_pods(const struct record *r, const char *ns, tell_fn *tell, void *reflector)
{
    for (size_t i = 0; i < r->npods; i++)
        if (!r->pods[i]->creating)
            tell(reflector, ns, r->pods[i]->name, r->pods[i]->uid);
}
static void tell_services(const struct record *r, const char *ns, tell_fn *tell, void *reflector)
{
    for (size_t i = 0; i < r->nservices; i++)
        if (!r->services[i]->creating)
            tell(reflector, ns, r->services[i]->name, r->services[i]->uid);
}
static const struct children POD_CHILDREN = { has_pod, record_remove_pod, tell_pods },
                             SERVICE_CHILDREN = { has_service, record_remove_service, tell_services };

static struct record *record_of(struct controller *c, const struct children *of, const char *ns, const char *name,
                                const json_t *last)
{
    const char *job = last != NULL ? object_job_name(c->kind, last) : NULL;
    char key[512];
    if (job != NULL)
        return store_find(&c->store, record_key(ns, job, key));
    return who_has(c, of, ns, name); /* its end was missed: rare enough to search */
}

static void gone(struct controller *c, const struct children *of, const char *ns, const char *name, const char *uid,
                 const json_t *last)
{
    struct record *r = record_of(c, of, ns, name, last);
    if (r == NULL || !of->remove(r, name, uid))
        return;
    r->unsure |= last == NULL;
    controller_wake(c, r);
    store_drop_if_empty(&c->store, r);
}
/* One whose labels are not those we watch any more is told as deleted, too. Who was told to go has gone. */
static bool may_be_there(const struct record *r, const struct pod_info *p, const char *uid)
{
    return r->known && !r->view.deleting && !p->creating && !p->deleting && p->gone_by_ms == 0 &&
           str_eq(p->owner_uid, r->view.uid) && (uid == NULL || str_eq(p->uid, uid));
}

static void pod_gone(void *user, const char *ns, const char *name, const char *uid, const json_t *last)
{
    struct controller *c = user;
    struct record *r = record_of(c, &POD_CHILDREN, ns, name, last);
    struct pod_info *p = r != NULL ? record_pod(r, name) : NULL;
    if (p != NULL && may_be_there(r, p, uid)) {
        r->unsure |= last == NULL;
        apply_ask_pod(c, r, p);
        return;
    }
    gone(user, &POD_CHILDREN, ns, name, uid, last);
}
static void lost_board(struct controller *c, const char *ns, const char *job)
{
    char key[512];
    struct record *r = job != NULL ? store_find(&c->store, record_key(ns, job, key)) : NULL;
    if (r == NULL)
        return;
    r->tensorboard_found = false;
    store_drop_if_empty(&c->store, r);
}
static void service_gone(void *user, const char *ns, const char *name, const char *uid, const json_t *last)
{
    struct controller *c = user;
    if (last != NULL && service_is_tensorboard(c->kind, last)) {
        lost_board(c, ns, object_job_name(c->kind, last));
        return;
    }
    gone(user, &SERVICE_CHILDREN, ns, name, uid, last);
}

static void each(struct controller *c, const struct children *of, tell_fn *tell, void *reflector)
{
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&c->store.records, &i)) != NULL;) {
        const struct record *r = slot->value;
        auto_free char *ns = xstrndup(r->key, (size_t)(strchr(r->key, '/') - r->key));
        of->tell(r, ns, tell, reflector);
    }
}
static void each_pod(void *user, tell_fn *tell, void *reflector)
{
    each(user, &POD_CHILDREN, tell, reflector);
}
static void each_service(void *user, tell_fn *tell, void *reflector)
{
    each(user, &SERVICE_CHILDREN, tell, reflector);
}

/* ---- the job file and the policy: only that they are there ---- */

/* The job an object of this name would be of: "digits" for "digits-job"; false: it is none of ours. */
static bool job_of(const char *name, const char *suffix, char out[256])
{
    size_t n = strlen(name), k = strlen(suffix);
    return n > k && str_eq(name + n - k, suffix) && str_fmt(out, 256, "%.*s", (int)(n - k), name);
}

static void put_beside(struct controller *c, struct record *r, struct beside *b, bool *ensured, const json_t *object)
{
    const char *owner = object_owner_uid(json_object_get(object, "metadata"));
    bool ours = r->known && str_eq(owner, r->view.uid);
    beside_fini(b);
    *b = (struct beside){ xstrdup(meta(object, "uid")), owner != NULL ? xstrdup(owner) : NULL };
    if (*ensured && !ours)
        controller_wake(c, r);
    *ensured = ours && (*ensured || b == &r->policy || r->view.has_model);
    if (*ensured && b == &r->config)
        job_spec_drop_model(&r->view);
}

/* The job may be gone as well, which its own watch tells later: the API server is asked before it is made again. */
static void lose_beside(struct controller *c, struct record *r, struct beside *b, bool *ensured, const char *uid)
{
    if (b->uid == NULL || (uid != NULL && !str_eq(uid, b->uid)))
        return;
    beside_fini(b);
    *ensured = false;
    r->unsure = r->known;
    controller_wake(c, r);
    store_drop_if_empty(&c->store, r);
}

static void each_beside(struct controller *c, bool config, tell_fn *tell, void *reflector)
{
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&c->store.records, &i)) != NULL;) {
        const struct record *r = slot->value;
        const struct beside *b = config ? &r->config : &r->policy;
        const char *slash = strchr(r->key, '/');
        if (b->uid == NULL)
            continue;
        auto_free char *ns = xstrndup(r->key, (size_t)(slash - r->key)),
                       *name = xasprintf("%s%s", slash + 1, config ? "-job" : "");
        tell(reflector, ns, name, b->uid);
    }
}

static void on_config(void *user, const json_t *object)
{
    struct controller *c = user;
    char job[256];
    if (!job_of(meta(object, "name"), "-job", job))
        return;
    struct record *r = store_get(&c->store, meta(object, "namespace"), job);
    put_beside(c, r, &r->config, &r->config_ensured, object);
}
static void config_gone(void *user, const char *ns, const char *name, const char *uid, const json_t *last)
{
    struct controller *c = user;
    char job[256], key[512];
    struct record *r = job_of(name, "-job", job) ? store_find(&c->store, record_key(ns, job, key)) : NULL;
    (void)last;
    if (r != NULL)
        lose_beside(c, r, &r->config, &r->config_ensured, uid);
}
static void each_config(void *user, tell_fn *tell, void *reflector)
{
    each_beside(user, true, tell, reflector);
}

static void on_policy(void *user, const json_t *object)
{
    struct controller *c = user;
    struct record *r = store_get(&c->store, meta(object, "namespace"), meta(object, "name"));
    put_beside(c, r, &r->policy, &r->policy_ensured, object);
}
static void policy_gone(void *user, const char *ns, const char *name, const char *uid, const json_t *last)
{
    struct controller *c = user;
    char key[512];
    struct record *r = store_find(&c->store, record_key(ns, name, key));
    (void)last;
    if (r != NULL)
        lose_beside(c, r, &r->policy, &r->policy_ensured, uid);
}
static void each_policy(void *user, tell_fn *tell, void *reflector)
{
    each_beside(user, false, tell, reflector);
}

/* ---- start ---- */

static void wake_all(void *user)
{
    struct controller *c = user;
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&c->store.records, &i)) != NULL;)
        controller_wake(c, slot->value);
}

static void add(struct controller *c, const struct reflector_spec *spec, const struct reflector_user *user)
{
    c->reflectors[c->nreflectors++] = reflector_new(c->client, spec, user);
}

static void watch_namespace(struct controller *c, const char *ns)
{
    char selector[200];
    str_fmt(selector, sizeof(selector), "%soperator-name=%s", c->kind->label_prefix, c->kind->controller);
    const struct reflector_spec jobs = { .resource = c->kind->resource, .ns = ns, .name = c->kind->resource.plural };
    const struct reflector_spec pods = {
        .resource = PODS, .ns = ns, .label_selector = selector, .prune = POD_INFO_PRUNED, .name = "pods"
    };
    const struct reflector_spec services = {
        .resource = SERVICES, .ns = ns, .label_selector = selector, .metadata_only = true, .name = "services"
    };
    add(c, &jobs, &(struct reflector_user){ on_job, job_gone, each_job, wake_all, c });
    add(c, &pods, &(struct reflector_user){ on_pod, pod_gone, each_pod, wake_all, c });
    add(c, &services, &(struct reflector_user){ on_service, service_gone, each_service, wake_all, c });
    const struct reflector_spec configs = {
        .resource = CONFIG_MAPS, .ns = ns, .label_selector = selector, .metadata_only = true, .name = "configmaps"
    };
    const struct reflector_spec policies = { .resource = NETWORK_POLICIES,
                                             .ns = ns,
                                             .label_selector = selector,
                                             .metadata_only = true,
                                             .name = "networkpolicies" };
    if (c->kind->own_processes)
        add(c, &configs, &(struct reflector_user){ on_config, config_gone, each_config, wake_all, c });
    if (c->kind->own_processes && c->settings.plan.network_policy)
        add(c, &policies, &(struct reflector_user){ on_policy, policy_gone, each_policy, wake_all, c });
}

void watch_start(struct controller *c)
{
    const struct strlist *ns = c->settings.namespaces;
    c->in_namespace = 3U + c->kind->own_processes + (c->kind->own_processes && c->settings.plan.network_policy);
    c->reflectors = xcalloc(c->in_namespace * (ns->n + 1), sizeof(struct reflector *));
    for (size_t i = 0; i < ns->n; i++)
        watch_namespace(c, ns->items[i]);
    if (ns->n == 0)
        watch_namespace(c, NULL);
}
