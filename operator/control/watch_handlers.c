/* Event handlers of the watches: they store an object in the cache entry of its job and queue the job. They make no
 * decisions; a relist compares the cache with the server's objects. */
#include "control/watch_handlers_internal.h"

#include <string.h>

#include "base/str.h"
#include "control/training_progress.h"

static const char *metadata_text(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(json_object_get(object, "metadata"), key));
    return s != NULL ? s : "";
}

/* ---- jobs ---- */

static bool same_spec(const struct cache_entry *entry, const json_t *object)
{
    const json_t *m = json_object_get(object, "metadata");
    return entry->known && json_integer_value(json_object_get(m, "generation")) == entry->spec.generation &&
           entry->spec.deleting == (json_object_get(m, "deletionTimestamp") != NULL);
}

static void forget_job(struct watches *w, struct cache_entry *entry)
{
    struct controller_env *env = w->env;

    controller_metrics_count_job(&env->metrics, entry->spec.ns, "deleted", 1);
    controller_metrics_set_state(&env->metrics, &entry->counted_state, "");
    event_recorder_forget(env->events, entry->spec.uid);
    w->user.on_forget(w->user.user, entry);
    workqueue_drop(env->queue, entry->key);
    cache_entry_forget_job(entry);
    gauge_set(env->metrics.jobs, (double)--w->jobs);
}

static void add_job(struct watches *w, struct cache_entry *entry, const json_t *object)
{
    struct controller_env *env = w->env;

    job_status_parse(json_object_get(object, "status"), &entry->status);
    entry->status_version = object_version(json_object_get(object, "metadata"));
    gauge_set(env->metrics.jobs, (double)++w->jobs);
    controller_metrics_count_job(&env->metrics, entry->spec.ns, "created", 0);
    controller_metrics_set_state(&env->metrics, &entry->counted_state, entry->status.state);
}

static void on_job(void *user, const json_t *object)
{
    struct watches *w = user;
    struct controller_env *env = w->env;
    struct cache_entry *entry =
        cache_get_or_add(&env->cache, metadata_text(object, "namespace"), metadata_text(object, "name"));

    if (entry->known && !str_eq(entry->spec.uid, metadata_text(object, "uid")))
        forget_job(w, entry);
    if (same_spec(entry, object)) {
        w->user.on_status(w->user.user, entry, object);
        return;
    }
    cache_entry_set_spec(entry, env->kind, env->settings, object);
    if (entry->known)
        w->user.on_status(w->user.user, entry, object);
    else
        add_job(w, entry, object);
    entry->known = true;
    env_enqueue(env, entry);
}

static void job_gone(void *user, const char *ns, const char *name, const char *uid, const json_t *last)
{
    struct watches *w = user;
    char key[512];
    struct cache_entry *entry = cache_find(&w->env->cache, cache_key(ns, name, key));
    (void)last;
    if (entry == NULL || !entry->known || (uid != NULL && !str_eq(uid, entry->spec.uid)))
        return;
    forget_job(w, entry);
    cache_remove_if_empty(&w->env->cache, entry);
}

typedef void report_fn(void *reflector, const char *ns, const char *name, const char *uid);

static void each_job(void *user, report_fn *report, void *reflector)
{
    struct watches *w = user;
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&w->env->cache.entries, &i)) != NULL;) {
        const struct cache_entry *entry = slot->value;
        if (entry->known)
            report(reflector, entry->spec.ns, entry->spec.name, entry->spec.uid);
    }
}

/* ---- pods and services ---- */

/* A leader that succeeded leaves its last progress in its termination message. */
static void read_last_progress(struct watches *w, struct cache_entry *entry, const struct pod_info *p,
                               const json_t *object)
{
    AUTO_FINI(training_progress) words = { 0 };
    if (!w->env->kind->own_processes || !entry->known || p->phase != POD_SUCCEEDED ||
        p->role != job_spec_leader(&entry->spec) || p->index != 0 || !str_eq(p->owner_uid, entry->spec.uid) ||
        training_progress_of_pod(w->env->kind, object, &words) < 0)
        return;
    training_progress_fini(&entry->progress);
    entry->progress = words;
    memset(&words, 0, sizeof(words));
    entry->progress_ms = env_now(w->env);
}

