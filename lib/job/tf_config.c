/* TF_CONFIG in and out. In: dense lists and sparse maps, in the words of TensorFlow's own checks
 * (tensorflow_estimator/python/estimator/run_config.py). Out: the bytes that Go's encoding/json makes of the
 * training-operator's structures: no spaces, roles sorted, then task, then environment. */
#include "job/tf_config.h"

#include <inttypes.h>
#include <string.h>

/* ---- in ---- */

static const char MASTER[] = "master"; /* TFJob's old name of chief */

static int read_host(const struct node *n, struct strlist *hosts, size_t index, struct err *e)
{
    const char *host;
    struct err why = { .code = ERR_NONE };

    if (node_str(n, &host, e) < 0)
        return -1;
    if (host_check(host, &why) < 0)
        return node_error(n, e, "%s", why.msg);
    hosts_put(hosts, index, host);
    return 0;
}

/* {"1": "host:port"}: a task that knows only some of its peers (TFJob's enableDynamicWorker). */
static int read_sparse(const struct node *n, struct strlist *hosts, struct err *e)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)n->v, key, value)
    {
        struct node host = node_get(n, key);
        int64_t index;
        if (str_i64(key, 0, TASKS_MAX - 1, &index, NULL) < 0)
            return node_error(n, e, "'%.60s' is not a valid task index", key);
        if ((size_t)index < hosts->n && hosts->items[index] != NULL)
            return node_error(n, e, "task index %" PRId64 " is given twice", index);
        if (read_host(&host, hosts, (size_t)index, e) < 0)
            return -1;
    }
    return 0;
}

static int read_dense(const struct node *n, struct strlist *hosts, struct err *e)
{
    if (node_size(n) > TASKS_MAX)
        return node_error(n, e, "%zu tasks, at most %d", node_size(n), TASKS_MAX);
    for (size_t i = 0; i < node_size(n); i++) {
        struct node host = node_item(n, i);
        if (read_host(&host, hosts, i, e) < 0)
            return -1;
    }
    return 0;
}

static int read_role(const struct node *cluster, const char *key, struct cluster *c, struct err *e)
{
    struct node n = node_get(cluster, key);
    struct err why = { .code = ERR_NONE };
    enum role r;

    if (role_parse(key, &r, &why) < 0)
        return node_key_error(cluster, key, e, "%s", why.msg);
    if (c->hosts[r].n > 0)
        return node_error(cluster, e, "chief and master are the same role; give one of them");
    c->master |= str_eq(key, MASTER);
    if (json_is_object(n.v))
        return read_sparse(&n, &c->hosts[r], e);
    if (!json_is_array(n.v))
        return node_error(&n, e, "must be a list of \"host:port\", not %s", node_type(&n));
    return read_dense(&n, &c->hosts[r], e);
}

/* The index may be written as a string, as in JSON from shell scripts. */
static int read_index(const struct node *n, int *ret, struct err *e)
{
    int64_t v = json_integer_value(n->v);
    const char *text = json_string_value(n->v);

    if (text != NULL ? str_i64(text, INT64_MIN, INT64_MAX, &v, NULL) < 0 : !json_is_integer(n->v))
        return node_error(n, e, "must be a whole number%s%s", json_is_number(n->v) ? "" : ", not ",
                          json_is_number(n->v) ? "" : node_type(n));
    if (v < 0)
        return node_error(n, e, "Task index must be non-negative number");
    if (v >= TASKS_MAX)
        return node_error(n, e, "task index %" PRId64 " is out of range; at most %d", v, TASKS_MAX - 1);
    *ret = (int)v;
    return 0;
}

static int read_task(const struct node *top, struct cluster *c, struct err *e)
{
    struct node task = node_get(top, "task"), type = node_get(&task, "type"), index = node_get(&task, "index");
    const char *text;
    struct err why = { .code = ERR_NONE };

    if (node_present(&task) && node_object(&task, e) < 0)
        return -1;
    if (!node_present(&type))
        return node_error(top, e, "If \"cluster\" is set in TF_CONFIG, task type must be set");
    if (node_str(&type, &text, e) < 0)
        return -1;
    if (role_parse(text, &c->role, &why) < 0)
        return node_error(&type, e, "%s", why.msg);
    if (!node_present(&index))
        return node_error(top, e, "If \"cluster\" is set in TF_CONFIG, task index must be set");
    return read_index(&index, &c->index, e);
}

