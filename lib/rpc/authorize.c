/* Who may call a method: the caller is established from the certificate of the connection and the Header, and its role
 * is compared with the method's table before the handler runs. */
#include <string.h>

#include "base/rng.h"
#include "rpc/caller.h"
#include "rpc/refusal_log.h"

static bool leads(enum role leader, int role, int index)
{
    bool chief = role == ROLE_CHIEF, first_worker = role == ROLE_WORKER && index == 0;
    if (leader == ROLE_COUNT)
        return chief || first_worker;
    return leader == ROLE_WORKER ? first_worker : chief;
}

static bool may_call(unsigned callers, enum role leader, int role, int index)
{
    return (callers & IDENTITY_BIT(role)) != 0 || ((callers & RPC_LEADER) != 0 && leads(leader, role, index));
}

/* "only chief-0, worker, launcher may" */
static void callers_text(unsigned callers, enum role leader, struct buf *out)
{
    const char *lead = leader == ROLE_WORKER ? "worker-0" : leader == ROLE_COUNT ? "chief-0 or worker-0" : "chief-0";
    for (int role = 0; role <= IDENTITY_ROLES; role++)
        if ((callers & IDENTITY_BIT(role)) != 0)
            buf_printf(out, "%s%s", out->len > 0 ? ", " : "only ",
                       role < IDENTITY_ROLES ? identity_role_name(role) : lead);
    buf_str(out, out->len > 0 ? " may" : "it has no permitted caller");
}

static int refuse(const struct rpc_method *m, const struct rpc_connection *from, const char *name, struct err *e)
{
    AUTO_FINI(buf) who = BUF_INIT;
    callers_text(m->callers, from->leader, &who);
    rpc_log_refusal("%s may not call %s: %s", name, m->path, who.data);
    return err_set(e, ERR_REFUSED, "%s may not call %s: %s", name, m->path, who.data);
}

static int take_identity(struct rpc_caller *c, const struct rpc_method *m, const struct identity *identity,
                         struct err *e)
{
    char name[IDENTITY_NAME_SIZE];
    identity_name(identity, name);
    if (!m->no_header && strcmp(c->name, name) != 0) {
        rpc_log_refusal("%s called %s as '%s'", name, m->path, c->name);
        return err_set(e, ERR_REFUSED, "the sender of %s is '%s', and the certificate of its connection is that of %s",
                       m->path, c->name, name);
    }
    c->authenticated = true;
    c->identity = *identity;
    c->role = identity->role < ROLE_COUNT ? (enum role)identity->role : ROLE_COUNT;
    c->index = identity->role < ROLE_COUNT ? identity->index : -1;
    const int who[] = { identity->role, identity->index };
    c->client = hash64(who, sizeof(who), 0) | 1;
    return 0;
}

int rpc_method_call(const struct rpc_method *m, const struct rpc_connection *from, const struct rpc_message *request,
                    struct rpc_reply *reply, struct err *e)
{
    struct rpc_caller caller = { .job_uid = "", .name = "", .role = ROLE_COUNT, .index = -1 };
    if (!m->no_header && rpc_caller_of(request, &caller, e) < 0)
        return -1;
    caller.client = from->client;
    if (from->identity != NULL && take_identity(&caller, m, from->identity, e) < 0)
        return -1;
    char name[IDENTITY_NAME_SIZE];
    bool known = caller.authenticated || caller.role < ROLE_COUNT;
    int role = caller.authenticated ? caller.identity.role : (int)caller.role;
    if (m->callers == 0 || (known && !may_call(m->callers, from->leader, role, caller.index)))
        return refuse(m, from,
                      caller.authenticated     ? identity_name(&caller.identity, name)
                      : caller.name[0] != '\0' ? caller.name
                                               : "a caller without a name",
                      e);
    return m->handle(m->user, &caller, request, reply, e);
}
