/* Finds the checkpoint for a path on the command line: a run, a folder of checkpoints, or a prefix. */
#include "chief/checkpoint_path.h"

#include <string.h>

#include "base/file.h"
#include "chief/output_dir.h"
#include "tfio/checkpoint_state.h"

static int newest_in(const char *dir, char **ret_prefix, struct err *e)
{
    AUTO_FINI(strlist) all = { 0 };
    auto_free char *latest = NULL;
    if (checkpoint_state_read(dir, &all, &latest, e) < 0)
        return -1;
    *ret_prefix = path_join(dir, latest);
    return 0;
}

/* A folder without the file `checkpoint`: people copy a prefix without it. One prefix is taken, several are named. */
static int only_one_in(const char *dir, char **ret_prefix, struct err *e)
{
    AUTO_FINI(strlist) names = { 0 };
    const char *found = NULL;

    if (dir_list(dir, &names, e) < 0)
        return -1;
    for (size_t i = 0; i < names.n; i++) {
        if (!str_ends(names.items[i], ".index"))
            continue;
        if (found != NULL)
            return err_set(e, ERR_INPUT, "%s has several checkpoints and no file 'checkpoint': name one, as in %s/%.*s",
                           dir, dir, (int)(strlen(found) - strlen(".index")), found);
        found = names.items[i];
    }
    if (found == NULL)
        return err_set(e, ERR_NOT_FOUND,
                       "%s: no checkpoint is there (no file checkpoint, *.index or folder checkpoints)", dir);
    auto_free char *prefix = xstrndup(found, strlen(found) - strlen(".index"));
    *ret_prefix = path_join(dir, prefix);
    return 0;
}

static int in_folder(const char *dir, char **ret_prefix, struct err *e)
{
    auto_free char *below = path_join(dir, "checkpoints");
    auto_free char *state = path_join(dir, "checkpoint");
    if (file_exists(state))
        return newest_in(dir, ret_prefix, e);
    return file_is_dir(below) ? output_dir_model(dir, ret_prefix, e) : only_one_in(dir, ret_prefix, e);
}

int checkpoint_path(const char *path, char **ret_prefix, struct err *e)
{
    const char *base = strrchr(path, '/'), *data = strstr(base != NULL ? base : path, ".data-");
    if (file_is_dir(path))
        return in_folder(path, ret_prefix, e);
    if (str_ends(path, ".index") || (data != NULL && file_exists(path))) {
        *ret_prefix = xstrndup(path, data != NULL ? (size_t)(data - path) : strlen(path) - strlen(".index"));
        return 0;
    }
    auto_free char *index = xasprintf("%s.index", path);
    if (!file_exists(index))
        return err_set(e, ERR_NOT_FOUND,
                       file_exists(path) ? "%s is not a TensorFlow V2 checkpoint (%s.index does not exist)"
                                         : "no checkpoint %s (no such folder, and no %s.index)",
                       path, path);
    *ret_prefix = xstrdup(path);
    return 0;
}
