/* Finds free TCP ports by binding them. The sockets are closed again, so a port can still be taken; the range is
 * outside the kernel's ephemeral ports to make that unlikely. */
#include "ports.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

enum { PORT_FIRST = 15000, PORT_LAST = 32767 };

static int reserve(int port)
{
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&any, sizeof(any)) < 0)
        return -1;
    return TAKE_FD(fd);
}

int ports_find(size_t n, uint64_t seed, int *ret, struct err *e)
{
    const uint64_t range = PORT_LAST - PORT_FIRST + 1;
    auto_free int *held = xcalloc(n, sizeof(held[0]));
    size_t found = 0;

    for (uint64_t i = 0; i < range && found < n; i++) {
        int port = (int)(PORT_FIRST + (seed % range + i) % range);
        held[found] = reserve(port);
        if (held[found] >= 0)
            ret[found++] = port;
    }
    for (size_t i = 0; i < found; i++)
        fd_close(held[i]);
    if (found < n)
        return err_set(e, ERR_IO, "%zu free ports are needed, %zu found between %d and %d", n, found, PORT_FIRST,
                       PORT_LAST);
    return 0;
}
