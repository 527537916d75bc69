/* Credentials from an exec plugin: runs the program with a time limit and parses the ExecCredential that it prints. The
 * plugin runs in its own process group, so that everything it started can be killed with it. */
#include "kube/kubeconfig_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "codec/json.h"

enum { ANSWER_MAX = 1 << 20 };

void exec_spec_fini(struct exec_spec *s)
{
    free(s->command);
    free(s->api_version);
    free(s->folder);
    free(s->install_hint);
    strlist_fini(&s->args);
    strlist_fini(&s->env);
}

void exec_credential_fini(struct exec_credential *c)
{
    free(c->token);
    free(c->cert);
    free(c->key);
}

/* ---- the credential ---- */

static char *dup_member(const json_t *status, const char *key)
{
    const char *s = json_string_value(json_object_get(status, key));
    return s != NULL && *s != '\0' ? xstrdup(s) : NULL;
}

/* "2026-03-04T05:06:07Z", also with a fraction and with another offset. */
static int time_parse(const char *s, double *ret, struct err *e)
{
    struct tm t = { .tm_isdst = 0 };
    const char *p = strptime(s, "%Y-%m-%dT%H:%M:%S", &t);

    if (p != NULL && *p == '.')
        p += 1 + strspn(p + 1, "0123456789");
    struct tm zone = { .tm_gmtoff = 0 };
    if (p == NULL || (p = strptime(p, "%z", &zone)) == NULL || *p != '\0')
        return err_set(e, ERR_INPUT, "expirationTimestamp '%s' is not a valid time", s);
    *ret = (double)(timegm(&t) - zone.tm_gmtoff);
    return 0;
}

int exec_credential_parse(const char *text, size_t n, const char *api_version, struct exec_credential *ret,
                          struct err *e)
{
    json_auto_t *v = NULL;
    AUTO_FINI(exec_credential) c = { .token = NULL };

    if (json_parse(text, n, "credential", &v, e) < 0)
        return -1;
    const char *kind = json_string_value(json_object_get(v, "kind"));
    const char *version = json_string_value(json_object_get(v, "apiVersion"));
    if (!str_eq(kind, "ExecCredential") || !str_eq(version, api_version))
        return err_set(e, ERR_INPUT, "it returned a %s of %s, not an ExecCredential of %s",
                       kind != NULL ? kind : "value", version != NULL ? version : "no version", api_version);
    const json_t *status = json_object_get(v, "status");
    c.token = dup_member(status, "token");
    c.cert = dup_member(status, "clientCertificateData");
    c.key = dup_member(status, "clientKeyData");
    if ((c.cert == NULL) != (c.key == NULL) || (c.token == NULL && c.cert == NULL))
        return err_set(e, ERR_INPUT, "its status has neither a token nor a certificate with its key");
    const char *expires = json_string_value(json_object_get(status, "expirationTimestamp"));
    if (expires != NULL && time_parse(expires, &c.expires, e) < 0)
        return -1;
    *ret = c;
    c = (struct exec_credential){ .token = NULL };
    return 0;
}

/* ---- running the plugin ---- */

static void replace_env(struct strlist *env, const char *line)
{
    size_t name = strcspn(line, "=") + 1;

    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->items[i], line, name) == 0) {
            free(env->items[i]);
            env->items[i] = xstrdup(line);
            return;
        }
    strlist_add(env, line);
}

/* The result ends with NULL and borrows the strings. */
static char **null_terminated(const struct strlist *l)
{
    char **all = xcalloc(l->n + 1, sizeof(char *));
    for (size_t i = 0; i < l->n; i++)
        all[i] = l->items[i];
    return all;
}

/* In the child of fork(): only async-signal-safe calls. */
static void exec_child(int out, char *const *argv, char *const *env)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    setpgid(0, 0);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(127);
    signal(SIGPIPE, SIG_DFL);
    execvpe(argv[0], argv, env);
    _exit(127);
}

