/* Metrics in families of one name, and Prometheus's text format. Values are relaxed atomics; the lock is for making
 * metrics and for a scrape. */
#include "net/registry.h"

#include <dirent.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/opt.h"
#include "base/thread.h"

enum kind { COUNTER, GAUGE, HISTOGRAM };
static const char *const KINDS[] = { [COUNTER] = "counter", [GAUGE] = "gauge", [HISTOGRAM] = "histogram" };

/* One line of a family (a histogram: several). */
struct metric {
    struct metric *next;
    char *labels; /* as emitted, without the braces: role="worker",index="3" */
    metric_fn *read;
    void *user;
    double scale;
};
struct counter {
    struct metric m; /* first, so that the two convert into each other */
    _Atomic uint64_t n;
};
struct gauge {
    struct metric m;
    _Atomic double v;
};
struct histogram {
    struct metric m;
    size_t nbounds;
    double *bounds;
    _Atomic double sum;
    _Atomic uint64_t counts[]; /* nbounds + 1 */
};

struct family {
    struct family *next;
    char *name, *help;
    enum kind kind;
    struct metric *first, **last;
};

struct registry {
    struct mutex lock;
    struct family *first, **last;
};

struct registry *registry_new(void)
{
    struct registry *r = xcalloc(1, sizeof(*r));
    mutex_init(&r->lock);
    r->last = &r->first;
    return r;
}

static void metric_free(enum kind kind, struct metric *m)
{
    if (kind == HISTOGRAM)
        free(((struct histogram *)m)->bounds);
    free(m->labels);
    free(m);
}

static void family_free(struct family *f)
{
    while (f->first != NULL) {
        struct metric *m = f->first;
        f->first = m->next;
        metric_free(f->kind, m);
    }
    free(f->name);
    free(f->help);
    free(f);
}

void registry_free(struct registry *r)
{
    if (r == NULL)
        return;
    while (r->first != NULL) {
        struct family *f = r->first;
        r->first = f->next;
        family_free(f);
    }
    mutex_fini(&r->lock);
    free(r);
}

/* ---- making ---- */

static void must(bool good, const char *name, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "error: metric '%s': %s\n", name, what);
    abort();
}

static bool name_is_valid(const char *s, bool colon)
{
    const char *first = colon ? "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:"
                              : "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    if (s[0] == '\0' || strchr(first, s[0]) == NULL)
        return false;
    for (; *s != '\0'; s++)
        if (strchr(first, *s) == NULL && strchr("0123456789", *s) == NULL)
            return false;
    return true;
}

/* Text format 0.0.4: \\ and \n everywhere, \" in label values. */
static void put_escaped(struct buf *b, const char *s, bool quotes)
{
    for (; *s != '\0'; s++) {
        if (*s == '\n')
            buf_str(b, "\\n");
        else if (*s == '\\' || (quotes && *s == '"'))
            buf_printf(b, "\\%c", *s);
        else
            buf_char(b, *s);
    }
}

static char *labels_text(const char *name, const struct label *labels)
{
    AUTO_FINI(buf) b = BUF_INIT;
    for (; labels != NULL && labels->name != NULL; labels++) {
        must(name_is_valid(labels->name, false), name, "a label has a bad name");
        buf_printf(&b, "%s%s=\"", b.len > 0 ? "," : "", labels->name);
        put_escaped(&b, labels->value, true);
        buf_char(&b, '"');
    }
    return buf_detach(&b);
}

static struct family *family_of(struct registry *r, const char *name, const char *help, enum kind kind)
{
    for (struct family *f = r->first; f != NULL; f = f->next) {
        if (strcmp(f->name, name) != 0)
            continue;
        must(f->kind == kind, name, "was another kind before");
        return f;
    }
    must(name_is_valid(name, true), name, "bad name");
    struct family *f = xcalloc(1, sizeof(*f));
    f->name = xstrdup(name);
    f->help = xstrdup(help);
    f->kind = kind;
    f->last = &f->first;
    *r->last = f;
    r->last = &f->next;
    return f;
}

/* The metric with these labels, made with `size` bytes when it is new. The lock is held. */
static void *metric_of(struct registry *r, const char *name, const char *help, const struct label *labels,
                       enum kind kind, size_t size)
{
    struct family *f = family_of(r, name, help, kind);
    auto_free char *text = labels_text(name, labels);
    for (struct metric *m = f->first; m != NULL; m = m->next)
        if (strcmp(m->labels, text) == 0)
            return m;
    struct metric *m = xcalloc(1, size);
    m->labels = TAKE(text);
    m->scale = 1;
    *f->last = m;
    f->last = &m->next;
    return m;
}

struct counter *registry_counter_scaled(struct registry *r, const char *name, const char *help,
                                        const struct label *labels, double scale)
{
    MUTEX_GUARD(&r->lock);
    struct counter *c = metric_of(r, name, help, labels, COUNTER, sizeof(*c));
    c->m.scale = scale;
    return c;
}

struct counter *registry_counter(struct registry *r, const char *name, const char *help, const struct label *labels)
{
    return registry_counter_scaled(r, name, help, labels, 1);
}

struct gauge *registry_gauge(struct registry *r, const char *name, const char *help, const struct label *labels)
{
    MUTEX_GUARD(&r->lock);
    return metric_of(r, name, help, labels, GAUGE, sizeof(struct gauge));
}

void registry_gauge_fn(struct registry *r, const char *name, const char *help, const struct label *labels,
                       metric_fn *read, void *user)
{
    MUTEX_GUARD(&r->lock);
    struct gauge *g = metric_of(r, name, help, labels, GAUGE, sizeof(*g));
    g->m.read = read;
    g->m.user = user;
}