struct dependents { /* pods, or services */
    bool (*has)(const struct cache_entry *entry, const char *name);
    bool (*remove)(struct cache_entry *entry, const char *name, const char *uid);
    void (*list)(const struct cache_entry *entry, const char *ns, report_fn *report,
                 void *reflector); /* without expectations */
};
static const struct dependents POD_DEPENDENTS, SERVICE_DEPENDENTS;

/* The entry in the same namespace that has an object of this name; NULL: none. */
static struct cache_entry *find_holder(const struct watches *w, const struct dependents *of, const char *ns,
                                       const char *name)
{
    struct map_slot *slot;
    size_t n = strlen(ns);
    for (size_t i = 0; (slot = map_next(&w->env->cache.entries, &i)) != NULL;)
        if (strncmp(slot->key, ns, n) == 0 && slot->key[n] == '/' && of->has(slot->value, name))
            return slot->value;
    return NULL;
}

/* Its owner or labels now give another job. This is rare, because we create most objects and cache them before the
 * watch reports them. */
static void move_from_other_job(struct watches *w, const struct dependents *of, const struct cache_entry *to,
                                const char *ns, const char *name, const char *uid)
{
    if (of->has(to, name) || !watches_synced(w))
        return;
    struct cache_entry *from = find_holder(w, of, ns, name);
    if (from == NULL || !of->remove(from, name, uid))
        return;
    env_enqueue(w->env, from);
    cache_remove_if_empty(&w->env->cache, from);
}

static void on_pod(void *user, const json_t *object)
{
    struct watches *w = user;
    const char *job = object_job_name(w->env->kind, object);
    AUTO(pod_info) *p = xcalloc(1, sizeof(*p));
    if (job == NULL || pod_info_parse(w->env->kind, object, p) < 0)
        return;
    struct cache_entry *entry = cache_get_or_add(&w->env->cache, metadata_text(object, "namespace"), job);
    move_from_other_job(w, &POD_DEPENDENTS, entry, metadata_text(object, "namespace"), p->name, p->uid);
    read_last_progress(w, entry, p, object);
    if (cache_entry_put_pod(entry, TAKE(p)))
        env_enqueue(w->env, entry);
}

static void tensorboard_service_seen(struct watches *w, struct cache_entry *entry, const json_t *service)
{
    if (json_object_get(json_object_get(service, "metadata"), "deletionTimestamp") != NULL)
        return;
    entry->tensorboard_found = true;
    if (!entry->spec.tensorboard)
        env_enqueue(w->env, entry);
}

static void on_service(void *user, const json_t *object)
{
    struct watches *w = user;
    const char *job = object_job_name(w->env->kind, object);
    if (job != NULL && service_is_tensorboard(w->env->kind, object)) {
        tensorboard_service_seen(w, cache_get_or_add(&w->env->cache, metadata_text(object, "namespace"), job), object);
        return;
    }
    AUTO(service_info) *s = xcalloc(1, sizeof(*s));
    if (job == NULL || service_info_parse(w->env->kind, object, s) < 0)
        return;
    struct cache_entry *entry = cache_get_or_add(&w->env->cache, metadata_text(object, "namespace"), job);
    move_from_other_job(w, &SERVICE_DEPENDENTS, entry, metadata_text(object, "namespace"), s->name, s->uid);
    const struct service_info *old = cache_entry_service(entry, s->name);
    bool news = old == NULL || old->creating || !str_eq(old->uid, s->uid) || !str_eq(old->owner_uid, s->owner_uid);
    cache_entry_put_service(entry, TAKE(s));
    if (news)
        env_enqueue(w->env, entry);
}

/* ---- deletions and relists: the same for both ---- */

