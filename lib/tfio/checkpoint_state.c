/* Reads and writes a CheckpointState (python/training/checkpoint_state.proto) in protobuf's text format; only its
 * strings matter here. People lose this file, and move folders whose file has absolute paths: then the files that are
 * there count. */
#include <ctype.h>
#include <string.h>

#include "base/file.h"
#include "tfio/bundle.h"
#include "tfio/checkpoint_state.h"

enum { STATE_SIZE_MAX = 16 << 20 };

static void put_escaped(struct buf *b, const char *s)
{
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\' || c == '\'')
            buf_printf(b, "\\%c", c);
        else if (c == '\n')
            buf_str(b, "\\n");
        else if (c < 0x20 || c >= 0x7f)
            buf_printf(b, "\\%03o", c);
        else
            buf_char(b, (char)c);
    }
}

/* What follows a backslash: at most three octal digits, or a letter. Returns where it ends, NULL when malformed. */
static const char *take_escape(const char *p, const char *end, struct buf *ret)
{
    static const char LETTERS[] = "n\nt\tr\r\"\"\\\\''";
    int value = 0, digits = 0;

    for (; digits < 3 && p < end && *p >= '0' && *p <= '7'; p++, digits++)
        value = value * 8 + (*p - '0');
    if (digits > 0) {
        buf_char(ret, (char)value);
        return value > 0 && value < 256 ? p : NULL;
    }
    for (size_t i = 0; p < end && i < sizeof(LETTERS) - 1; i += 2) {
        if (*p == LETTERS[i]) {
            buf_char(ret, LETTERS[i + 1]);
            return p + 1;
        }
    }
    return NULL;
}

/* The string in quotes at *p; *p is after it afterwards. */
static int take_string(const char **p, const char *end, struct buf *ret)
{
    const char *at = *p;
    char quote = at < end ? *at : '\0';

    buf_clear(ret);
    if (quote != '"' && quote != '\'')
        return -1;
    for (at++; at < end && *at != quote;) {
        if (*at == '\n' || *at == '\0')
            return -1;
        if (*at != '\\') {
            buf_char(ret, *at++);
            continue;
        }
        at = take_escape(at + 1, end, ret);
        if (at == NULL)
            return -1;
    }
    if (at == end)
        return -1;
    *p = at + 1;
    return 0;
}

static const char *skip(const char *p, const char *end, bool (*what)(char c))
{
    while (p < end && what(*p))
        p++;
    return p;
}

static bool is_space(char c)
{
    return isspace((unsigned char)c);
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '+' || c == '-';
}

static bool is_not_newline(char c)
{
    return c != '\n';
}

/* One `key: value`; *ret_string: its text, empty for numbers (timestamps). */
static int take_field(const char **p, const char *end, struct buf *key, struct buf *ret_string)
{
    const char *at = *p, *word = at;
    at = skip(at, end, is_word);
    buf_clear(key);
    buf_add(key, word, (size_t)(at - word));
    at = skip(at, end, is_space);
    if (key->len == 0 || at == end || *at != ':')
        return -1;
    at = skip(at + 1, end, is_space);
    buf_clear(ret_string);
    if (at < end && is_word(*at))
        at = skip(at, end, is_word);
    else if (take_string(&at, end, ret_string) < 0)
        return -1;
    *p = at;
    return 0;
}

int checkpoint_state_parse(const char *text, size_t n, struct strlist *ret_all, char **ret_latest, struct err *e)
{
    const char *p = text, *end = text + n;
    AUTO_FINI(buf) key = BUF_INIT;
    AUTO_FINI(buf) value = BUF_INIT;
    AUTO_FINI(strlist) all = { 0 };
    auto_free char *latest = NULL;

    for (p = skip(p, end, is_space); p < end; p = skip(p, end, is_space)) {
        if (*p == '#') {
            p = skip(p, end, is_not_newline);
            continue;
        }
        if (take_field(&p, end, &key, &value) < 0)
            return err_set(e, ERR_INPUT, "is malformed at byte %zu", (size_t)(p - text) + 1);
        if (str_eq(key.data, "model_checkpoint_path")) {
            free(latest);
            latest = xstrdup(value.data);
        } else if (str_eq(key.data, "all_model_checkpoint_paths")) {
            strlist_add(&all, value.data);
        }
    }
    if (latest == NULL || latest[0] == '\0')
        return err_set(e, ERR_INPUT, "has no model_checkpoint_path");
    if (!strlist_has(&all, latest))
        strlist_add(&all, latest);
    *ret_latest = TAKE(latest);
    *ret_all = all;
    all = (struct strlist){ 0 };
    return 0;
}

