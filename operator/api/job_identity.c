/* What the status remembers of a job's certificates: read leniently, written completely. A replica has at most one
 * leaf, so that a lookup is never ambiguous. */
#include "api/job_identity.h"

#include <string.h>

#include "api/time.h"
#include "base/str.h"

enum { SECRETS_MAX = 1024, LEAVES_MAX = 8192 }; /* of what is read from an object */

/* ---- ownership ---- */

void job_identity_fini(struct job_identity *i)
{
    for (size_t l = 0; l < i->nleaves; l++)
        index_set_fini(&i->leaves[l].indexes);
    free(i->leaves);
    free(i->secrets);
    *i = (struct job_identity){ 0 };
}

void job_identity_copy(const struct job_identity *i, struct job_identity *ret)
{
    *ret = *i;
    ret->secrets = i->nsecrets > 0 ? xmemdup(i->secrets, i->nsecrets * sizeof(*i->secrets)) : NULL;
    ret->leaves = i->nleaves > 0 ? xmemdup(i->leaves, i->nleaves * sizeof(*i->leaves)) : NULL;
    ret->leaves_cap = i->nleaves;
    for (size_t l = 0; l < i->nleaves; l++) {
        struct index_set *s = &ret->leaves[l].indexes;
        s->ranges = s->n > 0 ? xmemdup(s->ranges, s->n * sizeof(*s->ranges)) : NULL;
    }
}

/* ---- comparing ---- */

bool ca_list_equal(const struct ca_list *a, const struct ca_list *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = str_eq(a->ids[i], b->ids[i]);
    return same;
}

static bool same_secret(const struct identity_secret *a, const struct identity_secret *b)
{
    return str_eq(a->name, b->name) && str_eq(a->uid, b->uid) && ca_list_equal(&a->cas, &b->cas);
}

static bool same_leaves(const struct identity_leaves *a, const struct identity_leaves *b)
{
    return a->role == b->role && a->secret == b->secret && a->not_after_ms == b->not_after_ms && str_eq(a->ca, b->ca) &&
           a->indexes.n == b->indexes.n &&
           (a->indexes.n == 0 ||
            memcmp(a->indexes.ranges, b->indexes.ranges, a->indexes.n * sizeof(*a->indexes.ranges)) == 0);
}

bool job_identity_equal(const struct job_identity *a, const struct job_identity *b)
{
    bool same = a->insecure == b->insecure && a->nsecrets == b->nsecrets && a->nleaves == b->nleaves;
    for (size_t i = 0; same && i < a->nsecrets; i++)
        same = same_secret(&a->secrets[i], &b->secrets[i]);
    for (size_t i = 0; same && i < a->nleaves; i++)
        same = same_leaves(&a->leaves[i], &b->leaves[i]);
    return same;
}

/* ---- looking up ---- */

static struct identity_leaves *find(const struct job_identity *i, enum role role, int index)
{
    for (size_t l = 0; l < i->nleaves; l++)
        if (i->leaves[l].role == role && index_set_has(&i->leaves[l].indexes, index))
            return &i->leaves[l];
    return NULL;
}

const struct identity_leaves *job_identity_find(const struct job_identity *i, enum role role, int index)
{
    return find(i, role, index);
}

const char *job_identity_secret(const struct job_identity *i, enum role role, int index)
{
    const struct identity_leaves *l = find(i, role, index);
    return l != NULL ? i->secrets[l->secret].name : NULL;
}

const char *job_identity_key(enum role role, int index, const char *ending, char out[SECRET_KEY_SIZE])
{
    str_fmt(out, SECRET_KEY_SIZE, "%s-%d.%s", role_name(role), index, ending);
    return out;
}

int job_identity_count(const struct job_identity *i, size_t secret)
{
    int n = 0;
    for (size_t l = 0; l < i->nleaves; l++)
        if (i->leaves[l].secret == secret)
            n += index_set_count(&i->leaves[l].indexes);
    return n;
}

/* ---- changing ---- */

static void remove_leaves(struct job_identity *i, size_t at)
{
    index_set_fini(&i->leaves[at].indexes);
    memmove(i->leaves + at, i->leaves + at + 1, (i->nleaves - at - 1) * sizeof(*i->leaves));
    i->nleaves--;
}

static void remove_leaf(struct job_identity *i, enum role role, int index)
{
    struct identity_leaves *l = find(i, role, index);
    if (l == NULL)
        return;
    index_set_remove(&l->indexes, index);
    if (l->indexes.n == 0)
        remove_leaves(i, (size_t)(l - i->leaves));
}

static struct identity_leaves *add_leaves(struct job_identity *i, struct identity_leaves l)
{
    if (i->nleaves == i->leaves_cap) {
        i->leaves_cap = MAX(2 * i->leaves_cap, (size_t)4);
        i->leaves = xrealloc(i->leaves, i->leaves_cap * sizeof(*i->leaves));
    }
    i->leaves[i->nleaves] = l;
    return &i->leaves[i->nleaves++];
}

