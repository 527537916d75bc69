/* Ports of pods in the network of their node. */
#include "check_main.h"

#include "build/pod_ports.h"

enum { REPLICAS = 40, PORTS_MAX = 3 * (2 * REPLICAS + 2) };

static struct job_spec job_on_the_node(const char *uid)
{
    struct job_spec v = { .uid = unconst(uid) };
    for (int r = 0; r < ROLE_COUNT; r++)
        v.roles[r] = (struct role_spec){ .present = true, .replicas = 1, .port = 2222, .host_ports = true };
    v.roles[ROLE_PS].replicas = v.roles[ROLE_WORKER].replicas = REPLICAS;
    return v;
}

START_TEST(in_the_network_of_pods_all_replicas_have_the_same_ports)
{
    struct job_spec v = job_on_the_node("uid-1");
    v.roles[ROLE_PS].host_ports = false;
    const struct pod_ports first = pod_ports_of(&v, ROLE_PS, 0), last = pod_ports_of(&v, ROLE_PS, REPLICAS - 1);
    ck_assert(first.grpc == 2222 && first.http == HTTP_PORT && first.https == HTTPS_PORT);
    ck_assert(last.grpc == 2222 && last.http == HTTP_PORT && last.https == HTTPS_PORT);
}
END_TEST

static void add_ports(const struct job_spec *v, enum role r, int ports[PORTS_MAX], size_t *n)
{
    for (int i = 0; i < v->roles[r].replicas; i++) {
        const struct pod_ports p = pod_ports_of(v, r, i);
        ports[(*n)++] = p.grpc;
        ports[(*n)++] = p.http;
        ports[(*n)++] = p.https;
    }
}

/* 10250 is the kubelet's, services begin at 30000. */
START_TEST(on_a_node_no_two_replicas_of_a_job_share_a_port)
{
    const struct job_spec v = job_on_the_node("0c5f9a9e-4f6c-4f0e-9d0a-6d1f5a6b7c8d");
    int ports[PORTS_MAX];
    size_t n = 0;
    for (int r = 0; r < ROLE_COUNT; r++)
        add_ports(&v, (enum role)r, ports, &n);
    ck_assert_uint_eq(n, PORTS_MAX);
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(ports[i] >= 20000 && ports[i] < 30000, "port %d", ports[i]);
        for (size_t k = 0; k < i; k++)
            ck_assert_msg(ports[i] != ports[k], "port %d twice", ports[i]);
    }
}
END_TEST

START_TEST(ports_depend_on_the_job_and_not_on_its_size)
{
    struct job_spec small = job_on_the_node("uid-1"), large = job_on_the_node("uid-1"),
                    other = job_on_the_node("uid-2");
    small.roles[ROLE_WORKER].replicas = 1;
    ck_assert_int_eq(pod_ports_of(&small, ROLE_WORKER, 0).grpc, pod_ports_of(&large, ROLE_WORKER, 0).grpc);
    ck_assert_int_ne(pod_ports_of(&other, ROLE_WORKER, 0).grpc, pod_ports_of(&large, ROLE_WORKER, 0).grpc);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("pod_ports");
    TCase *t = tcase_create("pod_ports");
    tcase_add_test(t, in_the_network_of_pods_all_replicas_have_the_same_ports);
    tcase_add_test(t, on_a_node_no_two_replicas_of_a_job_share_a_port);
    tcase_add_test(t, ports_depend_on_the_job_and_not_on_its_size);
    suite_add_tcase(s, t);
    return s;
}
