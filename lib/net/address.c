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
    if (colon == NULL || colon == text || str_i64(colon + 1, 0, UINT16_MAX, &port, NULL) < 0)
        return err_set(e, ERR_INPUT, "'%s' is no address: it must be host:port, as in 0.0.0.0:2222", text);
    size_t brackets = text[0] == '[' && colon[-1] == ']';
    ret->host = xstrndup(text + brackets, (size_t)(colon - text) - 2 * brackets);
    ret->port = (uint16_t)port;
    return 0;
}

/* First address of the name; free it with freeaddrinfo(). */
static int resolve(const char *text, struct addrinfo **ret, struct err *e)
{
    AUTO_FINI(address) a = { 0 };
    if (address_parse(text, &a, e) < 0)
        return -1;
    char port[8];
    snprintf(port, sizeof(port), "%u", (unsigned)a.port);
    struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM };
    int rc = getaddrinfo(a.host, port, &hints, ret);
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

/* SO_REUSEADDR: what only lingers from a process that ended is free; a living listener still is not. */
static int open_bound(const char *text, int *ret_fd, struct err *e)
{
    auto_addrinfo *where = NULL;
    if (resolve(text, &where, e) < 0)
        return -1;
    auto_close int fd = socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
        return err_errno(e, ERR_IO, "cannot make a socket");
    if (bind(fd, where->ai_addr, where->ai_addrlen) < 0 || listen(fd, 64) < 0) {
        if (errno == EADDRINUSE)
            return err_set(e, ERR_INPUT, "port %s is in use: another process listens on %s", strrchr(text, ':') + 1,
                           text);
        return err_errno(e, ERR_INPUT, "cannot listen on '%s'", text);
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int bound_port(int fd, uint16_t *ret, struct err *e)
{
    struct sockaddr_storage where;
    socklen_t n = sizeof(where);
    if (getsockname(fd, (struct sockaddr *)&where, &n) < 0)
        return err_errno(e, ERR_IO, "getsockname");
    *ret = ntohs(where.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&where)->sin6_port :
                                               ((struct sockaddr_in *)&where)->sin_port);
    return 0;
}

int address_listen(const char *text, int *ret_fd, uint16_t *ret_port, struct err *e)
{
    auto_close int fd = -1;
    uint16_t port = 0;
    if (open_bound(text, &fd, e) < 0 || bound_port(fd, &port, e) < 0)
        return -1;
    *ret_port = port;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int address_check(const char *text, struct err *e)
{
    auto_close int fd = -1;
    return open_bound(text, &fd, e);
}
