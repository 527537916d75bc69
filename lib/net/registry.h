/* registry - the numbers that a process exposes on /metrics: counters, gauges and histograms, with labels, in
 * Prometheus's text format 0.0.4.
 *
 *     struct counter *pushes = registry_counter(r, "trainyard_pushes_total", "Pushes applied.", NULL);
 *     counter_add(pushes, 1);
 *
 * A metric is made once and exists as long as its registry; making it again (same name, same labels) gives the same
 * one. Metrics of one name share kind and help, and differ in their labels. Names and labels are constants of the
 * program: one that Prometheus does not accept, or another kind under the same name, aborts. Values of labels may be
 * any UTF-8.
 *
 * Thread-safe throughout. Adding and setting are one relaxed atomic operation (a histogram: three), so they may be used
 * on hot paths. A scrape reads each value atomically, but not all of them at one moment.
 */
#ifndef TRAINYARD_NET_REGISTRY_H
#define TRAINYARD_NET_REGISTRY_H

#include "base/buf.h"

struct registry;
struct registry *registry_new(void);
void registry_free(struct registry *r);
DEFINE_AUTO(registry, registry_free);
/* Appends all metrics, families in the order they were made. */
void registry_emit(struct registry *r, struct buf *out);
#define REGISTRY_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct label {
    const char *name, *value;
};
/* LABELS({ "role", "worker" }, { "index", "3" }); NULL means none */
#define LABELS(...) ((const struct label[]){ __VA_ARGS__, { NULL, NULL } })

/* A counter only goes up. Values added in a small unit can be exposed in the unit that Prometheus recommends:
 * nanoseconds with scale 1e-9 are seconds. */
struct counter;
struct counter *registry_counter(struct registry *r, const char *name, const char *help, const struct label *labels);
struct counter *registry_counter_scaled(struct registry *r, const char *name, const char *help,
                                        const struct label *labels, double scale);
void counter_add(struct counter *c, uint64_t n);
uint64_t counter_value(const struct counter *c);

struct gauge;
struct gauge *registry_gauge(struct registry *r, const char *name, const char *help, const struct label *labels);
void gauge_set(struct gauge *g, double v);
double gauge_value(const struct gauge *g);

/* Called at every scrape, from the scraping thread; `user` outlives the registry. A second call for the same metric
 * replaces the function. */
typedef double metric_fn(void *user);
void registry_gauge_fn(struct registry *r, const char *name, const char *help, const struct label *labels,
                       metric_fn *read, void *user);
void registry_counter_fn(struct registry *r, const char *name, const char *help, const struct label *labels,
                         metric_fn *read, void *user);

/* Counts of values by upper bound (ascending, without +Inf), their sum and number. */
struct histogram;
struct histogram *registry_histogram(struct registry *r, const char *name, const char *help, const struct label *labels,
                                     const double *bounds, size_t nbounds);
void histogram_observe(struct histogram *h, double v); /* NaN counts beyond all bounds */

/* The metrics of every process: process_cpu_seconds_total, process_resident_memory_bytes,
 * process_start_time_seconds, process_open_fds, and trainyard_build_info{version}. */
void registry_add_process(struct registry *r);

#endif
