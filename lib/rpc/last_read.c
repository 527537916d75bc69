/* recvmsg() of the whole program, in place of the C library's.
 *
 * gRPC reports a handshake that failed without the address of the peer. It does so in the thread that has just read
 * the peer's message, so each thread keeps the descriptor that it read last.
 *
 * A connection whose client floods this server is read as if the client had reset it (connection_guard.h). */
#include "rpc/last_read.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rpc/connection_guard.h"

static _Thread_local int last = -1;

/* As <sys/socket.h> declares it. */
__attribute__((visibility("default"))) ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    last = fd;
    ssize_t n = syscall(SYS_recvmsg, fd, message, flags);
    if (n <= 0 || (flags & (MSG_ERRQUEUE | MSG_PEEK)) != 0 || connection_guard_read(fd, message, (size_t)n))
        return n;
    errno = ECONNRESET;
    return -1;
}

void peer_name(int fd, char out[PEER_NAME_SIZE])
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a;
    socklen_t n = sizeof(a);
    out[0] = '\0';
    if (fd < 0 || getpeername(fd, &a.any, &n) < 0)
        return;
    const void *host = a.any.sa_family == AF_INET ? (const void *)&a.v4.sin_addr : &a.v6.sin6_addr;
    if (a.any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a.v6.sin6_addr)) {
        host = &a.v6.sin6_addr.s6_addr[12];
        a.any.sa_family = AF_INET;
    }
    if ((a.any.sa_family != AF_INET && a.any.sa_family != AF_INET6) ||
        inet_ntop(a.any.sa_family, host, out, PEER_NAME_SIZE) == NULL)
        out[0] = '\0';
}

int last_read(void)
{
    return last;
}
