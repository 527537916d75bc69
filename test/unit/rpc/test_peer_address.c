/* The peers of real connections. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "check_main.h"
#include "net/address.h"
#include "rpc/peer_address.h"

struct pair { /* of sockets */
    int listening, client, accepted;
};

static void pair_fini(struct pair *p)
{
    close(p->listening);
    close(p->client);
    close(p->accepted);
}
DEFINE_AUTO_FINI(pair, pair_fini);

/* A connection of that family on loopback. False: this machine has no IPv6. */
static bool pair_open(struct pair *p, const char *listen_at, sa_family_t family)
{
    uint16_t port;
    struct err e;
    ck_ok_e(address_listen(listen_at, &p->listening, &port, &e));
    const struct sockaddr_in v4 = { .sin_family = AF_INET,
                                    .sin_port = htons(port),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_loopback };
    bool is_v4 = family == AF_INET;
    p->client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(p->client, is_v4 ? (const void *)&v4 : (const void *)&v6, is_v4 ? sizeof(v4) : sizeof(v6)) < 0) {
        ck_assert(!is_v4);
        return false;
    }
    p->accepted = accept(p->listening, NULL, NULL);
    ck_assert_int_ge(p->accepted, 0);
    return true;
}

static void want_name(const struct peer_address *a, const char *wanted)
{
    char name[PEER_NAME_SIZE];
    peer_address_name(a, name);
    ck_assert_str_eq(name, wanted);
}

START_TEST(peers_of_both_families)
{
    static const struct {
        const char *listen_at;
        sa_family_t family;
        const char *name;
    } CASES[] = { { "127.0.0.1:0", AF_INET, "127.0.0.1" },
                  { "[::]:0", AF_INET, "127.0.0.1" },
                  { "[::]:0", AF_INET6, "::1" } };
    AUTO_FINI(pair) l = { -1, -1, -1 };
    if (!pair_open(&l, CASES[_i].listen_at, CASES[_i].family))
        return;
    const struct peer_address client = peer_address_of(l.accepted), server = peer_address_of(l.client);
    ck_assert_int_eq(client.family, CASES[_i].family);
    ck_assert_int_ne(client.port, 0);
    want_name(&client, CASES[_i].name);
    want_name(&server, CASES[_i].name);
    const struct peer_address again = peer_address_of(l.accepted);
    ck_assert_mem_eq(&client, &again, sizeof(client));
    ck_assert_mem_ne(&client, &server, sizeof(client));
}
END_TEST

START_TEST(no_address)
{
    static const struct peer_address none = { 0 };
    int local[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, local), 0);
    const struct peer_address a = peer_address_of(local[0]), gone = peer_address_of(-1);
    ck_assert_mem_eq(&a, &none, sizeof(a));
    ck_assert_mem_eq(&gone, &none, sizeof(gone));
    want_name(&none, "");
    close(local[0]);
    close(local[1]);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("peer_address");
    TCase *t = tcase_create("all");
    tcase_add_loop_test(t, peers_of_both_families, 0, 3);
    tcase_add_test(t, no_address);
    suite_add_tcase(s, t);
    return s;
}