void job_identity_put(struct job_identity *i, enum role role, int index, size_t secret, int64_t not_after_ms,
                      const char *ca)
{
    struct identity_leaves *into = NULL, fresh = { .role = role, .secret = secret };
    fresh.not_after_ms = not_after_ms / 1000 * 1000; /* as it is written */
    str_fmt(fresh.ca, sizeof(fresh.ca), "%s", ca);
    remove_leaf(i, role, index);
    for (size_t l = 0; l < i->nleaves && into == NULL; l++)
        if (i->leaves[l].role == role && i->leaves[l].secret == secret &&
            i->leaves[l].not_after_ms == fresh.not_after_ms && str_eq(i->leaves[l].ca, fresh.ca))
            into = &i->leaves[l];
    if (into == NULL)
        into = add_leaves(i, fresh);
    index_set_add(&into->indexes, index);
}

size_t job_identity_add_secret(struct job_identity *i, const char *name, const char *uid)
{
    struct identity_secret s = { .cas = { .n = 0 } };
    str_fmt(s.name, sizeof(s.name), "%s", name);
    str_fmt(s.uid, sizeof(s.uid), "%s", uid);
    i->secrets = xrealloc(i->secrets, (i->nsecrets + 1) * sizeof(*i->secrets));
    i->secrets[i->nsecrets] = s;
    return i->nsecrets++;
}

/* ---- reading ---- */

/* The text of a member if it fits; NULL otherwise. */
static const char *short_text(const json_t *v, size_t size)
{
    const char *s = json_string_value(v);
    return s != NULL && s[0] != '\0' && strlen(s) < size ? s : NULL;
}

static void parse_secret(const json_t *v, struct job_identity *ret)
{
    const char *name = short_text(json_object_get(v, "name"), SECRET_NAME_SIZE);
    const char *uid = json_string_value(json_object_get(v, "uid"));
    json_t *ca;
    size_t n;
    if (name == NULL || uid == NULL || strlen(uid) >= SECRET_UID_SIZE || ret->nsecrets >= SECRETS_MAX)
        return;
    size_t at = job_identity_add_secret(ret, name, uid);
    struct ca_list *cas = &ret->secrets[at].cas;
    json_array_foreach(json_object_get(v, "cas"), n, ca)
    {
        if (cas->n < CA_LIST_MAX && short_text(ca, CA_ID_SIZE) != NULL)
            str_fmt(cas->ids[cas->n++], CA_ID_SIZE, "%s", json_string_value(ca));
    }
}

static size_t secret_named(const struct job_identity *i, const char *name)
{
    size_t s = 0;
    while (s < i->nsecrets && !str_eq(i->secrets[s].name, name))
        s++;
    return s;
}

static void parse_leaves(const json_t *v, struct job_identity *ret)
{
    struct err e;
    struct identity_leaves l = { .role = ROLE_COUNT };
    const char *role = json_string_value(json_object_get(v, "role"));
    const char *indexes = json_string_value(json_object_get(v, "indexes"));
    const char *secret = json_string_value(json_object_get(v, "secret"));
    const char *ca = short_text(json_object_get(v, "ca"), CA_ID_SIZE);
    l.not_after_ms = time_parse(json_string_value(json_object_get(v, "notAfter")));
    if (role == NULL || indexes == NULL || secret == NULL || ca == NULL || l.not_after_ms == 0 ||
        ret->nleaves >= LEAVES_MAX || role_parse(role, &l.role, &e) < 0)
        return;
    l.secret = secret_named(ret, secret);
    str_fmt(l.ca, sizeof(l.ca), "%s", ca);
    if (l.secret < ret->nsecrets && index_set_parse(indexes, &l.indexes, &e) == 0)
        add_leaves(ret, l);
}

void job_identity_parse(const json_t *v, struct job_identity *ret)
{
    json_t *one;
    size_t n;
    *ret = (struct job_identity){ .insecure = json_is_true(json_object_get(v, "insecure")) };
    json_array_foreach(json_object_get(v, "secrets"), n, one)
    {
        parse_secret(one, ret);
    }
    json_array_foreach(json_object_get(v, "leaves"), n, one)
    {
        parse_leaves(one, ret);
    }
}

/* ---- writing ---- */

static json_t *secret_value(const struct identity_secret *s)
{
    json_t *cas = json_array();
    for (size_t i = 0; i < s->cas.n; i++)
        json_array_append_new(cas, json_string(s->cas.ids[i]));
    return json_pack("{s:s, s:s, s:o}", "name", s->name, "uid", s->uid, "cas", cas);
}

static json_t *leaves_value(const struct job_identity *i, const struct identity_leaves *l)
{
    AUTO_FINI(buf) indexes = BUF_INIT;
    char text[32];
    index_set_emit(&l->indexes, &indexes);
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "role", role_name(l->role), "indexes", indexes.data, "secret",
                     i->secrets[l->secret].name, "notAfter", time_text(l->not_after_ms, text), "ca", l->ca);
}

json_t *job_identity_json(const struct job_identity *i)
{
    json_auto_t *secrets = json_array(), *leaves = json_array();
    for (size_t s = 0; s < i->nsecrets; s++)
        json_array_append_new(secrets, secret_value(&i->secrets[s]));
    for (size_t l = 0; l < i->nleaves; l++)
        json_array_append_new(leaves, leaves_value(i, &i->leaves[l]));
    if (i->nsecrets == 0 && !i->insecure)
        return json_null();
    json_t *v = json_pack("{s:O, s:O}", "secrets", secrets, "leaves", leaves);
    json_object_set_new(v, "insecure", i->insecure ? json_true() : json_null()); /* null: a merge patch removes it */
    return v;
}
