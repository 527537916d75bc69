/* Preloaded: kills a replica with SIGKILL, or holds one of its threads, at a given moment of its work.
 *
 * KILL_ROLE names its role (without it any process that has this library), KILL_MARK a file that is created before the
 * kill, so that only one process is killed. KILL_AT is a call and a text: "log TEXT" when a line of the log has it,
 * "publish TEXT" when a file is renamed whose new name or first bytes have it, after the call; "before-log" and
 * "before-publish": before the call. "before-gemm" and "before-join", without a text: before a matrix product, and
 * before a thread waits for the end of another one. "before-request N": before the process sends its N-th HTTP request
 * by libcurl, over all connections. HOLD_AT has the same values. The thread waits there, once in a process, until
 * KILL_MARK is removed, or written to: then no later process waits. The other threads continue.
 *
 * PACE_WHILE names a file: while it exists, each matrix product takes PACE_US microseconds more. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HEAD = 1024, POLL_US = 10000 };

static bool is_ours(void)
{
    char wanted[64];
    const char *task = getenv("TF_CONFIG"), *role = getenv("KILL_ROLE");
    if (role == NULL)
        return true;
    snprintf(wanted, sizeof(wanted), "\"type\":\"%s\"", role);
    return task != NULL && strstr(task, wanted) != NULL;
}

/* The text to wait for, if the variable names that call. */
static const char *wanted_of(const char *variable, const char *call)
{
    const char *at = getenv(variable);
    size_t n = strlen(call);
    if (at == NULL || strncmp(at, call, n) != 0 || !is_ours())
        return NULL;
    return at[n] == ' ' ? at + n + 1 : at[n] == '\0' ? "" : NULL;
}

static bool create_mark(const char *mark)
{
    int fd = mark != NULL ? open(mark, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666) : -1;
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void end_here(void)
{
    if (create_mark(getenv("KILL_MARK")))
        kill(getpid(), SIGKILL);
}

static void hold_here(void)
{
    static atomic_flag held = ATOMIC_FLAG_INIT;
    const char *mark = getenv("KILL_MARK");
    if (atomic_flag_test_and_set(&held) || !create_mark(mark))
        return;
    for (struct stat s; stat(mark, &s) == 0 && s.st_size == 0;)
        usleep(POLL_US);
}

static bool has_text(const char *wanted, const void *text, size_t n)
{
    return wanted != NULL && memmem(text, n, wanted, strlen(wanted)) != NULL;
}

static void meet_text(const char *call, const void *text, size_t n)
{
    if (has_text(wanted_of("KILL_AT", call), text, n))
        end_here();
    if (has_text(wanted_of("HOLD_AT", call), text, n))
        hold_here();
}

ssize_t write(int fd, const void *text, size_t n)
{
    if (fd == STDERR_FILENO)
        meet_text("before-log", text, n);
    ssize_t done = syscall(SYS_write, fd, text, n);
    if (fd == STDERR_FILENO)
        meet_text("log", text, n);
    return done;
}

static void meet_file(const char *call, const char *name, const char *file)
{
    char head[HEAD];
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, head, sizeof(head)) : -1;
    if (fd >= 0)
        close(fd);
    meet_text(call, name, strlen(name));
    if (n > 0)
        meet_text(call, head, (size_t)n);
}

int rename(const char *from, const char *to)
{
    meet_file("before-publish", to, from);
    int failed = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (failed == 0)
        meet_file("publish", to, to);
    return failed;
}

/* The function that this one replaces. */
static void *replaced(const char *name)
{
    void *f = dlsym(RTLD_NEXT, name);
    if (f == NULL)
        abort();
    return f;
}

int pthread_join(pthread_t thread, void **ret)
{
    int (*join)(pthread_t, void **) = replaced("pthread_join");
    meet_text("before-join", "", 0);
    return join(thread, ret);
}

void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc)
{
    void (*gemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int) =
        replaced("cblas_sgemm");
    const char *pace = getenv("PACE_WHILE"), *us = getenv("PACE_US");
    meet_text("before-gemm", "", 0);
    if (pace != NULL && access(pace, F_OK) == 0)
        usleep(us != NULL ? (useconds_t)atoi(us) : 0);
    gemm(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

int curl_multi_add_handle(void *multi, void *easy);

int curl_multi_add_handle(void *multi, void *easy)
{
    static atomic_int sent;
    char number[16];
    int (*add)(void *, void *) = replaced("curl_multi_add_handle");
    int n = snprintf(number, sizeof(number), "%d", atomic_fetch_add(&sent, 1) + 1);
    meet_text("before-request", number, (size_t)n);
    return add(multi, easy);
}
