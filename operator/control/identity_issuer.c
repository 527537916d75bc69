/* Derives the CAs of jobs from the master keys, and exports what happens to certificates as metrics. */
#include "control/identity_issuer.h"

#include <string.h>

#include "base/log.h"
#include "base/str.h"

enum { LOOK_MS = 15000 }; /* at the expiry of all leaves, for the metric */

struct identity_issuer {
    struct kube_client *client;
    struct identity_issuer_settings settings;
    struct identity_issuer_metrics metrics;
    struct gauge *expiry;
    struct master_keys *keys; /* NULL: not needed yet */
    struct identity_issuer_user *users;
    struct timer look;
};

/* ---- users ---- */

void identity_issuer_add(struct identity_issuer *i, struct identity_issuer_user *u)
{
    u->next = i->users;
    u->link = &i->users;
    if (u->next != NULL)
        u->next->link = &u->next;
    i->users = u;
}

void identity_issuer_remove(struct identity_issuer_user *u)
{
    if (u->link == NULL)
        return;
    *u->link = u->next;
    if (u->next != NULL)
        u->next->link = u->link;
    u->link = NULL;
}

static void on_keys(void *user)
{
    struct identity_issuer *i = user;
    for (struct identity_issuer_user *u = i->users; u != NULL; u = u->next)
        u->on_change(u->user);
}

static void on_look(void *user)
{
    struct identity_issuer *i = user;
    int64_t first = 0;
    for (struct identity_issuer_user *u = i->users; u != NULL; u = u->next) {
        int64_t one = u->expiry_ms(u->user);
        if (one > 0 && (first == 0 || one < first))
            first = one;
    }
    gauge_set(i->expiry, (double)first / 1000);
    struct loop *loop = kube_client_loop(i->client);
    timer_set(loop, &i->look, loop_now(loop) + LOOK_MS, on_look, i);
}

/* ---- CAs ---- */

static void need_keys(struct identity_issuer *i)
{
    if (i->keys == NULL)
        i->keys = master_keys_new(i->client,
                                  &(struct master_keys_settings){
                                      .lifetime_ms = i->settings.lifetime_s * 1000, .on_change = on_keys, .user = i });
}

void job_cas_fini(struct job_cas *c)
{
    ca_free(c->issuing);
    free(c->pem);
    *c = (struct job_cas){ .pem = NULL };
}

int identity_issuer_cas(struct identity_issuer *i, const struct job_spec *v, int64_t now_ms, struct job_cas *ret,
                        struct err *e)
{
    AUTO_FINI(job_cas) c = { .pem = NULL };
    AUTO_FINI(buf) pem = BUF_INIT;
    struct master_key_set keys;

    need_keys(i);
    master_keys_trusted(i->keys, now_ms, &keys);
    if (keys.n == 0)
        return err_set(e, ERR_NOT_READY, "the master keys are not known yet");
    for (size_t k = 0; k < keys.n; k++) {
        AUTO(ca) *one = NULL;
        if (ca_derive(keys.keys[k]->bytes, v->ns, v->uid, now_ms / 1000, &one, e) < 0)
            return err_wrap(e, "the CA of master key %s", keys.keys[k]->name);
        str_fmt(c.list.ids[c.list.n++], CA_ID_SIZE, "%s", ca_id(one));
        buf_str(&pem, ca_pem(one));
        if (k == 0)
            c.issuing = TAKE(one);
    }
    c.pem = buf_detach(&pem);
    *ret = c;
    c = (struct job_cas){ .pem = NULL };
    return 0;
}

static void derive(struct identity_issuer *i, const struct job_spec *v, int64_t now_ms, struct identity_cas *cas)
{
    AUTO_FINI(job_cas) c = { .pem = NULL };
    struct master_key_set keys;
    struct err e;

    *cas = (struct identity_cas){ .version = 0 };
    if (i->keys == NULL)
        return;
    if (identity_issuer_cas(i, v, now_ms, &c, &e) < 0) {
        if (!err_is(&e, ERR_NOT_READY))
            log_warning("%s/%s: %s", v->ns, v->name, e.msg);
        return;
    }
    master_keys_trusted(i->keys, now_ms, &keys);
    cas->version = master_keys_version(i->keys);
    cas->from_ms = now_ms;
    cas->until_ms = keys.until_ms;
    cas->list = c.list;
}

static bool is_current(const struct identity_issuer *i, const struct identity_cas *cas, int64_t now_ms)
{
    return cas->list.n > 0 && i->keys != NULL && cas->version == master_keys_version(i->keys) &&
           now_ms >= cas->from_ms && (cas->until_ms == 0 || now_ms < cas->until_ms);
}

void identity_issuer_facts(struct identity_issuer *i, const struct job_spec *v, const struct job_identity *has,
                           int64_t now_ms, struct identity_cas *cas, struct identity_facts *ret)
{
    if (!i->settings.insecure || has->nsecrets > 0) {
        need_keys(i);
        if (!is_current(i, cas, now_ms))
            derive(i, v, now_ms, cas);
    }
    ret->cas = cas->list;
    ret->cas_until_ms = cas->until_ms;
    ret->lifetime_ms = i->settings.lifetime_s * 1000;
    ret->insecure = i->settings.insecure;
    ret->fault = cas->list.n == 0 && i->keys != NULL ? master_keys_fault(i->keys) : NULL;
}

/* ---- life ---- */

const struct identity_issuer_metrics *identity_issuer_metrics(const struct identity_issuer *i)
{
    return &i->metrics;
}

int64_t identity_issuer_lifetime_s(const struct identity_issuer *i)
{
    return i->settings.lifetime_s;
}

struct identity_issuer *identity_issuer_new(struct kube_client *k, const struct identity_issuer_settings *s)
{
    struct identity_issuer *i = xcalloc(1, sizeof(*i));
    i->client = k;
    i->settings = *s;
    i->metrics = (struct identity_issuer_metrics){
        .issued = registry_counter(s->registry, "trainyard_operator_certificates_issued_total",
                                   "Certificates that were issued to replicas.", NULL),
        .renewals = registry_counter(s->registry, "trainyard_operator_certificate_renewals_total",
                                     "Certificates among them that replaced an earlier one.", NULL),
        .failures = registry_counter(s->registry, "trainyard_operator_certificate_failures_total",
                                     "Failed attempts to issue certificates or to write their Secret.", NULL),
    };
    i->expiry = registry_gauge(s->registry, "trainyard_operator_certificate_expiry_timestamp_seconds",
                               "When the first certificate of a running job expires, in seconds since 1970; 0: there "
                               "is none.",
                               NULL);
    gauge_set(registry_gauge(s->registry, "trainyard_operator_insecure",
                             "1: new jobs run without certificates and encryption (--insecure).", NULL),
              s->insecure);
    if (!s->insecure)
        need_keys(i);
    on_look(i);
    return i;
}

void identity_issuer_free(struct identity_issuer *i)
{
    if (i == NULL)
        return;
    while (i->users != NULL)
        identity_issuer_remove(i->users);
    timer_clear(kube_client_loop(i->client), &i->look);
    master_keys_free(i->keys);
    free(i);
}
