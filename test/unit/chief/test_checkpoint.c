#include "shard/job_fixture.h"

#include <errno.h>
#include <unistd.h>

#include "chief/checkpoint.h"
#include "chief/training_state.h"
#include "tfio/bundle.h"
#include "tfio/checkpoint_state.h"

enum { CALL_MS = 20000 };

/* A job whose segments are in a shard of this process, and a checkpoint folder. */
struct world {
    struct job_fixture job;
    struct shard *shard;
    struct params *params;
    struct ps_set *ps_set;
    struct placement *placement;
    struct checkpoint_save save;
    char *folder;
    int64_t pushed; /* ordinals below were pushed */
};

static int zeros(void *user, const struct segment_spec *s, float *data, bool *ret_slots, int64_t *ret_version,
                 struct ordinal_set *ret_applied, struct err *e)
{
    (void)user, (void)ret_applied, (void)e;
    memset(data, 0, s->count * sizeof(*data));
    *ret_slots = false;
    *ret_version = 0;
    return 0;
}

static int take(void *user, uint32_t segment, struct shard_snapshot *ret, struct err *e)
{
    return ps_set_snapshot(user, segment, ret, e);
}

static void shard_begin(struct world *w, const struct segment_source *source)
{
    struct err e = { 0 };
    int restored;
    struct params_identity id = { .job_uid = JOB_UID, .sender = "chief-0", .incarnation = 1 };
    w->shard = shard_new(5);
    w->params = params_new_local(w->job.layout, w->shard, &id);
    w->ps_set = ps_set_new(w->params, w->job.layout, w->placement, model_optimizer(w->job.model), JOB_UID, NULL);
    ck_ok_e(ps_set_initialise(w->ps_set, 1, source, &restored, &e));
    ck_assert_int_eq(restored, 1);
}

static void shard_end(struct world *w)
{
    ps_set_free(TAKE(w->ps_set));
    params_free(TAKE(w->params));
    shard_free(TAKE(w->shard));
}

static void world_open(struct world *w, const char *optimizer)
{
    struct err e = { 0 };
    *w = (struct world){ 0 };
    job_open(&w->job, optimizer, "epochs: 2");
    w->placement = placement_new(w->job.layout, PLACEMENT_GREEDY, 1);
    w->folder = path_join(w->job.dir, "checkpoints");
    ck_ok_e(dir_make(w->folder, &e));
    shard_begin(w, &(struct segment_source){ .read = zeros });
}

static void world_close(struct world *w)
{
    shard_end(w);
    placement_free(w->placement);
    free(w->folder);
    job_close(&w->job);
}

static void push(struct world *w, int64_t from, int64_t to)
{
    struct err e = { 0 };
    struct push_result result;
    auto_free float *grads = xcalloc(model_size(w->job.model), sizeof(*grads));
    for (size_t i = 0; i < model_size(w->job.model); i++)
        grads[i] = 0.01f * (float)(i + 1);
    for (int64_t ordinal = from; ordinal < to; ordinal++)
        ck_ok_e(params_push(w->params, ordinal, grads, CALL_MS, &result, &e));
    w->pushed = MAX(w->pushed, to);
}

static int save(struct world *w, int64_t *ret_step, char **ret_prefix, struct err *e)
{
    json_auto_t *state = training_state_new(&w->job.space, w->job.layout, JOB_UID, 1);
    struct checkpoint_save s = { .dir = w->folder,
                                 .keep = 2,
                                 .keep_step = -1,
                                 .model = w->job.model,
                                 .layout = w->job.layout,
                                 .snapshot = take,
                                 .user = w->ps_set,
                                 .state = state };
    if (w->save.keep != 0) {
        s.keep = w->save.keep;
        s.keep_step = w->save.keep_step;
    }
    if (w->save.snapshot != NULL) {
        s.snapshot = w->save.snapshot;
        s.user = w;
    }
    s.confirm = w->save.confirm;
    return checkpoint_save(&s, ret_step, ret_prefix, e);
}

static void saved(struct world *w, int64_t wanted)
{
    struct err e = { 0 };
    auto_free char *prefix = NULL;
    int64_t step = -1;
    ck_ok_e(save(w, &step, &prefix, &e));
    ck_assert_int_eq(step, wanted);
}

static void pushed_and_saved(struct world *w, int64_t step)
{
    push(w, w->pushed, step);
    saved(w, step);
}

