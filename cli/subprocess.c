/* Starts a program with its output in a pipe, and reads it line by line. The process group is killed with it, and
 * PR_SET_PDEATHSIG kills it when this process dies, so no replica is left behind. */
#include "subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

/* In the child, between fork and exec: only async-signal-safe calls. */
static __attribute__((noreturn)) void exec_program(char *const argv[], char *const env[], int out, pid_t parent)
{
    static const char failed[] = "error: cannot start: ";
    static const int STOPS[] = { SIGTERM, SIGINT, SIGHUP };
    int null = open("/dev/null", O_RDONLY);
    struct sigaction was;
    sigset_t none;

    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent died before prctl, so no signal will come */
        _exit(143);
    signal(SIGPIPE, SIG_DFL); /* exec resets handlers, but ignored signals stay ignored */
    signal(SIGXFSZ, SIG_DFL);
    for (size_t i = 0; i < COUNT_OF(STOPS); i++) /* before exec they must not run the handlers of this program */
        if (sigaction(STOPS[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
            signal(STOPS[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execve(argv[0], argv, env);

    const char *why = strerrordesc_np(errno);
    ssize_t ignored UNUSED = write(STDERR_FILENO, failed, sizeof(failed) - 1);
    if (why != NULL)
        ignored = write(STDERR_FILENO, why, strlen(why));
    _exit(127);
}

int subprocess_start(struct subprocess *c, char *const argv[], char *const env[], struct err *e)
{
    int fds[2];
    pid_t parent = getpid();

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_errno(e, ERR_IO, "pipe for %s", argv[0]);
    sigset_t all, before; /* a signal waits until the child has none of our handlers */
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        exec_program(argv, env, fds[1], parent);
    sigprocmask(SIG_SETMASK, &before, NULL);
    fd_close(fds[1]);
    if (pid < 0) {
        fd_close(fds[0]);
        return err_errno(e, ERR_NOMEM, "cannot start %s", argv[0]);
    }
    setpgid(pid, pid); /* in both processes: either may be first */
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    fd_close(c->out);
    c->out = fds[0];
    c->pid = pid;
    buf_clear(&c->line);
    return 0;
}

void subprocess_signal(const struct subprocess *c, int signal)
{
    if (c->pid > 0 && kill(-c->pid, signal) < 0)
        kill(c->pid, signal);
}

bool subprocess_ended(struct subprocess *c, int *ret_code)
{
    int status;
    if (c->pid <= 0 || waitpid(c->pid, &status, WNOHANG) != c->pid)
        return false;
    kill(-c->pid, SIGKILL); /* its remaining child processes */
    c->pid = 0;
    *ret_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
}

static void flush_line(struct subprocess *c, void (*each)(void *user, const char *line), void *user)
{
    if (c->line.len > 0 && c->line.data[c->line.len - 1] == '\r')
        c->line.data[--c->line.len] = '\0';
    each(user, c->line.data);
    buf_clear(&c->line);
}

static void split_lines(struct subprocess *c, const char *p, size_t n, void (*each)(void *user, const char *line),
                        void *user)
{
    while (n > 0) {
        const char *newline = memchr(p, '\n', n);
        size_t piece = newline != NULL ? (size_t)(newline - p) : n;
        piece = MIN(piece, SUBPROCESS_LINE_MAX - c->line.len);
        for (size_t i = 0; i < piece; i++)
            buf_char(&c->line, p[i] != '\0' ? p[i] : ' ');
        bool whole = newline != NULL && p + piece == newline;
        if (whole || c->line.len == SUBPROCESS_LINE_MAX)
            flush_line(c, each, user);
        piece += whole ? 1 : 0;
        p += piece;
        n -= piece;
    }
}

void subprocess_read(struct subprocess *c, void (*each)(void *user, const char *line), void *user)
{
    char bytes[16 << 10];

    while (c->out >= 0) {
        ssize_t n = read(c->out, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            if (c->line.len > 0)
                flush_line(c, each, user);
            fd_close(c->out);
            c->out = -1;
            return;
        }
        split_lines(c, bytes, (size_t)n, each, user);
        if ((size_t)n < sizeof(bytes))
            return; /* lets the caller read other processes */
    }
}

void subprocess_fini(struct subprocess *c)
{
    if (c->pid > 0) {
        subprocess_signal(c, SIGKILL);
        waitpid(c->pid, NULL, 0);
    }
    fd_close(c->out);
    buf_fini(&c->line);
    *c = (struct subprocess)SUBPROCESS_INIT;
}

static bool is_executable(const char *path)
{
    return !file_is_dir(path) && access(path, X_OK) == 0;
}

static bool beside_us(const char *name, char **ret)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0)
        return false;
    self[n] = '\0';
    auto_free char *dir = path_dir(self);
    auto_free char *path = path_join(dir, name);
    if (!is_executable(path))
        return false;
    *ret = TAKE(path);
    return true;
}

int subprocess_find_program(const char *name, char **ret, struct err *e)
{
    const char *dir = getenv("TRAINYARD_BIN_DIR");
    if (dir != NULL && dir[0] != '\0') {
        auto_free char *path = path_join(dir, name);
        if (!is_executable(path))
            return err_set(e, ERR_NOT_FOUND, "program %s is not in %s (TRAINYARD_BIN_DIR)", name, dir);
        *ret = TAKE(path);
        return 0;
    }
    if (beside_us(name, ret))
        return 0;

    AUTO_FINI(strlist) dirs = { 0 };
    const char *path_list = getenv("PATH");
    strlist_split(&dirs, path_list != NULL ? path_list : "", ':');
    for (size_t i = 0; i < dirs.n; i++) {
        auto_free char *path = path_join(dirs.items[i], name);
        if (is_executable(path)) {
            *ret = TAKE(path);
            return 0;
        }
    }
    return err_set(e, ERR_NOT_FOUND, "program %s is neither in the folder of trainyard nor in PATH", name);
}
