/* Watches training-operator's Lease and webhook, and decides from both whether it controls the TFJobs. */
#include "training_operator_detector.h"

#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "kube/reflector.h"

#define OTHER_LEASE   "1ca428e5.training-operator.kubeflow.org"
#define OTHER_WEBHOOK "validator.training-operator.kubeflow.org"
enum { LEASE_DEFAULT_S = 15, RETRY_MS = 1000 };

struct detector {
    struct loop *loop;
    struct reflector *leases, *webhooks;
    struct timer expiry;
    void (*on_change)(void *user, const char *why);
    void *user;
    char renewed[64]; /* the lease's renewTime as last seen */
    char holder[200], lease_ns[64];
    int64_t alive_until_ms; /* by our clock; 0: no lease */
    int64_t blind_ms;       /* from then on a kind that may not be listed counts as absent */
    bool webhook, reported, told_other, lease_done, webhook_done;
};

static void report_change(struct detector *g);

static void on_expiry(void *user)
{
    report_change(user);
}

/* An API server that has just started may briefly refuse allowed requests, so a refusal must last before it counts. */
static bool is_known(const struct detector *g, bool done, const struct reflector *r)
{
    return done || (loop_now(g->loop) >= g->blind_ms && reflector_trouble(r) != NULL);
}

/* Reports once both are known, and then whenever the answer changes. */
static void report_change(struct detector *g)
{
    char why[400] = "";
    bool alive = g->alive_until_ms > loop_now(g->loop);
    bool seen = is_known(g, g->lease_done, g->leases) && is_known(g, g->webhook_done, g->webhooks);
    if (alive)
        str_fmt(why, sizeof(why), "training-operator holds its Lease %s/%s (%s)", g->lease_ns, OTHER_LEASE, g->holder);
    else if (g->webhook)
        str_fmt(why, sizeof(why), "training-operator's ValidatingWebhookConfiguration %s is installed", OTHER_WEBHOOK);
    if (alive)
        timer_set(g->loop, &g->expiry, g->alive_until_ms + 1, on_expiry, g);
    else if (!seen) /* reflectors do not report a refusal */
        timer_set(g->loop, &g->expiry, MAX(g->blind_ms, loop_now(g->loop) + RETRY_MS), on_expiry, g);
    bool other = why[0] != '\0';
    if ((!seen && !other) || (g->reported && other == g->told_other))
        return;
    g->reported = true;
    g->told_other = other;
    g->on_change(g->user, other ? why : NULL);
}

/* A renewal counts from the moment it is seen, because clocks of other machines are not trusted. A released lease has
 * no holder. The first lease that is seen may be outdated, but it counts for its duration, too. */
static void on_lease(void *user, const json_t *object)
{
    struct detector *g = user;
    const json_t *spec = json_object_get(object, "spec");
    const char *renewed = json_string_value(json_object_get(spec, "renewTime"));
    const char *holder = json_string_value(json_object_get(spec, "holderIdentity"));
    int64_t seconds = json_integer_value(json_object_get(spec, "leaseDurationSeconds"));
    if (holder == NULL || holder[0] == '\0') {
        g->alive_until_ms = 0;
    } else if (renewed != NULL && !str_eq(renewed, g->renewed)) {
        str_fmt(g->renewed, sizeof(g->renewed), "%s", renewed);
        str_fmt(g->holder, sizeof(g->holder), "%s", holder);
        str_fmt(g->lease_ns, sizeof(g->lease_ns), "%s", json_string_value(json_at(object, "metadata.namespace")));
        g->alive_until_ms = loop_now(g->loop) + (seconds > 0 && seconds < 3600 ? seconds : LEASE_DEFAULT_S) * 1000;
    }
    report_change(g);
}

static void lease_gone(void *user, const char *ns, const char *name, const char *uid, const json_t *last)
{
    struct detector *g = user;
    (void)ns, (void)name, (void)uid, (void)last;
    g->alive_until_ms = 0;
    report_change(g);
}

static void leases_synced(void *user)
{
    ((struct detector *)user)->lease_done = true;
    report_change(user);
}

static void on_webhook(void *user, const json_t *object)
{
    (void)object;
    ((struct detector *)user)->webhook = true;
    report_change(user);
}

static void webhook_gone(void *user, const char *ns, const char *name, const char *uid, const json_t *last)
{
    (void)ns, (void)name, (void)uid, (void)last;
    ((struct detector *)user)->webhook = false;
    report_change(user);
}

static void webhooks_synced(void *user)
{
    ((struct detector *)user)->webhook_done = true;
    report_change(user);
}

static void each_lease(void *user, void (*one)(void *reflector, const char *ns, const char *name, const char *uid),
                       void *reflector)
{
    const struct detector *g = user;
    if (g->alive_until_ms != 0)
        one(reflector, g->lease_ns, OTHER_LEASE, NULL);
}

static void each_webhook(void *user, void (*one)(void *reflector, const char *ns, const char *name, const char *uid),
                         void *reflector)
{
    if (((const struct detector *)user)->webhook)
        one(reflector, "", OTHER_WEBHOOK, NULL);
}

struct detector *detector_new(struct kube_client *k, int64_t patience_ms,
                              void (*on_change)(void *user, const char *why), void *user)
{
    struct detector *g = xcalloc(1, sizeof(*g));
    const struct reflector_spec leases = { .resource = { "coordination.k8s.io", "v1", "leases", "Lease" },
                                           .name = "training-operator-lease",
                                           .field_selector = "metadata.name=" OTHER_LEASE };
    const struct reflector_spec webhooks = { .resource = { "admissionregistration.k8s.io", "v1",
                                                           "validatingwebhookconfigurations",
                                                           "ValidatingWebhookConfiguration" },
                                             .name = "training-operator-webhook",
                                             .field_selector = "metadata.name=" OTHER_WEBHOOK,
                                             .metadata_only = true };
    g->loop = kube_client_loop(k);
    g->on_change = on_change;
    g->user = user;
    g->blind_ms = loop_now(g->loop) + patience_ms;
    timer_set(g->loop, &g->expiry, g->blind_ms, on_expiry, g);
    g->leases =
        reflector_new(k, &leases, &(struct reflector_user){ on_lease, lease_gone, each_lease, leases_synced, g });
    g->webhooks = reflector_new(k, &webhooks,
                                &(struct reflector_user){ on_webhook, webhook_gone, each_webhook, webhooks_synced, g });
    return g;
}

void detector_free(struct detector *g)
{
    if (g == NULL)
        return;
    timer_clear(g->loop, &g->expiry);
    reflector_free(g->leases);
    reflector_free(g->webhooks);
    free(g);
}
