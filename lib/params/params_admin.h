/* params_admin - the control plane of the parameters: the calls of a job's chief to the ps, through the same object and
 * connections as the data plane (params/params.h). Every call goes to one ps, except params_describe, which goes to
 * all.
 *
 * The calls that change state (Init, Restore, Finish) are refused with ERR_FENCED where a ps knows a newer generation
 * or another chief. Deadlines and errors are those of params/params.h.
 */
#ifndef TRAINYARD_PARAMS_PARAMS_ADMIN_H
#define TRAINYARD_PARAMS_PARAMS_ADMIN_H

#include "params/params.h"

/* Calls every ps in parallel, so that all unreachable ones together cost one deadline. rets and errors have one
 * element for each ps: the answer, or, when errors[ps].code is not ERR_NONE, the reason why there is none. */
void params_describe(struct params *p, int64_t deadline_ms, struct shard_info *rets, struct err *errors);
/* The learning rates of the chief's callbacks, which params_init and params_adopt send to the ps from now on. Borrowed,
 * and read by each of these calls. */
void params_set_rates(struct params *p, const struct rates *rates);
/* Synchronous updates: params_init sends the groups to the ps from now on. */
void params_set_groups(struct params *p, const struct groups *groups);
const struct groups *params_groups(const struct params *p); /* size 0: params_set_groups was not called */
/* Keras's form, copied: for a form that fills further processes by itself (collective/params_members.h). */
void params_set_optimizer(struct params *p, const char *optimizer_json);
MUST_USE int params_init(struct params *p, size_t ps, const char *optimizer_json, int64_t deadline_ms, struct err *e);
/* As params_adopt, and training does not go on in this generation: only the calls that save and end it follow. */
MUST_USE int params_fence(struct params *p, size_t ps, int64_t deadline_ms, struct err *e);
MUST_USE int params_adopt(struct params *p, size_t ps, int64_t deadline_ms, struct err *e);
/* data: values, then slots when with_slots. */
MUST_USE int params_restore(struct params *p, size_t ps, uint32_t segment, bool with_slots, int64_t version,
                            const struct ordinal_set *applied, const float *data, size_t floats, int64_t deadline_ms,
                            struct err *e);
MUST_USE int params_serve(struct params *p, size_t ps, int64_t deadline_ms, struct err *e);
MUST_USE int params_snapshot(struct params *p, size_t ps, uint32_t segment, int64_t deadline_ms,
                             struct shard_snapshot *ret, struct err *e);
/* Synchronous training: as shard_announce_snapshot and shard_snapshot_at. */
MUST_USE int params_announce_snapshot(struct params *p, size_t ps, int64_t at, int64_t deadline_ms, struct err *e);
MUST_USE int params_snapshot_at(struct params *p, size_t ps, uint32_t segment, int64_t at, int64_t deadline_ms,
                                struct shard_snapshot *ret, struct err *e);
/* As shard_confirm_snapshots. */
MUST_USE int params_confirm_snapshots(struct params *p, size_t ps, int64_t deadline_ms, struct err *e);
/* Who has the state, for messages: "ps-1", or with params_new_members "a worker". */
const char *params_holder(const struct params *p, size_t ps, char out[32]);
bool params_in_workers(const struct params *p); /* params_new_members */
MUST_USE int params_finish(struct params *p, size_t ps, int64_t step, int64_t deadline_ms, struct err *e);

#endif
