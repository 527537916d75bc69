/* Whole reads and checked writes. Every system call can be made to fail by a test (file_fault.h), and every error
 * names the path. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_fault.h"

void fd_close(int fd)
{
    if (fd < 0)
        return;
    int saved = errno;
    close(fd);
    errno = saved;
}

int fd_write(int fd, const void *data, size_t n, struct err *e)
{
    const char *p = data;
    while (n > 0) {
        ssize_t done = file_fault_hit("write") ? -1 : write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return err_errno(e, ERR_IO, "write");
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

int file_write_stdout(const void *data, size_t n, struct err *e)
{
    errno = 0;
    if (fd_write(STDOUT_FILENO, data, n, e) == 0)
        return 0;
    if (errno == EPIPE)
        return err_set(e, ERR_OUTPUT_CLOSED, "standard output is closed");
    return err_wrap(e, "standard output");
}

int fd_pwrite(int fd, const void *data, size_t n, uint64_t offset, struct err *e)
{
    const char *p = data;
    if (offset > INT64_MAX - n)
        return err_set(e, ERR_INPUT, "write: offset %llu is too large", (unsigned long long)offset);
    while (n > 0) {
        ssize_t done = file_fault_hit("write") ? -1 : pwrite(fd, p, n, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return err_errno(e, ERR_IO, "write");
        p += done;
        n -= (size_t)done;
        offset += (uint64_t)done;
    }
    return 0;
}

int file_error(const char *path, struct err *e)
{
    switch (errno) {
    case EACCES:
    case EPERM:
    case EROFS:
    case EISDIR:
    case ENXIO: /* a device that does not exist, a socket */
    case ENODEV:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
        return err_errno(e, ERR_INPUT, "%s", path);
    default:
        return err_errno(e, ERR_IO, "%s", path);
    }
}

int file_open(const char *path, int *ret_fd, struct err *e)
{
    /* a pipe or a device must not be waited for; a regular file ignores O_NONBLOCK */
    auto_close int fd = file_fault_hit("open") ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return file_error(path, e);
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return file_error(path, e);
    }
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INPUT, "%s: not a regular file", path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* What a shell makes of <(command): the end of a pipe whose other end is open already. */
static bool is_descriptor(const char *path)
{
    return str_eq(path, "/dev/stdin") || str_starts(path, "/dev/fd/") || str_starts(path, "/proc/self/fd/");
}

static int open_read(const char *path, int *ret_fd, struct err *e)
{
    if (!is_descriptor(path))
        return file_open(path, ret_fd, e);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return file_error(path, e);
    *ret_fd = fd;
    return 0;
}

/* Reads to the end, whatever size the file has: pipes and /proc have size 0. */
static int read_all(int fd, const char *path, size_t max, struct buf *ret, struct err *e)
{
    for (;;) {
        buf_reserve(ret, 1 << 16);
        ssize_t n = read(fd, ret->data + ret->len, ret->cap - ret->len - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return file_error(path, e);
        if (n == 0)
            break;
        ret->len += (size_t)n;
        if (ret->len > max) {
            char text[32];
            return err_set(e, ERR_INPUT, "%s: larger than %s", path, str_bytes(max, text));
        }
    }
    ret->data[ret->len] = '\0';
    return 0;
}

int file_read(const char *path, size_t max, struct buf *ret, struct err *e)
{
    bool standard_input = str_eq(path, "-");
    auto_close int fd = STDIN_FILENO;
    if (!standard_input && open_read(path, &fd, e) < 0) {
        fd = -1;
        return -1;
    }

    AUTO_FINI(buf) content = BUF_INIT;
    int rc = read_all(fd, standard_input ? "standard input" : path, max, &content, e);
    if (standard_input)
        fd = -1; /* not ours to close */
    if (rc < 0)
        return -1;
    buf_fini(ret);
    *ret = content;
    content = (struct buf)BUF_INIT;
    return 0;
}

int file_write(const char *path, const void *data, size_t n, struct err *e)
{
    AUTO(file_out) *f = NULL;
    if (file_out_open(path, &f, e) < 0 || file_out_write(f, data, n, e) < 0)
        return -1;
    return file_out_commit(f, e);
}

int file_write_new(const char *path, const void *data, size_t n, struct err *e)
{
    AUTO(file_out) *f = NULL;
    if (file_out_open(path, &f, e) < 0 || file_out_write(f, data, n, e) < 0)
        return -1;
    return file_out_commit_new(f, e);
}

int file_append_new(const char *path, int *ret_fd, struct err *e)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC;
    int fd = file_fault_hit("open") ? -1 : open(path, flags, 0666);
    if (fd < 0 && errno == EEXIST)
        return err_set(e, ERR_INPUT, "%s: exists already", path);
    if (fd < 0)
        return file_error(path, e);
    *ret_fd = fd;
    return 0;
}

int fd_sync(int fd, struct err *e)
{
    if (file_fault_hit("fsync") || fsync(fd) < 0)
        return err_errno(e, ERR_IO, "fsync");
    return 0;
}

bool file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool file_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int dir_check(const char *path, struct err *e)
{
    struct stat st;
    bool there = stat(path, &st) == 0;
    if (there && S_ISDIR(st.st_mode) && access(path, X_OK) == 0)
        return 0;
    if (there && !S_ISDIR(st.st_mode))
        errno = ENOTDIR;
    return err_errno(e, ERR_INPUT, "%s", path);
}

int file_size(const char *path, uint64_t *ret, struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return file_error(path, e);
    *ret = (uint64_t)st.st_size;
    return 0;
}

int file_remove(const char *path, struct err *e)
{
    if (unlink(path) < 0 && errno != ENOENT)
        return file_error(path, e);
    return 0;
}

int file_rename(const char *from, const char *to, struct err *e)
{
    if (file_fault_hit("rename") || rename(from, to) < 0)
        return file_error(to, e);
    return 0;
}

char *path_join(const char *dir, const char *name)
{
    if (name[0] == '/' || dir[0] == '\0')
        return xstrdup(name);
    return xasprintf(str_ends(dir, "/") ? "%s%s" : "%s/%s", dir, name);
}

char *path_dir(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return xstrdup(".");
    return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

void file_raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)!setrlimit(RLIMIT_NOFILE, &limit); /* a lower limit is acceptable */
}

int file_check_limit(size_t wanted, struct err *e)
{
    auto_free int *fds = xcalloc(wanted, sizeof(*fds));
    size_t n = 0;
    file_raise_limit();
    while (n < wanted && (fds[n] = open("/", O_PATH | O_CLOEXEC)) >= 0)
        n++;
    int failed = errno;
    for (size_t i = 0; i < n; i++)
        fd_close(fds[i]);
    errno = failed;
    return n < wanted ? err_errno(e, ERR_IO, "%zu more open files are needed", wanted) : 0;
}