static struct checkpoint *latest(struct world *w)
{
    struct err e = { 0 };
    struct checkpoint *c = NULL;
    AUTO_FINI(strlist) all = { 0 };
    auto_free char *name = NULL;
    ck_ok_e(checkpoint_state_read(w->folder, &all, &name, &e));
    auto_free char *prefix = path_join(w->folder, name);
    ck_ok_e(checkpoint_open(prefix, &c, &e));
    return c;
}

static int check(struct world *w, const struct checkpoint *c, struct err *e)
{
    return checkpoint_check(c, w->job.model, w->job.layout, &w->job.space, e);
}

/* All segments' bytes: values, slots, versions, applied sets. */
static void dump(struct world *w, struct buf *out)
{
    for (uint32_t i = 0; i < w->job.layout->n; i++) {
        AUTO_FINI(shard_snapshot) s = { 0 };
        struct err e = { 0 };
        ck_ok_e(ps_set_snapshot(w->ps_set, i, &s, &e));
        buf_add(out, s.data, (size_t)(1 + s.slots) * s.count * sizeof(float));
        json_auto_t *facts = training_state_segment(s.version, &s.applied);
        json_emit(facts, out);
    }
}

START_TEST(what_was_saved_comes_back)
{
    struct world w;
    AUTO_FINI(buf) before = BUF_INIT;
    AUTO_FINI(buf) after = BUF_INIT;
    AUTO_FINI(ordinal_set) done = ORDINAL_SET_INIT;
    struct err e = { 0 };
    world_open(&w, "Adam");
    push(&w, 0, 3);
    push(&w, 5, 7); /* a gap */
    dump(&w, &before);
    saved(&w, 5);
    push(&w, 7, 9); /* lost below */
    shard_end(&w);

    AUTO(checkpoint) *c = latest(&w);
    ck_assert_int_eq(checkpoint_step(c), 5);
    ck_ok_e(check(&w, c, &e));
    ck_ok_e(checkpoint_done(c, w.job.layout, &done, &e));
    ck_assert(ordinal_set_count(&done) == 5 && ordinal_set_has(&done, 6) && !ordinal_set_has(&done, 3) &&
              !ordinal_set_has(&done, 7));
    struct checkpoint_source source = { .checkpoint = c, .model = w.job.model };
    shard_begin(&w, &(struct segment_source){ .read = checkpoint_segment, .user = &source });
    dump(&w, &after);
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_mem_eq(before.data, after.data, before.len);
    auto_free float *vector = xcalloc(model_size(w.job.model), sizeof(*vector));
    ck_ok_e(checkpoint_values(c, w.job.model, vector, &e));
    ck_ok_e(params_pull(w.params, CALL_MS, &e));
    for (size_t i = 0; i < model_variables(w.job.model); i++) {
        const struct variable *v = model_variable(w.job.model, i);
        ck_assert_mem_eq(vector + v->offset, params_vector(w.params) + v->offset, v->count * sizeof(float));
    }
    world_close(&w);
}
END_TEST

START_TEST(none_is_not_an_error)
{
    struct world w;
    world_open(&w, "Adam");
    struct err e = { 0 };
    auto_free char *damaged = NULL;
    struct checkpoint *c = NULL;
    ck_ok_e(checkpoint_open_whole(w.folder, &c, &damaged, &e));
    ck_assert_ptr_null(c);
    world_close(&w);
}
END_TEST

START_TEST(an_existing_prefix_is_never_written_again)
{
    struct world w;
    struct err e = { 0 };
    auto_free char *first = NULL, *second = NULL;
    AUTO_FINI(buf) before = BUF_INIT;
    AUTO_FINI(buf) after = BUF_INIT;
    int64_t step;
    world_open(&w, "Adam");
    push(&w, 0, 1);
    ck_ok_e(save(&w, &step, &first, &e));
    auto_free char *index = xasprintf("%s.index", first);
    ck_ok_e(file_read(index, 1 << 20, &before, &e));
    shard_end(&w);
    shard_begin(&w, &(struct segment_source){ .read = zeros });
    push(&w, 1, 2); /* another batch: the same step, other content */
    ck_ok_e(save(&w, &step, &second, &e));
    ck_assert_int_eq(step, 1);
    ck_assert_str_ne(first, second);
    ck_ok_e(file_read(index, 1 << 20, &after, &e));
    ck_assert(before.len == after.len && memcmp(before.data, after.data, after.len) == 0);
    AUTO(checkpoint) *c = latest(&w);
    ck_assert_str_eq(checkpoint_prefix(c), second);
    world_close(&w);
}
END_TEST

