#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "net/address.h"
#include "net/http.h"

enum { ANSWER_MAX = 16 << 20 };

/* Reads until the other side closes (HTTP/1.0 without keep-alive). */
static int read_all(int fd, const char *address, int64_t deadline_ms, struct buf *out, struct err *e)
{
    char bytes[16 << 10];
    for (;;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int64_t left = deadline_ms - clock_ms();
        if (left <= 0 || poll(&p, 1, (int)MIN(left, INT32_MAX)) == 0)
            return err_set(e, ERR_TIMEOUT, "%s did not answer in time", address);
        ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return err_errno(e, ERR_LOST, "%s hung up", address);
        if (n > 0)
            buf_add(out, bytes, (size_t)n);
        if (out->len > ANSWER_MAX)
            return err_set(e, ERR_INPUT, "%s answers with more than 16 MiB", address);
    }
}

int http_get(const char *address, const char *path, int64_t timeout_ms, int *ret_status, struct buf *body, struct err *e)
{
    int64_t deadline_ms = clock_ms() + timeout_ms;
    auto_close int fd = -1;
    AUTO_FINI(buf) request = BUF_INIT;
    AUTO_FINI(buf) answer = BUF_INIT;
    if (address_connect(address, timeout_ms, &fd, e) < 0)
        return -1;
    buf_printf(&request, "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", path, address);
    if (send(fd, request.data, request.len, MSG_NOSIGNAL) != (ssize_t)request.len) /* far below a socket's buffer */
        return err_errno(e, ERR_LOST, "%s hung up", address);
    if (read_all(fd, address, deadline_ms, &answer, e) < 0)
        return -1;
    int status;
    const char *end = memmem(answer.data, answer.len, "\r\n\r\n", 4);
    if (end == NULL || sscanf(answer.data, "HTTP/1.%*1[01] %3d", &status) != 1)
        return err_set(e, ERR_INPUT, "%s does not speak HTTP", address);
    buf_add(body, end + 4, answer.len - (size_t)(end + 4 - answer.data));
    *ret_status = status;
    return 0;
}
