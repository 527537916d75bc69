/* checkpoint - saves and restores the whole state of training: values, optimizer slots, versions, applied sets, metric
 * sums, seed and data identity, as a TensorFlow V2 checkpoint (bundle.h) that tf.train.load_checkpoint reads.
 *
 * Names: a variable has its own name; a slot is "<variable>/<optimizer's slot name>" as TensorFlow 1 had it;
 * global_step (int64); beta1_power and the like; and `_trainyard/state`, a string scalar that holds, as JSON,
 * everything for which TensorFlow has no tensor. Order of writing: data, index, fsync, then the `checkpoint` file, so a
 * crash at any moment leaves the older one. An existing prefix is never overwritten.
 */
#ifndef TRAINYARD_CHIEF_CHECKPOINT_H
#define TRAINYARD_CHIEF_CHECKPOINT_H

#include "data/dataset.h"
#include "params/ps_set.h"

/* ---- saving ---- */

struct checkpoint_save {
    const char *dir;                  /* <output>/checkpoints */
    int64_t keep;                     /* number of checkpoints kept; older ones are deleted afterwards */
    int64_t keep_step;                /* step of an old one that must be kept (an evaluator reads it), or -1 */
    const struct strlist *keep_names; /* names of others to keep, as `complete` leaves them; NULL: none */
    const struct model *model;
    const struct layout *layout;
    /* Snapshot of one segment, requested in layout order. */
    int (*snapshot)(void *user, uint32_t segment, struct shard_snapshot *ret, struct err *e);
    /* Called after the last segment. Adds to `state` whatever depends on every batch that the segments hold, or on
     * the checkpoint's name. NULL: nothing. */
    void (*complete)(void *user, const char *prefix, json_t *state);
    /* Called before the files are written out, and again before they are published: -1 abandons the checkpoint
     * (fenced). NULL: no check. */
    int (*confirm)(void *user, struct err *e);
    void *user;
    json_t *state; /* object; "segments" and "step" are added to it */
};
/* Name and global_step are those of its content: the smallest segment version among the snapshots. *ret_prefix:
 * xmalloc'ed path of the checkpoint, model.ckpt-<step>. */
MUST_USE int checkpoint_save(const struct checkpoint_save *save, int64_t *ret_step, char **ret_prefix, struct err *e);

/* ---- restoring ---- */

struct checkpoint;
/* The newest complete checkpoint (*ret NULL: the folder has none): every checksum is right. The ones that the
 * `checkpoint` file lists, or without a usable file those that are there, are tried from the newest to the oldest.
 * *ret_warning: xmalloc'ed; what is wrong with that file or with newer ones, and which one is used; NULL when nothing
 * is. ERR_INPUT naming all of them when none is complete. A storage failure is an error and does not fall back to an
 * older one. */
MUST_USE int checkpoint_open_whole(const char *dir, struct checkpoint **ret, char **ret_warning, struct err *e);
MUST_USE int checkpoint_open(const char *prefix, struct checkpoint **ret, struct err *e);
MUST_USE int checkpoint_verify(const char *prefix, struct err *e); /* it exists, and every checksum is right */
void checkpoint_free(struct checkpoint *c);
DEFINE_AUTO(checkpoint, checkpoint_free);
int64_t checkpoint_step(const struct checkpoint *c);
const char *checkpoint_prefix(const struct checkpoint *c);
/* The state JSON; v NULL when the checkpoint was not written by Trainyard. */
struct node checkpoint_training_state(const struct checkpoint *c);

/* The columns that the run was trained with; none when it has no names. `ret` must be empty. */
MUST_USE int checkpoint_columns(const struct checkpoint *c, struct column_names *ret, struct err *e);

/* Refuses (ERR_INPUT naming the field) when model, optimizer, data, batch size or seed differ from those of the
 * checkpoint. space NULL: data, batch size and seed may differ (rebase.h). */
MUST_USE int checkpoint_check(const struct checkpoint *c, const struct model *m, const struct layout *l,
                              const struct ordinal_space *space, struct err *e);
/* A ps set's segment source (`user` is a struct checkpoint_source); call checkpoint_check before, which verifies CRCs.
 */
struct checkpoint_source {
    const struct checkpoint *checkpoint;
    const struct model *model;
};
MUST_USE int checkpoint_segment(void *user, const struct segment_spec *segment, float *data, bool *ret_slots,
                                int64_t *ret_version, struct ordinal_set *ret_applied, struct err *e);
/* The intersection of the segments' applied sets: which batches are done. */
MUST_USE int checkpoint_done(const struct checkpoint *c, const struct layout *l, struct ordinal_set *ret,
                             struct err *e);
/* Values of all variables into a parameter vector (evaluation, export); slots are not read. Checks names and shapes. */
MUST_USE int checkpoint_values(const struct checkpoint *c, const struct model *m, float *vector, struct err *e);

#endif
