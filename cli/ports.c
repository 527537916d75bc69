/* Reserves TCP ports. A socket that is bound and never listens keeps its port: a bind without SO_REUSEADDR fails on it,
 * which is how another launcher tries it, while a server with SO_REUSEADDR can listen there (socket(7), ip(7)). The
 * search is outside the kernel's ephemeral ports. */
#include "ports.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

enum { PORT_FIRST = 15000, PORT_LAST = 32767 };

/* A socket that holds the port, or -1: another process has it. SO_REUSEADDR is set once the port is bound. */
static int hold(int port)
{
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    if (fd < 0 || bind(fd, (const struct sockaddr *)&any, sizeof(any)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
        return -1;
    return TAKE_FD(fd);
}

void ports_fini(struct ports *p)
{
    for (size_t i = 0; i < p->n; i++)
        fd_close(p->held[i]);
    free(p->number);
    free(p->held);
    *p = (struct ports){ 0 };
}

int ports_reserve(struct ports *p, size_t n, uint64_t seed, struct err *e)
{
    const uint64_t range = PORT_LAST - PORT_FIRST + 1;
    p->number = xcalloc(n, sizeof(p->number[0]));
    p->held = xcalloc(n, sizeof(p->held[0]));

    for (uint64_t i = 0; i < range && p->n < n; i++) {
        int port = (int)(PORT_FIRST + (seed % range + i) % range);
        int fd = hold(port);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE))
            return err_errno(e, ERR_IO, "%zu ports for the replicas", n);
        if (fd < 0)
            continue;
        p->number[p->n] = port;
        p->held[p->n++] = fd;
    }
    if (p->n < n)
        return err_set(e, ERR_IO, "%zu free ports are needed, %zu found between %d and %d", n, p->n, PORT_FIRST,
                       PORT_LAST);
    return 0;
}
