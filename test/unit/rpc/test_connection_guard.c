/* Real connections: accept4() and recvmsg() are the program's own, as gRPC calls them. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "check_main.h"
#include "net/address.h"
#include "rpc/accept.h"
#include "rpc/connection_guard.h"
#include "rpc/refusal_log.h"

static const char PREFACE[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
static const char RESET[] = "\0\0\4\3\0\0\0\0\1\0\0\0\x08";

struct pair { /* of sockets; -1: closed */
    int listening, client, accepted;
    uint16_t port;
};

static int connect_to(uint16_t port)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static void pair_open(struct pair *p)
{
    struct err e;
    rpc_log_refusal_reset();
    accept_keep_spare(); /* links accept4() of accept.c also where a sanitizer has one */
    ck_ok_e(address_listen("127.0.0.1:0", &p->listening, &p->port, &e));
    p->client = connect_to(p->port);
    p->accepted = accept4(p->listening, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(p->accepted, 0);
}

static void pair_fini(struct pair *p)
{
    close(p->listening);
    close(p->client);
    if (p->accepted >= 0)
        close(p->accepted);
}
DEFINE_AUTO_FINI(pair, pair_fini);

static void send_resets(int fd, bool preface, int n)
{
    AUTO_FINI(buf) b = BUF_INIT;
    if (preface)
        buf_str(&b, PREFACE);
    for (int i = 0; i < n; i++)
        buf_add(&b, RESET, sizeof(RESET) - 1);
    ck_assert_int_eq(write(fd, b.data, b.len), (ssize_t)b.len);
}

/* Reads until so many bytes have come, or it fails. */
static ssize_t receive(int fd, size_t wanted)
{
    static char bytes[2][4096];
    struct iovec parts[] = { { bytes[0], sizeof(bytes[0]) }, { bytes[1], sizeof(bytes[1]) } };
    size_t got = 0;
    while (got < wanted) {
        struct msghdr m = { .msg_iov = parts, .msg_iovlen = 2 };
        ssize_t n = recvmsg(fd, &m, 0);
        if (n <= 0)
            return n;
        got += (size_t)n;
    }
    return (ssize_t)got;
}
#define RESETS(n) ((n) * (sizeof(RESET) - 1))

START_TEST(a_connection_that_floods_ends)
{
    AUTO_FINI(pair) p;
    pair_open(&p);
    send_resets(p.client, true, 201);
    ck_assert_int_eq(receive(p.accepted, sizeof(PREFACE) - 1 + RESETS(201)), -1);
    ck_assert_int_eq(errno, ECONNRESET);
}
END_TEST

START_TEST(others_go_on)
{
    AUTO_FINI(pair) p;
    pair_open(&p);
    AUTO_FINI(pair) other;
    pair_open(&other);
    send_resets(p.client, true, 201);
    send_resets(other.client, true, 100);
    ck_assert_int_eq(receive(p.accepted, sizeof(PREFACE) - 1 + RESETS(201)), -1);
    ck_assert_int_eq(receive(other.accepted, sizeof(PREFACE) - 1 + RESETS(100)),
                     (ssize_t)(sizeof(PREFACE) - 1 + RESETS(100)));
}
END_TEST

/* The next connection with the same descriptor is metered from its beginning. */
START_TEST(a_descriptor_is_used_again)
{
    AUTO_FINI(pair) p;
    pair_open(&p);
    send_resets(p.client, true, 150);
    ck_assert_int_gt(receive(p.accepted, sizeof(PREFACE) - 1 + RESETS(150)), 0);
    int before = p.accepted, next = connect_to(p.port);
    close(p.accepted);
    p.accepted = accept4(p.listening, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_eq(p.accepted, before);
    send_resets(next, true, 150);
    ck_assert_int_gt(receive(p.accepted, sizeof(PREFACE) - 1 + RESETS(150)), 0);
    send_resets(next, false, 201);
    ck_assert_int_eq(receive(p.accepted, RESETS(201)), -1);
    close(next);
}
END_TEST

/* What a server sends to a client is not metered, even if the client's descriptor was one of the server before. */
START_TEST(a_client_is_not_guarded)
{
    AUTO_FINI(pair) p;
    pair_open(&p);
    send_resets(p.client, true, 150);
    ck_assert_int_gt(receive(p.accepted, sizeof(PREFACE) - 1 + RESETS(150)), 0);
    int before = p.accepted, client = dup(p.client);
    ck_assert_int_ge(client, 0);
    ck_assert_int_eq(dup2(client, before), before); /* the descriptor is a client's now; its connection is closed */
    close(client);
    p.accepted = -1;
    AUTO_FINI(pair) server;
    pair_open(&server);
    int mine = dup2(server.client, before);
    ck_assert_int_eq(mine, before);
    send_resets(server.accepted, false, 300);
    ck_assert_int_eq(receive(mine, RESETS(300)), (ssize_t)RESETS(300));
    close(mine);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("connection_guard");
    TCase *t = tcase_create("all");
    tcase_add_test(t, a_connection_that_floods_ends);
    tcase_add_test(t, others_go_on);
    tcase_add_test(t, a_descriptor_is_used_again);
    tcase_add_test(t, a_client_is_not_guarded);
    suite_add_tcase(s, t);
    return s;
}
