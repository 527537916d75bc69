/* Preloaded: the HTTP request whose number HOLD_AT_REQUEST names (from 1, over all connections of the process) is held
 * before it is sent. The file HOLD_MARK is created then, and the calling thread waits until it is removed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { POLL_US = 10000 };

static void hold(const char *mark)
{
    int fd = open(mark, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        abort();
    close(fd);
    while (access(mark, F_OK) == 0)
        usleep(POLL_US);
}

int curl_multi_add_handle(void *multi, void *easy);

int curl_multi_add_handle(void *multi, void *easy)
{
    static atomic_int sent;
    int (*real)(void *, void *) = (int (*)(void *, void *))dlsym(RTLD_NEXT, "curl_multi_add_handle");
    const char *at = getenv("HOLD_AT_REQUEST"), *mark = getenv("HOLD_MARK");
    if (at != NULL && mark != NULL && atomic_fetch_add(&sent, 1) + 1 == atoi(at))
        hold(mark);
    return real(multi, easy);
}
