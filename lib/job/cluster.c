/* Which cluster, and which task of it this process is: flags, the JOB_NAME family, TF_CONFIG. */
#include "job/cluster.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "job/tf_config.h"

enum { FILES_NEEDED = 32 }; /* without peers: data, output, pages, gRPC's own */

/* ---- the JOB_NAME family: five settings, each from a flag or from the environment ---- */

struct setting {
    const char *name;  /* TensorFlow's word: job_name */
    const char *value; /* NULL: not given */
    bool flag;         /* came from a flag */
};
enum { JOB_NAME, TASK_INDEX, PS_HOSTS, WORKER_HOSTS, CHIEF_HOST, SETTINGS };

struct job_name_settings {
    struct setting s[SETTINGS];
    bool any;
};

/* An empty value counts as none, because shells and templates produce such values. */
static struct setting pick_setting(const char *name, const char *flag, const char *env)
{
    if (flag != NULL && *flag != '\0')
        return (struct setting){ .name = name, .value = flag, .flag = true };
    return (struct setting){ .name = name, .value = env != NULL && *env != '\0' ? env : NULL };
}

static struct job_name_settings job_name_settings_of(const struct cluster_input *flags, const struct cluster_input *env)
{
    struct job_name_settings f = { .s = {
                                       [JOB_NAME] = pick_setting("job_name", flags->job_name, env->job_name),
                                       [TASK_INDEX] = pick_setting("task_index", flags->task_index, env->task_index),
                                       [PS_HOSTS] = pick_setting("ps_hosts", flags->ps_hosts, env->ps_hosts),
                                       [WORKER_HOSTS] =
                                           pick_setting("worker_hosts", flags->worker_hosts, env->worker_hosts),
                                       [CHIEF_HOST] = pick_setting("chief_host", flags->chief_host, env->chief_host),
                                   } };
    for (int i = 0; i < SETTINGS; i++)
        f.any |= f.s[i].value != NULL;
    return f;
}

