#include "train/output.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { SMALL_FILE = 1 << 20 };

char *output_path(const char *dir, const char *name)
{
    return xasprintf("%s/%s", dir, name);
}

char *output_summaries(const char *dir, const char *named)
{
    return path_join(dir, named != NULL ? named : "summaries");
}

/* The folder, or the nearest one above it that there is. xmalloc'ed. */
static char *nearest(const char *dir, struct stat *st)
{
    auto_free char *at = xstrdup(dir);
    *st = (struct stat){ 0 };
    while (stat(at, st) < 0 && strcmp(at, "/") != 0 && strcmp(at, ".") != 0) {
        char *up = path_dir(at);
        free(at);
        at = up;
    }
    return TAKE(at);
}

/* Who may write, who tried, and what helps: on a cluster all that is seen of a claim is this line. */
static int cannot_write(const char *dir, const char *why, struct err *e)
{
    struct stat st;
    auto_free char *at = nearest(dir, &st);
    bool read_only = eaccess(at, W_OK) < 0 && errno == EROFS;
    return err_set(e, ERR_INPUT, "output folder %s cannot be written by user %u, group %u (%s belongs to user %u, group %u, mode %04o): %s; %s",
                   dir, (unsigned)geteuid(), (unsigned)getegid(), at, (unsigned)st.st_uid, (unsigned)st.st_gid,
                   (unsigned)st.st_mode & 07777U, why,
                   read_only ? "mount it for writing, without readOnly"
                             : "let that user write there: chown or chmod it, or on a cluster set the pod's securityContext.fsGroup");
}

int output_prepare(const char *dir, const char *summaries, struct err *e)
{
    auto_free char *base = output_summaries(dir, summaries);
    const struct {
        const char *in, *name;
    } folders[] = { { dir, "checkpoints" }, { base, "train" }, { base, "validation" } };
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        auto_free char *path = output_path(folders[i].in, folders[i].name);
        struct err cause = { 0 };
        if (dir_make(path, &cause) == 0 && eaccess(path, W_OK) == 0)
            continue;
        return cannot_write(dir, cause.code != ERR_NONE ? cause.msg : strerror(errno), e);
    }
    return 0;
}

static bool is_small_file(const char *name)
{
    static const char *const names[] = { "generation", "uid", "finished", "model.json", "history.json" };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (str_eq(name, names[i]))
            return true;
    return str_starts(name, "generation."); /* claims */
}

static bool is_checkpoint_file(const char *name)
{
    return str_eq(name, "checkpoint") || str_starts(name, "model.ckpt");
}

size_t output_tidy(const char *dir)
{
    auto_free char *checkpoints = output_path(dir, "checkpoints");
    return file_remove_leftovers(dir, is_small_file) + file_remove_leftovers(checkpoints, is_checkpoint_file);
}

int output_uid(const char *dir, char **ret, struct err *e)
{
    auto_free char *path = output_path(dir, "uid");
    AUTO_FINI(buf) text = BUF_INIT;
    if (file_exists(path) && file_read(path, SMALL_FILE, &text, e) < 0)
        return -1;
    *ret = text.len > 0 ? xstrndup(text.data, strcspn(text.data, " \r\n")) : xstrdup("");
    return 0;
}

int output_set_uid(const char *dir, const char *uid, struct err *e)
{
    auto_free char *path = output_path(dir, "uid"), *line = xasprintf("%s\n", uid);
    return file_write(path, line, strlen(line), e);
}

int output_finished(const char *dir, const char *uid, int64_t *ret_step, struct err *e)
{
    auto_free char *path = output_path(dir, "finished");
    AUTO_FINI(buf) text = BUF_INIT;
    json_auto_t *v = NULL;
    if (!file_exists(path))
        return 0;
    if (file_read(path, SMALL_FILE, &text, e) < 0 || json_parse(text.data, text.len, path, &v, e) < 0)
        return -1;
    if (!str_eq(json_string_value(json_object_get(v, "uid")), uid))
        return 0;
    *ret_step = json_integer_value(json_object_get(v, "step"));
    return 1;
}

int output_set_finished(const char *dir, const char *uid, int64_t step, struct err *e)
{
    json_auto_t *v = json_pack("{s:s, s:I}", "uid", uid, "step", (json_int_t)step);
    return output_json(dir, "finished", v, e);
}

int output_json(const char *dir, const char *name, const json_t *v, struct err *e)
{
    auto_free char *path = output_path(dir, name);
    AUTO_FINI(buf) text = BUF_INIT;
    json_emit_pretty(v, &text);
    return file_write(path, text.data, text.len, e);
}