static bool has_pod(const struct cache_entry *entry, const char *name)
{
    return cache_entry_pod(entry, name) != NULL;
}
static bool has_service(const struct cache_entry *entry, const char *name)
{
    return cache_entry_service(entry, name) != NULL;
}
static void list_pods(const struct cache_entry *entry, const char *ns, report_fn *report, void *reflector)
{
    for (size_t i = 0; i < entry->npods; i++)
        if (!entry->pods[i]->creating)
            report(reflector, ns, entry->pods[i]->name, entry->pods[i]->uid);
}
static void list_services(const struct cache_entry *entry, const char *ns, report_fn *report, void *reflector)
{
    for (size_t i = 0; i < entry->nservices; i++)
        if (!entry->services[i]->creating)
            report(reflector, ns, entry->services[i]->name, entry->services[i]->uid);
}
static const struct dependents POD_DEPENDENTS = { has_pod, cache_entry_remove_pod, list_pods },
                               SERVICE_DEPENDENTS = { has_service, cache_entry_remove_service, list_services };

static struct cache_entry *entry_of(struct watches *w, const struct dependents *of, const char *ns, const char *name,
                                    const json_t *last)
{
    const char *job = last != NULL ? object_job_name(w->env->kind, last) : NULL;
    char key[512];
    if (job != NULL)
        return cache_find(&w->env->cache, cache_key(ns, job, key));
    return find_holder(w, of, ns, name); /* its deletion was missed: rare enough for a search */
}

static void dependent_gone(struct watches *w, const struct dependents *of, const char *ns, const char *name,
                           const char *uid, const json_t *last)
{
    struct cache_entry *entry = entry_of(w, of, ns, name, last);
    if (entry == NULL || !of->remove(entry, name, uid))
        return;
    entry->may_be_deleted |= last == NULL;
    env_enqueue(w->env, entry);
    cache_remove_if_empty(&w->env->cache, entry);
}
/* The watch also reports a pod as deleted when its labels no longer match. A pod that we deleted is really deleted. */
static bool may_still_exist(const struct cache_entry *entry, const struct pod_info *p, const char *uid)
{
    return entry->known && !entry->spec.deleting && !p->creating && !p->deleting && p->gone_by_ms == 0 &&
           str_eq(p->owner_uid, entry->spec.uid) && (uid == NULL || str_eq(p->uid, uid));
}

static void pod_gone(void *user, const char *ns, const char *name, const char *uid, const json_t *last)
{
    struct watches *w = user;
    struct cache_entry *entry = entry_of(w, &POD_DEPENDENTS, ns, name, last);
    struct pod_info *p = entry != NULL ? cache_entry_pod(entry, name) : NULL;
    if (p != NULL && may_still_exist(entry, p, uid)) {
        entry->may_be_deleted |= last == NULL;
        w->user.on_pod_missing(w->user.user, entry, p);
        return;
    }
    dependent_gone(user, &POD_DEPENDENTS, ns, name, uid, last);
}
static void tensorboard_service_gone(struct watches *w, const char *ns, const char *job)
{
    char key[512];
    struct cache_entry *entry = job != NULL ? cache_find(&w->env->cache, cache_key(ns, job, key)) : NULL;
    if (entry == NULL)
        return;
    entry->tensorboard_found = false;
    cache_remove_if_empty(&w->env->cache, entry);
}
static void service_gone(void *user, const char *ns, const char *name, const char *uid, const json_t *last)
{
    struct watches *w = user;
    if (last != NULL && service_is_tensorboard(w->env->kind, last)) {
        tensorboard_service_gone(w, ns, object_job_name(w->env->kind, last));
        return;
    }
    dependent_gone(user, &SERVICE_DEPENDENTS, ns, name, uid, last);
}

static void each_dependent(struct watches *w, const struct dependents *of, report_fn *report, void *reflector)
{
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&w->env->cache.entries, &i)) != NULL;) {
        const struct cache_entry *entry = slot->value;
        auto_free char *ns = xstrndup(entry->key, (size_t)(strchr(entry->key, '/') - entry->key));
        of->list(entry, ns, report, reflector);
    }
}
static void each_pod(void *user, report_fn *report, void *reflector)
{
    each_dependent(user, &POD_DEPENDENTS, report, reflector);
}
static void each_service(void *user, report_fn *report, void *reflector)
{
    each_dependent(user, &SERVICE_DEPENDENTS, report, reflector);
}

/* ---- ConfigMap and NetworkPolicy: only whether they exist ---- */

