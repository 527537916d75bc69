/* accept4() of the whole program, in place of the C library's.
 *
 * A gRPC server of this release stops listening, permanently, when accept4() fails because no descriptor is free
 * (CVE-2023-4785). So accept4() does not fail then: it closes the waiting connections, with a descriptor that is
 * reserved for that, and reports that there are none. Connections that arrive later, when descriptors are free
 * again, are served. Each new connection is guarded (connection_guard.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "rpc/accept.h"
#include "rpc/connection_guard.h"

static atomic_int spare = -1;

void accept_keep_spare(void)
{
    int none = -1, fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && !atomic_compare_exchange_strong(&spare, &none, fd))
        close(fd);
}

static int accept_now(int fd, struct sockaddr *from, socklen_t *size, int flags)
{
    return (int)syscall(SYS_accept4, fd, from, size, flags);
}

/* False: no connection waits, or another thread took the descriptor. */
static bool turn_away(int fd)
{
    accept_keep_spare();
    int own = atomic_exchange(&spare, -1);
    if (own < 0)
        return false;
    close(own);
    int got = accept_now(fd, NULL, NULL, SOCK_CLOEXEC);
    if (got >= 0)
        close(got);
    accept_keep_spare();
    return got >= 0;
}

static bool is_exhausted(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* As <sys/socket.h> declares it. */
__attribute__((visibility("default"))) int accept4(int fd, __SOCKADDR_ARG addr, socklen_t *restrict addr_len, int flags)
{
    for (;;) {
        int got = accept_now(fd, addr.__sockaddr__, addr_len, flags);
        if (got >= 0 && !connection_guard_accept(got)) {
            close(got);
            continue;
        }
        if (got >= 0 || !is_exhausted(errno))
            return got;
        if (turn_away(fd))
            continue;
        clock_sleep_ms(1); /* a caller that retries at once does no harm */
        errno = ECONNABORTED;
        return -1;
    }
}
