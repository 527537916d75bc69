/* Reads and writes the three files of an identity. They are replaced together: as kubelet does it for a mounted Secret,
 * the names are links through a link "..data" to a folder with the files, and a write exchanges that one link. */
#include "identity/tls_dir.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

enum { FILE_MAX = 1 << 20, READINGS = 3, AGAIN_MS = 20 };
#define DATA "..data"

void tls_dir_fini(struct tls_dir *d)
{
    if (d->key != NULL)
        explicit_bzero(d->key, strlen(d->key));
    free(d->ca);
    free(d->certificate);
    free(d->key);
}

/* ---- reading ---- */

static int read_file(const char *dir, const char *name, char **ret, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    auto_free char *path = path_join(dir, name);
    if (file_read(path, FILE_MAX, &text, e) < 0)
        return -1;
    *ret = buf_detach(&text);
    return 0;
}

static int read_once(const char *path, int64_t now_s, struct tls_dir *ret, struct err *e)
{
    AUTO_FINI(tls_dir) d = { .ca = NULL };
    char date[32];
    if (read_file(path, TLS_DIR_CA, &d.ca, e) < 0 || read_file(path, TLS_DIR_CERTIFICATE, &d.certificate, e) < 0 ||
        read_file(path, TLS_DIR_KEY, &d.key, e) < 0)
        return -1;
    if (certificate_read(d.certificate, &d.info, e) < 0)
        return err_wrap(e, "%s/" TLS_DIR_CERTIFICATE, path);
    if (certificate_check(d.ca, d.certificate, d.key, e) < 0)
        return err_wrap(e, "%s", path);
    if (now_s >= d.info.not_after_s)
        return err_set(e, ERR_INPUT, "%s/" TLS_DIR_CERTIFICATE ": the certificate expired at %s", path,
                       clock_rfc3339((double)d.info.not_after_s, date));
    if (now_s < d.info.not_before_s)
        return err_set(e, ERR_INPUT,
                       "%s/" TLS_DIR_CERTIFICATE ": the certificate is not valid before %s; compare the clocks", path,
                       clock_rfc3339((double)d.info.not_before_s, date));
    *ret = d;
    d = (struct tls_dir){ .ca = NULL };
    return 0;
}

int tls_dir_read(const char *path, int64_t now_s, struct tls_dir *ret, struct err *e)
{
    for (int reading = 1;; reading++) {
        if (read_once(path, now_s, ret, e) == 0)
            return 0;
        if (reading == READINGS)
            return -1;
        clock_sleep_ms(AGAIN_MS); /* the files are perhaps being replaced */
    }
}

static const char *const FILES[TLS_DIR_FILES] = { TLS_DIR_CA, TLS_DIR_CERTIFICATE, TLS_DIR_KEY };

struct tls_dir_stamps tls_dir_look(const char *path)
{
    struct tls_dir_stamps s;
    memset(&s, 0, sizeof(s));
    for (size_t i = 0; i < TLS_DIR_FILES; i++) {
        auto_free char *file = path_join(path, FILES[i]);
        struct stat st;
        if (stat(file, &st) < 0)
            continue;
        s.of[i].st_dev = st.st_dev;
        s.of[i].st_ino = st.st_ino;
        s.of[i].st_size = st.st_size;
        s.of[i].st_mtim = st.st_mtim;
    }
    return s;
}

bool tls_dir_changed(const struct tls_dir_stamps *before, const struct tls_dir_stamps *now)
{
    return memcmp(before, now, sizeof(*now)) != 0;
}

/* ---- writing ---- */

/* A new file of a version that no name refers to yet. It is not flushed to the disk, which would be most of the time
 * that a local run needs to start: after a crash of the machine new certificates are made. */
static int write_file(const char *dir, const char *name, const char *text, mode_t mode, struct err *e)
{
    auto_free char *path = path_join(dir, name);
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return file_error(path, e);
    return fd_write(fd, text, strlen(text), e) < 0 ? err_wrap(e, "%s", path) : 0;
}

static int make_private(const char *path, struct err *e)
{
    if (dir_make(path, e) < 0)
        return -1;
    return chmod(path, 0700) < 0 ? file_error(path, e) : 0;
}

/* Replaces a link, or makes it. */
static int set_link(const char *path, const char *to, struct err *e)
{
    auto_free char *temporary = xasprintf("%s.tmp", path);
    unlink(temporary);
    if (symlink(to, temporary) < 0)
        return file_error(temporary, e);
    return file_rename(temporary, path, e);
}

static void remove_version(const char *dir, const char *name)
{
    auto_free char *version = path_join(dir, name);
    for (size_t i = 0; i < TLS_DIR_FILES; i++) {
        auto_free char *path = path_join(version, FILES[i]);
        unlink(path);
    }
    rmdir(version);
}

/* The version that ..data names, or NULL. */
static char *current_version(const char *dir)
{
    char name[64];
    auto_free char *data = path_join(dir, DATA);
    ssize_t n = readlink(data, name, sizeof(name));
    return n > 0 && (size_t)n < sizeof(name) ? xasprintf("%.*s", (int)n, name) : NULL;
}

static int link_names(const char *dir, struct err *e)
{
    static const char *const LINKS[][2] = { { TLS_DIR_CA, DATA "/" TLS_DIR_CA },
                                            { TLS_DIR_CERTIFICATE, DATA "/" TLS_DIR_CERTIFICATE },
                                            { TLS_DIR_KEY, DATA "/" TLS_DIR_KEY } };
    for (size_t i = 0; i < COUNT_OF(LINKS); i++) {
        auto_free char *path = path_join(dir, LINKS[i][0]);
        struct stat st;
        if (lstat(path, &st) < 0 && set_link(path, LINKS[i][1], e) < 0)
            return -1;
    }
    return 0;
}

int tls_dir_write_new(const char *path, const char *ca, const struct leaf *leaf, struct err *e)
{
    if (make_private(path, e) < 0 || write_file(path, TLS_DIR_CA, ca, 0644, e) < 0 ||
        write_file(path, TLS_DIR_CERTIFICATE, leaf->certificate, 0644, e) < 0)
        return -1;
    return write_file(path, TLS_DIR_KEY, leaf->key, 0600, e);
}

int tls_dir_write(const char *path, const char *ca, const struct leaf *leaf, struct err *e)
{
    auto_free char *old = current_version(path);
    auto_free char *name = xasprintf("..%s", old != NULL && strcmp(old, "..1") == 0 ? "2" : "1");
    auto_free char *version = path_join(path, name);
    auto_free char *data = path_join(path, DATA);
    remove_version(path, name); /* of a writer that was killed */
    if (make_private(path, e) < 0 || tls_dir_write_new(version, ca, leaf, e) < 0 || set_link(data, name, e) < 0 ||
        link_names(path, e) < 0)
        return -1;
    if (old != NULL)
        remove_version(path, old);
    return 0;
}

void tls_dir_remove(const char *path)
{
    static const char *const NAMES[] = { TLS_DIR_CA, TLS_DIR_CERTIFICATE, TLS_DIR_KEY, DATA, DATA ".tmp" };
    remove_version(path, "..1");
    remove_version(path, "..2");
    for (size_t i = 0; i < COUNT_OF(NAMES); i++) {
        auto_free char *file = path_join(path, NAMES[i]);
        unlink(file);
    }
    rmdir(path);
}
