/* Plans where the new batches begin: at the first epoch of which no segment has applied a batch. */
#include "chief/rebase.h"

#include "chief/training_state.h"

static bool same_space(const struct ordinal_space *a, const struct ordinal_space *b)
{
    return a->fingerprint == b->fingerprint && a->examples == b->examples && a->batch_size == b->batch_size &&
           a->seed == b->seed && a->shuffle == b->shuffle;
}

/* One above the highest ordinal that some segment has, and the newest version. */
static int find_end(const struct checkpoint *c, const struct layout *l, int64_t *ret_end, int64_t *ret_version,
                    struct err *e)
{
    struct node state = checkpoint_training_state(c);
    int64_t end = 0, newest = 0;
    for (size_t i = 0; i < l->n; i++) {
        AUTO_FINI(ordinal_set) applied = ORDINAL_SET_INIT;
        int64_t version;
        if (training_state_read_segment(&state, l->segments[i].id, &version, &applied, e) < 0)
            return -1;
        end = MAX(end, MAX(applied.low, applied.high));
        newest = MAX(newest, version);
    }
    *ret_end = end;
    *ret_version = newest;
    return 0;
}

int rebase_plan(const struct checkpoint *c, const struct layout *l, const struct ordinal_space *to, struct rebase *ret,
                struct err *e)
{
    struct node state = checkpoint_training_state(c);
    struct ordinal_space was;
    struct rebase r = { .on = true };
    int64_t end;
    if (!training_state_space(&state, &was))
        return training_state_check_space(&state, to, checkpoint_prefix(c), e);
    if (same_space(&was, to)) {
        *ret = (struct rebase){ 0 };
        return 0;
    }
    if (find_end(c, l, &end, &r.version, e) < 0)
        return -1;
    int64_t batches = ordinal_space_batches(&was);
    r.epoch = end / batches + (end % batches != 0);
    if (r.epoch > INT64_MAX / 2 / ordinal_space_batches(to))
        return err_set(e, ERR_INPUT, "checkpoint %s: implausible number of epochs", checkpoint_prefix(c));
    r.low = r.epoch * ordinal_space_batches(to);
    r.offset = r.version - r.low;
    *ret = r;
    return 0;
}

int rebase_offset(const struct checkpoint *c, int64_t *ret, struct err *e)
{
    struct node state = checkpoint_training_state(c);
    return node_i64_or(&state, "stepOffset", 0, -(INT64_MAX / 2), INT64_MAX / 2, ret, e);
}
