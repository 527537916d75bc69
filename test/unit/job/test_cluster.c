#include "check_main.h"

#include <stdlib.h>
#include <string.h>

#include "job/cluster.h"

static const struct cluster_input NOTHING = { .tf_config = NULL };

/* ---- TF_CONFIG out, to the byte ---- */

static void hosts(struct strlist *l, const char *prefix, int n)
{
    for (int i = 0; i < n; i++) {
        auto_free char *host = xasprintf("%s-%d.NS.svc:2222", prefix, i);
        strlist_add(l, host);
    }
}

START_TEST(tf_config_has_the_training_operators_bytes)
{
    AUTO_FINI(cluster) c = { .configured = true };
    hosts(&c.hosts[ROLE_PS], "J-ps", 1);
    hosts(&c.hosts[ROLE_WORKER], "J-worker", 2);
    hosts(&c.hosts[ROLE_EVALUATOR], "J-evaluator", 1);
    hosts(&c.hosts[ROLE_CHIEF], "J-chief", 1);
    auto_free char *text = cluster_to_tf_config(&c, ROLE_WORKER, 1);
    ck_assert_str_eq(text, "{\"cluster\":{\"chief\":[\"J-chief-0.NS.svc:2222\"],\"evaluator\":[\"J-evaluator-0.NS.svc:"
                           "2222\"],\"ps\":[\"J-ps-0.NS.svc:2222\"],\"worker\":[\"J-worker-0.NS.svc:2222\",\"J-worker-"
                           "1.NS.svc:2222\"]},\"task\":{\"type\":\"worker\",\"index\":1},\"environment\":\"cloud\"}");
}
END_TEST

START_TEST(workers_that_are_not_listed_are_counted)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(cluster) c = { .configured = true, .workers = 3000 };
    AUTO_FINI(cluster) read = { .configured = false };
    hosts(&c.hosts[ROLE_CHIEF], "J-chief", 1);
    hosts(&c.hosts[ROLE_PS], "J-ps", 1);
    auto_free char *text = cluster_to_tf_config(&c, ROLE_WORKER, 2999);
    ck_assert_str_eq(text, "{\"cluster\":{\"chief\":[\"J-chief-0.NS.svc:2222\"],\"ps\":[\"J-ps-0.NS.svc:2222\"]},"
                           "\"task\":{\"type\":\"worker\",\"index\":2999},\"environment\":\"cloud\",\"workers\":3000}");
    struct cluster_input env = { .tf_config = text };
    ck_ok_e(cluster_resolve(&NOTHING, &env, &read, &e));
    ck_assert(read.role == ROLE_WORKER && read.index == 2999 && cluster_workers(&read) == 3000 &&
              !cluster_is_chief(&read));
}
END_TEST

START_TEST(roles_without_replicas_are_left_out)
{
    AUTO_FINI(cluster) c = { .configured = true };
    hosts(&c.hosts[ROLE_PS], "J-ps", 1);
    hosts(&c.hosts[ROLE_WORKER], "J-worker", 1);
    auto_free char *text = cluster_to_tf_config(&c, ROLE_PS, 0);
    ck_assert_str_eq(text, "{\"cluster\":{\"ps\":[\"J-ps-0.NS.svc:2222\"],\"worker\":[\"J-worker-0.NS.svc:2222\"]},"
                           "\"task\":{\"type\":\"ps\",\"index\":0},\"environment\":\"cloud\"}");
}
END_TEST

static const char DYNAMIC[] = "{\"cluster\":{\"worker\":{\"1\":\"J-worker-1.NS.svc:2222\"},\"ps\":[\"J-ps-0.NS.svc:"
                              "2222\",\"J-ps-1.NS.svc:2222\"]},\"task\":{\"type\":\"ps\",\"index\":1}}";