/* Name of the job that an object of this name belongs to: "digits" for "digits-job"; false: not one of ours. */
static bool job_name_of(const char *name, const char *suffix, char out[256])
{
    size_t n = strlen(name), k = strlen(suffix);
    return n > k && str_eq(name + n - k, suffix) && str_fmt(out, 256, "%.*s", (int)(n - k), name);
}

static void owned_object_seen(struct watches *w, struct cache_entry *entry, struct owned_object *b, bool *ensured,
                              const json_t *object)
{
    const char *owner = object_owner_uid(json_object_get(object, "metadata"));
    bool ours = entry->known && str_eq(owner, entry->spec.uid);
    owned_object_fini(b);
    *b = (struct owned_object){ xstrdup(metadata_text(object, "uid")), owner != NULL ? xstrdup(owner) : NULL };
    if (*ensured && !ours)
        env_enqueue(w->env, entry);
    *ensured = ours && (*ensured || b == &entry->policy || entry->spec.has_model);
    if (*ensured && b == &entry->config)
        job_spec_drop_model(&entry->spec);
}

/* The job may be deleted as well, which its own watch reports later. So the job is read from the API server before the
 * object is re-created. */
static void owned_object_gone(struct watches *w, struct cache_entry *entry, struct owned_object *b, bool *ensured,
                              const char *uid)
{
    if (b->uid == NULL || (uid != NULL && !str_eq(uid, b->uid)))
        return;
    owned_object_fini(b);
    *ensured = false;
    entry->may_be_deleted = entry->known;
    env_enqueue(w->env, entry);
    cache_remove_if_empty(&w->env->cache, entry);
}

static void each_owned_object(struct watches *w, bool config, report_fn *report, void *reflector)
{
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&w->env->cache.entries, &i)) != NULL;) {
        const struct cache_entry *entry = slot->value;
        const struct owned_object *b = config ? &entry->config : &entry->policy;
        const char *slash = strchr(entry->key, '/');
        if (b->uid == NULL)
            continue;
        auto_free char *ns = xstrndup(entry->key, (size_t)(slash - entry->key)),
                       *name = xasprintf("%s%s", slash + 1, config ? "-job" : "");
        report(reflector, ns, name, b->uid);
    }
}

static void on_config(void *user, const json_t *object)
{
    struct watches *w = user;
    char job[256];
    if (!job_name_of(metadata_text(object, "name"), "-job", job))
        return;
    struct cache_entry *entry = cache_get_or_add(&w->env->cache, metadata_text(object, "namespace"), job);
    owned_object_seen(w, entry, &entry->config, &entry->config_ensured, object);
}
static void config_gone(void *user, const char *ns, const char *name, const char *uid, const json_t *last)
{
    struct watches *w = user;
    char job[256], key[512];
    struct cache_entry *entry =
        job_name_of(name, "-job", job) ? cache_find(&w->env->cache, cache_key(ns, job, key)) : NULL;
    (void)last;
    if (entry != NULL)
        owned_object_gone(w, entry, &entry->config, &entry->config_ensured, uid);
}
static void each_config(void *user, report_fn *report, void *reflector)
{
    each_owned_object(user, true, report, reflector);
}

static void on_policy(void *user, const json_t *object)
{
    struct watches *w = user;
    struct cache_entry *entry =
        cache_get_or_add(&w->env->cache, metadata_text(object, "namespace"), metadata_text(object, "name"));
    owned_object_seen(w, entry, &entry->policy, &entry->policy_ensured, object);
}
static void policy_gone(void *user, const char *ns, const char *name, const char *uid, const json_t *last)
{
    struct watches *w = user;
    char key[512];
    struct cache_entry *entry = cache_find(&w->env->cache, cache_key(ns, name, key));
    (void)last;
    if (entry != NULL)
        owned_object_gone(w, entry, &entry->policy, &entry->policy_ensured, uid);
}
static void each_policy(void *user, report_fn *report, void *reflector)
{
    each_owned_object(user, false, report, reflector);
}

/* ---- start ---- */

static void enqueue_all(void *user)
{
    struct watches *w = user;
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&w->env->cache.entries, &i)) != NULL;)
        env_enqueue(w->env, slot->value);
}