/* ---- the files that are there ---- */

static bool has_index(const char *dir, const char *prefix)
{
    auto_free char *path = path_join(dir, prefix), *index = xasprintf("%s.index", path);
    return file_exists(index);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The prefix, or its last part when only dir has that one. */
static const char *where_it_is(const char *dir, const char *prefix)
{
    const char *base = base_name(prefix);
    return base != prefix && !has_index(dir, prefix) && has_index(dir, base) ? base : prefix;
}

int64_t checkpoint_state_step(const char *prefix)
{
    const char *dash = strstr(base_name(prefix), "ckpt-");
    return dash != NULL ? strtoll(dash + strlen("ckpt-"), NULL, 10) : -1;
}

/* By step; of one step the longer name is the later one (model.ckpt-7, model.ckpt-7-1). */
static int by_step(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    int64_t s = checkpoint_state_step(x), t = checkpoint_state_step(y);
    size_t m = strlen(x), n = strlen(y);
    if (s != t)
        return s < t ? -1 : 1;
    return m != n ? (m < n ? -1 : 1) : strcmp(x, y);
}

static int list_prefixes(const char *dir, struct strlist *ret, struct err *e)
{
    AUTO_FINI(strlist) names = { 0 };
    if (dir_list(dir, &names, e) < 0)
        return -1;
    for (size_t i = 0; i < names.n; i++)
        if (str_ends(names.items[i], ".index")) {
            auto_free char *prefix = xstrndup(names.items[i], strlen(names.items[i]) - strlen(".index"));
            strlist_add(ret, prefix);
        }
    if (ret->n > 1)
        qsort(ret->items, ret->n, sizeof(*ret->items), by_step);
    return 0;
}

/* ---- reading and writing ---- */

int checkpoint_state_read(const char *dir, struct strlist *ret_all, char **ret_latest, struct err *e)
{
    auto_free char *path = path_join(dir, "checkpoint"), *latest = NULL;
    AUTO_FINI(buf) text = BUF_INIT;
    AUTO_FINI(strlist) named = { 0 };

    if (file_read(path, STATE_SIZE_MAX, &text, e) < 0)
        return -1;
    if (checkpoint_state_parse(text.data, text.len, &named, &latest, e) < 0)
        return err_wrap(e, "%s", path);
    for (size_t i = 0; i < named.n; i++)
        strlist_add(ret_all, where_it_is(dir, named.items[i]));
    *ret_latest = xstrdup(where_it_is(dir, latest));
    return 0;
}

int checkpoint_state_find(const char *dir, struct strlist *ret_all, char **ret_latest, char **ret_why, struct err *e)
{
    AUTO_FINI(strlist) there = { 0 };
    struct err cause = { .code = ERR_NONE }, ignored = { .code = ERR_NONE };
    *ret_why = NULL;
    if (checkpoint_state_read(dir, ret_all, ret_latest, &cause) == 0)
        return 0;
    if (!err_is(&cause, ERR_NOT_FOUND) && !err_is(&cause, ERR_INPUT))
        return err_set(e, cause.code, "%s", cause.msg);
    if (list_prefixes(dir, &there, &ignored) < 0 && !err_is(&ignored, ERR_NOT_FOUND))
        return err_set(e, ignored.code, "%s", ignored.msg);
    if (there.n == 0 && err_is(&cause, ERR_INPUT))
        return err_set(e, ERR_INPUT, "%s, and no checkpoint is beside it: remove it to train from the beginning",
                       cause.msg);
    if (there.n == 0)
        return err_set(e, ERR_NOT_FOUND, "%s", cause.msg);
    *ret_latest = xstrdup(there.items[there.n - 1]);
    *ret_why = xstrdup(cause.msg);
    *ret_all = there;
    there = (struct strlist){ 0 };
    return 0;
}

int checkpoint_state_write(const char *dir, const char *latest, const struct strlist *all, struct err *e)
{
    auto_free char *path = path_join(dir, "checkpoint");
    AUTO_FINI(buf) text = BUF_INIT;

    if (!strlist_has(all, latest))
        return err_set(e, ERR_INTERNAL, "%s: '%s' is not among those kept", path, latest);
    buf_str(&text, "model_checkpoint_path: \"");
    put_escaped(&text, latest);
    buf_str(&text, "\"\n");
    for (size_t i = 0; i < all->n; i++) {
        buf_str(&text, "all_model_checkpoint_paths: \"");
        put_escaped(&text, all->items[i]);
        buf_str(&text, "\"\n");
    }
    return file_write(path, text.data, text.len, e);
}