START_TEST(a_sparse_cluster_is_written_as_it_was_read)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(cluster) c = { .configured = false };
    struct cluster_input env = { .tf_config = DYNAMIC };
    ck_ok_e(cluster_resolve(&NOTHING, &env, &c, &e));
    ck_assert_uint_eq(c.hosts[ROLE_WORKER].n, 2);
    ck_assert_ptr_null(c.hosts[ROLE_WORKER].items[0]);
    ck_assert_str_eq(c.hosts[ROLE_WORKER].items[1], "J-worker-1.NS.svc:2222");
    auto_free char *text = cluster_to_tf_config(&c, ROLE_PS, 1);
    ck_assert_str_eq(text, DYNAMIC);
}
END_TEST

static const char MEMBER[] =
    "{\"cluster\":{\"chief\":[\"J-chief-0.NS.svc:2222\"],\"worker\":{\"3\":\"J-worker-3.NS.svc:"
    "2222\"}},\"task\":{\"type\":\"worker\",\"index\":3},\"environment\":\"cloud\",\"workers\":4}";

START_TEST(a_worker_without_ps_knows_itself_and_the_leader)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(cluster) c = { .configured = false }, ps = { .configured = true, .role = ROLE_WORKER, .workers = 4 };
    struct cluster_input env = { .tf_config = MEMBER };
    ck_ok_e(cluster_resolve(&NOTHING, &env, &c, &e));
    ck_assert(c.role == ROLE_WORKER && c.index == 3 && !cluster_is_chief(&c));
    ck_assert_str_eq(c.hosts[ROLE_WORKER].items[3], "J-worker-3.NS.svc:2222");
    ck_assert_str_eq(cluster_chief_address(&c), "J-chief-0.NS.svc:2222");
    ck_assert_int_eq(cluster_workers(&c), 4);
    auto_free char *text = cluster_to_tf_config(&c, ROLE_WORKER, 3);
    ck_assert_str_eq(text, MEMBER);
    hosts(&ps.hosts[ROLE_PS], "J-ps", 1);
    hosts(&ps.hosts[ROLE_CHIEF], "J-chief", 1);
    ck_assert_uint_eq(cluster_files(&c), 32 + 2 * 5); /* to and from each member */
    ck_assert_uint_eq(cluster_files(&ps), 32 + 2);    /* the ps and the chief */
}
END_TEST

static const char MASTER[] = "{\"cluster\":{\"evaluator\":[\"J-evaluator-0.NS.svc:2222\"],"
                             "\"master\":[\"J-master-0.NS.svc:2222\"],\"ps\":[\"J-ps-0.NS.svc:2222\"]},"
                             "\"task\":{\"type\":\"master\",\"index\":0},\"environment\":\"cloud\"}";

START_TEST(a_chief_that_is_called_master_is_written_as_it_was_read)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(cluster) c = { .configured = false };
    struct cluster_input env = { .tf_config = MASTER };
    ck_ok_e(cluster_resolve(&NOTHING, &env, &c, &e));
    ck_assert(c.master && cluster_is_chief(&c));
    auto_free char *text = cluster_to_tf_config(&c, ROLE_CHIEF, 0), *ps = cluster_to_tf_config(&c, ROLE_PS, 0);
    ck_assert_str_eq(text, MASTER);
    ck_assert(strstr(ps, "\"task\":{\"type\":\"ps\",\"index\":0}") != NULL);
}
END_TEST

