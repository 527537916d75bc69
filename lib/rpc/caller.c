/* The caller, as the request's Header names it. This is the only place that decodes a Header. authorize.c compares it
 * with the certificate of the connection. */
#include "rpc/caller.h"

#include <string.h>

#include "base/str.h"
#include "codec/json.h"
#include "codec/pb.h"

enum { HEADER = 1, JOB_UID = 1, GENERATION, SENDER, INCARNATION }; /* fields of common.proto */

/* Names go into logs, file names and JSON, so they have plain characters only. */
static bool is_name(const char *s, size_t n)
{
    static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    for (size_t i = 0; i < n; i++)
        if (s[i] == '\0' || strchr(PLAIN, s[i]) == NULL)
            return false;
    return n < RPC_NAME_SIZE;
}

static int set_name(struct rpc_caller *c, const struct pb_field *f, struct err *e)
{
    if (!is_name(f->data, f->size))
        return err_set(e, ERR_INPUT,
                       "the sender of the request is not a name such as worker-3: letters, digits, '-', '_' and '.', "
                       "at most %d bytes",
                       RPC_NAME_SIZE - 1);
    memcpy(c->name, f->data, f->size);
    c->name[f->size] = '\0';
    return 0;
}

/* Uids are shown in messages, too. */
static bool is_text(const char *s, size_t n)
{
    bool plain = true;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\0')
            return false;
        plain = plain && (signed char)s[i] > 0;
    }
    if (plain || n >= RPC_UID_SIZE)
        return n < RPC_UID_SIZE;
    json_auto_t *text = json_stringn(s, n); /* NULL unless it is UTF-8 */
    return text != NULL;
}

static int set_job_uid(struct rpc_caller *c, const struct pb_field *f, struct err *e)
{
    if (!is_text(f->data, f->size))
        return err_set(e, ERR_INPUT, "the job uid of the request is not UTF-8, or has more than %d bytes",
                       RPC_UID_SIZE - 1);
    memcpy(c->job_uid, f->data, f->size);
    c->job_uid[f->size] = '\0';
    return 0;
}

static int set_field(struct rpc_caller *c, const struct pb_field *f, struct err *e)
{
    if (f->number == JOB_UID && f->type == PB_BYTES)
        return set_job_uid(c, f, e);
    if (f->number == SENDER && f->type == PB_BYTES)
        return set_name(c, f, e);
    if (f->number == GENERATION && f->type == PB_VARINT)
        c->generation = f->u;
    else if (f->number == INCARNATION && f->type == PB_VARINT)
        c->incarnation = f->u;
    return 0;
}

/* "worker-3" is index 3 of role worker. */
static void find_role(struct rpc_caller *c)
{
    const char *dash = strrchr(c->name, '-');
    char role[RPC_NAME_SIZE];
    int64_t index;
    c->role = ROLE_COUNT;
    c->index = -1;
    if (dash == NULL || str_i64(dash + 1, 0, RPC_INDEX_MAX, &index, NULL) < 0)
        return;
    str_fmt(role, sizeof(role), "%.*s", (int)(dash - c->name), c->name);
    if (role_parse(role, &c->role, NULL) < 0)
        c->role = ROLE_COUNT;
    else
        c->index = (int)index;
}

int rpc_caller_of(const struct rpc_message *request, struct rpc_caller *ret, struct err *e)
{
    struct rpc_caller c = { .job_uid = "", .name = "" };
    struct pb_field f, inner;
    size_t n;
    const void *head = rpc_message_head(request, &n);
    struct reader message = reader_of(head, n);
    int rc, rc_inner = 0;
    while ((rc = pb_next(&message, &f)) > 0) {
        if (f.number != HEADER || f.type != PB_BYTES)
            continue;
        struct reader header = reader_of(f.data, f.size);
        while ((rc_inner = pb_next(&header, &inner)) > 0)
            if (set_field(&c, &inner, e) < 0)
                return -1;
        if (rc_inner < 0)
            break;
    }
    if (rc < 0 || rc_inner < 0)
        return err_set(e, ERR_INPUT, "malformed header of a request");
    find_role(&c);
    *ret = c;
    return 0;
}
