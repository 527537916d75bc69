#include "checkpoint_path.h"

#include <string.h>

#include "base/file.h"
#include "train/bundle.h"

static int newest_in(const char *dir, char **ret_prefix, struct err *e)
{
    AUTO_FINI(strlist) all = { 0 };
    auto_free char *latest = NULL;
    if (state_read(dir, &all, &latest, e) < 0)
        return -1;
    *ret_prefix = path_join(dir, latest);
    return 0;
}

int checkpoint_path(const char *path, char **ret_prefix, struct err *e)
{
    if (file_is_dir(path)) {
        auto_free char *below = path_join(path, "checkpoints");
        auto_free char *state = path_join(path, "checkpoint");
        if (!file_exists(state) && file_is_dir(below))
            return newest_in(below, ret_prefix, e);
        if (!file_exists(state))
            return err_set(e, ERR_NOT_FOUND, "%s: no checkpoint is there (neither a file checkpoint nor a folder checkpoints)", path);
        return newest_in(path, ret_prefix, e);
    }
    const char *base = strrchr(path, '/'), *data = strstr(base != NULL ? base : path, ".data-");
    if (str_ends(path, ".index"))
        *ret_prefix = xstrndup(path, strlen(path) - strlen(".index"));
    else if (data != NULL && file_exists(path))
        *ret_prefix = xstrndup(path, (size_t)(data - path));
    else
        *ret_prefix = xstrdup(path);
    return 0;
}