static const struct {
    enum role role;
    int index;
    const char *text;
} SPARSE[] = {
    { ROLE_WORKER, 1,
      "{\"cluster\":{\"worker\":{\"1\":\"J-worker-1.NS.svc:2222\"},\"ps\":[\"J-ps-0.NS.svc:2222\","
      "\"J-ps-1.NS.svc:2222\"]},\"task\":{\"type\":\"worker\",\"index\":1}}" },
    { ROLE_PS, 1,
      "{\"cluster\":{\"worker\":{},\"ps\":[\"J-ps-0.NS.svc:2222\",\"J-ps-1.NS.svc:2222\"]},"
      "\"task\":{\"type\":\"ps\",\"index\":1}}" },
    { ROLE_CHIEF, 0,
      "{\"cluster\":{\"chief\":[\"J-chief-0.NS.svc:2222\"],\"worker\":{},\"ps\":[\"J-ps-0.NS.svc:2222\","
      "\"J-ps-1.NS.svc:2222\"]},\"task\":{\"type\":\"chief\",\"index\":0}}" },
    { ROLE_EVALUATOR, 0,
      "{\"cluster\":{\"chief\":[\"J-chief-0.NS.svc:2222\"],\"evaluator\":[\"J-evaluator-0.NS.svc:2222\"],\"worker\":{},"
      "\"ps\":[\"J-ps-0.NS.svc:2222\",\"J-ps-1.NS.svc:2222\"]},\"task\":{\"type\":\"evaluator\",\"index\":0}}" },
};
START_TEST(with_dynamic_workers_a_task_knows_itself_and_the_ps)
{
    AUTO_FINI(cluster) c = { .configured = true };
    hosts(&c.hosts[ROLE_PS], "J-ps", 2);
    hosts(&c.hosts[ROLE_WORKER], "J-worker", 3);
    hosts(&c.hosts[ROLE_CHIEF], "J-chief", 1);
    hosts(&c.hosts[ROLE_EVALUATOR], "J-evaluator", 1);
    auto_free char *text = cluster_to_sparse_tf_config(&c, SPARSE[_i].role, SPARSE[_i].index);
    ck_assert_str_eq(text, SPARSE[_i].text);
    /* and each can read its own. A worker's has no chief, as in training-operator. */
    AUTO_FINI(cluster) read = { .configured = false };
    const struct cluster_input env = { .tf_config = text };
    struct err e = { .code = ERR_NONE };
    ck_ok_e(cluster_resolve(&NOTHING, &env, &read, &e));
    ck_assert(cluster_chief_address(&read) == NULL || SPARSE[_i].role == ROLE_CHIEF ||
              SPARSE[_i].role == ROLE_EVALUATOR);
    ck_assert_int_eq((int)read.role, (int)SPARSE[_i].role);
    ck_assert_int_eq(read.index, SPARSE[_i].index);
    ck_assert_uint_eq(read.hosts[ROLE_PS].n, 2);
}
END_TEST

/* ---- in: what is accepted ---- */

