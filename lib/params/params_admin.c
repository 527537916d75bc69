/* The control plane's calls through the table of the form (gRPC or local). */
#include "params/params_admin.h"

#include "params/params_internal.h"

void params_describe(struct params *p, int64_t deadline_ms, struct shard_info *rets, struct err *errors)
{
    p->admin->describe(p, deadline_ms, rets, errors);
}

void params_set_rates(struct params *p, const struct rates *rates)
{
    p->rates = rates;
}

void params_set_groups(struct params *p, const struct groups *groups)
{
    p->groups = *groups;
}

const struct groups *params_groups(const struct params *p)
{
    return &p->groups;
}

void params_set_optimizer(struct params *p, const char *optimizer_json)
{
    free(p->optimizer);
    p->optimizer = xstrdup(optimizer_json);
}

int params_init(struct params *p, size_t ps, const char *optimizer_json, int64_t deadline_ms, struct err *e)
{
    return p->admin->init(p, ps, optimizer_json, deadline_ms, e);
}

int params_adopt(struct params *p, size_t ps, int64_t deadline_ms, struct err *e)
{
    return p->admin->adopt(p, ps, deadline_ms, e);
}

int params_fence(struct params *p, size_t ps, int64_t deadline_ms, struct err *e)
{
    return (p->admin->fence != NULL ? p->admin->fence : p->admin->adopt)(p, ps, deadline_ms, e);
}

bool params_in_workers(const struct params *p)
{
    return p->in_workers;
}

const char *params_holder(const struct params *p, size_t ps, char out[32])
{
    if (p->in_workers)
        return "a worker";
    str_fmt(out, 32, "ps-%zu", ps);
    return out;
}

int params_restore(struct params *p, size_t ps, uint32_t segment, bool with_slots, int64_t version,
                   const struct ordinal_set *applied, const float *data, size_t floats, int64_t deadline_ms,
                   struct err *e)
{
    return p->admin->restore(p, ps, segment, with_slots, version, applied, data, floats, deadline_ms, e);
}

int params_serve(struct params *p, size_t ps, int64_t deadline_ms, struct err *e)
{
    return p->admin->serve(p, ps, deadline_ms, e);
}

int params_snapshot(struct params *p, size_t ps, uint32_t segment, int64_t deadline_ms, struct shard_snapshot *ret,
                    struct err *e)
{
    return p->admin->snapshot(p, ps, segment, NULL, deadline_ms, ret, e);
}

int params_announce_snapshot(struct params *p, size_t ps, int64_t at, int64_t deadline_ms, struct err *e)
{
    return p->admin->announce_snapshot(p, ps, at, deadline_ms, e);
}

int params_snapshot_at(struct params *p, size_t ps, uint32_t segment, int64_t at, int64_t deadline_ms,
                       struct shard_snapshot *ret, struct err *e)
{
    return p->admin->snapshot(p, ps, segment, &at, deadline_ms, ret, e);
}

int params_confirm_snapshots(struct params *p, size_t ps, int64_t deadline_ms, struct err *e)
{
    return p->admin->confirm_snapshots(p, ps, deadline_ms, e);
}

int params_finish(struct params *p, size_t ps, int64_t step, int64_t deadline_ms, struct err *e)
{
    return p->admin->finish(p, ps, step, deadline_ms, e);
}
