/* ps_set - all ps of a job, for the chief: which of them answer, what they applied, and how they are brought into
 * service (Init, Restore, adopt) under a generation.
 *
 * One thread (the chief's). Calls block for at most a few seconds each. The caller provides the values for a ps that
 * has none: a checkpoint or the initial values.
 */
#ifndef TRAINYARD_PARAMS_PS_SET_H
#define TRAINYARD_PARAMS_PS_SET_H

#include "base/report.h"
#include "params/params.h"

/* Gives one segment: count floats of values, then, with slots, count floats a slot. */
struct segment_source {
    int (*read)(void *user, const struct segment_spec *segment, float *data, bool *ret_slots, int64_t *ret_version,
                struct ordinal_set *ret_applied, struct err *e);
    void *user;
};

/* Synchronous training, params_set_groups: the state is of one step. If a ps has lost its state, all go back. */
struct ps_set;
/* report: receives lines about a long fill of a ps; NULL: none. All are borrowed. */
struct ps_set *ps_set_new(struct params *params, const struct layout *l, const struct placement *p,
                          const struct optimizer *o, const char *job_uid, const struct report *report);
void ps_set_free(struct ps_set *f);
DEFINE_AUTO(ps_set, ps_set_free);

enum ps_set_condition {
    PS_SET_READY,         /* all serve under the chief's generation; the observation is complete */
    PS_SET_UNREACHABLE,   /* some do not answer: wait (the message names them) */
    PS_SET_NEEDS_RESTORE, /* some have no state, or a new process without it: ps_set_initialise under a new generation
                           */
    PS_SET_TERMINATING,   /* some got SIGTERM: take a checkpoint now */
};
struct ps_set_view {
    enum ps_set_condition condition;
    struct ordinal_set done;     /* PS_SET_READY, PS_SET_TERMINATING: what every segment has */
    int64_t begun_ms;            /* when the poll began */
    int64_t step, step_max;      /* smallest and largest version of any segment */
    uint64_t highest_generation; /* above the chief's: a newer chief is in charge */
    uint64_t other_chief;        /* incarnation of another chief that has this generation at a ps; 0: none */
    uint64_t pushes, duplicates, staleness_sum, staleness_max, apply_ns; /* sums over all ps */
    char message[240];
};
void ps_set_view_fini(struct ps_set_view *v);
DEFINE_AUTO_FINI(ps_set_view, ps_set_view_fini);
/* Describes every ps, in parallel: all unreachable ones together cost one deadline. */
void ps_set_poll(struct ps_set *f, int64_t deadline_ms, struct ps_set_view *ret);

/* Brings every ps under the generation: those that serve this job keep their state (adopt), the others get theirs
 * from the source. Nothing is changed before all have answered. ERR_NOT_READY/ERR_LOST: one does not answer yet,
 * call again. ERR_STALE (synchronous training): call again in a higher generation. ERR_FENCED: one knows a newer
 * generation, or another chief in this one. *ret_restored: the number of
 * ps that were filled. */
MUST_USE int ps_set_initialise(struct ps_set *f, uint64_t generation, const struct segment_source *source,
                               int *ret_restored, struct err *e);
/* Sends the rates of params_set_rates to every ps, in the current generation. ERR_LOST and the like: send them to all
 * again later. */
MUST_USE int ps_set_announce(struct ps_set *f, struct err *e);
/* Only fences: every ps moves to the generation and keeps its state, so that pushes of older generations are no
 * longer applied. Ps that do not answer are left out. */
void ps_set_fence(struct ps_set *f, uint64_t generation);
/* Snapshot of one segment from the ps that holds it. */
MUST_USE int ps_set_snapshot(struct ps_set *f, uint32_t segment, struct shard_snapshot *ret, struct err *e);
/* Synchronous training: announces the snapshot of a step to every ps, then takes it (shard_announce_snapshot). */
MUST_USE int ps_set_announce_snapshot(struct ps_set *f, int64_t at, struct err *e);
MUST_USE int ps_set_snapshot_at(struct ps_set *f, uint32_t segment, int64_t at, struct shard_snapshot *ret,
                                struct err *e);
/* The checkpoint with the snapshots taken until now is published: a ps that terminates may end. A ps that does not
 * answer gets it with the next checkpoint. */
void ps_set_confirm_snapshots(struct ps_set *f);
/* Sends Finish to every ps that answers; returns their number. */
int ps_set_finish(struct ps_set *f, int64_t step);
size_t ps_set_size(const struct ps_set *f);

#endif
