/* The URI of an identity, written and read by the same rules, and the rule by which members of a job accept each other.
 */
#include "identity/identity.h"

#include <string.h>

#define PREFIX "spiffe://trainyard/"

const char *identity_role_name(int role)
{
    if (role == IDENTITY_OPERATOR)
        return "operator";
    return role == IDENTITY_LAUNCHER ? "launcher" : role_name((enum role)role);
}

const char *identity_name(const struct identity *i, char out[IDENTITY_NAME_SIZE])
{
    if (i->role >= ROLE_COUNT)
        str_fmt(out, IDENTITY_NAME_SIZE, "%s", identity_role_name(i->role));
    else
        str_fmt(out, IDENTITY_NAME_SIZE, "%s-%d", identity_role_name(i->role), i->index);
    return out;
}

const char *identity_uri(const struct identity *i, char out[IDENTITY_URI_SIZE])
{
    str_fmt(out, IDENTITY_URI_SIZE, PREFIX "%s/%s/%s/%d", i->ns, i->job_uid, identity_role_name(i->role), i->index);
    return out;
}

/* The characters that a namespace of Kubernetes and a uid may have; none of them is escaped in a URI. */
static bool is_part(const char *s, size_t size)
{
    static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t n = strspn(s, PLAIN);
    return n > 0 && n < size && s[n] == '\0';
}

int identity_check(const struct identity *i, struct err *e)
{
    if (!is_part(i->ns, sizeof(i->ns)))
        return err_set(e, ERR_INPUT, "'%.80s' is not a valid namespace of an identity", i->ns);
    if (!is_part(i->job_uid, sizeof(i->job_uid)))
        return err_set(e, ERR_INPUT,
                       "'%.140s' is not a valid uid of an identity: letters, digits, '-', '_' and '.', at most %d",
                       i->job_uid, IDENTITY_UID_SIZE - 1);
    if (i->role < 0 || i->role >= IDENTITY_ROLES)
        return err_set(e, ERR_INPUT, "%d is not a role of an identity", i->role);
    if (i->index < 0 || i->index > IDENTITY_INDEX_MAX || (i->role >= ROLE_COUNT && i->index != 0))
        return err_set(e, ERR_INPUT, "%d is not a valid index of an identity of role %s", i->index,
                       identity_role_name(i->role));
    return 0;
}

/* The next part of the path, up to '/' or the end. False: none, or longer than out. */
static bool take_part(const char **at, char *out, size_t size)
{
    size_t n = strcspn(*at, "/");
    if (n == 0 || n >= size)
        return false;
    memcpy(out, *at, n);
    out[n] = '\0';
    *at += n;
    if (**at == '/')
        (*at)++;
    return true;
}

static bool find_role(const char *name, int *ret)
{
    for (int role = 0; role < IDENTITY_ROLES; role++)
        if (strcmp(identity_role_name(role), name) == 0) {
            *ret = role;
            return true;
        }
    return false;
}

static bool read_uri(const char *uri, struct identity *ret)
{
    char role[IDENTITY_NAME_SIZE], index[16], again[IDENTITY_URI_SIZE];
    int64_t number;
    if (!str_starts(uri, PREFIX))
        return false;
    const char *at = uri + strlen(PREFIX);
    if (!take_part(&at, ret->ns, sizeof(ret->ns)) || !take_part(&at, ret->job_uid, sizeof(ret->job_uid)) ||
        !take_part(&at, role, sizeof(role)) || !take_part(&at, index, sizeof(index)) ||
        str_i64(index, 0, IDENTITY_INDEX_MAX, &number, NULL) < 0 || !find_role(role, &ret->role))
        return false;
    ret->index = (int)number;
    return identity_check(ret, NULL) == 0 && strcmp(identity_uri(ret, again), uri) == 0; /* one text for one identity */
}

int identity_parse(const char *uri, struct identity *ret, struct err *e)
{
    struct identity i = { .role = -1 };
    if (!read_uri(uri, &i))
        return err_set(e, ERR_INPUT, "'%.200s' is not an identity of the form " PREFIX "NAMESPACE/JOB-UID/ROLE/INDEX",
                       uri);
    *ret = i;
    return 0;
}

bool identity_same_job(const struct identity *a, const struct identity *b)
{
    return strcmp(a->ns, b->ns) == 0 && strcmp(a->job_uid, b->job_uid) == 0;
}

int identity_accept(const struct identity *own, const struct identity *peer, int role, int index, struct err *e)
{
    char name[IDENTITY_NAME_SIZE], wanted[IDENTITY_NAME_SIZE];
    const struct identity expected = { .role = role, .index = index };
    if (!identity_same_job(own, peer))
        return err_set(e, ERR_REFUSED, "the peer is %s of job %s/%s, and this is job %s/%s", identity_name(peer, name),
                       peer->ns, peer->job_uid, own->ns, own->job_uid);
    if (role >= 0 && (peer->role != role || peer->index != index))
        return err_set(e, ERR_REFUSED, "the peer is %s, not %s", identity_name(peer, name),
                       identity_name(&expected, wanted));
    return 0;
}