/* "--task-index" or "TASK_INDEX". */
static const char *spelling(const struct setting *s, bool flag, char out[32])
{
    str_fmt(out, 32, "%s%s", flag ? "--" : "", s->name);
    for (char *c = out; *c != '\0'; c++) {
        if (flag && *c == '_')
            *c = '-';
        else if (!flag && *c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    }
    return out;
}

/* TensorFlow's sentence, then where it can be given and which setting of the set was found. */
static int must_specify(const struct job_name_settings *f, int which, struct err *e)
{
    char flag[32], variable[32], found[32] = "";
    const char *where = "";

    for (int i = 0; i < SETTINGS && found[0] == '\0'; i++) {
        if (f->s[i].value == NULL)
            continue;
        spelling(&f->s[i], f->s[i].flag, found);
        where = f->s[i].flag ? "" : " in the environment";
    }
    return err_set(e, ERR_INPUT, "Must specify an explicit `%s` (%s, or %s in the environment), because %s is given%s",
                   f->s[which].name, spelling(&f->s[which], true, flag), spelling(&f->s[which], false, variable), found,
                   where);
}

static int setting_error(const struct setting *s, struct err *e, const struct err *why)
{
    char name[32];
    return err_set(e, ERR_INPUT, "%s: %s", spelling(s, s->flag, name), why->msg);
}

static int read_hosts(const struct setting *s, struct strlist *ret, struct err *e)
{
    AUTO_FINI(strlist) hosts = { .n = 0 };
    struct err why = { .code = ERR_NONE };

    if (s->value == NULL)
        return 0;
    strlist_split(&hosts, s->value, ',');
    if (hosts.n == 0 || hosts.n > TASKS_MAX) {
        err_put(&why, ERR_INPUT, "%zu hosts; must be 1 to %d, separated by commas", hosts.n, TASKS_MAX);
        return setting_error(s, e, &why);
    }
    for (size_t i = 0; i < hosts.n; i++) {
        if (host_check(hosts.items[i], &why) < 0)
            return setting_error(s, e, &why);
        hosts_put(ret, i, hosts.items[i]);
    }
    return 0;
}

static int read_job_name_settings(const struct job_name_settings *f, struct cluster *c, struct err *e)
{
    const struct setting *name = &f->s[JOB_NAME], *index = &f->s[TASK_INDEX];
    struct err why = { .code = ERR_NONE };
    int64_t i;

    if (name->value == NULL)
        return must_specify(f, JOB_NAME, e);
    if (role_parse(name->value, &c->role, &why) < 0)
        return setting_error(name, e, &why);
    if (index->value == NULL)
        return must_specify(f, TASK_INDEX, e);
    if (str_i64(index->value, 0, TASKS_MAX - 1, &i, &why) < 0)
        return setting_error(index, e, &why);
    if (f->s[PS_HOSTS].value == NULL && (c->role == ROLE_PS || f->s[WORKER_HOSTS].value == NULL))
        return must_specify(f, PS_HOSTS, e);
    if (c->role == ROLE_CHIEF && f->s[CHIEF_HOST].value == NULL)
        return must_specify(f, CHIEF_HOST, e);
    if (f->s[WORKER_HOSTS].value == NULL && (c->role == ROLE_WORKER || f->s[CHIEF_HOST].value == NULL))
        return must_specify(f, WORKER_HOSTS, e);
    c->index = (int)i;
    c->configured = true;
    if (read_hosts(&f->s[PS_HOSTS], &c->hosts[ROLE_PS], e) < 0 ||
        read_hosts(&f->s[WORKER_HOSTS], &c->hosts[ROLE_WORKER], e) < 0)
        return -1;
    return read_hosts(&f->s[CHIEF_HOST], &c->hosts[ROLE_CHIEF], e);
}

/* ---- checks of the whole cluster, from any source ---- */

struct seen {
    char task[64];
};

static int note_host(struct map *seen, const char *host, enum role r, size_t i, struct err *e)
{
    const struct seen *other = map_get(seen, host);
    if (other != NULL)
        return err_set(e, ERR_INPUT, "%s and %s-%zu have the same address %s", other->task, role_name(r), i, host);
    struct seen *me = xmalloc(sizeof(*me));
    str_fmt(me->task, sizeof(me->task), "%s-%zu", role_name(r), i);
    map_put(seen, host, me);
    return 0;
}

static int check_duplicates(const struct cluster *c, struct err *e)
{
    AUTO_FINI(map) seen = { 0 };
    const struct map_slot *slot;
    int result = 0;

    for (int r = 0; r < ROLE_COUNT && result == 0; r++)
        for (size_t i = 0; i < c->hosts[r].n && result == 0; i++)
            if (c->hosts[r].items[i] != NULL)
                result = note_host(&seen, c->hosts[r].items[i], (enum role)r, i, e);
    for (size_t i = 0; (slot = map_next(&seen, &i)) != NULL;)
        free(slot->value);
    return result;
}

/* The short form of TF_CONFIG: the ps, the leader, and the number of workers. */
static bool lists_leader_only(const struct cluster *c)
{
    size_t chiefs = c->hosts[ROLE_CHIEF].n, workers = c->hosts[ROLE_WORKER].n;
    return c->workers > 0 && c->hosts[ROLE_PS].n > 0 && chiefs + workers == 1;
}

/* An evaluator need not be listed in the cluster. */
static int check_task(const struct cluster *c, bool may_be_short, struct err *e)
{
    const struct strlist *mine = &c->hosts[c->role];
    const char *name = role_name(c->role);

    if (c->role == ROLE_EVALUATOR && mine->n == 0)
        return 0;
    if (may_be_short && c->role == ROLE_WORKER && lists_leader_only(c))
        return 0;
    if (mine->n == 0)
        return err_set(e, ERR_INPUT, "%s is not a valid task_type in the cluster: it has no %s", name, name);
    if ((size_t)c->index >= mine->n)
        return err_set(e, ERR_INPUT,
                       "%d is not a valid task_id for task_type %s in the cluster: it has %zu of them "
                       "(0 to %zu)",
                       c->index, name, mine->n, mine->n - 1);
    if (mine->items[c->index] == NULL)
        return err_set(e, ERR_INPUT, "%d is not a valid task_id for task_type %s in the cluster: it has no address",
                       c->index, name);
    return 0;
}

static int check_cluster(const struct cluster *c, bool may_be_short, struct err *e)
{
    if (!c->configured)
        return 0;
    if (c->hosts[ROLE_CHIEF].n > 1)
        return err_set(e, ERR_INPUT, "The \"cluster\" must have only one \"chief\" node, not %zu",
                       c->hosts[ROLE_CHIEF].n);
    return check_task(c, may_be_short, e) < 0 ? -1 : check_duplicates(c, e);
}

/* ---- public ---- */

static int resolve(const struct cluster_input *flags, const struct cluster_input *env, struct cluster *c, struct err *e)
{
    struct job_name_settings family = job_name_settings_of(flags, env);
    struct setting tf_config = pick_setting("tf_config", flags->tf_config, env->tf_config);

    c->role = ROLE_WORKER;
    if (family.any)
        return read_job_name_settings(&family, c, e) < 0 ? -1 : check_cluster(c, false, e);
    if (tf_config.value == NULL)
        return 0;
    if (tf_config_parse(tf_config.value, c, e) < 0)
        return -1;
    return check_cluster(c, true, e) < 0 ? err_wrap(e, "TF_CONFIG") : 0;
}

int cluster_resolve(const struct cluster_input *flags, const struct cluster_input *env, struct cluster *ret,
                    struct err *e)
{
    AUTO_FINI(cluster) c = { .configured = false };

    if (resolve(flags, env, &c, e) < 0)
        return -1;
    *ret = c;
    c = (struct cluster){ .configured = false };
    return 0;
}

struct cluster_input cluster_env(void)
{
    return (struct cluster_input){
        .tf_config = getenv("TF_CONFIG"),
        .job_name = getenv("JOB_NAME"),
        .task_index = getenv("TASK_INDEX"),
        .ps_hosts = getenv("PS_HOSTS"),
        .worker_hosts = getenv("WORKER_HOSTS"),
        .chief_host = getenv("CHIEF_HOST"),
    };
}

void cluster_fini(struct cluster *c)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        strlist_fini(&c->hosts[r]);
}

