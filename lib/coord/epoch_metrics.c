/* Metric sums by epoch and by window of ordinals. Only the first report of an ordinal counts. Windows are returned
 * in order; one that lost reports is abandoned once newer windows wait behind it. */
#include "coord/epoch_metrics.h"

#include <math.h>
#include <string.h>

enum { LIST_MAX = 16384 };    /* epochs or windows in progress: far above what workers lease at a time */
enum { WINDOWS_WAITING = 8 }; /* an incomplete window this far behind the newest one is no longer waited for */

struct sums {
    int64_t key; /* epoch or window number */
    int64_t batches;
    double *acc;
};
struct sums_list { /* ascending by key */
    struct sums *items;
    size_t n;
};
struct epoch_metrics {
    const struct model *m;
    size_t width;
    int64_t batches_per_epoch, total, window;
    struct ordinal_set reported;
    struct sums_list epochs, windows;
    int64_t windows_taken; /* windows below were returned: a late report does not start them again */
    struct sums recent;
};

struct epoch_metrics *epoch_metrics_new(const struct model *m, int64_t batches_per_epoch, int64_t total, int64_t window)
{
    struct epoch_metrics *t = xcalloc(1, sizeof(*t));
    t->m = m;
    t->width = metrics_width(m);
    t->batches_per_epoch = batches_per_epoch;
    t->total = total;
    t->window = window;
    t->recent.acc = xcalloc(t->width, sizeof(double));
    return t;
}

static void sums_list_fini(struct sums_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i].acc);
    free(l->items);
}
DEFINE_AUTO_FINI(sums_list, sums_list_fini);

void epoch_metrics_free(struct epoch_metrics *t)
{
    if (t == NULL)
        return;
    sums_list_fini(&t->epochs);
    sums_list_fini(&t->windows);
    free(t->recent.acc);
    ordinal_set_fini(&t->reported);
    free(t);
}

