/* dump OUT - what our readers say of an output folder, one line a thing, tab-separated; check.py prints the same lines
 * with TensorFlow's and TensorBoard's readers.
 *
 *     checkpoint <name> <"latest" or "">
 *     tensor <checkpoint> <name> <type> <shape> <crc32 of the bytes; strings joined by NUL>
 *     scalar <run> <tag> <step> <wall> <value>
 *     histogram <run> <tag> <step> <count> <buckets> <left edge> <right edge>
 *     text <run> <tag> <step> <crc32>
 *     session <run> <step> <status>
 *     curve <run> <tag> <points> <first step> <last step>      as a person sees it: a run that went back is cut
 */
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "cli/curves.h"
#include "tfio/bundle.h"
#include "tfio/checkpoint_state.h"
#include "tfio/event_reader.h"

static int read_bytes(struct bundle *b, const struct bundle_entry *entry, struct buf *ret, struct err *e)
{
    if (entry->dtype != DT_STRING) {
        buf_reserve(ret, entry->size);
        ret->len = entry->size;
        return bundle_read(b, entry, 0, entry->size, ret->data, e);
    }
    for (size_t i = 0; i < shape_elements(&entry->shape); i++) {
        if (i > 0)
            buf_char(ret, 0);
        if (bundle_read_string(b, entry, i, ret, e) < 0)
            return -1;
    }
    return 0;
}

static unsigned long crc_of(const char *data, size_t n)
{
    return crc32_z(0, (const unsigned char *)data, n);
}

static int dump_checkpoint(const char *dir, const char *name, const char *latest, struct err *e)
{
    auto_free char *prefix = path_join(dir, name);
    AUTO(bundle) *b = NULL;

    if (bundle_open(prefix, &b, e) < 0)
        return -1;
    printf("checkpoint\t%s\t%s\n", name, str_eq(name, latest) ? "latest" : "");
    for (size_t i = 0; i < bundle_count(b); i++) {
        const struct bundle_entry *entry = bundle_entry(b, i);
        AUTO_FINI(buf) bytes = BUF_INIT;
        if (read_bytes(b, entry, &bytes, e) < 0)
            return -1;
        printf("tensor\t%s\t%s\t%s\t[", name, entry->name, dtype_name(entry->dtype));
        for (int d = 0; d < entry->shape.rank; d++)
            printf("%s%lld", d > 0 ? ", " : "", (long long)entry->shape.dim[d]);
        printf("]\t%08lx\n", crc_of(bytes.data, bytes.len));
    }
    return 0;
}

static int dump_checkpoints(const char *out, struct err *e)
{
    auto_free char *dir = path_join(out, "checkpoints"), *latest = NULL;
    AUTO_FINI(strlist) all = { 0 };

    if (checkpoint_state_read(dir, &all, &latest, e) < 0)
        return -1;
    for (size_t i = 0; i < all.n; i++)
        if (dump_checkpoint(dir, all.items[i], latest, e) < 0)
            return -1;
    return 0;
}

static void dump_event(const char *run, const struct event *ev)
{
    switch (ev->kind) {
    case EVENT_SCALAR:
        printf("scalar\t%s\t%s\t%lld\t%.6f\t%.8g\n", run, ev->tag, (long long)ev->step, ev->wall, ev->value);
        break;
    case EVENT_HISTOGRAM:
        printf("histogram\t%s\t%s\t%lld\t%.0f\t%zu\t%.8g\t%.8g\n", run, ev->tag, (long long)ev->step, ev->value,
               ev->nbuckets, ev->nbuckets > 0 ? ev->buckets[0].left : 0,
               ev->nbuckets > 0 ? ev->buckets[ev->nbuckets - 1].right : 0);
        break;
    case EVENT_TEXT:
        printf("text\t%s\t%s\t%lld\t%08lx\n", run, ev->tag, (long long)ev->step, crc_of(ev->text, strlen(ev->text)));
        break;
    case EVENT_SESSION:
        printf("session\t%s\t%lld\t%.0f\n", run, (long long)ev->step, ev->value);
        break;
    case EVENT_OTHER:
        break;
    }
}

static int dump_events(const char *dir, struct err *e)
{
    AUTO(event_reader) *r = NULL;
    struct event ev;
    char run[512];
    int more;

    if (event_reader_open(dir, &r, e) < 0)
        return -1;
    while ((more = event_reader_next(r, &ev, e)) == 1)
        dump_event(event_reader_run(r, &ev, run, sizeof(run)), &ev);
    return more;
}

static int dump_curves(const char *dir, struct err *e)
{
    AUTO_FINI(series_set) s = SERIES_SET_INIT;
    if (series_load(dir, &s, NULL, e) < 0)
        return -1;
    for (size_t i = 0; i < s.n; i++)
        if (s.items[i].n > 0)
            printf("curve\t%s\t%s\t%zu\t%.0f\t%.0f\n", s.items[i].run, s.items[i].tag, s.items[i].n,
                   s.items[i].steps[0], s.items[i].steps[s.items[i].n - 1]);
    return 0;
}

int main(int argc, char **argv)
{
    struct err e = { .code = ERR_NONE };
    if (argc != 2)
        return fprintf(stderr, "usage: dump OUT\n"), 2;
    auto_free char *summaries = path_join(argv[1], "summaries");
    if (dump_checkpoints(argv[1], &e) < 0 || dump_events(summaries, &e) < 0 || dump_curves(summaries, &e) < 0)
        return fprintf(stderr, "error: %s\n", e.msg), 1;
    return 0;
}