static const struct {
    struct cluster_input flags, env;
    const char *task, *chief; /* NULL task: nothing is configured */
    size_t count[ROLE_COUNT]; /* ps, worker, chief, evaluator */
    bool is_chief;
    int workers; /* 0: as many as are listed */
} GOOD[] = {
    { .task = NULL, .is_chief = true },
    { .env = { .tf_config = "" }, .task = NULL, .is_chief = true },
    { .env = { .tf_config = "{}" }, .task = NULL, .is_chief = true },
    { .env = { .tf_config = "{\"environment\":\"cloud\",\"task\":{\"type\":\"worker\",\"index\":0}}" },
      .task = NULL,
      .is_chief = true },
    { .env = { .tf_config = "{\"cluster\":{}}" }, .task = NULL, .is_chief = true },
    { .env = { .job_name = "", .task_index = "", .ps_hosts = "" }, .task = NULL, .is_chief = true },
    { .env = { .tf_config = "{\"cluster\":{\"chief\":[\"c:1\"],\"ps\":[\"p:1\"],\"worker\":[\"a:1\",\"b:1\"]},"
                            "\"task\":{\"type\":\"worker\",\"index\":1},\"environment\":\"cloud\"}" },
      .task = "worker-1",
      .chief = "c:1",
      .count = { 1, 2, 1, 0 } },
    { .env = { .tf_config = "{\"cluster\":{\"master\":[\"c:1\"],\"ps\":[\"p:1\"],\"worker\":[\"a:1\"]},"
                            "\"task\":{\"type\":\"master\",\"index\":0}}" },
      .task = "chief-0",
      .chief = "c:1",
      .count = { 1, 1, 1, 0 },
      .is_chief = true },
    { .env = { .tf_config = "{\"cluster\":{\"ps\":[\"p:1\"],\"worker\":[\"a:1\",\"b:1\"]},"
                            "\"task\":{\"type\":\"worker\",\"index\":\"0\"}}" },
      .task = "worker-0",
      .chief = "a:1",
      .count = { 1, 2, 0, 0 },
      .is_chief = true },
    { .env = { .tf_config = "{\"cluster\":{\"ps\":[\"p:1\"],\"worker\":[\"a:1\"]},"
                            "\"task\":{\"type\":\"evaluator\",\"index\":0}}" },
      .task = "evaluator-0",
      .chief = "a:1",
      .count = { 1, 1, 0, 0 } },
    { .env = { .tf_config = "{\"cluster\":{\"worker\":{\"2\":\"w:1\"},\"chief\":[\"c:1\"],\"ps\":[\"p:1\"]},"
                            "\"task\":{\"type\":\"worker\",\"index\":2}}" },
      .task = "worker-2",
      .chief = "c:1",
      .count = { 1, 3, 1, 0 } },
    { .env = { .tf_config = "{\"cluster\":{\"worker\":{},\"ps\":[\"p:1\"]},\"task\":{\"type\":\"ps\",\"index\":0}}" },
      .task = "ps-0",
      .chief = NULL,
      .count = { 1, 0, 0, 0 } },
    { .env = { .job_name = "worker", .task_index = "1", .ps_hosts = "p:1", .worker_hosts = "a:1, b:1" },
      .task = "worker-1",
      .chief = "a:1",
      .count = { 1, 2, 0, 0 } },
    { .env = { .job_name = "worker", .task_index = "1", .worker_hosts = "a:1,b:1" },
      .task = "worker-1",
      .chief = "a:1",
      .count = { 0, 2, 0, 0 } },
    { .env = { .job_name = "chief", .task_index = "0", .worker_hosts = "a:1,b:1", .chief_host = "c:1" },
      .task = "chief-0",
      .chief = "c:1",
      .count = { 0, 2, 1, 0 },
      .is_chief = true },
    { .env = { .job_name = "chief", .task_index = "0", .ps_hosts = "p:1,q:1", .chief_host = "[::1]:2222" },
      .task = "chief-0",
      .chief = "[::1]:2222",
      .count = { 2, 0, 1, 0 },
      .is_chief = true },
    { .env = { .job_name = "ps", .task_index = "0", .ps_hosts = "p:1", .chief_host = "c:1" },
      .task = "ps-0",
      .chief = "c:1",
      .count = { 1, 0, 1, 0 } },
    /* flags win over the environment, setting by setting; the family wins over TF_CONFIG */
    { .flags = { .job_name = "worker", .task_index = "0" },
      .env = { .job_name = "ps", .task_index = "7", .ps_hosts = "p:1", .worker_hosts = "a:1", .tf_config = "nonsense" },
      .task = "worker-0",
      .chief = "a:1",
      .count = { 1, 1, 0, 0 },
      .is_chief = true },
    { .flags = { .tf_config = "{}" }, .env = { .tf_config = "nonsense" }, .task = NULL, .is_chief = true },
    /* only the addresses that a worker needs */
    { .env = { .tf_config = "{\"cluster\":{\"chief\":[\"c:1\"],\"ps\":[\"p:1\"]},\"task\":{\"type\":\"worker\","
                            "\"index\":2999},\"environment\":\"cloud\",\"workers\":3000}" },
      .task = "worker-2999",
      .chief = "c:1",
      .count = { 1, 0, 1, 0 },
      .workers = 3000 },
    { .env = { .tf_config = "{\"cluster\":{\"ps\":[\"p:1\",\"q:1\"],\"worker\":[\"a:1\"]},"
                            "\"task\":{\"type\":\"worker\",\"index\":7},\"workers\":8}" },
      .task = "worker-7",
      .chief = "a:1",
      .count = { 2, 1, 0, 0 },
      .workers = 8 },
    { .env = { .tf_config = "{\"cluster\":{\"ps\":[\"p:1\"],\"worker\":[\"a:1\"]},\"task\":{\"type\":\"worker\","
                            "\"index\":0},\"workers\":3}" },
      .task = "worker-0",
      .chief = "a:1",
      .count = { 1, 1, 0, 0 },
      .is_chief = true,
      .workers = 3 },
    { .env = { .tf_config = "{\"cluster\":{\"chief\":[\"c:1\"],\"ps\":[\"p:1\"]},\"task\":{\"type\":\"chief\","
                            "\"index\":0},\"workers\":3}" },
      .task = "chief-0",
      .chief = "c:1",
      .count = { 1, 0, 1, 0 },
      .is_chief = true,
      .workers = 3 },
};
START_TEST(accepts)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(cluster) c = { .configured = false };
    char name[64];

    ck_ok_e(cluster_resolve(&GOOD[_i].flags, &GOOD[_i].env, &c, &e));
    ck_assert_int_eq(c.configured, GOOD[_i].task != NULL);
    ck_assert_str_eq(cluster_task_name(&c, name), GOOD[_i].task != NULL ? GOOD[_i].task : "worker-0");
    ck_assert_pstr_eq(cluster_chief_address(&c), GOOD[_i].chief);
    ck_assert_int_eq(cluster_is_chief(&c), GOOD[_i].is_chief);
    for (int r = 0; r < ROLE_COUNT; r++)
        ck_assert_uint_eq(c.hosts[r].n, GOOD[_i].count[r]);
    ck_assert_int_eq(cluster_workers(&c), GOOD[_i].workers > 0 ? GOOD[_i].workers : (int)c.hosts[ROLE_WORKER].n);
}
END_TEST