static int start_plugin(const struct exec_spec *s, const char *info, pid_t *ret_pid, int *ret_fd, struct err *e)
{
    AUTO_FINI(strlist) args = { .items = NULL };
    AUTO_FINI(strlist) env = { .items = NULL };
    auto_free char *line = xasprintf("KUBERNETES_EXEC_INFO=%s", info);
    auto_free char *program = strchr(s->command, '/') != NULL ? path_join(s->folder, s->command) : xstrdup(s->command);
    int pipes[2];

    strlist_add(&args, program);
    for (size_t i = 0; i < s->args.n; i++)
        strlist_add(&args, s->args.items[i]);
    for (char **p = environ; *p != NULL; p++)
        strlist_add(&env, *p);
    for (size_t i = 0; i < s->env.n; i++)
        replace_env(&env, s->env.items[i]);
    replace_env(&env, line);
    auto_free char **argv = null_terminated(&args);
    auto_free char **envp = null_terminated(&env);
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return err_errno(e, ERR_IO, "pipe");
    pid_t pid = fork();
    if (pid == 0)
        exec_child(pipes[1], argv, envp);
    close(pipes[1]);
    if (pid < 0) {
        close(pipes[0]);
        return err_errno(e, ERR_IO, "fork");
    }
    *ret_pid = pid;
    *ret_fd = pipes[0];
    return 0;
}

/* Reads the plugin's output to its end. */
static int read_answer(int fd, int64_t end_ms, struct buf *out, struct err *e)
{
    char piece[4096];

    for (;;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int64_t left = end_ms - clock_ms();
        int ready = left > 0 ? poll(&p, 1, (int)left) : 0;
        if (ready == 0)
            return err_set(e, ERR_TIMEOUT, "it did not answer in time");
        ssize_t n = ready > 0 ? read(fd, piece, sizeof(piece)) : -1;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, ERR_IO, "reading its output");
        if (n == 0)
            return 0;
        buf_add(out, piece, (size_t)n);
        if (out->len > ANSWER_MAX)
            return err_set(e, ERR_INPUT, "its output is longer than %d bytes", ANSWER_MAX);
    }
}

/* Waits for the plugin for the rest of its time, then kills it and everything it started. */
static int reap_plugin(pid_t pid, int64_t end_ms, int *ret_status, struct err *e)
{
    for (;;) {
        pid_t got = waitpid(pid, ret_status, WNOHANG);
        if (got == pid)
            return 0;
        if (got < 0 && errno != EINTR)
            return err_errno(e, ERR_INTERNAL, "waiting for it");
        if (clock_ms() >= end_ms) {
            kill(-pid, SIGKILL);
            kill(pid, SIGKILL);
            while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
                continue;
            return err_set(e, ERR_TIMEOUT, "it did not end in time");
        }
        clock_sleep_ms(5);
    }
}

static int run_plugin(const struct exec_spec *s, const char *info, int64_t limit_ms, struct buf *out, struct err *e)
{
    int64_t end_ms = clock_ms() + limit_ms;
    auto_close int fd = -1;
    pid_t pid = -1;
    int status = 0;
    struct err late = { .code = ERR_NONE };

    if (start_plugin(s, info, &pid, &fd, e) < 0)
        return -1;
    int answered = read_answer(fd, end_ms, out, e);
    int ended = reap_plugin(pid, answered == 0 ? end_ms : 0, &status, &late);
    if (answered < 0)
        return -1;
    if (ended < 0)
        return err_set(e, late.code, "%s", late.msg);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return err_set(e, ERR_INPUT, "it cannot be run%s%s", s->install_hint != NULL ? ": " : "",
                       s->install_hint != NULL ? s->install_hint : "");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(e, ERR_INPUT, "it exited with %s %d", WIFEXITED(status) ? "status" : "signal",
                       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return 0;
}

int exec_run(const struct exec_spec *s, const char *info, int64_t limit_ms, struct exec_credential *ret, struct err *e)
{
    AUTO_FINI(buf) out = BUF_INIT;

    if (run_plugin(s, info, limit_ms, &out, e) < 0 ||
        exec_credential_parse(out.data, out.len, s->api_version, ret, e) < 0)
        return err_wrap(e, "exec plugin '%s'", s->command);
    return 0;
}