static size_t files(struct world *w)
{
    AUTO_FINI(strlist) names = { 0 };
    struct err e = { 0 };
    ck_ok_e(dir_list(w->folder, &names, &e));
    return names.n;
}

/* Data and index come in pairs, and there is nothing else: no temporary file, no half of a pair. */
static void want_whole_files(struct world *w)
{
    AUTO_FINI(strlist) names = { 0 };
    struct err e = { 0 };
    ck_ok_e(dir_list(w->folder, &names, &e));
    for (size_t i = 0; i < names.n; i++) {
        const char *index = strstr(names.items[i], ".index"), *data = strstr(names.items[i], ".data-00000-of-00001");
        if (index == NULL && data == NULL) {
            ck_assert_str_eq(names.items[i], "checkpoint");
            continue;
        }
        const char *end = index != NULL ? index : data;
        auto_free char *prefix = xstrndup(names.items[i], (size_t)(end - names.items[i]));
        auto_free char *other = xasprintf("%s%s", prefix, index != NULL ? ".data-00000-of-00001" : ".index");
        ck_assert_msg(strlist_has(&names, other), "%s without %s", names.items[i], other);
    }
}

/* Each system call in turn fails, as on a full disk. */
START_TEST(a_save_that_fails_leaves_the_older_one)
{
    static const char *const ops[] = { "open", "write", "fsync", "rename", "link" };
    struct world w;
    world_open(&w, "Adam");
    pushed_and_saved(&w, 1);
    int64_t older = 1, step;
    int failures = 0;
    for (size_t op = 0; op < COUNT_OF(ops); op++) {
        for (int n = 1;; n++) {
            struct err e = { 0 };
            auto_free char *prefix = NULL;
            push(&w, w.pushed, w.pushed + 1);
            file_fault(ops[op], n, ENOSPC);
            int result = save(&w, &step, &prefix, &e);
            file_fault(NULL, 0, 0);
            if (result == 0)
                break; /* it makes fewer calls */
            failures++;
            AUTO(checkpoint) *c = latest(&w);
            bool there = checkpoint_step(c) != older; /* recorded as the latest, then the folder's fsync failed */
            ck_assert_msg(!there || (str_eq(ops[op], "fsync") && n >= 6), "%s %d", ops[op], n);
            want_whole_files(&w);
            older = checkpoint_step(c);
            ck_ok_e(check(&w, c, &e));
            ck_assert_int_lt(n, 200);
        }
        AUTO(checkpoint) *c = latest(&w);
        older = checkpoint_step(c);
    }
    ck_assert_int_ge(failures, 10);
    world_close(&w);
}
END_TEST

static int fenced(void *user, struct err *e)
{
    (void)user;
    return err_set(e, ERR_FENCED, "somebody newer is in charge");
}

START_TEST(a_fenced_chief_publishes_and_deletes_nothing)
{
    struct world w;
    struct err e = { 0 };
    char *prefix = NULL;
    int64_t step;
    world_open(&w, "Adam");
    pushed_and_saved(&w, 1);
    pushed_and_saved(&w, 2);
    size_t before = files(&w);
    w.save.confirm = fenced;
    ck_fails(save(&w, &step, &prefix, &e), ERR_FENCED, "somebody newer");
    ck_assert_uint_eq(files(&w), before);
    AUTO(checkpoint) *c = latest(&w);
    ck_assert_int_eq(checkpoint_step(c), 2);
    world_close(&w);
}
END_TEST

static int asked;
static int fenced_later(void *user, struct err *e)
{
    (void)user;
    return asked++ == 0 ? 0 : err_set(e, ERR_FENCED, "somebody newer is in charge");
}

START_TEST(a_chief_fenced_while_it_wrote_publishes_nothing)
{
    struct world w;
    struct err e = { 0 };
    char *prefix = NULL;
    int64_t step;
    world_open(&w, "Adam");
    pushed_and_saved(&w, 1);
    size_t before = files(&w);
    asked = 0;
    w.save.confirm = fenced_later;
    ck_fails(save(&w, &step, &prefix, &e), ERR_FENCED, "somebody newer");
    ck_assert_uint_eq(files(&w), before);
    world_close(&w);
}
END_TEST

