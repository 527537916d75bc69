/* Identities for `trainyard run` and `trainyard certs`. The CA's key is never written: when this process ends, no
 * further member of the job can be made. */
#include "local_identity.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "identity/tls_dir.h"

struct local_member {
    int role, index;
    int64_t not_before_s, not_after_s;
};

struct local_identity {
    char *dir;
    bool keep, plain;
    int64_t seconds;
    struct ca *ca;
    struct local_member *members;
    size_t n;
};

char *local_identity_folder(const struct local_identity *l, int role, int index)
{
    const struct identity member = { .role = role, .index = index };
    char name[IDENTITY_NAME_SIZE];
    return path_join(l->dir, identity_name(&member, name));
}

/* ---- the folder ---- */

/* In memory first: then the keys never reach a disk, and a local run does not wait for one. */
static int make_temporary(char **ret, struct err *e)
{
    const char *const bases[] = { getenv("XDG_RUNTIME_DIR"), "/dev/shm", getenv("TMPDIR"), "/tmp" };
    for (size_t i = 0; i < COUNT_OF(bases); i++) {
        auto_free char *path = xasprintf("%s/trainyard-identity.XXXXXX", bases[i] != NULL ? bases[i] : "");
        if (bases[i] == NULL || bases[i][0] == '\0')
            continue;
        if (mkdtemp(path) != NULL) {
            *ret = TAKE(path);
            return 0;
        }
        (void)err_errno(e, ERR_IO, "a folder for the certificates of the replicas (%s); --tls-dir names another one",
                        path);
    }
    return -1;
}

/* A folder that exists keeps its mode: it may hold other things. Those of the members are private in any case. */
static int make_given(const char *dir, char **ret, struct err *e)
{
    bool present = file_exists(dir);
    if (dir_make(dir, e) < 0)
        return -1;
    if (!present && chmod(dir, 0700) < 0)
        return file_error(dir, e);
    *ret = xstrdup(dir);
    return 0;
}

int local_identity_new(const char *dir, int64_t now_s, int64_t seconds, struct local_identity **ret, struct err *e)
{
    AUTO(local_identity) *l = xcalloc(1, sizeof(*l));
    char uid[40];
    l->seconds = seconds;
    str_fmt(uid, sizeof(uid), "%016llx%016llx", (unsigned long long)random_incarnation(),
            (unsigned long long)random_incarnation());
    if (ca_new("local", uid, now_s, &l->ca, e) < 0)
        return -1;
    if ((dir != NULL ? make_given(dir, &l->dir, e) : make_temporary(&l->dir, e)) < 0)
        return -1;
    *ret = TAKE(l);
    return 0;
}

void local_identity_keep(struct local_identity *l)
{
    l->keep = true;
}

void local_identity_plain(struct local_identity *l)
{
    l->plain = true;
}

void local_identity_free(struct local_identity *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; !l->keep && i < l->n; i++) {
        auto_free char *folder = local_identity_folder(l, l->members[i].role, l->members[i].index);
        tls_dir_remove(folder);
    }
    if (!l->keep && l->dir != NULL)
        rmdir(l->dir);
    ca_free(l->ca);
    free(l->members);
    free(l->dir);
    free(l);
}

/* ---- certificates ---- */

static struct local_member *member_of(struct local_identity *l, int role, int index)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->members[i].role == role && l->members[i].index == index)
            return &l->members[i];
    l->members = xrealloc(l->members, (l->n + 1) * sizeof(*l->members));
    l->members[l->n] = (struct local_member){ .role = role, .index = index };
    return &l->members[l->n++];
}

static int write_leaf(const struct local_identity *l, struct local_member *m, int64_t now_s, struct err *e)
{
    AUTO_FINI(leaf) leaf = { .certificate = NULL };
    auto_free char *folder = local_identity_folder(l, m->role, m->index);
    int (*write)(const char *, const char *, const struct leaf *, struct err *) =
        l->plain ? tls_dir_write_new : tls_dir_write;
    if (ca_issue(l->ca, m->role, m->index, now_s, l->seconds, &leaf, e) < 0 ||
        write(folder, ca_pem(l->ca), &leaf, e) < 0)
        return err_wrap(e, "certificate for %s", folder);
    m->not_before_s = leaf.not_before_s;
    m->not_after_s = leaf.not_after_s;
    return 0;
}

int local_identity_issue(struct local_identity *l, int role, int index, int64_t now_s, struct err *e)
{
    return write_leaf(l, member_of(l, role, index), now_s, e);
}

int local_identity_renew(struct local_identity *l, int64_t now_s, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < l->n; i++) {
        struct local_member *m = &l->members[i];
        if (leaf_is_due(m->not_before_s, m->not_after_s, now_s) && write_leaf(l, m, now_s, rc == 0 ? e : NULL) < 0)
            rc = -1;
    }
    return rc;
}
