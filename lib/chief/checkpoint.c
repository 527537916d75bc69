/* Saves and opens checkpoints. The data is written and synced before the index, and the index before the
 * `checkpoint` file names it, so that a checkpoint which is named is whole. An existing prefix is never written
 * again. */
#include "chief/checkpoint.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "chief/training_state.h"
#include "tfio/bundle.h"
#include "tfio/checkpoint_state.h"

/* Tensors of one variable in the file: [0] the value, then the slots. */
struct variable_tensors {
    size_t id[1 + OPTIMIZER_MAX_SLOTS];
    int n;
};

struct saving {
    const struct checkpoint_save *save;
    struct bundle_writer *w;
    struct variable_tensors *columns; /* by variable */
    json_t *segments;
    int64_t step; /* smallest version of the segments; -1: none was taken */
    char *prefix; /* known when all were taken */
};

static void saving_fini(struct saving *s)
{
    bundle_writer_free(s->w);
    free(s->columns);
    free(s->prefix);
    json_decref(s->segments);
}
DEFINE_AUTO_FINI(saving, saving_fini);

/* model.ckpt-<step>, or with a suffix when that exists already. */
static char *free_prefix(const char *dir, int64_t step)
{
    for (int attempt = 0;; attempt++) {
        char suffix[24] = "";
        if (attempt > 0)
            str_fmt(suffix, sizeof(suffix), "-%d", attempt);
        char *prefix = xasprintf("%s/model.ckpt-%" PRId64 "%s", dir, step, suffix);
        auto_free char *index = xasprintf("%s.index", prefix), *data = xasprintf("%s.data-00000-of-00001", prefix);
        if (!file_exists(index) && !file_exists(data))
            return prefix;
        free(prefix);
    }
}

static int add_variable(struct saving *s, size_t i, struct err *e)
{
    const struct variable *v = model_variable(s->save->model, i);
    const struct optimizer *o = model_optimizer(s->save->model);
    struct variable_tensors *c = &s->columns[i];
    if (bundle_writer_add(s->w, v->name, DT_FLOAT, &v->shape, &c->id[c->n++], e) < 0)
        return -1;
    for (int slot = 0; v->kind == VAR_TRAINABLE && slot < optimizer_slots(o); slot++) {
        auto_free char *name = xasprintf("%s/%s", v->name, optimizer_slot_name(o, slot));
        if (bundle_writer_add(s->w, name, DT_FLOAT, &v->shape, &c->id[c->n++], e) < 0)
            return -1;
    }
    return 0;
}

static int add_scalars(struct saving *s, struct err *e)
{
    const struct shape scalar = { .rank = 0 };
    const char *names[2];
    float values[2];
    int n = optimizer_scalars(model_optimizer(s->save->model), s->step, names, values);
    for (int i = 0; i < n; i++)
        if (bundle_writer_add_all(s->w, names[i], DT_FLOAT, &scalar, &values[i], e) < 0)
            return -1;
    return bundle_writer_add_all(s->w, "global_step", DT_INT64, &scalar, &s->step, e);
}

static int put_segment(struct saving *s, const struct segment_spec *segment, struct err *e)
{
    AUTO_FINI(shard_snapshot) snap = { 0 };
    if (s->save->snapshot(s->save->user, segment->id, &snap, e) < 0)
        return -1;
    const struct variable_tensors *c = &s->columns[segment->variable];
    if (snap.count != segment->count || snap.slots + 1 < c->n)
        return err_set(e, ERR_INTERNAL, "snapshot of segment %u has %zu values and %d slots", segment->id, snap.count,
                       snap.slots);
    for (int i = 0; i < c->n; i++)
        if (bundle_writer_put(s->w, c->id[i], segment->start * sizeof(float), snap.data + (size_t)i * snap.count,
                              snap.count * sizeof(float), e) < 0)
            return -1;
    json_array_append_new(s->segments, training_state_segment(snap.version, &snap.applied));
    s->step = s->step < 0 ? snap.version : MIN(s->step, snap.version);
    return 0;
}