void registry_counter_fn(struct registry *r, const char *name, const char *help, const struct label *labels,
                         metric_fn *read, void *user)
{
    MUTEX_GUARD(&r->lock);
    struct counter *c = metric_of(r, name, help, labels, COUNTER, sizeof(*c));
    c->m.read = read;
    c->m.user = user;
}

struct histogram *registry_histogram(struct registry *r, const char *name, const char *help, const struct label *labels,
                                     const double *bounds, size_t nbounds)
{
    MUTEX_GUARD(&r->lock);
    struct histogram *h =
        metric_of(r, name, help, labels, HISTOGRAM, sizeof(*h) + (nbounds + 1) * sizeof(h->counts[0]));
    if (h->bounds == NULL) {
        h->nbounds = nbounds;
        h->bounds = xmemdup(bounds, nbounds * sizeof(*bounds));
    }
    must(h->nbounds == nbounds, name, "had other bounds before");
    return h;
}

/* ---- counting ---- */

void counter_add(struct counter *c, uint64_t n)
{
    atomic_fetch_add_explicit(&c->n, n, memory_order_relaxed);
}

uint64_t counter_value(const struct counter *c)
{
    return atomic_load_explicit(&c->n, memory_order_relaxed);
}

void gauge_set(struct gauge *g, double v)
{
    atomic_store_explicit(&g->v, v, memory_order_relaxed);
}

double gauge_value(const struct gauge *g)
{
    return atomic_load_explicit(&g->v, memory_order_relaxed);
}

void histogram_observe(struct histogram *h, double v)
{
    size_t i = 0;
    while (i < h->nbounds && !(v <= h->bounds[i]))
        i++;
    atomic_fetch_add_explicit(&h->counts[i], 1, memory_order_relaxed);
    double old = atomic_load_explicit(&h->sum, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&h->sum, &old, old + v, memory_order_relaxed, memory_order_relaxed))
        continue;
}

/* ---- emitting ---- */

static void put_value(struct buf *b, double v)
{
    if (isnan(v))
        buf_str(b, "NaN");
    else if (isinf(v))
        buf_str(b, v > 0 ? "+Inf" : "-Inf");
    else if (fabs(v) < 1e15 && floor(v) == v)
        buf_printf(b, "%.0f", v);
    else
        buf_printf(b, "%.10g", v);
}

/* name{labels} value, where `extra` is one more label or "" */
static void put_line(struct buf *b, const struct family *f, const char *suffix, const struct metric *m,
                     const char *extra, double v)
{
    bool both = m->labels[0] != '\0' && extra[0] != '\0', any = m->labels[0] != '\0' || extra[0] != '\0';
    buf_printf(b, "%s%s%s%s%s%s%s ", f->name, suffix, any ? "{" : "", m->labels, both ? "," : "", extra,
               any ? "}" : "");
    put_value(b, v);
    buf_char(b, '\n');
}

static void put_histogram(struct buf *b, const struct family *f, const struct histogram *h)
{
    uint64_t below = 0;
    for (size_t i = 0; i <= h->nbounds; i++) {
        AUTO_FINI(buf) le = BUF_INIT;
        buf_str(&le, "le=\"");
        put_value(&le, i < h->nbounds ? h->bounds[i] : (double)INFINITY);
        buf_char(&le, '"');
        below += atomic_load_explicit(&h->counts[i], memory_order_relaxed);
        put_line(b, f, "_bucket", &h->m, le.data, (double)below);
    }
    put_line(b, f, "_sum", &h->m, "", atomic_load_explicit(&h->sum, memory_order_relaxed));
    put_line(b, f, "_count", &h->m, "", (double)below);
}

static void put_metric(struct buf *b, const struct family *f, struct metric *m)
{
    if (f->kind == HISTOGRAM)
        put_histogram(b, f, (struct histogram *)m);
    else if (m->read != NULL)
        put_line(b, f, "", m, "", m->read(m->user));
    else if (f->kind == COUNTER)
        put_line(b, f, "", m, "", (double)counter_value((struct counter *)m) * m->scale);
    else
        put_line(b, f, "", m, "", gauge_value((struct gauge *)m));
}

void registry_emit(struct registry *r, struct buf *out)
{
    MUTEX_GUARD(&r->lock);
    for (const struct family *f = r->first; f != NULL; f = f->next) {
        buf_printf(out, "# HELP %s ", f->name);
        put_escaped(out, f->help, false);
        buf_printf(out, "\n# TYPE %s %s\n", f->name, KINDS[f->kind]);
        for (struct metric *m = f->first; m != NULL; m = m->next)
            put_metric(out, f, m);
    }
}

/* ---- of every process ---- */

static double cpu_seconds(void *user UNUSED)
{
    return (double)clock_cpu_ns() / 1e9;
}

static double resident_bytes(void *user UNUSED)
{
    return (double)mem_resident();
}

static double open_fds(void *user UNUSED)
{
    DIR *d = opendir("/proc/self/fd");
    double n = -3; /* ".", ".." and the folder itself */
    if (d == NULL)
        return (double)NAN;
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

void registry_add_process(struct registry *r)
{
    registry_counter_fn(r, "process_cpu_seconds_total", "User and system CPU time.", NULL, cpu_seconds, NULL);
    registry_gauge_fn(r, "process_resident_memory_bytes", "Resident memory.", NULL, resident_bytes, NULL);
    registry_gauge_fn(r, "process_open_fds", "Open file descriptors.", NULL, open_fds, NULL);
    gauge_set(registry_gauge(r, "process_start_time_seconds", "When the process began, seconds since the epoch.", NULL),
              clock_wall());
    gauge_set(registry_gauge(r, "trainyard_build_info", "1; the version is the label.",
                             LABELS({ "version", TRAINYARD_VERSION })),
              1);
}