START_TEST(a_flipped_bit_is_refused_with_the_tensor)
{
    struct world w;
    struct err e = { 0 };
    AUTO_FINI(buf) bytes = BUF_INIT;
    auto_free char *prefix = NULL;
    int64_t step;
    world_open(&w, "Adam");
    push(&w, 0, 2);
    ck_ok_e(save(&w, &step, &prefix, &e));
    auto_free char *data = xasprintf("%s.data-00000-of-00001", prefix);
    ck_ok_e(file_read(data, 1 << 20, &bytes, &e));
    bytes.data[5] = (char)(bytes.data[5] ^ 0x10);
    ck_ok_e(file_write(data, bytes.data, bytes.len, &e));
    AUTO(checkpoint) *c = latest(&w);
    ck_fails(check(&w, c, &e), ERR_INPUT, model_variable(w.job.model, 0)->name);
    world_close(&w);
}
END_TEST

/* ---- an older one and a damaged one ---- */

static void flip_byte(const char *path, size_t at)
{
    AUTO_FINI(buf) bytes = BUF_INIT;
    struct err e = { 0 };
    ck_ok_e(file_read(path, 1 << 20, &bytes, &e));
    ck_assert_uint_lt(at, bytes.len);
    bytes.data[at] = (char)(bytes.data[at] ^ 0x10);
    ck_ok_e(file_write(path, bytes.data, bytes.len, &e));
}

static void cut_short(const char *path)
{
    ck_assert_int_eq(truncate(path, 30), 0);
}

static void flip_first(const char *path)
{
    flip_byte(path, 5);
}

static void delete (const char *path)
{
    ck_assert_int_eq(unlink(path), 0);
}

static char *file_of(struct world *w, int64_t step, const char *ending)
{
    return xasprintf("%s/model.ckpt-%lld.%s", w->folder, (long long)step, ending);
}

static int open_whole(struct world *w, struct checkpoint **ret, char **ret_warning, struct err *e)
{
    return checkpoint_open_whole(w->folder, ret, ret_warning, e);
}

START_TEST(a_damaged_one_makes_way_for_the_older_one)
{
    static const struct {
        const char *ending;
        void (*damage)(const char *path);
    } cases[] = { { "index", flip_first },
                  { "index", cut_short },
                  { "index", delete },
                  { "data-00000-of-00001", flip_first },
                  { "data-00000-of-00001", cut_short },
                  { "data-00000-of-00001", delete } };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct world w;
        struct err e = { 0 };
        AUTO(checkpoint) *c = NULL;
        auto_free char *warning = NULL;
        world_open(&w, "Adam");
        pushed_and_saved(&w, 3);
        pushed_and_saved(&w, 4);
        ck_ok_e(open_whole(&w, &c, &warning, &e));
        ck_assert(checkpoint_step(c) == 4 && warning == NULL);
        checkpoint_free(TAKE(c));
        auto_free char *newer = file_of(&w, 4, cases[i].ending), *older = file_of(&w, 3, cases[i].ending);
        cases[i].damage(newer);
        ck_ok_e(open_whole(&w, &c, &warning, &e));
        ck_assert_int_eq(checkpoint_step(c), 3);
        auto_free char *used = xasprintf("; the older checkpoint %s/model.ckpt-3 is used", w.folder);
        ck_assert_msg(strstr(warning, "model.ckpt-4 cannot be used: ") != NULL && str_ends(warning, used), "%s",
                      warning);
        checkpoint_free(TAKE(c));
        cases[i].damage(older);
        auto_free char *untouched = NULL;
        ck_fails(open_whole(&w, &c, &untouched, &e), ERR_INPUT, "tried model.ckpt-4, model.ckpt-3");
        ck_assert_msg(strstr(e.msg, w.folder) != NULL && strstr(e.msg, "--fresh") != NULL, "%s", e.msg);
        ck_assert_ptr_null(c);
        world_close(&w);
    }
}
END_TEST

/* A run whose file `checkpoint` is lost or empty does not begin from scratch, and the next save lists those that are
 * there. */