/* ---- in: what is refused, and how ---- */

#define TASK "\"task\":{\"type\":\"worker\",\"index\":0}"
static const struct {
    struct cluster_input flags, env;
    const char *error;
} BAD[] = {
    { .env = { .task_index = "0" },
      .error =
          "Must specify an explicit `job_name` (--job-name, or JOB_NAME in the environment), because TASK_INDEX is "
          "given in the environment" },
    { .flags = { .job_name = "worker" },
      .error = "Must specify an explicit `task_index` (--task-index, or TASK_INDEX in the environment), because "
               "--job-name is given" },
    { .env = { .job_name = "worker", .task_index = "0", .chief_host = "c:1" },
      .error = "Must specify an explicit `ps_hosts` (--ps-hosts, or PS_HOSTS in the environment), because JOB_NAME is "
               "given in the environment" },
    { .env = { .job_name = "chief", .task_index = "0", .chief_host = "c:1" },
      .error = "Must specify an explicit `ps_hosts` (--ps-hosts, or PS_HOSTS in the environment), because JOB_NAME is "
               "given in the environment" },
    { .env = { .job_name = "ps", .task_index = "0", .worker_hosts = "a:1" },
      .error = "Must specify an explicit `ps_hosts` (--ps-hosts, or PS_HOSTS in the environment), because JOB_NAME is "
               "given in the environment" },
    { .env = { .job_name = "worker", .task_index = "0", .ps_hosts = "p:1", .chief_host = "c:1" },
      .error = "Must specify an explicit `worker_hosts` (--worker-hosts, or WORKER_HOSTS in the environment), because "
               "JOB_NAME is given in the environment" },
    { .env = { .job_name = "ps", .task_index = "0", .ps_hosts = "p:1" },
      .error = "Must specify an explicit `worker_hosts` (--worker-hosts, or WORKER_HOSTS in the environment), because "
               "JOB_NAME is given in the environment" },
    { .env = { .job_name = "chief", .task_index = "0", .ps_hosts = "p:1", .worker_hosts = "a:1" },
      .error =
          "Must specify an explicit `chief_host` (--chief-host, or CHIEF_HOST in the environment), because JOB_NAME "
          "is given in the environment" },
    { .flags = { .job_name = "wroker", .task_index = "0", .ps_hosts = "p:1", .worker_hosts = "a:1" },
      .error = "--job-name: role 'wroker' is not known; did you mean 'worker'?" },
    { .env = { .job_name = "worker", .task_index = "one", .ps_hosts = "p:1", .worker_hosts = "a:1" },
      .error = "TASK_INDEX: 'one' is not a whole number" },
    { .env = { .job_name = "worker", .task_index = "-1", .ps_hosts = "p:1", .worker_hosts = "a:1" },
      .error = "TASK_INDEX: -1 is out of range; it must be 0 to 99999" },
    { .env = { .job_name = "worker", .task_index = "2", .ps_hosts = "p:1", .worker_hosts = "a:1,b:1" },
      .error = "2 is not a valid task_id for task_type worker in the cluster: it has 2 of them (0 to 1)" },
    { .flags = { .job_name = "worker", .task_index = "0", .ps_hosts = "p", .worker_hosts = "a:1" },
      .error = "--ps-hosts: 'p' has no port; it must be host:port, such as localhost:2222" },
    { .env = { .job_name = "worker", .task_index = "0", .ps_hosts = "p:1", .worker_hosts = "a:1,b:70000" },
      .error = "WORKER_HOSTS: 'b:70000': port '70000' is not 1 to 65535" },
    { .env = { .job_name = "worker", .task_index = "0", .ps_hosts = "p:0", .worker_hosts = "a:1" },
      .error = "PS_HOSTS: 'p:0': port '0' is not 1 to 65535" },
    { .env = { .job_name = "worker", .task_index = "0", .ps_hosts = "grpc://p:1", .worker_hosts = "a:1" },
      .error = "PS_HOSTS: 'grpc://p:1' must be host:port, without 'grpc://'" },
    { .env = { .job_name = "worker", .task_index = "0", .ps_hosts = "p q:1", .worker_hosts = "a:1" },
      .error = "PS_HOSTS: 'p q:1' is not host:port" },
    { .env = { .job_name = "worker", .task_index = "0", .ps_hosts = ",", .worker_hosts = "a:1" },
      .error = "PS_HOSTS: 0 hosts; must be 1 to 100000, separated by commas" },
    { .env = { .job_name = "worker", .task_index = "0", .ps_hosts = "x:1", .worker_hosts = "a:1,x:1" },
      .error = "ps-0 and worker-1 have the same address x:1" },
    { .env = { .job_name = "ps", .task_index = "0", .ps_hosts = "p:1", .worker_hosts = "a:1", .chief_host = "c:1,d:1" },
      .error = "The \"cluster\" must have only one \"chief\" node, not 2" },
    { .env = { .tf_config = "{\"cluster\":" }, .error = "TF_CONFIG:1:11: " },
    { .env = { .tf_config = "[]" }, .error = "TF_CONFIG: must be a map, not a list" },
    { .env = { .tf_config = "{\"cluster\":[]}" }, .error = "TF_CONFIG: cluster: must be a map, not a list" },
    { .env = { .tf_config = "{\"cluster\":{\"worker\":[\"a:1\"]}}" },
      .error = "TF_CONFIG: If \"cluster\" is set in TF_CONFIG, task type must be set" },
    { .env = { .tf_config = "{\"cluster\":{\"worker\":[\"a:1\"]},\"task\":{\"type\":\"worker\"}}" },
      .error = "TF_CONFIG: If \"cluster\" is set in TF_CONFIG, task index must be set" },
    { .env = { .tf_config = "{\"cluster\":{\"worker\":[\"a:1\"]},\"task\":{\"type\":\"worker\",\"index\":-1}}" },
      .error = "TF_CONFIG: task.index: Task index must be non-negative number" },
    { .env = { .tf_config = "{\"cluster\":{\"worker\":[\"a:1\"]},\"task\":{\"type\":\"worker\",\"index\":0.5}}" },
      .error = "TF_CONFIG: task.index: must be a whole number" },
    { .env = { .tf_config = "{\"cluster\":{\"worker\":[\"a:1\"]},\"task\":{\"type\":\"worker\",\"index\":1}}" },
      .error = "TF_CONFIG: 1 is not a valid task_id for task_type worker in the cluster: it has 1 of them (0 to 0)" },
    { .env = { .tf_config = "{\"cluster\":{\"worker\":[\"a:1\",\"b:1\"],\"ps\":[\"p:1\"]},\"task\":{\"type\":"
                            "\"worker\",\"index\":2}}" },
      .error = "TF_CONFIG: 2 is not a valid task_id for task_type worker in the cluster: it has 2 of them (0 to 1)" },
    { .env = { .tf_config = "{\"cluster\":{\"ps\":[\"p:1\",\"q:1\"],\"worker\":[\"a:1\"]},"
                            "\"task\":{\"type\":\"worker\",\"index\":7}}" },
      .error = "TF_CONFIG: 7 is not a valid task_id for task_type worker in the cluster: it has 1 of them (0 to 0)" },
    { .env = { .tf_config =
                   "{\"cluster\":{\"chief\":[\"c:1\"],\"ps\":[\"p:1\"]},\"task\":{\"type\":\"ps\",\"index\":1}}" },
      .error = "TF_CONFIG: 1 is not a valid task_id for task_type ps in the cluster: it has 1 of them (0 to 0)" },
    { .env = { .tf_config = "{\"cluster\":{\"chief\":[\"c:1\"],\"ps\":[\"p:1\"]}," TASK ",\"workers\":-1}" },
      .error = "TF_CONFIG: workers: must be 0 to 100000" },
    { .env = { .tf_config = "{\"cluster\":{\"worker\":[\"a:1\"]},\"task\":{\"type\":\"ps\",\"index\":0}}" },
      .error = "TF_CONFIG: ps is not a valid task_type in the cluster: it has no ps" },
    { .env = { .tf_config = "{\"task\":{\"type\":\"ps\",\"index\":0}}" },
      .error = "TF_CONFIG: task.type: If \"cluster\" is not set in TF_CONFIG, task type must be worker" },
    { .env = { .tf_config = "{\"task\":{\"type\":\"worker\",\"index\":1}}" },
      .error = "TF_CONFIG: task.index: If \"cluster\" is not set in TF_CONFIG, task index must be 0" },
    { .env = { .tf_config = "{\"cluster\":{\"wroker\":[\"a:1\"]}," TASK "}" },
      .error = "TF_CONFIG: cluster: role 'wroker' is not known; did you mean 'worker'?" },
    { .env = { .tf_config = "{\"cluster\":{\"worker\":\"a:1\"}," TASK "}" },
      .error = "TF_CONFIG: cluster.worker: must be a list of \"host:port\", not a string" },
    { .env = { .tf_config = "{\"cluster\":{\"worker\":[\"a:1\",7]}," TASK "}" },
      .error = "TF_CONFIG: cluster.worker[1]: must be a string, not 7" },
    { .env = { .tf_config = "{\"cluster\":{\"worker\":[\"a\"]}," TASK "}" },
      .error = "TF_CONFIG: cluster.worker[0]: 'a' has no port; it must be host:port, such as localhost:2222" },
    { .env = { .tf_config = "{\"cluster\":{\"worker\":{\"one\":\"a:1\"}}," TASK "}" },
      .error = "TF_CONFIG: cluster.worker: 'one' is not a valid task index" },
    { .env = { .tf_config = "{\"cluster\":{\"worker\":{\"0\":\"a:1\",\"00\":\"b:1\"}}," TASK "}" },
      .error = "TF_CONFIG: cluster.worker: task index 0 is given twice" },
    { .env = { .tf_config = "{\"cluster\":{\"worker\":{\"1\":\"a:1\"},\"ps\":[\"p:1\"]}," TASK "}" },
      .error = "TF_CONFIG: 0 is not a valid task_id for task_type worker in the cluster: it has no address" },
    { .env = { .tf_config = "{\"cluster\":{\"chief\":[\"a:1\"],\"master\":[\"b:1\"],\"worker\":[\"w:1\"]}," TASK "}" },
      .error = "TF_CONFIG: cluster: chief and master are the same role; give one of them" },
    { .env = { .tf_config = "{\"cluster\":{\"chief\":[\"a:1\",\"b:1\"],\"worker\":[\"w:1\"]}," TASK "}" },
      .error = "TF_CONFIG: The \"cluster\" must have only one \"chief\" node, not 2" },
    { .env = { .tf_config = "{\"cluster\":{\"ps\":[\"a:1\"],\"worker\":[\"a:1\"]}," TASK "}" },
      .error = "TF_CONFIG: ps-0 and worker-0 have the same address a:1" },
    { .env = { .tf_config = "{\"cluster\":{\"worker\":[\"a:1\"]},\"task\":{\"type\":\"Worker\",\"index\":0}}" },
      .error = "TF_CONFIG: task.type: role 'Worker' is not known; did you mean 'worker'?" },
};
START_TEST(refuses)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(cluster) c = { .configured = false };
    size_t n = strlen(BAD[_i].error);

    ck_assert_int_eq(cluster_resolve(&BAD[_i].flags, &BAD[_i].env, &c, &e), -1);
    ck_assert_int_eq(err_exit_code(&e), 2);
    if (str_ends(BAD[_i].error, ": ")) /* jansson's message ends it */
        ck_assert_msg(strncmp(e.msg, BAD[_i].error, n) == 0, "%s", e.msg);
    else
        ck_assert_str_eq(e.msg, BAD[_i].error);
}
END_TEST

