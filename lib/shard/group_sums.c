/* The sums of the phases that are complete, and the numbers of each batch in the phase that is not. */
#include "shard/group_sums.h"

#include <string.h>

#include "shard/groups.h"

enum { PHASES_MAX = 1 << 16 };

struct phase {
    double *totals;
    size_t width;
};

struct group_sums {
    int64_t at, end;
    struct phase *phases; /* complete ones */
    size_t n, kept;       /* kept: all their sums */
    size_t width;         /* of the next phase, once `received` is not 0 */
    size_t received;
    double *numbers[GROUP_SUMS_ORDINALS_MAX]; /* in the next phase; NULL: not received */
};

static void drop_numbers(struct group_sums *g)
{
    for (size_t i = 0; i < GROUP_SUMS_ORDINALS_MAX; i++)
        free(TAKE(g->numbers[i]));
    g->received = 0;
}

static void drop_phases(struct group_sums *g)
{
    for (size_t i = 0; i < g->n; i++)
        free(g->phases[i].totals);
    free(TAKE(g->phases));
    g->n = g->kept = 0;
}

struct group_sums *group_sums_new(void)
{
    struct group_sums *g = xcalloc(1, sizeof(*g));
    g->at = g->end = -1;
    return g;
}

void group_sums_free(struct group_sums *g)
{
    if (g == NULL)
        return;
    drop_numbers(g);
    drop_phases(g);
    free(g);
}

void group_sums_begin(struct group_sums *g, int64_t at, int64_t end)
{
    drop_numbers(g);
    drop_phases(g);
    g->at = at;
    g->end = end;
}

int64_t group_sums_at(const struct group_sums *g)
{
    return g->at;
}

/* ---- a part ---- */

static int check_part(const struct group_sums *g, const struct group_part *p, struct err *e)
{
    if (g->end - g->at > GROUP_SUMS_ORDINALS_MAX)
        return err_set(e, ERR_INPUT, "sums of %lld batches, at most %d", (long long)(g->end - g->at),
                       GROUP_SUMS_ORDINALS_MAX);
    if (p->n > (size_t)(g->end - g->at))
        return err_set(e, ERR_INPUT, "numbers of %zu batches, the group has %lld", p->n, (long long)(g->end - g->at));
    for (size_t i = 0; i < p->n; i++)
        if (p->ordinals[i] < g->at || p->ordinals[i] >= g->end)
            return err_set(e, ERR_INPUT, "batch %lld is not in the group of batches %lld to %lld",
                           (long long)p->ordinals[i], (long long)g->at, (long long)g->end - 1);
    if (p->phase >= PHASES_MAX)
        return err_set(e, ERR_INPUT, "phase %u, at most %d phases", p->phase, PHASES_MAX);
    if (p->width < 1 || p->width > GROUP_SUMS_WIDTH_MAX)
        return err_set(e, ERR_INPUT, "%zu numbers of a batch, must be 1 to %d", p->width, GROUP_SUMS_WIDTH_MAX);
    return 0;
}

static int check_width(const struct group_sums *g, const struct group_part *p, struct err *e)
{
    bool first = p->phase == g->n && g->received == 0;
    size_t want = p->phase < g->n ? g->phases[p->phase].width : g->width;
    if (!first && p->width != want)
        return err_set(e, ERR_INPUT, "phase %u: %zu numbers of a batch, those of other batches have %zu", p->phase,
                       p->width, want);
    if (first && g->kept + p->width > GROUP_SUMS_KEPT_MAX)
        return err_set(e, ERR_INPUT, "more than %d sums in a step", GROUP_SUMS_KEPT_MAX);
    return 0;
}

/* The numbers that were given before came while another step was computed, or the state was loaded again since. */
static int check_given(const struct group_sums *g, const struct group_part *p, struct err *e)
{
    for (size_t i = 0; p->numbers == NULL && i < p->n; i++)
        if (g->numbers[p->ordinals[i] - g->at] == NULL)
            return err_set(e, ERR_LOST, "the batch statistics of batch %lld must be given again",
                           (long long)p->ordinals[i]);
    return 0;
}

static void take_numbers(struct group_sums *g, const struct group_part *p)
{
    if (p->n == 0 || p->numbers == NULL)
        return;
    g->width = p->width;
    for (size_t i = 0; i < p->n; i++) {
        size_t at = (size_t)(p->ordinals[i] - g->at), bytes = p->width * sizeof(double);
        if (g->numbers[at] != NULL)
            continue;
        g->numbers[at] = xmalloc(bytes);
        memcpy(g->numbers[at], p->numbers + i * p->width, bytes);
        g->received++;
    }
}

static void complete_phase(struct group_sums *g)
{
    double *totals = xcalloc(g->width, sizeof(*totals));
    for (size_t k = 0; k < (size_t)(g->end - g->at); k++)
        for (size_t i = 0; i < g->width; i++)
            totals[i] += g->numbers[k][i];
    drop_numbers(g);
    g->phases = xrealloc(g->phases, (g->n + 1) * sizeof(*g->phases));
    g->phases[g->n++] = (struct phase){ .totals = totals, .width = g->width };
    g->kept += g->width;
}

static int pending(const struct group_sums *g, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    bool has[GROUP_SUMS_ORDINALS_MAX];
    for (size_t i = 0; i < GROUP_SUMS_ORDINALS_MAX; i++)
        has[i] = g->numbers[i] != NULL;
    groups_describe_missing_sums(g->at, has, g->end - g->at, &text);
    return err_set(e, ERR_PENDING, "%s", text.data);
}

int group_sums_add(struct group_sums *g, const struct group_part *p, enum group_answer *ret, const double **ret_totals,
                   bool *ret_new, struct err *e)
{
    *ret = GROUP_AGAIN;
    *ret_new = false;
    if (check_part(g, p, e) < 0)
        return -1;
    if (p->phase > g->n)
        return 0;
    if (check_width(g, p, e) < 0)
        return -1;
    if (p->phase == g->n) {
        if (check_given(g, p, e) < 0)
            return -1;
        take_numbers(g, p);
        if (g->received < (size_t)(g->end - g->at))
            return pending(g, e);
        complete_phase(g);
        *ret_new = true;
    }
    *ret = GROUP_TOTALS;
    *ret_totals = g->phases[p->phase].totals;
    return 0;
}
