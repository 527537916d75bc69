/* The output folder of a run: lock, decide from its content and the flags, then move, create or reopen. Nothing
 * changes before the decision, and an earlier run is renamed, never deleted. */
#include "outdir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "chief/output_dir.h"
#include "tfio/checkpoint_state.h"

enum { SMALL_FILE = 1 << 20, OLD_MAX = 10000 };

int outdir_decide(const char *path, enum outdir_wish wish, const struct outdir_seen *seen, enum rerun need,
                  enum outdir_plan *ret, struct err *e)
{
    if (wish == OUTDIR_FRESH && seen->present && !seen->empty && !seen->ours)
        return err_set(e, ERR_INPUT,
                       "--fresh: %s was not created by trainyard run; move it, or use another --output-dir", path);
    if (wish == OUTDIR_RESUME && !seen->ours && !seen->checkpoints)
        return err_set(e, ERR_INPUT, "%s has no run to continue (--resume, --rebase)", path);

    if (wish == OUTDIR_FRESH)
        *ret = seen->ours ? OUTDIR_MOVE : OUTDIR_NEW;
    else if (seen->finished)
        *ret = wish == OUTDIR_RESUME || need >= RERUN_RESUME ? OUTDIR_REOPEN : OUTDIR_DONE;
    else if (need >= RERUN_REBASE) /* processes of the earlier life must not be mistaken for those of this one */
        *ret = OUTDIR_REOPEN;
    else
        *ret = seen->ours || seen->checkpoints ? OUTDIR_CONTINUE : OUTDIR_NEW;
    return 0;
}

static bool has_file(const char *dir, const char *name)
{
    auto_free char *path = path_join(dir, name);
    return file_exists(path);
}

/* Also when none of them can be used: the run must not begin from scratch over them. */
static bool has_checkpoints(const char *dir)
{
    auto_free char *folder = path_join(dir, "checkpoints"), *latest = NULL, *why = NULL;
    AUTO_FINI(strlist) all = { 0 };
    struct err e = { .code = ERR_NONE };
    return checkpoint_state_find(folder, &all, &latest, &why, &e) == 0 || !err_is(&e, ERR_NOT_FOUND);
}

/* Only of the folder that this launcher holds: one that appeared since is another launcher's. */
static int read_state(const struct outdir *o, struct outdir_seen *ret, struct err *e)
{
    AUTO_FINI(strlist) names = { 0 };

    *ret = (struct outdir_seen){ .empty = true };
    if (o->lock < 0)
        return 0;
    if (dir_list(o->path, &names, e) < 0)
        return err_wrap(e, "output folder");
    ret->present = true;
    ret->empty = names.n == 0;
    ret->ours = has_file(o->path, "uid");
    ret->checkpoints = has_checkpoints(o->path);
    return 0;
}

/* `finished` is valid only for the folder's current life, which wrote it. */
static int read_final_state(struct outdir *o, struct err *e)
{
    auto_free char *uid = NULL;
    if (!o->seen.ours)
        return 0;
    if (output_dir_uid(o->path, &uid, e) < 0)
        return -1;
    int finished = output_dir_finished(o->path, uid, &o->finished_step, e);
    o->seen.finished = finished > 0;
    return finished < 0 ? -1 : 0;
}

static json_t *read_json(const char *dir, const char *name)
{
    auto_free char *path = path_join(dir, name);
    AUTO_FINI(buf) text = BUF_INIT;
    json_t *v = NULL;
    if (file_read(path, SMALL_FILE, &text, NULL) < 0 || json_parse(text.data, text.len, path, &v, NULL) < 0)
        return NULL;
    return v;
}

/* NAME.old-1, NAME.old-2, ...: earlier runs are never deleted. */
static int move_aside(const char *path, char **ret, struct err *e)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    for (int i = 1; i < OLD_MAX; i++) {
        auto_free char *old = xasprintf("%.*s.old-%d", (int)n, path, i);
        if (file_exists(old))
            continue;
        if (file_rename(path, old, e) < 0)
            return err_wrap(e, "--fresh");
        *ret = TAKE(old);
        return 0;
    }
    return err_set(e, ERR_INPUT, "--fresh: there are too many %s.old-N", path);
}

