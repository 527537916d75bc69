/* recvmsg() of the whole program, in place of the C library's.
 *
 * gRPC reports a handshake that failed without the address of the peer. It does so in the thread that has just read
 * the peer's message, so each thread keeps the descriptor that it read last.
 *
 * A connection whose client floods this server is read as if the client had reset it (connection_guard.h). */
#include "rpc/last_read.h"

#include <errno.h>
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

int last_read(void)
{
    return last;
}