const char *cluster_chief_address(const struct cluster *c)
{
    if (c->hosts[ROLE_CHIEF].n > 0)
        return c->hosts[ROLE_CHIEF].items[0];
    return c->hosts[ROLE_WORKER].n > 0 ? c->hosts[ROLE_WORKER].items[0] : NULL;
}

enum role cluster_leader(const struct cluster *c)
{
    if (c->hosts[ROLE_CHIEF].n > 0)
        return ROLE_CHIEF;
    return c->hosts[ROLE_WORKER].n > 0 ? ROLE_WORKER : ROLE_COUNT;
}

const char *cluster_leader_name(const struct cluster *c)
{
    enum role leader = cluster_leader(c);
    if (leader == ROLE_COUNT)
        return NULL;
    return leader == ROLE_CHIEF ? "chief-0" : "worker-0";
}

bool cluster_is_chief(const struct cluster *c)
{
    if (!c->configured || c->role == ROLE_CHIEF)
        return true;
    return c->role == ROLE_WORKER && c->index == 0 && c->hosts[ROLE_CHIEF].n == 0;
}

int cluster_workers(const struct cluster *c)
{
    return c->workers > 0 ? c->workers : (int)c->hosts[ROLE_WORKER].n;
}

static size_t cluster_peers(const struct cluster *c)
{
    size_t n = (size_t)MAX(cluster_workers(c), 0);
    for (enum role role = ROLE_PS; role < ROLE_COUNT; role++)
        n += role == ROLE_WORKER ? 0 : c->hosts[role].n;
    return n;
}

/* Without ps those that train have connections in both directions with each other, and are all servers. */
static bool has_members(const struct cluster *c)
{
    return c->hosts[ROLE_PS].n == 0 && c->role != ROLE_EVALUATOR && cluster_peers(c) > 1;
}

size_t cluster_files(const struct cluster *c)
{
    if (c->configured && has_members(c))
        return FILES_NEEDED + 2 * cluster_peers(c);
    bool serves = c->role == ROLE_PS || cluster_is_chief(c);
    return FILES_NEEDED + (!c->configured ? 0 : serves ? cluster_peers(c) : c->hosts[ROLE_PS].n + 1);
}

const char *cluster_task_name(const struct cluster *c, char out[64])
{
    str_fmt(out, 64, "%s-%d", role_name(c->role), c->index);
    return out;
}