static int put_state(struct saving *s, struct err *e)
{
    const struct shape scalar = { .rank = 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    json_object_set(s->save->state, "segments", s->segments);
    json_object_set_new(s->save->state, "step", json_integer(s->step));
    json_emit(s->save->state, &text);
    const char *strings[1] = { text.data };
    const size_t lengths[1] = { text.len };
    return bundle_writer_add_strings(s->w, TRAINING_STATE_TENSOR, &scalar, strings, lengths, 1, e);
}

static int confirm_in_charge(const struct checkpoint_save *save, struct err *e)
{
    return save->confirm != NULL ? save->confirm(save->user, e) : 0;
}

static int write_bundle(struct saving *s, struct err *e)
{
    const struct model *m = s->save->model;
    for (size_t i = 0; i < model_variables(m); i++)
        if (add_variable(s, i, e) < 0)
            return -1;
    for (size_t i = 0; i < s->save->layout->n; i++)
        if (put_segment(s, &s->save->layout->segments[i], e) < 0)
            return -1;
    s->step = MAX(s->step, 0);
    s->prefix = free_prefix(s->save->dir, s->step);
    bundle_writer_name(s->w, s->prefix);
    if (s->save->complete != NULL)
        s->save->complete(s->save->user, s->prefix, s->save->state);
    if (add_scalars(s, e) < 0 || put_state(s, e) < 0 || confirm_in_charge(s->save, e) < 0)
        return -1;
    if (bundle_writer_finish(s->w, e) == 0)
        return 0;
    struct err fenced = { 0 }; /* files of that name appeared meanwhile: from a chief that is in charge now? */
    return err_is(e, ERR_REFUSED) && confirm_in_charge(s->save, &fenced) < 0 ? err_set(e, fenced.code, "%s", fenced.msg)
                                                                             : -1;
}

static void delete_files(const char *dir, const char *path)
{
    auto_free char *prefix = path_join(dir, path);
    static const char *const endings[] = { "index", "data-00000-of-00001" };
    for (size_t i = 0; i < COUNT_OF(endings); i++) {
        auto_free char *file = xasprintf("%s.%s", prefix, endings[i]);
        (void)!file_remove(file, NULL); /* a leftover is harmless */
    }
}

/* Names the new one as the latest and drops the oldest beyond `keep`. */
static int publish_checkpoint(const struct checkpoint_save *save, const char *prefix, struct err *e)
{
    AUTO_FINI(strlist) all = { 0 };
    AUTO_FINI(strlist) kept = { 0 };
    AUTO_FINI(strlist) gone = { 0 };
    auto_free char *latest = NULL, *why = NULL;
    struct err ignored;
    if (checkpoint_state_find(save->dir, &all, &latest, &why, &ignored) < 0) { /* unreadable: begin a new list */
        strlist_fini(&all);
        all = (struct strlist){ 0 };
    }
    const char *name = strrchr(prefix, '/') + 1;
    if (!strlist_has(&all, name)) /* the list of a folder has it */
        strlist_add(&all, name);
    for (size_t i = 0; i < all.n; i++) {
        bool young = (int64_t)(all.n - i) <= save->keep || save->keep <= 0;
        bool named = save->keep_names != NULL && strlist_has(save->keep_names, all.items[i]);
        strlist_add(young || named || checkpoint_state_step(all.items[i]) == save->keep_step ? &kept : &gone,
                    all.items[i]);
    }
    if (checkpoint_state_write(save->dir, name, &kept, e) < 0)
        return -1;
    struct err cause = { 0 };
    if (gone.n > 0 && confirm_in_charge(save, &cause) < 0 && !err_is(&cause, ERR_LOST))
        return 0; /* they are another chief's now */
    for (size_t i = 0; i < gone.n; i++)
        delete_files(save->dir, gone.items[i]);
    return 0;
}

/* Also when it is not known, because the `checkpoint` file cannot be read. */
static bool is_published(const char *dir, const char *prefix)
{
    AUTO_FINI(strlist) all = { 0 };
    auto_free char *latest = NULL;
    struct err e = { 0 };
    if (checkpoint_state_read(dir, &all, &latest, &e) < 0)
        return !err_is(&e, ERR_NOT_FOUND);
    return strlist_has(&all, strrchr(prefix, '/') + 1);
}

int checkpoint_save(const struct checkpoint_save *save, int64_t *ret_step, char **ret_prefix, struct err *e)
{
    AUTO_FINI(saving) s = { .save = save, .segments = json_array(), .step = -1 };
    s.columns = xcalloc(model_variables(save->model) + 1, sizeof(*s.columns));
    auto_free char *unnamed = xasprintf("%s/model.ckpt", save->dir);
    struct err cause = { 0 };
    if (bundle_writer_open(unnamed, &s.w, &cause) < 0 || write_bundle(&s, &cause) < 0) {
        const char *prefix = s.prefix != NULL ? s.prefix : unnamed;
        bool named = strstr(cause.msg, prefix) != NULL; /* by the name of its file */
        return err_set(e, cause.code, "checkpoint %s%s%s", named ? "" : prefix, named ? "" : ": ", cause.msg);
    }
    if (confirm_in_charge(save, e) < 0 || publish_checkpoint(save, s.prefix, e) < 0) {
        if (!is_published(save->dir, s.prefix))
            delete_files(save->dir, s.prefix); /* no list names them */
        return -1;
    }
    *ret_step = s.step;
    *ret_prefix = TAKE(s.prefix);
    return 0;
}

/* ---- restoring ---- */

struct checkpoint {
    char *prefix;
    struct bundle *b;
    json_t *state;
    struct source *source;
    int64_t step;
};

void checkpoint_free(struct checkpoint *c)
{
    if (c == NULL)
        return;
    bundle_free(c->b);
    json_decref(c->state);
    source_free(c->source);
    free(c->prefix);
    free(c);
}

int64_t checkpoint_step(const struct checkpoint *c)
{
    return c->step;
}

const char *checkpoint_prefix(const struct checkpoint *c)
{
    return c->prefix;
}

struct node checkpoint_training_state(const struct checkpoint *c)
{
    return node_root(c->state, c->source);
}

int checkpoint_columns(const struct checkpoint *c, struct column_names *ret, struct err *e)
{
    struct node state = checkpoint_training_state(c), columns = node_get(&state, "columns");
    return column_names_read(&columns, ret, e);
}

static int read_state(struct checkpoint *c, struct err *e)
{
    const struct bundle_entry *entry = bundle_find(c->b, TRAINING_STATE_TENSOR);
    AUTO_FINI(buf) text = BUF_INIT;
    if (entry == NULL)
        return 0;
    if (bundle_read_string(c->b, entry, 0, &text, e) < 0)
        return -1;
    return json_parse(text.data, text.len, TRAINING_STATE_TENSOR, &c->state, e);
}

int checkpoint_open(const char *prefix, struct checkpoint **ret, struct err *e)
{
    AUTO(checkpoint) *c = xcalloc(1, sizeof(*c));
    c->prefix = xstrdup(prefix);
    c->source = source_new(prefix);
    if (bundle_open(prefix, &c->b, e) < 0 || read_state(c, e) < 0)
        return -1;
    const struct bundle_entry *step = bundle_find(c->b, "global_step");
    if (step != NULL && step->dtype == DT_INT64 && bundle_read(c->b, step, 0, sizeof(c->step), &c->step, e) < 0)
        return -1;
    *ret = TAKE(c);
    return 0;
}

static int open_verified(const char *prefix, struct checkpoint **ret, struct err *e)
{
    AUTO(checkpoint) *c = NULL;
    if (checkpoint_open(prefix, &c, e) < 0)
        return -1;
    for (size_t i = 0; i < bundle_count(c->b); i++)
        if (bundle_check(c->b, bundle_entry(c->b, i), e) < 0)
            return -1;
    *ret = TAKE(c);
    return 0;
}

int checkpoint_verify(const char *prefix, struct err *e)
{
    AUTO(checkpoint) *c = NULL;
    return open_verified(prefix, &c, e);
}

/* The checkpoints of the folder, the newest first. *ret_why: as of checkpoint_state_find(). */
static int newest_first(const char *dir, struct strlist *ret, char **ret_why, struct err *e)
{
    AUTO_FINI(strlist) all = { 0 };
    auto_free char *latest = NULL;
    struct err cause = { 0 };
    if (checkpoint_state_find(dir, &all, &latest, ret_why, &cause) < 0)
        return err_is(&cause, ERR_NOT_FOUND) ? 0 : err_set(e, cause.code, "%s", cause.msg);
    strlist_add(ret, latest);
    for (size_t i = all.n; i > 0; i--)
        if (!str_eq(all.items[i - 1], latest))
            strlist_add(ret, all.items[i - 1]);
    return 0;
}

static void note_damage(struct buf *b, const char *prefix, const struct err *cause)
{
    buf_str(b, b->len > 0 ? "; checkpoint " : "checkpoint ");
    buf_str(b, prefix);
    buf_str(b, " cannot be used: ");
    buf_str(b, cause->msg);
}

static int none_is_whole(const char *dir, const struct strlist *names, const struct buf *damage, struct err *e)
{
    AUTO_FINI(buf) list = BUF_INIT;
    for (size_t i = 0; i < names->n; i++) {
        buf_str(&list, i > 0 ? ", " : "");
        buf_str(&list, names->items[i]);
    }
    return err_set(e, ERR_INPUT,
                   "no checkpoint in %s is whole (tried %s): restore one, or start from scratch with --fresh; %s", dir,
                   list.data, damage->data);
}

/* NULL when neither the file `checkpoint` nor a newer checkpoint is at fault. xmalloc'ed. */
static char *warning_of(const char *dir, const char *why, const struct buf *damage, const char *prefix, size_t n)
{
    const char *between = damage->len > 0 ? "; " : "";
    if (why != NULL)
        return xasprintf("%s; %s%scheckpoint %s is used, the newest whole one of the %zu in %s", why, damage->data,
                         between, prefix, n, dir);
    return damage->len > 0 ? xasprintf("%s; the older checkpoint %s is used", damage->data, prefix) : NULL;
}

int checkpoint_open_whole(const char *dir, struct checkpoint **ret, char **ret_warning, struct err *e)
{
    AUTO_FINI(strlist) names = { 0 };
    AUTO_FINI(buf) damage = BUF_INIT;
    auto_free char *why = NULL;
    if (newest_first(dir, &names, &why, e) < 0)
        return -1;
    for (size_t i = 0; i < names.n; i++) {
        auto_free char *prefix = path_join(dir, names.items[i]);
        struct err cause = { 0 };
        if (open_verified(prefix, ret, &cause) == 0) {
            *ret_warning = warning_of(dir, why, &damage, prefix, names.n);
            return 0;
        }
        if (!err_is(&cause, ERR_INPUT) && !err_is(&cause, ERR_NOT_FOUND))
            return err_set(e, cause.code, "%s", cause.msg);
        note_damage(&damage, prefix, &cause);
    }
    if (names.n > 0)
        return none_is_whole(dir, &names, &damage, e);
    *ret = NULL;
    *ret_warning = NULL;
    return 0;
}

static int find_tensor(const struct checkpoint *c, const char *name, const struct shape *shape,
                       const struct bundle_entry **ret, struct err *e)
{
    const struct bundle_entry *entry = bundle_find(c->b, name);
    char has[128], wants[128];
    if (entry == NULL)
        return err_set(e, ERR_INPUT, "checkpoint %s has no tensor '%s': it was made with another model or optimizer",
                       c->prefix, name);
    if (entry->dtype != DT_FLOAT || !shape_eq(&entry->shape, shape))
        return err_set(e, ERR_INPUT, "checkpoint %s: '%s' is %s %s, the model wants float32 %s", c->prefix, name,
                       dtype_name(entry->dtype), shape_text(&entry->shape, has), shape_text(shape, wants));
    *ret = entry;
    return 0;
}

/* Every tensor of the variable, with its slots. */
static int find_columns(const struct checkpoint *c, const struct model *m, const struct variable *v,
                        const struct bundle_entry *ret[1 + OPTIMIZER_MAX_SLOTS], int *ret_n, struct err *e)
{
    const struct optimizer *o = model_optimizer(m);
    int n = 0;
    if (find_tensor(c, v->name, &v->shape, &ret[n++], e) < 0)
        return -1;
    for (int slot = 0; v->kind == VAR_TRAINABLE && o != NULL && slot < optimizer_slots(o); slot++) {
        auto_free char *name = xasprintf("%s/%s", v->name, optimizer_slot_name(o, slot));
        if (find_tensor(c, name, &v->shape, &ret[n++], e) < 0)
            return -1;
    }
    *ret_n = n;
    return 0;
}

int checkpoint_check(const struct checkpoint *c, const struct model *m, const struct layout *l,
                     const struct ordinal_space *space, struct err *e)
{
    struct node state = checkpoint_training_state(c);
    if (state.v == NULL)
        return err_set(e, ERR_INPUT, "checkpoint %s has no %s: it was not written by Trainyard and cannot be resumed",
                       c->prefix, TRAINING_STATE_TENSOR);
    if (space != NULL && training_state_check_space(&state, space, c->prefix, e) < 0)
        return -1;
    for (size_t i = 0; i < model_variables(m); i++) {
        const struct bundle_entry *entries[1 + OPTIMIZER_MAX_SLOTS];
        int n;
        if (find_columns(c, m, model_variable(m, i), entries, &n, e) < 0)
            return -1;
        for (int j = 0; j < n; j++)
            if (bundle_check(c->b, entries[j], e) < 0)
                return -1;
    }
    return training_state_check_layout(&state, l, c->prefix, e);
}

int checkpoint_segment(void *user, const struct segment_spec *segment, float *data, bool *ret_slots,
                       int64_t *ret_version, struct ordinal_set *ret_applied, struct err *e)
{
    const struct checkpoint_source *source = user;
    const struct checkpoint *c = source->checkpoint;
    const struct bundle_entry *entries[1 + OPTIMIZER_MAX_SLOTS];
    struct node state = checkpoint_training_state(c);
    int n;
    if (find_columns(c, source->model, model_variable(source->model, segment->variable), entries, &n, e) < 0 ||
        training_state_read_segment(&state, segment->id, ret_version, ret_applied, e) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (bundle_read(c->b, entries[i], segment->start * sizeof(float), segment->count * sizeof(float),
                        data + (size_t)i * segment->count, e) < 0)
            return -1;
    *ret_slots = n > 1;
    return 0;
}

int checkpoint_done(const struct checkpoint *c, const struct layout *l, struct ordinal_set *ret, struct err *e)
{
    struct node state = checkpoint_training_state(c);
    for (size_t i = 0; i < l->n; i++) {
        AUTO_FINI(ordinal_set) applied = ORDINAL_SET_INIT;
        int64_t version;
        if (training_state_read_segment(&state, l->segments[i].id, &version, &applied, e) < 0)
            return -1;
        if (i == 0)
            ordinal_set_copy(ret, &applied);
        else
            ordinal_set_intersect(ret, &applied);
    }
    return 0;
}

int checkpoint_values(const struct checkpoint *c, const struct model *m, float *vector, struct err *e)
{
    for (size_t i = 0; i < model_variables(m); i++) {
        const struct variable *v = model_variable(m, i);
        const struct bundle_entry *entry;
        if (find_tensor(c, v->name, &v->shape, &entry, e) < 0 ||
            bundle_read(c->b, entry, 0, v->count * sizeof(float), vector + v->offset, e) < 0)
            return -1;
    }
    return 0;
}
