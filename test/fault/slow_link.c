/* slow_link - a link of limited rate before a server, for tests: slow_link HOST:PORT FILE [RECORD]
 *
 * Listens on 127.0.0.1 and forwards bytes between its clients and HOST:PORT (an IPv4 address). Each direction has one
 * rate for all connections together, as a link has. FILE holds the rate in bytes a second; it is read again once a
 * second, so that a test can change it. RECORD gets all bytes of both directions, in pieces as they came. Prints the
 * port it listens on. Ends with its parent. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

/* The buffers are small: a link does not hold megabytes. */
enum { CONNECTIONS = 64, CHUNK = 16 << 10, SOCKET_BUFFER = 64 << 10 };
enum { TURN_MS = 10, BURST_MS = 50, RATE_EVERY_MS = 1000 };

struct flow { /* one direction of a connection */
    int from, to;
    bool ended, told;
    size_t len, at;
    char bytes[CHUNK];
};
struct direction {
    struct flow *flow[CONNECTIONS];
    double allowance; /* bytes that may pass now */
    size_t turn;      /* the flow that is tried first */
};
struct link {
    int listener;
    struct sockaddr_in server;
    const char *file;
    int record; /* descriptor; -1: none */
    double rate;
    struct direction way[2]; /* to the server, and back; flows of one connection have the same index */
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void set_up(int fd)
{
    int size = SOCKET_BUFFER, one = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        die("a socket");
}

static void read_rate(struct link *l)
{
    double rate;
    FILE *f = fopen(l->file, "re");
    if (f == NULL)
        die(l->file);
    if (fscanf(f, "%lf", &rate) == 1 && rate >= 1)
        l->rate = rate;
    fclose(f);
}

static void close_both(struct link *l, size_t i)
{
    struct flow *there = l->way[0].flow[i];
    close(there->from);
    close(there->to);
    for (int w = 0; w < 2; w++)
        free(TAKE(l->way[w].flow[i]));
}

static void take_connection(struct link *l)
{
    size_t i = 0;
    int client = accept(l->listener, NULL, NULL);
    if (client < 0)
        return;
    while (i < CONNECTIONS && l->way[0].flow[i] != NULL)
        i++;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0)
        die("socket");
    if (i == CONNECTIONS || connect(server, (struct sockaddr *)&l->server, sizeof(l->server)) < 0) {
        close(client);
        close(server);
        return;
    }
    set_up(client);
    set_up(server);
    for (int w = 0; w < 2; w++) {
        l->way[w].flow[i] = xcalloc(1, sizeof(struct flow));
        l->way[w].flow[i]->from = w == 0 ? client : server;
        l->way[w].flow[i]->to = w == 0 ? server : client;
    }
}

/* Reads when the flow is empty and bytes may pass, and writes what it holds. False: the connection is broken. */
static bool move(struct flow *f, double *allowance, int record)
{
    if (f->len == 0 && !f->ended && *allowance >= 1) {
        size_t most = *allowance < CHUNK ? (size_t)*allowance : CHUNK;
        ssize_t n = read(f->from, f->bytes, most);
        if (n < 0 && errno != EAGAIN)
            return false;
        f->ended = n == 0;
        f->len = n > 0 ? (size_t)n : 0;
        f->at = 0;
        if (record >= 0 && write(record, f->bytes, f->len) != (ssize_t)f->len)
            die("the record");
        *allowance -= (double)f->len;
    }
    if (f->at < f->len) {
        ssize_t n = send(f->to, f->bytes + f->at, f->len - f->at, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            return false;
        f->at += n > 0 ? (size_t)n : 0;
        if (f->at == f->len)
            f->at = f->len = 0;
    }
    if (f->ended && f->len == 0 && !f->told) {
        shutdown(f->to, SHUT_WR);
        f->told = true;
    }
    return true;
}

/* Every flow gets its turn until no more bytes move or may move. The flow after the last one that moved is next. */
static void move_all(struct link *l, struct direction *d)
{
    for (double before = -1; d->allowance >= 1 && d->allowance != before;) {
        size_t last = d->turn;
        before = d->allowance;
        for (size_t k = 0; k < CONNECTIONS; k++) {
            size_t i = (d->turn + k) % CONNECTIONS;
            if (d->flow[i] == NULL)
                continue;
            double had = d->allowance;
            bool whole = move(d->flow[i], &d->allowance, l->record);
            if (d->allowance < had)
                last = i;
            if (!whole || (l->way[0].flow[i]->told && l->way[1].flow[i]->told))
                close_both(l, i);
        }
        d->turn = last + 1;
    }
}

static void run(struct link *l)
{
    int64_t read_ms = 0, last_ns = clock_ns();
    for (;;) {
        struct pollfd p = { .fd = l->listener, .events = POLLIN };
        if (poll(&p, 1, TURN_MS) > 0)
            take_connection(l);
        if (clock_ms() - read_ms >= RATE_EVERY_MS) {
            read_rate(l);
            read_ms = clock_ms();
        }
        int64_t now_ns = clock_ns();
        for (int w = 0; w < 2; w++) {
            struct direction *d = &l->way[w];
            d->allowance = MIN(d->allowance + l->rate * (double)(now_ns - last_ns) / 1e9, l->rate * BURST_MS / 1e3);
            move_all(l, d);
        }
        last_ns = now_ns;
    }
}

static void listen_here(struct link *l)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(a);
    l->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->listener < 0 || bind(l->listener, (struct sockaddr *)&a, n) < 0 || listen(l->listener, CONNECTIONS) < 0 ||
        getsockname(l->listener, (struct sockaddr *)&a, &n) < 0)
        die("listening");
    printf("%d\n", ntohs(a.sin_port));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct link l;
    char host[32];
    int port;
    if (argc < 3 || argc > 4 || sscanf(argv[1], "%31[0-9.]:%d", host, &port) != 2 ||
        inet_pton(AF_INET, host, &l.server.sin_addr) != 1) {
        fprintf(stderr, "usage: slow_link HOST:PORT FILE [RECORD]\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    l.server.sin_family = AF_INET;
    l.server.sin_port = htons((uint16_t)port);
    l.file = argv[2];
    l.record = argc == 4 ? open(argv[3], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (argc == 4 && l.record < 0)
        die(argv[3]);
    read_rate(&l);
    listen_here(&l);
    run(&l);
}
