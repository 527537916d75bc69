/* Finds event files in folders and takes records off them. A record that is cut is one that is still being written; one
 * with a wrong checksum ends its file. */
#include "tfio/event_reader.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "codec/crc32c.h"
#include "tfio/event_value.h"

enum { FOLDERS_DEEP = 16, HEADER_SIZE = 12, FRAME_SIZE = 16 };
#define RECORD_MAX (1ULL << 30)

struct event_file {
    char *path;
    int fd;
    uint64_t offset; /* of the next record */
    bool dead;
    struct map plugins; /* of its tags */
};

struct event_reader {
    char *root;
    struct event_file *files;
    size_t n, current; /* the file that the next record comes from */
    struct buf data;   /* the record under way */
    struct event_record record;
    struct event_value value;
};

static void add_file(struct event_reader *r, const char *path)
{
    r->files = xrealloc(r->files, (r->n + 1) * sizeof(*r->files));
    r->files[r->n++] = (struct event_file){ .path = xstrdup(path), .fd = -1 };
}

/* TensorBoard's rule: every file whose name contains "tfevents". */
static int add_folder(struct event_reader *r, const char *dir, int deep, struct err *e)
{
    AUTO_FINI(strlist) names = { 0 };
    if (deep > FOLDERS_DEEP)
        return 0;
    if (dir_list(dir, &names, e) < 0)
        return -1;
    for (size_t i = 0; i < names.n; i++) {
        auto_free char *path = path_join(dir, names.items[i]);
        if (file_is_dir(path)) {
            if (add_folder(r, path, deep + 1, e) < 0)
                return -1;
        } else if (strstr(names.items[i], "tfevents") != NULL) {
            add_file(r, path);
        }
    }
    return 0;
}

int event_reader_open(const char *path, struct event_reader **ret, struct err *e)
{
    AUTO(event_reader) *r = xcalloc(1, sizeof(*r));
    uint64_t ignored;

    r->root = xstrdup(path);
    r->data = (struct buf)BUF_INIT;
    r->value = (struct event_value)EVENT_VALUE_INIT;
    if (file_is_dir(path)) {
        if (add_folder(r, path, 0, e) < 0)
            return -1;
    } else {
        if (file_size(path, &ignored, e) < 0)
            return -1;
        add_file(r, path);
    }
    *ret = TAKE(r);
    return 0;
}

void event_reader_free(struct event_reader *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->n; i++) {
        struct event_file *f = &r->files[i];
        const struct map_slot *plugin;
        for (size_t k = 0; (plugin = map_next(&f->plugins, &k)) != NULL;)
            free(plugin->value);
        map_fini(&f->plugins);
        fd_close(f->fd);
        free(f->path);
    }
    free(r->files);
    free(r->root);
    buf_fini(&r->data);
    event_record_fini(&r->record);
    event_value_fini(&r->value);
    free(r);
}

static int read_at(const struct event_file *f, uint64_t offset, void *ret, size_t n, struct err *e)
{
    char *to = ret;
    while (n > 0) {
        ssize_t got = pread(f->fd, to, n, (off_t)offset);
        if (got < 0)
            return file_error(f->path, e);
        if (got == 0)
            return err_set(e, ERR_IO, "%s: became shorter while it was read", f->path);
        to += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return 0;
}

static bool masked_is(const void *stored, const void *data, size_t n)
{
    struct reader r = reader_of(stored, sizeof(uint32_t));
    uint32_t masked;
    return reader_u32le(&r, &masked) == 0 && crc32c_unmask(masked) == crc32c(0, data, n);
}

/* Bytes of the file now. */
static int size_now(struct event_file *f, uint64_t *ret, struct err *e)
{
    struct stat st;
    if (f->fd < 0 && file_open(f->path, &f->fd, e) < 0)
        return -1;
    if (fstat(f->fd, &st) < 0)
        return file_error(f->path, e);
    *ret = (uint64_t)st.st_size;
    return 0;
}

/* 1: the next record is in *data; 0: there is none that is whole, yet. */
static int next_record(struct event_file *f, struct buf *data, struct err *e)
{
    unsigned char header[HEADER_SIZE];
    uint64_t size, length;

    if (size_now(f, &size, e) < 0)
        return -1;
    if (size < f->offset || size - f->offset < FRAME_SIZE)
        return 0;
    if (read_at(f, f->offset, header, sizeof(header), e) < 0)
        return -1;
    struct reader r = reader_of(header, sizeof(header));
    if (reader_u64le(&r, &length) < 0 || !masked_is(header + 8, header, 8) || length > RECORD_MAX)
        return err_set(e, ERR_INPUT, "%s: damaged at byte %" PRIu64 " (checksum of a record's length)", f->path,
                       f->offset);
    if (size - f->offset - FRAME_SIZE < length)
        return 0;
    size_t n = (size_t)length;
    buf_clear(data);
    buf_reserve(data, n + sizeof(uint32_t));
    if (read_at(f, f->offset + HEADER_SIZE, data->data, n + sizeof(uint32_t), e) < 0)
        return -1;
    if (!masked_is(data->data + n, data->data, n))
        return err_set(e, ERR_INPUT, "%s: damaged at byte %" PRIu64 " (checksum of a record)", f->path, f->offset);
    data->data[data->len = n] = '\0';
    f->offset += FRAME_SIZE + length;
    return 1;
}

static int set_malformed(struct event_file *f, struct err *e)
{
    f->dead = true;
    return err_set(e, ERR_INPUT, "%s: a record before byte %" PRIu64 " is not an event", f->path, f->offset);
}

static void set_event(const struct event_reader *r, const struct event_file *f, struct event *ret)
{
    const struct event_value *v = &r->value;
    *ret = (struct event){ .kind = v->kind,
                           .wall = r->record.wall,
                           .step = r->record.step,
                           .tag = v->tag,
                           .plugin = v->plugin,
                           .value = v->value,
                           .text = v->text.data,
                           .buckets = v->buckets,
                           .nbuckets = v->nbuckets,
                           .file = f->path };
}

/* 1: *ret is set; 0: nothing more in this file now. */
static int next_in_file(struct event_reader *r, struct event_file *f, struct event *ret, struct err *e)
{
    for (;;) {
        if (event_record_next(&r->record, &f->plugins, &r->value)) {
            set_event(r, f, ret);
            return 1;
        }
        event_record_fini(&r->record);
        int more = next_record(f, &r->data, e);
        if (more <= 0) {
            f->dead = more < 0;
            return more;
        }
        if (event_record_read(r->data.data, r->data.len, &r->record) < 0)
            return set_malformed(f, e);
    }
}

int event_reader_next(struct event_reader *r, struct event *ret, struct err *e)
{
    for (size_t tried = 0; tried < r->n; tried++) {
        struct event_file *f = &r->files[r->current];
        int more = f->dead ? 0 : next_in_file(r, f, ret, e);
        if (more == 1)
            return 1;
        r->current = (r->current + 1) % r->n;
        if (more < 0)
            return -1;
    }
    r->current = 0;
    return 0;
}

const char *event_reader_run(const struct event_reader *r, const struct event *event, char *out, size_t n)
{
    size_t root = strlen(r->root);
    auto_free char *dir = path_dir(event->file);
    const char *inside = str_starts(dir, r->root) ? dir + root : "";

    inside += strspn(inside, "/");
    str_fmt(out, n, "%s", *inside != '\0' ? inside : ".");
    return out;
}
