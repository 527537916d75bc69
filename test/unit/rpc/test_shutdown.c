/* The end of a process that has used gRPC. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "check_main.h"
#include "net/address.h"
#include "rpc/rpc.h"

enum { STATUS = 7 };

static int report; /* the child's end of the pipe */

/* As that of a library: what it frees, no thread may use any more. */
static void destructor(void)
{
    (void)!write(report, "D", 1);
}

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;
    for (const struct dirent *d; (d = readdir(tasks)) != NULL;)
        n += d->d_name[0] != '.';
    closedir(tasks);
    return n;
}

/* Frees a channel while it connects to a peer that never answers, and exits. */
static _Noreturn void end_while_connecting(int port)
{
    char target[32];
    struct err e;
    struct rpc_message *m = NULL;
    int before = count_threads();
    str_fmt(target, sizeof(target), "127.0.0.1:%d", port);
    rpc_init();
    atexit(destructor);
    struct rpc_channel *c = rpc_channel_new(target, &RPC_INSECURE, NULL);
    if (rpc_unary(c, "/t.T/Any", NULL, 0, NULL, 0, 20, &m, &e) == 0)
        abort();
    rpc_channel_free(c);
    rpc_shutdown();
    fputs(count_threads() > before ? "T" : "-", fdopen(report, "w")); /* T: threads of gRPC remain */
    exit(STATUS);
}

START_TEST(no_destructor_runs_beside_threads_of_grpc)
{
    int fds[2], listener, status;
    uint16_t port;
    char said[8] = "";
    struct err e;
    ck_ok_e(address_listen("127.0.0.1:0", &listener, &port, &e));
    ck_assert_int_eq(pipe(fds), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        report = fds[1];
        end_while_connecting(port);
    }
    close(fds[1]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_gt(read(fds[0], said, sizeof(said) - 1), 0); /* exit() wrote what was buffered */
    close(fds[0]);
    close(listener);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == STATUS, "the process ended with status %d", status);
    ck_assert_msg(strchr(said, 'T') == NULL || strchr(said, 'D') == NULL, "a destructor ran beside other threads");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("shutdown");
    TCase *t = tcase_create("shutdown");
    tcase_add_test(t, no_destructor_runs_beside_threads_of_grpc);
    suite_add_tcase(s, t);
    return s;
}
