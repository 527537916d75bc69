/* fleet - all ps of a job as the chief sees them: who answers, what they applied, and how they are brought into
 * service (Init, Restore, adopt) under a generation.
 *
 * One thread (the chief's). Calls block for at most a few seconds each. Where the values of a ps that has none come
 * from is the caller's: a checkpoint or the initial values.
 */
#ifndef TRAINYARD_TRAIN_FLEET_H
#define TRAINYARD_TRAIN_FLEET_H

#include "train/params.h"

/* Gives one segment: count floats of values, then, with slots, count floats a slot. */
struct segment_source {
    int (*read)(void *user, const struct segment_spec *segment, float *data, bool *ret_slots, int64_t *ret_version,
                struct applied *ret_applied, struct err *e);
    void *user;
};

struct fleet;
struct fleet *fleet_new(struct params *params, const struct layout *l, const struct placement *p, const struct optimizer *o,
                        const char *job_uid);
void fleet_free(struct fleet *f);
DEFINE_AUTO(fleet, fleet_free)

enum fleet_condition {
    FLEET_WELL,          /* all serve under our generation; the observation is complete */
    FLEET_AWAY,          /* some do not answer: wait (message says who) */
    FLEET_EMPTY,         /* some have no state, or a new process without it: fleet_bring_up under a new generation */
    FLEET_LEAVING,       /* some got SIGTERM: take a checkpoint now */
};
struct fleet_view {
    enum fleet_condition condition;
    struct applied done;             /* FLEET_WELL, FLEET_LEAVING: what every segment has */
    int64_t begun_ms;                /* when the look began */
    int64_t step;                    /* smallest version of any segment */
    uint64_t highest_generation;     /* above ours: somebody newer is in charge */
    uint64_t other_chief;            /* incarnation of another chief, whom a ps gave our generation; 0: none */
    uint64_t pushes, duplicates, staleness_sum, staleness_max, apply_ns; /* sums over all ps */
    char message[240];
};
void fleet_view_fini(struct fleet_view *v);
DEFINE_AUTO_FINI(fleet_view, fleet_view_fini)
/* Describes every ps, all at once: those that are away cost one deadline together. */
void fleet_look(struct fleet *f, int64_t deadline_ms, struct fleet_view *ret);

/* Brings every ps under the generation: those that serve this job keep their state (adopt), the others get theirs from
 * the source. Nothing is changed before all have answered. ERR_NOT_READY/ERR_LOST: one does not answer yet, call again.
 * ERR_FENCED: one knows a newer generation, or another chief in this one. *ret_restored: how many were filled. */
MUST_USE int fleet_bring_up(struct fleet *f, uint64_t generation, const struct segment_source *source, int *ret_restored,
                            struct err *e);
/* Only fences: every ps goes to the generation and keeps its state, so that no push of an older one is applied any
 * more. Ps that do not answer are left out. */
void fleet_fence(struct fleet *f, uint64_t generation);
/* Snapshot of one segment from the ps that holds it. */
MUST_USE int fleet_snapshot(struct fleet *f, uint32_t segment, struct shard_snapshot *ret, struct err *e);
/* Finish to every ps that answers; returns how many did. */
int fleet_finish(struct fleet *f, int64_t step);
size_t fleet_size(const struct fleet *f);

#endif
