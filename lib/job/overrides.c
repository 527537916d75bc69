/* "--set compile.optimizer.Adam.learning_rate=0.01": one value of the document replaced before the checks. */
#include <string.h>

#include "job/fields.h"

/* "layers[1]" and "layers.1" name the same item. Cuts the next name off *rest; NULL at the end. */
static char *next_name(char **rest)
{
    char *name;
    do
        name = strsep(rest, ".[");
    while (name != NULL && *name == '\0');
    if (name != NULL && str_ends(name, "]"))
        name[strlen(name) - 1] = '\0';
    return name;
}

static int item_index(const json_t *list, const char *name, const char *set, size_t *ret, struct err *e)
{
    int64_t i, n = (int64_t)json_array_size(list);
    if (str_i64(name, 0, n - 1, &i, NULL) < 0)
        return err_set(e, ERR_INPUT, "--set %s: '%s' is not an index of the list; it has %lld", set, name,
                       (long long)n);
    *ret = (size_t)i;
    return 0;
}

/* The value in `parent` at `name`, ready to have members: made when absent, and a name such as `optimizer: Adam`
 * becomes `optimizer: {Adam: {}}` when the next name is that one. */
static int descend(json_t *parent, const char *name, const char *next, const char *set, json_t **ret, bool *ret_made,
                   struct err *e)
{
    size_t i = 0;
    json_t *child;

    if (json_is_array(parent)) {
        if (item_index(parent, name, set, &i, e) < 0)
            return -1;
        child = json_array_get(parent, i);
    } else {
        child = json_object_get(parent, name);
    }
    const char *word = json_string_value(child);
    bool expand = word != NULL && strcmp(word, next) == 0;
    bool made = child == NULL || json_is_null(child) || expand;
    if (made) {
        child = expand ? json_pack("{s:{}}", next) : json_object();
        if ((json_is_array(parent) ? json_array_set_new(parent, i, child) : json_object_set_new(parent, name, child)) <
            0)
            return err_set(e, ERR_INPUT, "--set %s: the name is not UTF-8", set);
    }
    if (!json_is_object(child) && !json_is_array(child))
        return err_set(e, ERR_INPUT, "--set %s: '%s' is a plain value; nothing can be set below it", set, name);
    *ret = child;
    *ret_made = made;
    return 0;
}

static void path_add(struct buf *path, const json_t *parent, const char *name)
{
    if (json_is_array(parent))
        buf_printf(path, "[%s]", name);
    else
        buf_printf(path, ".%s", name);
}

/* Takes v. */
static int put(json_t *parent, const char *name, const char *set, json_t *v, struct err *e)
{
    json_auto_t *value = v;
    size_t i;

    if (!json_is_array(parent) && json_is_null(value) && json_is_object(json_object_get(parent, name))) {
        json_object_del(parent, name); /* a map of null would be an empty one, which may be wrong by itself */
        return 0;
    }
    if (!json_is_array(parent)) {
        if (json_object_set(parent, name, value) < 0)
            return err_set(e, ERR_INPUT, "--set %s: the name is not UTF-8", set);
        return 0;
    }
    if (item_index(parent, name, set, &i, e) < 0)
        return -1;
    json_array_set(parent, i, value);
    return 0;
}

static int parse_value(const char *text, const char *set, json_t **ret, struct err *e)
{
    auto_free char *document = xasprintf("value: %s\n", text);
    json_auto_t *v = NULL;
    AUTO(source) *src = NULL;
    struct err why = { .code = ERR_NONE };

    if (yaml_parse(document, strlen(document), "value", &v, &src, &why) < 0 || json_object_size(v) != 1)
        return err_set(e, ERR_INPUT, "--set %s: '%s' cannot be read as a value", set, text);
    *ret = json_incref(json_object_get(v, "value"));
    return 0;
}

int override_apply(json_t *doc, struct source *src, const char *set, struct err *e)
{
    const char *equals = strchr(set, '=');
    if (equals == NULL || equals == set)
        return err_set(e, ERR_INPUT, "--set %s: must be path=value, such as fit.epochs=1", set);

    auto_free char *names = xstrndup(set, (size_t)(equals - set));
    auto_free char *origin = xasprintf("--set %s", set);
    AUTO_FINI(buf) path = BUF_INIT;
    char *rest = names, *name = next_name(&rest), *next;
    json_t *parent = json_object_get(doc, "spec"), *value;

    bool noted = false;

    /* "spec." in front is what the manifest says, too */
    if (name != NULL && strcmp(name, "spec") == 0)
        name = next_name(&rest);
    if (name == NULL || !json_is_object(parent))
        return err_set(e, ERR_INPUT, "--set %s: must be path=value below spec, such as fit.epochs=1", set);
    buf_str(&path, "spec");
    for (int depth = 2; (next = next_name(&rest)) != NULL; name = next, depth++) {
        bool made;
        if (depth >= JSON_DEPTH_MAX)
            return err_set(e, ERR_INPUT, "--set %.40s...: more than %d names", set, JSON_DEPTH_MAX);
        path_add(&path, parent, name);
        if (descend(parent, name, next, set, &parent, &made, e) < 0)
            return -1;
        if (made && !noted) /* what is below it comes from there too */
            source_override(src, path.data, origin);
        noted = noted || made;
    }
    path_add(&path, parent, name);
    if (parse_value(equals + 1, set, &value, e) < 0 || put(parent, name, set, value, e) < 0)
        return -1;
    if (!noted)
        source_override(src, path.data, origin);
    return 0;
}