/* The number of workers, for a cluster that lists only the tasks a worker must find. */
static int read_workers(const struct node *top, struct cluster *c, struct err *e)
{
    int64_t n;
    if (node_i64_or(top, "workers", 0, 0, TASKS_MAX, &n, e) < 0)
        return -1;
    c->workers = (int)n;
    return 0;
}

/* Without a cluster a task may only be what a single machine is. */
static int check_local(const struct node *top, struct err *e)
{
    struct node task = node_get(top, "task"), type = node_get(&task, "type"), index = node_get(&task, "index");
    const char *text = json_string_value(type.v);

    if (node_present(&type) && !str_eq(text, "worker"))
        return node_error(&type, e, "If \"cluster\" is not set in TF_CONFIG, task type must be worker");
    if (node_present(&index) && !(json_is_integer(index.v) && json_integer_value(index.v) == 0))
        return node_error(&index, e, "If \"cluster\" is not set in TF_CONFIG, task index must be 0");
    return 0;
}

static int read_config(const struct node *top, struct cluster *c, struct err *e)
{
    struct node cluster = node_get(top, "cluster");

    if (node_object(top, e) < 0)
        return -1;
    if (!node_present(&cluster))
        return check_local(top, e);
    if (node_object(&cluster, e) < 0)
        return -1;
    if (node_size(&cluster) == 0)
        return check_local(top, e);
    c->configured = true;
    for (size_t i = 0; i < node_size(&cluster); i++)
        if (read_role(&cluster, node_key(&cluster, i), c, e) < 0)
            return -1;
    return read_task(top, c, e) < 0 || read_workers(top, c, e) < 0 ? -1 : 0;
}

int tf_config_parse(const char *text, struct cluster *ret, struct err *e)
{
    json_auto_t *v = NULL;
    AUTO(source) *src = source_new("TF_CONFIG");
    AUTO_FINI(cluster) c = { .role = ROLE_WORKER };

    if (json_parse(text, strlen(text), "TF_CONFIG", &v, e) < 0)
        return -1;
    struct node top = node_root(v, src);
    if (read_config(&top, &c, e) < 0)
        return -1;
    *ret = c;
    c = (struct cluster){ .configured = false };
    return 0;
}

/* ---- out ---- */

static const char *name_of(const struct cluster *c, enum role r)
{
    return r == ROLE_CHIEF && c->master ? MASTER : role_name(r);
}

static bool is_sparse(const struct strlist *hosts)
{
    for (size_t i = 0; i < hosts->n; i++)
        if (hosts->items[i] == NULL)
            return true;
    return false;
}

/* Hosts were checked, so that nothing in them needs escaping. */
static void put_dense(const struct strlist *hosts, struct buf *out)
{
    for (size_t i = 0; i < hosts->n; i++)
        buf_printf(out, "%s\"%s\"", i == 0 ? "[" : ",", hosts->items[i]);
    buf_str(out, hosts->n == 0 ? "[]" : "]");
}

static void put_sparse(const struct strlist *hosts, struct buf *out)
{
    const char *separator = "";
    buf_char(out, '{');
    for (size_t i = 0; i < hosts->n; i++) {
        if (hosts->items[i] == NULL)
            continue;
        buf_printf(out, "%s\"%zu\":\"%s\"", separator, i, hosts->items[i]);
        separator = ",";
    }
    buf_char(out, '}');
}

static void put_task(const struct cluster *c, enum role role, int index, struct buf *out)
{
    buf_printf(out, ",\"task\":{\"type\":\"%s\",\"index\":%d}", name_of(c, role), index);
}

