/* Finds the texts, and writes them into one file, sorted by class or mixed. All texts with labels are mixed, so that
 * the blocks in which records are shuffled have all classes, and so do both parts of a split. */
#include "data/text_files.h"

#include <string.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "codec/json.h"
#include "data/cached_copy.h"
#include "data/class_files.h"
#include "data/converted.h"
#include "data/transcode.h"

enum { TEXT_FILE_MAX = 64 << 20 };

static const struct class_suffix TEXT_SUFFIXES[] = { { ".txt", true } };
static const struct class_files_kind TEXT_FILES = { .suffixes = TEXT_SUFFIXES,
                                                    .n = COUNT_OF(TEXT_SUFFIXES),
                                                    .what = "texts",
                                                    .files = "text files (.txt)",
                                                    .unread = "they are not texts" };

struct text_files {
    const struct data_place *at;
    struct class_files files;
};

static void text_files_fini(struct text_files *t)
{
    class_files_fini(&t->files);
}
DEFINE_AUTO_FINI(text_files, text_files_fini);

/* ---- a record ---- */

static int read_text(const struct data_place *at, const char *path, struct buf *ret, struct err *e)
{
    AUTO_FINI(buf) content = BUF_INIT;
    if (file_read(path, TEXT_FILE_MAX, &content, e) < 0)
        return -1;
    const struct encoded_text text = { .p = (const unsigned char *)content.data, .n = content.len, .path = path };
    if (converted_text(at->spec->encoding, &text, ret, e) < 0)
        return -1;
    if (strlen(ret->data) < ret->len)
        return err_set(e, ERR_INPUT, "%s: is not a text: it has a NUL, in its byte %zu", path, strlen(ret->data) + 1);
    return 0;
}

/* A name that is not UTF-8 has question marks and spaces in place of what cannot be written. */
static json_t *name_json(const char *name)
{
    AUTO_FINI(buf) shown = BUF_INIT;
    json_t *v = json_string(name);
    if (v != NULL)
        return v;
    buf_shown(&shown, name, strlen(name));
    return json_string(shown.data);
}

static int write_record(const struct text_files *t, size_t i, struct buf *line, struct file_out *out, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    auto_free char *path = class_files_path(&t->files, i);
    json_auto_t *record = json_object();
    if (read_text(t->at, path, &text, e) < 0)
        return -1;
    json_object_set_new(record, "text", json_stringn(text.data, text.len));
    if (t->files.classes.n > 0)
        json_object_set_new(record, "label", json_integer(t->files.v[i].label));
    json_object_set_new(record, "path", name_json(class_files_name(&t->files, i)));
    buf_clear(line);
    json_emit(record, line);
    buf_char(line, '\n');
    return file_out_write(out, line->data, line->len, e);
}

static int write_records(void *user, struct file_out *out, struct err *e)
{
    const struct text_files *t = user;
    AUTO_FINI(buf) line = BUF_INIT;
    for (size_t i = 0; i < t->files.n; i++)
        if (write_record(t, i, &line, out, e) < 0)
            return -1;
    return 0;
}

/* ---- the file ---- */

/* Of what determines the content: names, classes and order, and *ret_modified also of sizes and times. */
static int hash_of(const struct text_files *t, uint64_t *ret, uint64_t *ret_modified, struct err *e)
{
    uint64_t h = hash64_mix(t->files.n, (uint64_t)t->at->spec->encoding), m = h;
    for (size_t i = 0; i < t->files.n; i++) {
        const char *name = class_files_name(&t->files, i);
        auto_free char *path = class_files_path(&t->files, i);
        struct stat st;
        if (stat(path, &st) < 0)
            return err_errno(e, ERR_INPUT, "%s", path);
        h = hash64_mix(hash64(name, strlen(name), h), (uint64_t)t->files.v[i].label);
        m = hash64_mix(hash64_mix(m, (uint64_t)st.st_size),
                       hash64_mix((uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec));
    }
    *ret = h;
    *ret_modified = hash64_mix(h, m);
    return 0;
}

int text_files_open(const struct data_place *at, struct data_files *ret, struct err *e)
{
    AUTO_FINI(text_files) t = { .at = at, .files = { .names = BUF_INIT } };
    AUTO(file_map) *map = NULL;
    bool mixed = at->spec->images.mixed || at->spec->label.n > 0;
    uint64_t names, modified;
    if (class_files_find(at, &TEXT_FILES, mixed, &t.files, e) < 0 || hash_of(&t, &names, &modified, e) < 0)
        return -1;
    const struct cached_copy copy = {
        .name = "texts", .key = modified, .path = t.files.root, .what = "a directory of texts", .how = "copy"
    };
    if (cached_copy_open(at, &copy, write_records, &t, &map, e) < 0)
        return -1;
    *ret = (struct data_files){ .file = xcalloc(1, sizeof(*ret->file)), .n = 1 };
    uint64_t fingerprint = hash64_mix(names, hash64_mix(map->size, data_fingerprint(map->data, map->size)));
    ret->file[0] = (struct data_file){ .map = TAKE(map),
                                       .path = xstrdup(t.files.root),
                                       .fingerprint = fingerprint,
                                       .cache_key = hash64_mix(fingerprint, modified) };
    for (size_t i = 0; i < t.files.classes.n; i++)
        strlist_add(&ret->classes, t.files.classes.items[i]);
    class_files_notes(&t.files, &TEXT_FILES, &ret->notes);
    return 0;
}
