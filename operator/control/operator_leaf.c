/* The operator's certificates by job. Guarantees that a key is wiped when its certificate is replaced or dropped, and
 * that an answer counts only when the leader of this job has proved that it is the sender. */
#include "control/operator_leaf.h"

#include "base/map.h"
#include "base/str.h"
#include "control/cache.h"
#include "identity/certificate.h"

struct own_leaf {
    char *uid, *ca; /* of the job */
    struct leaf leaf;
};

struct operator_leaves {
    struct identity_issuer *issuer;
    struct identity_issuer_user user;
    struct map by_job; /* "namespace/name" */
};

static void own_leaf_free(struct own_leaf *o)
{
    if (o == NULL)
        return;
    leaf_fini(&o->leaf);
    free(o->ca);
    free(o->uid);
    free(o);
}
DEFINE_AUTO(own_leaf, own_leaf_free);

static void drop_all(void *user)
{
    struct operator_leaves *l = user;
    struct map_slot *slot;

    for (size_t i = 0; (slot = map_next(&l->by_job, &i)) != NULL;)
        own_leaf_free(slot->value);
    map_fini(&l->by_job);
    l->by_job = (struct map){ .slots = NULL };
}

/* Our certificates are issued again at any time, so no master key must be kept for them. */
static int64_t no_expiry(void *user)
{
    (void)user;
    return 0;
}

struct operator_leaves *operator_leaves_new(struct identity_issuer *issuer)
{
    struct operator_leaves *l = xcalloc(1, sizeof(*l));

    l->issuer = issuer;
    l->user = (struct identity_issuer_user){ .on_change = drop_all, .expiry_ms = no_expiry, .user = l };
    identity_issuer_add(issuer, &l->user);
    return l;
}

void operator_leaves_free(struct operator_leaves *l)
{
    if (l == NULL)
        return;
    identity_issuer_remove(&l->user);
    drop_all(l);
    free(l);
}

static int issue(struct operator_leaves *l, const struct job_spec *v, int64_t now_ms, struct own_leaf **ret,
                 struct err *e)
{
    AUTO_FINI(job_cas) cas = { .pem = NULL };
    AUTO(own_leaf) *o = xcalloc(1, sizeof(*o));

    if (identity_issuer_cas(l->issuer, v, now_ms, &cas, e) < 0 ||
        ca_issue(cas.issuing, IDENTITY_OPERATOR, 0, now_ms / 1000, identity_issuer_lifetime_s(l->issuer), &o->leaf, e) <
            0)
        return -1;
    o->ca = TAKE(cas.pem);
    o->uid = xstrdup(v->uid);
    *ret = TAKE(o);
    return 0;
}

int operator_leaves_get(struct operator_leaves *l, const struct job_spec *v, int64_t now_ms, struct http_own_tls *ret,
                        struct err *e)
{
    char key[512];
    struct own_leaf *o = map_get(&l->by_job, cache_key(v->ns, v->name, key));

    if (o == NULL || !str_eq(o->uid, v->uid) || leaf_is_due(o->leaf.not_before_s, o->leaf.not_after_s, now_ms / 1000)) {
        if (issue(l, v, now_ms, &o, e) < 0)
            return -1;
        own_leaf_free(map_put(&l->by_job, key, o));
    }
    *ret = (struct http_own_tls){ .ca = o->ca, .cert = o->leaf.certificate, .key = o->leaf.key };
    return 0;
}

void operator_leaves_drop(struct operator_leaves *l, const char *key)
{
    own_leaf_free(map_remove(&l->by_job, key));
}

int operator_leaf_check_leader(const struct job_spec *v, const char *peer, struct err *e)
{
    struct identity own = { .role = IDENTITY_OPERATOR };
    struct certificate_info info;

    if (peer == NULL)
        return err_set(e, ERR_REFUSED, "the peer has shown no certificate");
    str_fmt(own.ns, sizeof(own.ns), "%s", v->ns);
    str_fmt(own.job_uid, sizeof(own.job_uid), "%s", v->uid);
    if (certificate_read(peer, &info, e) < 0)
        return -1;
    return identity_accept(&own, &info.identity, (int)job_spec_leader(v), 0, e);
}
