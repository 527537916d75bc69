/* Polls of a leader's page: a controller with a scripted API server, and a real leader at an address that only this
 * process has. */
#include "operator/controller_case.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "build/pod_ports.h"
#include "identity/tls_dir.h"
#include "net/http_server.h"
#include "temp_folder.h"

#define JOB_WATCH "*/trainjobs[?]watch=true*"

struct poll_case {
    struct world w;
    struct http_server *leader;
    char folder[64], ip[32];
    const char *replicas; /* spec.replicaSpecs and what follows it, or "" */
    int port;             /* of the leader; 0: as usual */
    atomic_int asked;
};

static void poll_case_init(struct poll_case *c, bool insecure)
{
    unsigned id = (unsigned)getpid(); /* of loopback addresses, each process has one of its own */
    *c = (struct poll_case){ .replicas = "" };
    world_init(&c->w);
    c->w.progress_ms = 100;
    issue(&c->w, insecure);
    begin(&c->w, &KIND_TRAINJOB);
    strcpy(c->folder, "/tmp/trainyard-poll.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(c->folder));
    str_fmt(c->ip, sizeof(c->ip), "127.%u.%u.%u", id >> 16 & 127, id >> 8 & 255, id & 255);
}

static void poll_case_fini(struct poll_case *c)
{
    end(&c->w);
    http_server_free(c->leader);
    world_fini(&c->w);
    remove_tree(c->folder);
}
DEFINE_AUTO_FINI(poll_case, poll_case_fini);

static int progress(void *user, struct buf *body, const char **content_type UNUSED)
{
    struct poll_case *c = user;
    atomic_fetch_add(&c->asked, 1);
    buf_str(body, "{\"step\": 7}");
    return 200;
}

/* A process at the address of the leader's pod, which has this certificate; role -1: it speaks plain HTTP. */
static void start_leader(struct poll_case *c, int role, int index)
{
    struct err e = { .code = ERR_NONE };
    AUTO(ca) *ca = NULL;
    AUTO_FINI(leaf) leaf = { 0 };
    unsigned char master[CA_MASTER_SIZE];
    const struct http_route route = { "/progress", progress, c, role >= 0 ? IDENTITY_BIT(IDENTITY_OPERATOR) : 0 };
    auto_free char *dir = path_join(c->folder, "tls"), *address = xasprintf("%s:%d", c->ip,
                                                                            c->port > 0 ? c->port
                                                                            : role >= 0 ? 8443
                                                                                        : 8080);

    memset(master, 'A', sizeof(master));
    ck_ok_e(ca_derive(master, "a", "job-1", (int64_t)clock_wall(), &ca, &e));
    if (role >= 0) {
        ck_ok_e(ca_issue(ca, role, index, (int64_t)clock_wall(), 3600, &leaf, &e));
        ck_ok_e(tls_dir_write(dir, ca_pem(ca), &leaf, &e));
    }
    ck_ok_e(http_server_start(address, role >= 0 ? dir : NULL, &route, 1, &c->leader, &e));
}

/* A job of one worker, which leads, and its running pod. */
static void start_job(struct poll_case *c)
{
    auto_free char *job = xasprintf(
        "{\"apiVersion\":\"trainyard.dev/"
        "v1alpha1\",\"kind\":\"TrainJob\",\"metadata\":{\"namespace\":\"a\",\"name\":\"j\","
        "\"uid\":\"job-1\",\"resourceVersion\":\"2\",\"generation\":1,\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"
        "\"spec\":{%s\"model\":{\"inputShape\":[2],\"layers\":[{\"Dense\":{\"units\":1}}]},\"compile\":{\"optimizer\":"
        "\"SGD\",\"loss\":\"mse\"},\"data\":{\"train\":{\"format\":\"npy\",\"features\":\"x.npy\",\"labels\":\"y."
        "npy\"}},\"fit\":{\"epochs\":1,"
        "\"batchSize\":1}}}",
        c->replicas);
    push(&c->w, JOB_WATCH, "ADDED", job);
    wait_for(&c->w, "POST", POD_POSTS, 1);
    auto_free char *pod = xasprintf(
        "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\",\"name\":\"j-worker-0\",\"uid\":\"p-0\","
        "\"resourceVersion\":"
        "\"500\",\"labels\":{\"trainyard.dev/operator-name\":\"trainjob-controller\",\"trainyard.dev/job-name\":\"j\","
        "\"trainyard.dev/replica-type\":\"worker\",\"trainyard.dev/"
        "replica-index\":\"0\"},\"ownerReferences\":[{\"uid\":"
        "\"job-1\",\"controller\":true}]},\"status\":{\"phase\":\"Running\",\"podIP\":\"%s\",\"containerStatuses\":[{"
        "\"name\":\"trainer\",\"ready\":true,\"state\":{\"running\":{}}}]}}",
        c->ip);
    push(&c->w, POD_WATCH, "ADDED", pod);
}

static const struct cache_entry *entry_of(const struct poll_case *c)
{
    return cache_find(&c->w.controller->env.cache, "a/j");
}

static bool has_progress(void *user)
{
    return entry_of(user)->progress.present;
}

static bool was_asked_twice(void *user)
{
    struct poll_case *c = user;
    return atomic_load(&c->asked) >= 2;
}

START_TEST(the_leader_shows_who_it_is)
{
    AUTO_FINI(poll_case) c;
    poll_case_init(&c, false);
    start_leader(&c, ROLE_WORKER, 0);
    start_job(&c);
    fake_until(c.w.loop, has_progress, &c);
    ck_assert_int_eq(entry_of(&c)->progress.step, 7);
    fake_until(c.w.loop, was_asked_twice, &c);
    ck_assert_uint_eq(http_server_refused(c.leader), 0);
}
END_TEST

/* Another replica at the leader's address: its answers are not used. */
START_TEST(another_replica_is_not_believed)
{
    AUTO_FINI(poll_case) c;
    poll_case_init(&c, false);
    start_leader(&c, ROLE_WORKER, 1);
    start_job(&c);
    fake_until(c.w.loop, was_asked_twice, &c);
    ck_assert(!entry_of(&c)->progress.present);
}
END_TEST

START_TEST(a_job_without_certificates_is_polled_by_plain_http)
{
    AUTO_FINI(poll_case) c;
    poll_case_init(&c, true);
    start_leader(&c, -1, 0);
    start_job(&c);
    fake_until(c.w.loop, has_progress, &c);
    ck_assert(entry_of(&c)->status.identity.insecure);
}
END_TEST

/* On its node's network the leader has ports of its own. */
START_TEST(a_leader_on_its_nodes_network_is_polled_there)
{
    struct job_spec v = { .uid = (char[]){ "job-1" }, .roles[ROLE_WORKER].host_ports = true };
    AUTO_FINI(poll_case) c;
    poll_case_init(&c, false);
    c.replicas = "\"replicaSpecs\":{\"Worker\":{\"template\":{\"spec\":{\"hostNetwork\":true}}}},";
    c.port = pod_ports_of(&v, ROLE_WORKER, 0).https;
    start_leader(&c, ROLE_WORKER, 0);
    start_job(&c);
    fake_until(c.w.loop, has_progress, &c);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("progress_poller");
    TCase *t = tcase_create("progress_poller");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, the_leader_shows_who_it_is);
    tcase_add_test(t, another_replica_is_not_believed);
    tcase_add_test(t, a_job_without_certificates_is_polled_by_plain_http);
    tcase_add_test(t, a_leader_on_its_nodes_network_is_polled_there);
    suite_add_tcase(s, t);
    return s;
}
