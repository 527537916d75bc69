/* The learning rates that callbacks have set, by the first ordinal that each holds for. */
#include "shard/rates.h"

#include <float.h>
#include <string.h>

#include "base/bisect.h"

void rates_fini(struct rates *r)
{
    free(r->from);
    free(r->rate);
    *r = (struct rates)RATES_INIT;
}

static int check(const int64_t *from, const double *rate, size_t n, struct err *e)
{
    if (n > RATES_MAX)
        return err_set(e, ERR_INPUT, "%zu learning rates, at most %d", n, RATES_MAX);
    for (size_t i = 0; i < n; i++) {
        if (from[i] < 0 || (i > 0 && from[i] <= from[i - 1]))
            return err_set(e, ERR_INPUT, "learning rates must begin at ascending batches: %lld is out of order",
                           (long long)from[i]);
        if (!(rate[i] >= 0 && rate[i] <= (double)FLT_MAX))
            return err_set(e, ERR_INPUT, "%g is not a valid learning rate", rate[i]);
    }
    return 0;
}

int rates_set(struct rates *r, const int64_t *from, const double *rate, size_t n, struct err *e)
{
    if (check(from, rate, n, e) < 0)
        return -1;
    struct rates fresh = { .n = n };
    fresh.from = n > 0 ? xmemdup(from, n * sizeof(*from)) : NULL;
    fresh.rate = n > 0 ? xmemdup(rate, n * sizeof(*rate)) : NULL;
    rates_fini(r);
    *r = fresh;
    return 0;
}

void rates_copy(struct rates *to, const struct rates *from)
{
    (void)!rates_set(to, from->from, from->rate, from->n, NULL); /* was checked when it was made */
}

void rates_add(struct rates *r, int64_t from, double rate)
{
    if (r->n > 0 && r->from[r->n - 1] == from) {
        r->rate[r->n - 1] = rate;
        return;
    }
    if (r->n == RATES_MAX) {
        r->n--;
        memmove(r->from, r->from + 1, r->n * sizeof(*r->from));
        memmove(r->rate, r->rate + 1, r->n * sizeof(*r->rate));
    }
    r->from = xrealloc(r->from, (r->n + 1) * sizeof(*r->from));
    r->rate = xrealloc(r->rate, (r->n + 1) * sizeof(*r->rate));
    r->from[r->n] = from;
    r->rate[r->n++] = rate;
}

double rates_at(const struct rates *r, int64_t ordinal, double fallback)
{
    size_t begun = bisect_right(r->from, sizeof(r->from[0]), r->n, ordinal);
    return begun > 0 ? r->rate[begun - 1] : fallback;
}

json_t *rates_to_json(const struct rates *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->n; i++)
        json_array_append_new(list, json_pack("[I, f]", (json_int_t)r->from[i], r->rate[i]));
    return list;
}

int rates_from_json(struct rates *r, const struct node *n, struct err *e)
{
    size_t count = node_size(n);
    if (!node_present(n))
        return rates_set(r, NULL, NULL, 0, e);
    if (node_array(n, e) < 0)
        return -1;
    if (count > RATES_MAX)
        return node_error(n, e, "has %zu entries, at most %d", count, RATES_MAX);
    auto_free int64_t *from = xcalloc(count + 1, sizeof(*from));
    auto_free double *rate = xcalloc(count + 1, sizeof(*rate));
    for (size_t i = 0; i < count; i++) {
        struct node entry = node_item(n, i), at = node_item(&entry, 0), value = node_item(&entry, 1);
        if (node_i64(&at, 0, INT64_MAX, &from[i], e) < 0 || node_f64(&value, &rate[i], e) < 0)
            return -1;
    }
    return rates_set(r, from, rate, count, e);
}