static int new_uid(char out[40], struct err *e)
{
    unsigned char b[16];
    if (getrandom(b, sizeof(b), 0) != sizeof(b))
        return err_errno(e, ERR_IO, "random numbers for a uid");
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* RFC 9562, version 4 */
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    str_fmt(out, 40, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3],
            b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
    return 0;
}

static int read_uid(const char *file, char out[40], struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    if (file_read(file, 256, &text, e) < 0)
        return -1;
    text.data[strcspn(text.data, " \r\n")] = '\0';
    if (text.data[0] != '\0' && job_check_uid(text.data, e) < 0)
        return err_wrap(e, "%s", file);
    str_fmt(out, 40, "%s", text.data);
    return 0;
}

static int in_use(const char *path, struct err *e)
{
    return err_set(e, ERR_INPUT, "another trainyard run is using %s", path);
}

/* Opens and locks the folder. o->lock stays -1 if there is none. The kernel releases the lock when this process ends in
 * any way. The lock is on the folder, which no run replaces. A folder that was renamed before it was locked (--fresh of
 * another launcher) no longer has that name. On a file system that cannot lock a folder (NFS) the run has no lock. */
static int lock_folder(struct outdir *o, struct err *e)
{
    struct stat held, named;
    auto_close int fd = open(o->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 && errno == ENOTDIR)
        return err_set(e, ERR_INPUT, "output folder: %s is not a folder", o->path);
    if (fd < 0 || fstat(fd, &held) < 0)
        return file_error(o->path, e);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return in_use(o->path, e);
    if (stat(o->path, &named) < 0 || named.st_ino != held.st_ino || named.st_dev != held.st_dev)
        return in_use(o->path, e);
    fd_close(o->lock); /* of a folder that was moved away */
    o->lock = TAKE_FD(fd);
    return 0;
}

static int choose_uid(struct outdir *o, const char *job_uid, struct err *e)
{
    auto_free char *file = path_join(o->path, "uid");
    auto_free char *finished = path_join(o->path, "finished");

    if (file_exists(file) && read_uid(file, o->uid, e) < 0)
        return -1;
    if (o->plan == OUTDIR_CONTINUE && o->uid[0] != '\0')
        return 0;
    bool another = !str_eq(job_uid, o->uid); /* a new life */
    if (job_uid[0] != '\0' && another)
        str_fmt(o->uid, sizeof(o->uid), "%s", job_uid);
    else if (new_uid(o->uid, e) < 0)
        return -1;
    if (file_remove(finished, e) < 0) /* of an earlier life */
        return -1;

    AUTO_FINI(buf) text = BUF_INIT;
    buf_printf(&text, "%s\n", o->uid);
    return file_write(file, text.data, text.len, e);
}

int outdir_open(const char *path, enum outdir_wish wish, struct outdir *ret, struct err *e)
{
    AUTO_FINI(outdir) o = { .lock = -1, .path = xstrdup(path), .wish = wish };
    enum outdir_plan ignored;

    if (lock_folder(&o, e) < 0 || read_state(&o, &o.seen, e) < 0 || read_final_state(&o, e) < 0 ||
        outdir_decide(path, wish, &o.seen, RERUN_FREE, &ignored, e) < 0)
        return -1;
    *ret = o;
    o = (struct outdir){ .lock = -1 };
    return 0;
}

int outdir_plan(struct outdir *o, enum rerun need, struct err *e)
{
    return outdir_decide(o->path, o->wish, &o->seen, need, &o->plan, e);
}

/* A folder that this launcher created, or that another one created at the same time and has perhaps already used. */
static int lock_for_run(struct outdir *o, struct err *e)
{
    struct outdir_seen seen;
    int moved_away = o->lock;
    if (dir_make(o->path, e) < 0 || lock_folder(o, e) < 0)
        return -1;
    if (o->lock == moved_away) /* it was created, and another launcher has renamed it */
        return in_use(o->path, e);
    if (read_state(o, &seen, e) < 0)
        return -1;
    return seen.ours ? in_use(o->path, e) : 0;
}

int outdir_make(struct outdir *o, const char *job_uid, struct err *e)
{
    if (o->plan == OUTDIR_MOVE && move_aside(o->path, &o->moved_to, e) < 0)
        return -1;
    bool held = o->lock >= 0 && o->plan != OUTDIR_MOVE;
    if ((!held && lock_for_run(o, e) < 0) || choose_uid(o, job_uid, e) < 0)
        return err_wrap(e, "output folder");
    return 0;
}

