/* Small files of the output folder. Each is replaced as a whole; a folder that cannot be written gets an error that
 * names its owner, its mode and the remedy. */
#include "chief/output_dir.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tfio/checkpoint_state.h"

enum { SMALL_FILE = 1 << 20 };

char *output_dir_path(const char *dir, const char *name)
{
    return xasprintf("%s/%s", dir, name);
}

char *output_dir_summaries(const char *dir, const char *named)
{
    return path_join(dir, named != NULL ? named : "summaries");
}

/* The folder, or the nearest one above it that there is. xmalloc'ed. */
static char *nearest_existing(const char *dir, struct stat *st)
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

/* Names the owner, the user and the remedy: on a cluster this line is the only information about a claim. */
static int cannot_write(const char *dir, const char *why, struct err *e)
{
    struct stat st;
    auto_free char *at = nearest_existing(dir, &st);
    bool read_only = eaccess(at, W_OK) < 0 && errno == EROFS;
    return err_set(
        e, ERR_INPUT,
        "output folder %s cannot be written by user %u, group %u (%s belongs to user %u, group %u, mode %04o): %s; %s",
        dir, (unsigned)geteuid(), (unsigned)getegid(), at, (unsigned)st.st_uid, (unsigned)st.st_gid,
        (unsigned)st.st_mode & 07777U, why,
        read_only
            ? "mount it for writing, without readOnly"
            : "let that user write there: chown or chmod it, or on a cluster set the pod's securityContext.fsGroup");
}

int output_dir_check_access(const char *dir, struct err *e)
{
    struct stat st;
    auto_free char *at = nearest_existing(dir, &st);
    return eaccess(at, W_OK | X_OK) < 0 ? cannot_write(dir, strerror(errno), e) : 0;
}

int output_dir_prepare(const char *dir, const char *summaries, struct err *e)
{
    auto_free char *base = output_dir_summaries(dir, summaries);
    const struct {
        const char *in, *name;
    } folders[] = { { dir, "checkpoints" }, { base, "train" }, { base, "validation" } };
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        auto_free char *path = output_dir_path(folders[i].in, folders[i].name);
        struct err cause = { 0 };
        if (dir_make(path, &cause) == 0 && eaccess(path, W_OK) == 0)
            continue;
        if (err_is(&cause, ERR_NO_SPACE))
            return err_set(e, cause.code, "output folder %s: %s", dir, cause.msg);
        return cannot_write(dir, cause.code != ERR_NONE ? cause.msg : strerror(errno), e);
    }
    return 0;
}

static bool is_small_file(const char *name)
{
    static const char *const names[] = { "generation", "uid", "finished", "model.json", "history.json", "job.yaml" };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (str_eq(name, names[i]))
            return true;
    return str_starts(name, "generation."); /* claims */
}

static bool is_checkpoint_file(const char *name)
{
    return str_eq(name, "checkpoint") || str_starts(name, "model.ckpt");
}

size_t output_dir_tidy(const char *dir)
{
    auto_free char *checkpoints = output_dir_path(dir, "checkpoints");
    return file_remove_leftovers(dir, is_small_file) + file_remove_leftovers(checkpoints, is_checkpoint_file);
}

int output_dir_uid(const char *dir, char **ret, struct err *e)
{
    auto_free char *path = output_dir_path(dir, "uid");
    AUTO_FINI(buf) text = BUF_INIT;
    if (file_exists(path) && file_read(path, SMALL_FILE, &text, e) < 0)
        return -1;
    *ret = text.len > 0 ? xstrndup(text.data, strcspn(text.data, " \r\n")) : xstrdup("");
    return 0;
}

int output_dir_set_uid(const char *dir, const char *uid, struct err *e)
{
    auto_free char *path = output_dir_path(dir, "uid"), *line = xasprintf("%s\n", uid);
    return file_write(path, line, strlen(line), e);
}