START_TEST(the_environment_is_read)
{
    setenv("JOB_NAME", "ps", 1);
    setenv("CHIEF_HOST", "c:1", 1);
    unsetenv("PS_HOSTS");
    struct cluster_input env = cluster_env();
    ck_assert_str_eq(env.job_name, "ps");
    ck_assert_str_eq(env.chief_host, "c:1");
    ck_assert_ptr_null(env.ps_hosts);
    unsetenv("JOB_NAME");
    unsetenv("CHIEF_HOST");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cluster");
    TCase *t = tcase_create("cluster");
    tcase_add_test(t, tf_config_has_the_training_operators_bytes);
    tcase_add_test(t, workers_that_are_not_listed_are_counted);
    tcase_add_test(t, roles_without_replicas_are_left_out);
    tcase_add_test(t, a_sparse_cluster_is_written_as_it_was_read);
    tcase_add_test(t, a_worker_without_ps_knows_itself_and_the_leader);
    tcase_add_test(t, a_chief_that_is_called_master_is_written_as_it_was_read);
    tcase_add_loop_test(t, with_dynamic_workers_a_task_knows_itself_and_the_ps, 0, COUNT_OF(SPARSE));
    tcase_add_loop_test(t, accepts, 0, (int)COUNT_OF(GOOD));
    tcase_add_loop_test(t, refuses, 0, (int)COUNT_OF(BAD));
    tcase_add_test(t, the_environment_is_read);
    suite_add_tcase(s, t);
    return s;
}