START_TEST(without_its_list_the_newest_whole_one_is_used)
{
    for (int empty = 0; empty < 2; empty++) {
        struct world w;
        struct err e = { 0 };
        AUTO(checkpoint) *c = NULL;
        auto_free char *warning = NULL, *again = NULL;
        world_open(&w, "Adam");
        w.save.keep = 5;
        pushed_and_saved(&w, 9);
        pushed_and_saved(&w, 10);
        pushed_and_saved(&w, 11);
        auto_free char *list = path_join(w.folder, "checkpoint"), *newest = file_of(&w, 11, "index");
        flip_first(newest);
        ck_ok_e(empty ? file_write(list, "", 0, &e) : file_remove(list, &e));
        ck_ok_e(open_whole(&w, &c, &warning, &e));
        ck_assert_int_eq(checkpoint_step(c), 10);
        auto_free char *used =
            xasprintf("; checkpoint %s/model.ckpt-10 is used, the newest whole one of the 3 in %s", w.folder, w.folder);
        ck_assert_msg(str_starts(warning, list) && strstr(warning, "model.ckpt-11 cannot be used: ") != NULL &&
                          str_ends(warning, used),
                      "%s", warning);
        checkpoint_free(TAKE(c));
        pushed_and_saved(&w, 12);
        ck_ok_e(open_whole(&w, &c, &again, &e));
        ck_assert(checkpoint_step(c) == 12 && again == NULL);
        AUTO_FINI(strlist) all = { 0 };
        auto_free char *latest = NULL;
        ck_ok_e(checkpoint_state_read(w.folder, &all, &latest, &e));
        ck_assert(strlist_has(&all, "model.ckpt-9") && strlist_has(&all, "model.ckpt-10"));
        world_close(&w);
    }
}
END_TEST

/* A retry may find the newest one whole, so a brief failure does not repeat any training. */
START_TEST(storage_that_fails_is_not_damage)
{
    struct world w;
    struct err e = { 0 };
    AUTO(checkpoint) *c = NULL;
    auto_free char *warning = NULL;
    world_open(&w, "Adam");
    pushed_and_saved(&w, 3);
    pushed_and_saved(&w, 4);
    file_fault("open", 2, EIO); /* the first is the `checkpoint` file */
    int result = open_whole(&w, &c, &warning, &e);
    file_fault(NULL, 0, 0);
    ck_assert_msg(result == -1 && e.code == ERR_IO, "%s", e.msg);
    world_close(&w);
}
END_TEST

START_TEST(what_changed_is_named)
{
    static const struct {
        const char *says;
        struct ordinal_space by; /* added */
    } cases[] = { { "fit.batchSize", { .batch_size = 1 } },
                  { "fit.seed", { .seed = 1 } },
                  { "data.train", { .examples = 1 } },
                  { "data.train", { .fingerprint = 1 } } };
    struct world w;
    struct err e = { 0 };
    world_open(&w, "Adam");
    saved(&w, 0);
    AUTO(checkpoint) *c = latest(&w);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ordinal_space s = w.job.space;
        s.batch_size += cases[i].by.batch_size;
        s.seed += cases[i].by.seed;
        s.examples += cases[i].by.examples;
        s.fingerprint += cases[i].by.fingerprint;
        ck_fails(checkpoint_check(c, w.job.model, w.job.layout, &s, &e), ERR_INPUT, cases[i].says);
    }
    struct ordinal_space unshuffled = w.job.space;
    unshuffled.shuffle = false;
    ck_fails(checkpoint_check(c, w.job.model, w.job.layout, &unshuffled, &e), ERR_INPUT, "data.train.shuffle");
    world_close(&w);
}
END_TEST

START_TEST(another_model_or_optimizer_is_refused)
{
    struct world w, other;
    struct err e = { 0 };
    world_open(&w, "SGD");
    world_open(&other, "Adam");
    saved(&w, 0);
    AUTO(checkpoint) *c = latest(&w);
    ck_fails(checkpoint_check(c, other.job.model, other.job.layout, &w.job.space, &e), ERR_INPUT, "Adam");
    world_close(&w);
    world_close(&other);
}
END_TEST

START_TEST(only_the_newest_stay_and_the_one_that_is_read)
{
    struct world w;
    struct err e = { 0 };
    struct checkpoint *c = NULL;
    world_open(&w, "Adam");
    w.save.keep = 2;
    w.save.keep_step = 2;
    for (int64_t step = 1; step <= 5; step++)
        pushed_and_saved(&w, step);
    for (int64_t step = 1; step <= 5; step++) {
        auto_free char *prefix = xasprintf("%s/model.ckpt-%lld", w.folder, (long long)step);
        e = (struct err){ 0 };
        int found = checkpoint_open(prefix, &c, &e) == 0;
        checkpoint_free(TAKE(c));
        ck_assert_msg(found == (step == 2 || step >= 4), "step %lld: %d", (long long)step, found);
    }
    ck_assert_uint_eq(files(&w), 3 * 2 + 1);
    world_close(&w);
}
END_TEST

static void know_more(void *user, const char *prefix, json_t *state)
{
    (void)user;
    json_object_set_new(state, "late", json_string(prefix));
}

