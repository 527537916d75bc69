/* Chooses the encoding of a csv file and converts it once, into the cache folder. The pass over the bytes that tells
 * UTF-8 from Windows-1252 is also made once for a large file: the copy, or a mark in the cache folder, has its result.
 */
#include "data/converted.h"

#include <string.h>

#include "base/log.h"
#include "base/rng.h"
#include "data/cached_copy.h"
#include "data/file_kind.h"
#include "data/text.h"
#include "data/transcode.h"

enum { MARKED_FROM = 16 << 20 }; /* bytes; smaller files are checked at every open, in a few milliseconds */

struct conversion {
    const struct data_place *at;
    enum data_encoding said;
    struct encoded_text text;
    const char *name;
    uint64_t key; /* of the bytes, and of what the manifest says about them */
    struct file_out *out;
};

static int write_piece(void *user, const void *data, size_t n, struct err *e)
{
    struct conversion *c = user;
    return file_out_write(c->out, data, n, e);
}

static int convert_to(void *user, struct file_out *out, struct err *e)
{
    struct conversion *c = user;
    c->out = out;
    return transcode_pieces(&c->text, write_piece, c, e);
}

static struct cached_copy copy_of(const struct conversion *c)
{
    return (struct cached_copy){ .name = c->name,
                                 .key = c->key,
                                 .path = c->text.path,
                                 .what = c->text.encoding == TEXT_WINDOWS_1252 ? "not UTF-8" : "UTF-16",
                                 .how = "convert" };
}

/* The empty file that says: these bytes are used as they are. NULL: none is kept. */
static char *mark_path(const struct conversion *c)
{
    bool kept = c->at->cache_dir != NULL && c->text.n >= MARKED_FROM;
    return kept ? cache_path(c->at, c->name, c->key, "utf8") : NULL;
}

static void put_mark(const struct conversion *c, const char *mark)
{
    struct err why = { .code = ERR_NONE };
    if (dir_make(c->at->cache_dir, &why) < 0 || file_write(mark, "", 0, &why) < 0)
        log_debug("the encoding of %s is not remembered: %s", c->text.path, why.msg);
}

/* Whether the bytes are used as they are; else *ret_bad is the first that cannot be. */
static bool is_utf8(const struct conversion *c, size_t *ret_bad)
{
    auto_free char *mark = mark_path(c);
    if (mark != NULL && file_exists(mark))
        return true;
    bool latin1 = c->said == ENCODING_LATIN1; /* of which only ASCII is the same in UTF-8 */
    size_t good = latin1 ? transcode_ascii(c->text.p, c->text.n) : transcode_utf8(c->text.p, c->text.n);
    if (good < c->text.n) {
        *ret_bad = good;
        return false;
    }
    if (mark != NULL)
        put_mark(c, mark);
    return true;
}

static int not_utf8(const struct encoded_text *text, size_t bad, bool utf16, struct err *e)
{
    size_t line, column;
    text_place(text->p, text->p + bad, &line, &column);
    return err_set(e, ERR_INPUT, "%s:%zu:%zu: this is not UTF-8; set encoding: %s if the file has that encoding",
                   text->path, line, column, utf16 ? "utf-16" : "latin-1");
}

/* UTF-16 by the word of the manifest, or by how the text begins. */
static bool is_utf16(enum data_encoding said, enum text_encoding guess)
{
    return said == ENCODING_UTF16 || (said == ENCODING_AUTO && guess != TEXT_UTF8);
}

/* Sets the encoding to convert from; TEXT_UTF8: the bytes are used as they are. */
static int choose(struct conversion *c, struct err *e)
{
    enum text_encoding guess = transcode_guess(c->text.p, c->text.n);
    size_t bad;
    if (is_utf16(c->said, guess)) {
        c->text.encoding = guess != TEXT_UTF8 ? guess : TEXT_UTF16LE;
        return 0;
    }
    struct cached_copy copy = copy_of(c);
    if (cached_copy_exists(c->at, &copy)) {
        c->text.encoding = TEXT_WINDOWS_1252;
        return 0;
    }
    if (is_utf8(c, &bad))
        return 0;
    if (c->said == ENCODING_UTF8)
        return not_utf8(&c->text, bad, guess != TEXT_UTF8, e);
    log_debug("%s: is not UTF-8 at byte %zu: it is read as Windows-1252", c->text.path, bad);
    c->text.encoding = TEXT_WINDOWS_1252;
    return 0;
}

int converted_open(const struct data_place *at, const struct original *o, const struct file_map *content,
                   struct file_map **ret, struct err *e)
{
    enum data_encoding said = at->spec->encoding;
    struct conversion c = { .at = at,
                            .said = said,
                            .text = { .p = content->data, .n = content->size, .path = o->path },
                            .name = o->name,
                            .key = hash64_mix(o->fingerprint, hash64_mix(o->modified, said)) };
    if (file_kind_check(content->data, content->size, o->path, "csv", e) < 0 || choose(&c, e) < 0)
        return -1;
    if (c.text.encoding == TEXT_UTF8) {
        *ret = NULL;
        return 0;
    }
    struct cached_copy copy = copy_of(&c);
    return cached_copy_open(at, &copy, convert_to, &c, ret, e);
}

/* ---- a text that is in memory ---- */

static int append_piece(void *user, const void *data, size_t n, struct err *e UNUSED)
{
    buf_add(user, data, n);
    return 0;
}

int converted_text(enum data_encoding said, const struct encoded_text *text, struct buf *ret, struct err *e)
{
    struct encoded_text t = *text;
    enum text_encoding guess = transcode_guess(t.p, t.n);
    size_t good = said == ENCODING_LATIN1 ? transcode_ascii(t.p, t.n) : transcode_utf8(t.p, t.n);
    t.encoding = !is_utf16(said, guess) ? TEXT_WINDOWS_1252 : guess != TEXT_UTF8 ? guess : TEXT_UTF16LE;
    if (t.encoding != TEXT_WINDOWS_1252 || (good < t.n && said != ENCODING_UTF8))
        return transcode_pieces(&t, append_piece, ret, e);
    if (good < t.n)
        return not_utf8(text, good, guess != TEXT_UTF8, e);
    size_t mark = t.n >= 3 && memcmp(t.p, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    buf_add(ret, t.p + mark, t.n - mark);
    return 0;
}