/* Of those before `at` and at it the keys are below; the newest is asked for most. */
static size_t sums_place(const struct sums_list *l, int64_t key)
{
    size_t low = 0, high = l->n;
    if (l->n > 0 && l->items[l->n - 1].key < key)
        return l->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->items[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct sums *sums_find(const struct sums_list *l, int64_t key)
{
    size_t at = sums_place(l, key);
    return at < l->n && l->items[at].key == key ? &l->items[at] : NULL;
}

/* NULL: there are too many. */
static struct sums *sums_at(struct sums_list *l, int64_t key, size_t width)
{
    struct sums *found = sums_find(l, key);
    if (found != NULL)
        return found;
    if (l->n >= LIST_MAX)
        return NULL;
    l->items = xrealloc(l->items, (l->n + 1) * sizeof(*l->items));
    size_t at = sums_place(l, key);
    memmove(l->items + at + 1, l->items + at, (l->n - at) * sizeof(*l->items));
    l->items[at] = (struct sums){ .key = key, .acc = xcalloc(width, sizeof(double)) };
    l->n++;
    return &l->items[at];
}

static void sums_drop_first(struct sums_list *l)
{
    free(l->items[0].acc);
    l->n--;
    memmove(l->items, l->items + 1, l->n * sizeof(*l->items));
}

static void sums_add(const struct epoch_metrics *t, struct sums *to, const double *sums)
{
    if (to == NULL)
        return;
    metrics_merge(t->m, to->acc, sums);
    to->batches++;
}

bool epoch_metrics_add(struct epoch_metrics *t, int64_t ordinal, const double *sums)
{
    if (ordinal >= t->total || ordinal_set_add(&t->reported, ordinal, NULL) != 1)
        return false;
    sums_add(t, sums_at(&t->epochs, ordinal / t->batches_per_epoch, t->width), sums);
    if (t->window > 0 && ordinal / t->window >= t->windows_taken)
        sums_add(t, sums_at(&t->windows, ordinal / t->window, t->width), sums);
    sums_add(t, &t->recent, sums);
    return true;
}

static int64_t sums_result(const struct epoch_metrics *t, const struct sums *s, double *ret)
{
    if (s == NULL || s->batches == 0) {
        for (size_t i = 0; i < model_metrics(t->m); i++)
            ret[i] = (double)NAN;
        return 0;
    }
    metrics_result(t->m, s->acc, ret);
    return s->batches;
}

int64_t epoch_metrics_of(const struct epoch_metrics *t, int64_t epoch, double *ret)
{
    return sums_result(t, sums_find(&t->epochs, epoch), ret);
}

int64_t epoch_metrics_recent(const struct epoch_metrics *t, double *ret)
{
    return sums_result(t, &t->recent, ret);
}

int64_t epoch_metrics_take_recent(struct epoch_metrics *t, double *ret)
{
    int64_t n = epoch_metrics_recent(t, ret);
    memset(t->recent.acc, 0, t->width * sizeof(double));
    t->recent.batches = 0;
    return n;
}

/* All below `low` count as reported: a report that was lost with a chief would keep the set open forever. */
static void reported_from(struct epoch_metrics *t, int64_t low)
{
    for (int64_t at = t->reported.low; at < low; at++)
        (void)!ordinal_set_add(&t->reported, at, NULL);
}

void epoch_metrics_forget_before(struct epoch_metrics *t, int64_t epoch)
{
    while (t->epochs.n > 0 && t->epochs.items[0].key < epoch)
        sums_drop_first(&t->epochs);
    reported_from(t, MIN(epoch * t->batches_per_epoch, t->total));
}

int64_t epoch_metrics_reported(const struct epoch_metrics *t)
{
    return ordinal_set_count(&t->reported);
}

/* The batches after the last whole window are no point: a mean of so few would look like a jump of the curve. The
 * epoch's own point has them. Training that is shorter than a window has one point of all its batches. */
int epoch_metrics_take_window(struct epoch_metrics *t, bool flush, int64_t *ret_step, double *ret)
{
    if (t->windows.n == 0)
        return 0;
    const struct sums *s = &t->windows.items[0];
    int64_t newer = t->windows.items[t->windows.n - 1].key - s->key;
    bool only = s->key == 0 && newer == 0 && (flush || s->batches >= t->total);
    if (s->batches < t->window && !only && newer < (flush ? 1 : WINDOWS_WAITING))
        return 0;
    sums_result(t, s, ret);
    *ret_step = only ? s->batches : (s->key + 1) * t->window;
    t->windows_taken = s->key + 1;
    sums_drop_first(&t->windows);
    return 1;
}

/* ---- in the checkpoint ---- */

static json_t *sums_list_to_json(const struct epoch_metrics *t, const struct sums_list *l)
{
    json_t *list = json_array();
    for (size_t i = 0; i < l->n; i++) {
        json_t *acc = json_array();
        for (size_t j = 0; j < t->width; j++)
            json_array_append_new(acc, json_number(l->items[i].acc[j]));
        json_array_append_new(list, json_pack("{s:I, s:I, s:o}", "key", (json_int_t)l->items[i].key, "batches",
                                              (json_int_t)l->items[i].batches, "sums", acc));
    }
    return list;
}

json_t *epoch_metrics_to_json(const struct epoch_metrics *t)
{
    auto_free int64_t *ranges = NULL;
    size_t n = ordinal_set_ranges(&t->reported, &ranges);
    json_t *list = json_array();
    for (size_t i = 0; i < 2 * n; i++)
        json_array_append_new(list, json_integer(ranges[i]));
    return json_pack("{s:I, s:o, s:o, s:I, s:I, s:o}", "low", (json_int_t)t->reported.low, "ranges", list, "epochs",
                     sums_list_to_json(t, &t->epochs), "window", (json_int_t)t->window, "windowsTaken",
                     (json_int_t)t->windows_taken, "windows", sums_list_to_json(t, &t->windows));
}

static int sums_from_json(const struct epoch_metrics *t, struct sums_list *l, const struct node *n, struct err *e)
{
    int64_t key, batches;
    struct node sums = node_get(n, "sums");
    if (node_i64_or(n, "key", 0, 0, INT64_MAX, &key, e) < 0 ||
        node_i64_or(n, "batches", 0, 0, INT64_MAX, &batches, e) < 0)
        return -1;
    if (node_size(&sums) != t->width)
        return node_error(&sums, e, "%zu sums where this model's metrics need %zu", node_size(&sums), t->width);
    struct sums *to = sums_at(l, key, t->width);
    if (to == NULL)
        return node_error(n, e, "more than %d epochs or windows", LIST_MAX);
    to->batches = batches;
    for (size_t i = 0; i < t->width; i++) {
        struct node item = node_item(&sums, i);
        if (json_is_string(item.v))
            to->acc[i] = strtod(json_string_value(item.v), NULL);
        else if (node_f64(&item, &to->acc[i], e) < 0)
            return -1;
    }
    return 0;
}

static int sums_list_from_json(const struct epoch_metrics *t, struct sums_list *l, const struct node *n, struct err *e)
{
    for (size_t i = 0; i < node_size(n); i++) {
        struct node item = node_item(n, i);
        if (sums_from_json(t, l, &item, e) < 0)
            return -1;
    }
    return 0;
}

static int reported_from_json(const struct node *n, struct ordinal_set *ret, struct err *e)
{
    int64_t low;
    struct node ranges = node_get(n, "ranges");
    size_t count = node_size(&ranges);
    auto_free int64_t *values = xcalloc(count + 1, sizeof(*values));
    if (node_i64_or(n, "low", 0, 0, INT64_MAX, &low, e) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct node item = node_item(&ranges, i);
        if (node_i64(&item, 0, INT64_MAX, &values[i], e) < 0)
            return -1;
    }
    return ordinal_set_from(low, values, count, ret, e);
}

static void sums_list_replace(struct sums_list *l, struct sums_list *with)
{
    struct sums_list old = *l;
    *l = *with;
    *with = old;
}

int epoch_metrics_from_json(struct epoch_metrics *t, const struct node *n, struct err *e)
{
    AUTO_FINI(ordinal_set) reported = ORDINAL_SET_INIT;
    AUTO_FINI(sums_list) epochs = { 0 };
    AUTO_FINI(sums_list) windows = { 0 };
    struct node epochs_node = node_get(n, "epochs"), windows_node = node_get(n, "windows");
    int64_t window, taken = 0;
    if (reported_from_json(n, &reported, e) < 0 || sums_list_from_json(t, &epochs, &epochs_node, e) < 0 ||
        node_i64_or(n, "window", 0, 0, INT64_MAX, &window, e) < 0)
        return -1;
    if (t->window > 0 && window == t->window &&
        (sums_list_from_json(t, &windows, &windows_node, e) < 0 ||
         node_i64_or(n, "windowsTaken", 0, 0, INT64_MAX, &taken, e) < 0))
        return -1;
    ordinal_set_copy(&t->reported, &reported);
    sums_list_replace(&t->epochs, &epochs);
    sums_list_replace(&t->windows, &windows);
    t->windows_taken = taken;
    return 0;
}
