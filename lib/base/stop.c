/* Signal handlers only count and write one byte to a pipe, because little else is allowed in them. SIGHUP stays
 * ignored if it was (nohup). */
#include "base/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int count;
static int pipe_fds[2] = { -1, -1 };

static void on_signal(int signal __attribute__((unused)))
{
    int saved = errno;
    atomic_fetch_add(&count, 1);
    if (pipe_fds[1] >= 0) { /* non-blocking: a full pipe is readable anyway */
        ssize_t ignored __attribute__((unused)) = write(pipe_fds[1], "", 1);
    }
    errno = saved;
}

int stop_install(struct err *e)
{
    if (pipe_fds[0] < 0 && pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_errno(e, ERR_IO, "pipe for signals");

    struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    sigemptyset(&act.sa_mask);
    sigemptyset(&ignore.sa_mask);
    struct sigaction hangup;
    if (sigaction(SIGTERM, &act, NULL) < 0 || sigaction(SIGINT, &act, NULL) < 0 ||
        sigaction(SIGPIPE, &ignore, NULL) < 0 || sigaction(SIGXFSZ, &ignore, NULL) < 0 ||
        sigaction(SIGHUP, NULL, &hangup) < 0)
        return err_errno(e, ERR_INTERNAL, "sigaction");
    if (hangup.sa_handler != SIG_IGN && sigaction(SIGHUP, &act, NULL) < 0)
        return err_errno(e, ERR_INTERNAL, "sigaction");
    return 0;
}

int stop_count(void)
{
    return atomic_load(&count);
}

int stop_fd(void)
{
    return pipe_fds[0];
}

void stop_request(void)
{
    on_signal(SIGTERM);
}