/* "chief":["..."], or nothing if there is none. */
static void put_role(const struct cluster *c, enum role role, struct buf *out)
{
    if (c->hosts[role].n == 0)
        return;
    buf_printf(out, "\"%s\":", name_of(c, role));
    put_dense(&c->hosts[role], out);
    buf_char(out, ',');
}

/* The members of enableDynamicWorker's form: workers as a map, and ps. */
static void put_dynamic(const struct strlist *workers, const struct strlist *ps, struct buf *out)
{
    buf_str(out, "\"worker\":");
    put_sparse(workers, out);
    buf_str(out, ",\"ps\":");
    put_dense(ps, out);
    buf_char(out, '}');
}

static void put_cluster(const struct cluster *c, struct buf *out)
{
    /* by name; "master" would come between evaluator and ps */
    static const enum role SORTED[] = { ROLE_CHIEF, ROLE_EVALUATOR, ROLE_PS, ROLE_WORKER };
    static const enum role WITH_MASTER[] = { ROLE_EVALUATOR, ROLE_CHIEF, ROLE_PS, ROLE_WORKER };
    const enum role *sorted = c->master ? WITH_MASTER : SORTED;
    const char *separator = "";

    buf_char(out, '{');
    for (size_t i = 0; i < COUNT_OF(SORTED); i++) {
        if (c->hosts[sorted[i]].n == 0 && !c->listed[sorted[i]])
            continue;
        buf_printf(out, "%s\"%s\":", separator, name_of(c, sorted[i]));
        if (is_sparse(&c->hosts[sorted[i]]))
            put_sparse(&c->hosts[sorted[i]], out);
        else
            put_dense(&c->hosts[sorted[i]], out);
        separator = ",";
    }
    buf_char(out, '}');
}

char *cluster_to_json(const struct cluster *c)
{
    AUTO_FINI(buf) out = BUF_INIT;

    put_cluster(c, &out);
    return buf_detach(&out);
}

char *cluster_to_tf_config_around(const struct cluster *c, const char *cluster, enum role role, int index)
{
    AUTO_FINI(buf) out = BUF_INIT;

    buf_str(&out, "{\"cluster\":");
    buf_str(&out, cluster);
    put_task(c, role, index, &out);
    buf_str(&out, ",\"environment\":\"cloud\"");
    if (c->workers > 0)
        buf_printf(&out, ",\"workers\":%d", c->workers);
    buf_char(&out, '}');
    return buf_detach(&out);
}

static char *sparse_tf_config(const struct cluster *c, enum role role, int index)
{
    AUTO_FINI(buf) out = BUF_INIT;

    buf_str(&out, "{\"cluster\":{");
    put_dynamic(&c->hosts[ROLE_WORKER], &c->hosts[ROLE_PS], &out);
    put_task(c, role, index, &out);
    buf_char(&out, '}');
    return buf_detach(&out);
}

char *cluster_to_tf_config(const struct cluster *c, enum role role, int index)
{
    if (c->workers == 0 && is_sparse(&c->hosts[ROLE_WORKER]))
        return sparse_tf_config(c, role, index);
    auto_free char *cluster = cluster_to_json(c);
    return cluster_to_tf_config_around(c, cluster, role, index);
}

char *cluster_to_sparse_tf_config(const struct cluster *c, enum role role, int index)
{
    AUTO_FINI(buf) out = BUF_INIT;
    AUTO_FINI(strlist) itself = { .n = 0 };
    const struct strlist *workers = &c->hosts[ROLE_WORKER];

    if (role == ROLE_WORKER && index >= 0 && (size_t)index < workers->n)
        hosts_put(&itself, (size_t)index, workers->items[index]);
    buf_str(&out, "{\"cluster\":{");
    if (role == ROLE_CHIEF || role == ROLE_EVALUATOR)
        put_role(c, ROLE_CHIEF, &out);
    if (role == ROLE_EVALUATOR)
        put_role(c, ROLE_EVALUATOR, &out);
    put_dynamic(&itself, &c->hosts[ROLE_PS], &out);
    put_task(c, role, index, &out);
    buf_char(&out, '}');
    return buf_detach(&out);
}