void outdir_fini(struct outdir *o)
{
    fd_close(o->lock);
    free(o->path);
    free(o->moved_to);
    *o = (struct outdir){ .lock = -1 };
}

static void add_metrics(const json_t *metrics, struct buf *out)
{
    const char *name;
    json_t *v;
    const char *between = "  ";

    json_object_foreach((json_t *)(uintptr_t)metrics, name, v)
    {
        if (json_is_number(v))
            buf_printf(out, "%s%s %.4f", between, name, json_number_value(v));
        else if (json_is_string(v))
            buf_printf(out, "%s%s %s", between, name, json_string_value(v));
        between = ", ";
    }
    buf_char(out, '\n');
}

/* The last value of each list of the history, if there was no final evaluation. */
static json_t *last_of_history(const json_t *history)
{
    json_t *last = json_object();
    const char *name;
    json_t *list;
    json_object_foreach((json_t *)(uintptr_t)history, name, list)
    {
        size_t n = json_array_size(list);
        while (n > 0 && json_is_null(json_array_get(list, n - 1))) /* an epoch without evaluation */
            n--;
        if (n > 0 && !str_eq(name, "epoch"))
            json_object_set(last, name, json_array_get(list, n - 1));
    }
    return last;
}

static json_t *metrics_of(const json_t *history)
{
    json_t *final = json_object_get(history, "final");
    return json_object_size(final) > 0 ? json_incref(final) : last_of_history(json_object_get(history, "history"));
}

json_t *outdir_metrics(const char *path)
{
    json_auto_t *history = read_json(path, "history.json");
    return metrics_of(history);
}

/* The checkpoints that callbacks keep beside the result. */
static void add_kept(const char *path, const json_t *history, struct buf *out)
{
    const char *result = json_string_value(json_object_get(history, "checkpoint"));
    const json_t *best = json_object_get(history, "best");
    for (size_t i = 0; i < json_array_size(best); i++) {
        const json_t *one = json_array_get(best, i);
        const char *name = json_string_value(json_object_get(one, "checkpoint")),
                   *monitor = json_string_value(json_object_get(one, "monitor"));
        if (name == NULL || monitor == NULL || (result != NULL && str_eq(name, result)))
            continue;
        buf_printf(out, "  %-12s %s/checkpoints/%s, of epoch %lld (%s %.4g)\n", "best", path, name,
                   (long long)json_integer_value(json_object_get(one, "epoch")) + 1, monitor,
                   json_number_value(json_object_get(one, "value")));
    }
}

void outdir_kept(const char *path, struct buf *out)
{
    json_auto_t *history = read_json(path, "history.json");
    add_kept(path, history, out);
}

/* The effect of callbacks: the checkpoint that is the result if it is not the newest one, and the last epoch. Then the
 * hash of the result. */
static void add_result(const char *path, const json_t *history, struct buf *out)
{
    const char *checkpoint = json_string_value(json_object_get(history, "checkpoint"));
    const char *weights = json_string_value(json_object_get(history, "weights_sha256"));
    const json_t *best = json_object_get(history, "best_epoch"), *stopped = json_object_get(history, "stopped_epoch");
    if (stopped != NULL)
        buf_printf(out, "  %-12s after epoch %lld by a callback\n", "ended",
                   (long long)json_integer_value(stopped) + 1);
    if (checkpoint != NULL)
        buf_printf(out, "  %-12s %s/checkpoints/%s, of epoch %lld\n", "result", path, checkpoint,
                   (long long)json_integer_value(best) + 1);
    if (sha256_is_text(weights))
        buf_printf(out, "  %-12s %s\n", "SHA-256", weights);
}

void outdir_summary(const char *path, struct buf *out)
{
    static const struct {
        const char *name, *what;
    } FILES[] = { { "checkpoints", "checkpoints" },
                  { "summaries", "summaries" },
                  { "history.json", "history" },
                  { "model.json", "model" } };
    json_auto_t *history = read_json(path, "history.json");
    json_auto_t *metrics = metrics_of(history);
    if (json_object_size(metrics) > 0)
        add_metrics(metrics, out);
    add_result(path, history, out);
    add_kept(path, history, out);
    for (size_t i = 0; i < COUNT_OF(FILES); i++)
        if (has_file(path, FILES[i].name))
            buf_printf(out, "  %-12s %s/%s\n", FILES[i].what, path, FILES[i].name);
}