/* The file `finished`; *ret NULL: there is none. */
static int read_finished(const char *dir, json_t **ret, struct err *e)
{
    auto_free char *path = output_dir_path(dir, "finished");
    AUTO_FINI(buf) text = BUF_INIT;
    if (!file_exists(path)) {
        *ret = NULL;
        return 0;
    }
    return file_read(path, SMALL_FILE, &text, e) < 0 ? -1 : json_parse(text.data, text.len, path, ret, e);
}

int output_dir_finished(const char *dir, const char *uid, int64_t *ret_step, struct err *e)
{
    json_auto_t *v = NULL;
    if (read_finished(dir, &v, e) < 0)
        return -1;
    if (v == NULL || !str_eq(json_string_value(json_object_get(v, "uid")), uid))
        return 0;
    *ret_step = json_integer_value(json_object_get(v, "step"));
    return 1;
}

void output_dir_weights_sha256(const char *dir, char ret[SHA256_TEXT])
{
    json_auto_t *v = NULL;
    (void)!read_finished(dir, &v, NULL);
    const char *found = json_string_value(json_object_get(v, "weights_sha256"));
    str_fmt(ret, SHA256_TEXT, "%s", sha256_is_text(found) ? found : "");
}

int output_dir_set_finished(const char *dir, const char *uid, const struct job_result *end, struct err *e)
{
    json_auto_t *v = json_pack("{s:s, s:I}", "uid", uid, "step", (json_int_t)end->step);
    job_result_json(end, v);
    return output_dir_json(dir, "finished", v, e);
}

void job_result_json(const struct job_result *end, json_t *v)
{
    if (end->checkpoint != NULL) {
        json_object_set_new(v, "checkpoint", json_string(end->checkpoint));
        json_object_set_new(v, "best_epoch", json_integer(end->best_epoch));
    }
    if (end->stopped_epoch >= 0)
        json_object_set_new(v, "stopped_epoch", json_integer(end->stopped_epoch));
    if (end->weights_sha256[0] != '\0')
        json_object_set_new(v, "weights_sha256", json_string(end->weights_sha256));
}

/* A name beside the file `checkpoint`, and nothing else. */
static bool is_file_name(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL;
}

/* The checkpoint that `finished` names; *ret NULL: none. */
static int named_model(const char *dir, char **ret, struct err *e)
{
    json_auto_t *v = NULL;
    auto_free char *uid = NULL;
    if (read_finished(dir, &v, e) < 0 || output_dir_uid(dir, &uid, e) < 0)
        return -1;
    const char *name = json_string_value(json_object_get(v, "checkpoint"));
    bool ours = uid[0] == '\0' || str_eq(json_string_value(json_object_get(v, "uid")), uid);
    if (name == NULL || !ours) {
        *ret = NULL;
        return 0;
    }
    if (!is_file_name(name))
        return err_set(e, ERR_INPUT, "%s/finished: '%s' is not the name of a checkpoint", dir, name);
    *ret = xasprintf("%s/checkpoints/%s", dir, name);
    return 0;
}

int output_dir_model(const char *dir, char **ret_prefix, struct err *e)
{
    auto_free char *checkpoints = output_dir_path(dir, "checkpoints"), *named = NULL, *latest = NULL, *why = NULL;
    AUTO_FINI(strlist) all = { 0 };
    if (named_model(dir, &named, e) < 0)
        return -1;
    if (named == NULL) {
        if (checkpoint_state_find(checkpoints, &all, &latest, &why, e) < 0)
            return -1;
        *ret_prefix = path_join(checkpoints, latest);
        return 0;
    }
    auto_free char *index = xasprintf("%s.index", named);
    if (!file_exists(index))
        return err_set(
            e, ERR_NOT_FOUND,
            "the result of the job is checkpoint %s (see %s/finished), but it does not exist: restore it, or "
            "name another checkpoint",
            named, dir);
    *ret_prefix = TAKE(named);
    return 0;
}

int output_dir_json(const char *dir, const char *name, const json_t *v, struct err *e)
{
    auto_free char *path = output_dir_path(dir, name);
    AUTO_FINI(buf) text = BUF_INIT;
    json_emit_pretty(v, &text);
    return file_write(path, text.data, text.len, e);
}
