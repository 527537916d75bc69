/* Reads and writes a CheckpointState (python/training/checkpoint_state.proto) in protobuf's text format; only its
 * strings matter here. */
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

int checkpoint_state_read(const char *dir, struct strlist *ret_all, char **ret_latest, struct err *e)
{
    auto_free char *path = path_join(dir, "checkpoint");
    AUTO_FINI(buf) text = BUF_INIT;

    if (file_read(path, STATE_SIZE_MAX, &text, e) < 0)
        return -1;
    if (checkpoint_state_parse(text.data, text.len, ret_all, ret_latest, e) < 0)
        return err_wrap(e, "%s", path);
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
