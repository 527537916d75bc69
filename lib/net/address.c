/* "host:port" texts, and listening sockets for them. A wildcard takes IPv6 and IPv4 where the kernel has both. */
#include "net/address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"

void address_fini(struct address *a)
{
    free(a->host);
    a->host = NULL;
}

int address_parse(const char *text, struct address *ret, struct err *e)
{
    const char *colon = strrchr(text, ':');
    int64_t port;
    if (colon == NULL || str_i64(colon + 1, 0, UINT16_MAX, &port, NULL) < 0)
        return err_set(e, ERR_INPUT, "'%s' is not an address: it must be host:port, such as localhost:2222 or :2222",
                       text);
    size_t brackets = text[0] == '[' && colon[-1] == ']';
    ret->host = xstrndup(text + brackets, (size_t)(colon - text) - 2 * brackets);
    ret->port = (uint16_t)port;
    return 0;
}

bool address_is_loopback(const char *host_port)
{
    return str_starts(host_port, "127.") || str_starts(host_port, "localhost:") || str_starts(host_port, "[::1]:");
}

void address_to_listen_on(const char *given, const char *own, int port, char *out, size_t n)
{
    if (given != NULL) {
        str_fmt(out, n, "%s", given);
        return;
    }
    const char *colon = strrchr(own, ':');
    const char *host = !address_is_loopback(own) ? "[::]" : str_starts(own, "[::1]") ? "[::1]" : "127.0.0.1";
    if (port > 0)
        str_fmt(out, n, "%s:%d", host, port);
    else
        str_fmt(out, n, "%s%s", host, colon != NULL ? colon : ":2222");
}

/* First address of the name; free it with freeaddrinfo(). */
static int resolve(const struct address *a, const char *text, struct addrinfo **ret, struct err *e)
{
    char port[8];
    snprintf(port, sizeof(port), "%u", (unsigned)a->port);
    struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM };
    int rc = getaddrinfo(a->host, port, &hints, ret);
    if (rc != 0)
        return err_set(e, ERR_INPUT, "address '%s': %s", text, gai_strerror(rc));
    return 0;
}

static void addrinfo_auto(struct addrinfo **p)
{
    if (*p != NULL)
        freeaddrinfo(*p);
}
#define auto_addrinfo __attribute__((cleanup(addrinfo_auto))) struct addrinfo

/* SO_REUSEADDR: an address left over from a process that ended is free; that of an active listener is not. */
static int open_bound(const struct sockaddr *where, socklen_t n, const char *text, int *ret_fd, struct err *e)
{
    auto_close int fd = socket(where->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1, zero = 0;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
        return err_errno(e, ERR_IO, "cannot make a socket for '%s'", text);
    /* With net.ipv6.bindv6only, [::] would not accept IPv4. */
    if (where->sa_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) < 0)
        return err_errno(e, ERR_IO, "cannot make a socket for '%s'", text);
    if (bind(fd, where, n) < 0 || listen(fd, 64) < 0) {
        if (errno == EADDRINUSE)
            return err_set(e, ERR_INPUT, "port %s is in use: another process listens on %s", strrchr(text, ':') + 1,
                           text);
        return err_errno(e, ERR_INPUT, "cannot listen on '%s'", text);
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* A kernel without IPv6 has no such sockets, or none of its addresses. */
static bool has_ipv6(void)
{
    auto_close int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_addr = in6addr_any };
    return fd >= 0 && bind(fd, (const struct sockaddr *)&any, sizeof(any)) == 0;
}

static int open_wildcard(uint16_t port, const char *text, int *ret_fd, struct err *e)
{
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = in6addr_any, .sin6_port = htons(port) };
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY), .sin_port = htons(port) };
    if (has_ipv6())
        return open_bound((const struct sockaddr *)&six, sizeof(six), text, ret_fd, e);
    return open_bound((const struct sockaddr *)&four, sizeof(four), text, ret_fd, e);
}

static int open_text(const char *text, int *ret_fd, struct err *e)
{
    AUTO_FINI(address) a = { 0 };
    auto_addrinfo *where = NULL;
    if (address_parse(text, &a, e) < 0)
        return -1;
    if (*a.host == '\0' || str_eq(a.host, "::"))
        return open_wildcard(a.port, text, ret_fd, e);
    if (resolve(&a, text, &where, e) < 0)
        return -1;
    return open_bound(where->ai_addr, where->ai_addrlen, text, ret_fd, e);
}

static int bound_port(int fd, uint16_t *ret, struct err *e)
{
    struct sockaddr_storage where;
    socklen_t n = sizeof(where);
    if (getsockname(fd, (struct sockaddr *)&where, &n) < 0)
        return err_errno(e, ERR_IO, "getsockname");
    *ret = ntohs(where.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&where)->sin6_port
                                             : ((struct sockaddr_in *)&where)->sin_port);
    return 0;
}

int address_listen(const char *text, int *ret_fd, uint16_t *ret_port, struct err *e)
{
    auto_close int fd = -1;
    uint16_t port = 0;
    if (open_text(text, &fd, e) < 0 || bound_port(fd, &port, e) < 0)
        return -1;
    *ret_port = port;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int address_check(const char *text, struct err *e)
{
    auto_close int fd = -1;
    return open_text(text, &fd, e);
}