START_TEST(what_is_added_last_is_in_it)
{
    struct world w;
    struct err e = { 0 };
    auto_free char *prefix = NULL;
    int64_t step;
    world_open(&w, "Adam");
    json_auto_t *state = training_state_new(&w.job.space, w.job.layout, JOB_UID, 1);
    struct checkpoint_save s = { .dir = w.folder,
                                 .keep = 2,
                                 .keep_step = -1,
                                 .model = w.job.model,
                                 .layout = w.job.layout,
                                 .snapshot = take,
                                 .complete = know_more,
                                 .user = w.ps_set,
                                 .state = state };
    ck_ok_e(checkpoint_save(&s, &step, &prefix, &e));
    AUTO(checkpoint) *c = latest(&w);
    struct node n = checkpoint_training_state(c);
    ck_assert_str_eq(json_string_value(json_object_get(n.v, "late")), prefix);
    world_close(&w);
}
END_TEST

/* A worker that pushes before each segment is taken. */
static int push_then_take(void *user, uint32_t segment, struct shard_snapshot *ret, struct err *e)
{
    struct world *w = user;
    push(w, w->pushed, w->pushed + 1);
    return ps_set_snapshot(w->ps_set, segment, ret, e);
}

START_TEST(name_and_global_step_are_the_content_while_training_goes_on)
{
    struct world w;
    struct err e = { 0 };
    world_open(&w, "Adam");
    push(&w, 0, 3); /* what the chief polled last */
    w.save.snapshot = push_then_take;
    saved(&w, 4);
    AUTO(checkpoint) *c = latest(&w);
    struct node state = checkpoint_training_state(c);
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < w.job.layout->n; i++) {
        AUTO_FINI(ordinal_set) applied = ORDINAL_SET_INIT;
        int64_t version;
        ck_ok_e(training_state_read_segment(&state, i, &version, &applied, &e));
        least = MIN(least, version);
    }
    ck_assert_int_eq(checkpoint_step(c), least);
    ck_assert_int_eq(json_integer_value(json_object_get(state.v, "step")), least);
    ck_assert_msg(str_ends(checkpoint_prefix(c), "/model.ckpt-4"), "%s", checkpoint_prefix(c));
    want_whole_files(&w);
    world_close(&w);
}
END_TEST

START_TEST(the_arithmetic_has_a_limit)
{
    char text[ARITHMETIC_MAX + 1] = "";
    const char *read;
    struct err e = { 0 };
    json_auto_t *state = json_object();
    struct node n = node_root(state, NULL);
    ck_ok_e(training_state_arithmetic(&n, &read, &e));
    ck_assert_str_eq(read, "");
    memset(text, 'a', ARITHMETIC_MAX);
    json_object_set_new(state, "arithmetic", json_string(text + 1));
    ck_ok_e(training_state_arithmetic(&n, &read, &e));
    ck_assert_str_eq(read, text + 1);
    json_object_set_new(state, "arithmetic", json_string(text));
    ck_fails(training_state_arithmetic(&n, &read, &e), ERR_INPUT, "arithmetic: has 128 bytes; at most 127");
    json_object_set_new(state, "arithmetic", json_integer(1));
    ck_fails(training_state_arithmetic(&n, &read, &e), ERR_INPUT, "arithmetic");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("checkpoint");
    TCase *t = tcase_create("checkpoint");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, what_was_saved_comes_back);
    tcase_add_test(t, none_is_not_an_error);
    tcase_add_test(t, the_arithmetic_has_a_limit);
    tcase_add_test(t, an_existing_prefix_is_never_written_again);
    tcase_add_test(t, name_and_global_step_are_the_content_while_training_goes_on);
    tcase_add_test(t, a_save_that_fails_leaves_the_older_one);
    tcase_add_test(t, a_fenced_chief_publishes_and_deletes_nothing);
    tcase_add_test(t, a_chief_fenced_while_it_wrote_publishes_nothing);
    tcase_add_test(t, a_flipped_bit_is_refused_with_the_tensor);
    tcase_add_test(t, a_damaged_one_makes_way_for_the_older_one);
    tcase_add_test(t, without_its_list_the_newest_whole_one_is_used);
    tcase_add_test(t, storage_that_fails_is_not_damage);
    tcase_add_test(t, what_changed_is_named);
    tcase_add_test(t, another_model_or_optimizer_is_refused);
    tcase_add_test(t, only_the_newest_stay_and_the_one_that_is_read);
    tcase_add_test(t, what_is_added_last_is_in_it);
    suite_add_tcase(s, t);
    return s;
}