static void add_reflector(struct watches *w, const struct reflector_spec *spec, const struct reflector_user *user)
{
    w->reflectors[w->nreflectors++] = reflector_new(w->env->client, spec, user);
}

static void watch_namespace(struct watches *w, const char *ns)
{
    char selector[200];
    str_fmt(selector, sizeof(selector), "%soperator-name=%s", w->env->kind->label_prefix, w->env->kind->controller);
    const struct reflector_spec jobs = { .resource = w->env->kind->resource,
                                         .ns = ns,
                                         .name = w->env->kind->resource.plural };
    const struct reflector_spec pods = {
        .resource = RESOURCE_PODS, .ns = ns, .label_selector = selector, .prune = POD_INFO_PRUNED, .name = "pods"
    };
    const struct reflector_spec services = {
        .resource = RESOURCE_SERVICES, .ns = ns, .label_selector = selector, .metadata_only = true, .name = "services"
    };
    add_reflector(w, &jobs, &(struct reflector_user){ on_job, job_gone, each_job, enqueue_all, w });
    add_reflector(w, &pods, &(struct reflector_user){ on_pod, pod_gone, each_pod, enqueue_all, w });
    add_reflector(w, &services, &(struct reflector_user){ on_service, service_gone, each_service, enqueue_all, w });
    const struct reflector_spec configs = { .resource = RESOURCE_CONFIG_MAPS,
                                            .ns = ns,
                                            .label_selector = selector,
                                            .metadata_only = true,
                                            .name = "configmaps" };
    const struct reflector_spec policies = { .resource = RESOURCE_NETWORK_POLICIES,
                                             .ns = ns,
                                             .label_selector = selector,
                                             .metadata_only = true,
                                             .name = "networkpolicies" };
    if (w->env->kind->own_processes)
        add_reflector(w, &configs, &(struct reflector_user){ on_config, config_gone, each_config, enqueue_all, w });
    if (w->env->kind->own_processes && w->env->settings->plan.network_policy)
        add_reflector(w, &policies, &(struct reflector_user){ on_policy, policy_gone, each_policy, enqueue_all, w });
}

struct watches *watches_new(struct controller_env *env, const struct watches_user *user)
{
    const struct strlist *ns = env->settings->namespaces;
    bool own = env->kind->own_processes;
    struct watches *w = xcalloc(1, sizeof(*w));

    w->env = env;
    w->user = *user;
    w->in_namespace = 3U + own + (own && env->settings->plan.network_policy);
    w->reflectors = xcalloc(w->in_namespace * (ns->n + 1), sizeof(struct reflector *));
    for (size_t i = 0; i < ns->n; i++)
        watch_namespace(w, ns->items[i]);
    if (ns->n == 0)
        watch_namespace(w, NULL);
    return w;
}

void watches_free(struct watches *w)
{
    if (w == NULL)
        return;
    for (size_t i = 0; i < w->nreflectors; i++)
        reflector_free(w->reflectors[i]);
    free(w->reflectors);
    free(w);
}

/* ---- completeness of the cache ---- */

bool watches_synced(const struct watches *w)
{
    for (size_t i = 0; i < w->nreflectors; i++)
        if (!reflector_synced(w->reflectors[i]) && reflector_trouble(w->reflectors[i]) == NULL)
            return false;
    return true;
}

/* ConfigMaps and NetworkPolicies need not be known, because a reconcile reads them itself. */
static bool namespace_synced(const struct watches *w, size_t first)
{
    bool all = reflector_synced(w->reflectors[first + 1]) && reflector_synced(w->reflectors[first + 2]);
    for (size_t k = first + 3; k < first + w->in_namespace; k++)
        all = all && (reflector_synced(w->reflectors[k]) || reflector_trouble(w->reflectors[k]) != NULL);
    return all;
}

bool watches_see_dependents(const struct watches *w, const char *ns)
{
    const struct strlist *namespaces = w->env->settings->namespaces;
    for (size_t i = 0; i + w->in_namespace <= w->nreflectors; i += w->in_namespace)
        if (namespaces->n == 0 || str_eq(namespaces->items[i / w->in_namespace], ns))
            return namespace_synced(w, i);
    return false;
}
