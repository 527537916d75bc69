/* params_internal - the tables of operations behind params/params.h and params/params_admin.h: the gRPC form and the
 * local form fill one each. */
#ifndef TRAINYARD_PARAMS_PARAMS_INTERNAL_H
#define TRAINYARD_PARAMS_PARAMS_INTERNAL_H

#include "params/params_admin.h"

struct params_ops { /* as the functions of params/params.h with the same names */
    void (*free)(struct params *p);
    void (*forget)(struct params *p); /* a new generation begins */
    void (*mark)(struct params *p);
    int (*pull)(struct params *p, bool rest, int64_t deadline_ms, struct err *e);
    int (*pull_at)(struct params *p, int64_t at, int64_t wait_ms, int64_t deadline_ms, struct err *e);
    int (*reduce)(struct params *p, struct group_request *q, int64_t deadline_ms, struct err *e);
    void (*versions)(const struct params *p, int64_t *ret_min, int64_t *ret_max);
    int (*gradients)(struct params *p, int which, float **ret, struct err *e);
    /* direct: the vector is not read until push_finish */
    int (*push_start)(struct params *p, int64_t ordinal, const float *grads, bool direct, int64_t deadline_ms,
                      struct err *e);
    void (*push_early)(struct params *p, int64_t ordinal, const float *grads, size_t from,
                       int64_t deadline_ms); /* or NULL */
    int (*push_finish)(struct params *p, struct push_result *ret, struct err *e);
};

struct params_admin_ops { /* as the functions of params/params_admin.h with the same names */
    void (*describe)(struct params *p, int64_t deadline_ms, struct shard_info *rets, struct err *errors);
    int (*init)(struct params *p, size_t ps, const char *optimizer_json, int64_t deadline_ms, struct err *e);
    int (*adopt)(struct params *p, size_t ps, int64_t deadline_ms, struct err *e);
    int (*fence)(struct params *p, size_t ps, int64_t deadline_ms, struct err *e); /* NULL: adopt */
    int (*restore)(struct params *p, size_t ps, uint32_t segment, bool with_slots, int64_t version,
                   const struct ordinal_set *applied, const float *data, size_t floats, int64_t deadline_ms,
                   struct err *e);
    int (*serve)(struct params *p, size_t ps, int64_t deadline_ms, struct err *e);
    int (*announce_snapshot)(struct params *p, size_t ps, int64_t at, int64_t deadline_ms, struct err *e);
    int (*snapshot)(struct params *p, size_t ps, uint32_t segment, const int64_t *at, int64_t deadline_ms,
                    struct shard_snapshot *ret, struct err *e);
    int (*confirm_snapshots)(struct params *p, size_t ps, int64_t deadline_ms, struct err *e);
    int (*finish)(struct params *p, size_t ps, int64_t step, int64_t deadline_ms, struct err *e);
};

struct wanted_step { /* see params_want_step */
    int64_t at;      /* -1: none */
    int64_t wait_ms;
};

struct params { /* the first part of the structure of each form */
    const struct params_ops *ops;
    const struct params_admin_ops *admin;
    const struct layout *layout;
    struct params_identity id;
    size_t nps;
    uint64_t generation;
    const struct rates *rates;          /* see params_set_rates; never NULL */
    struct groups groups;               /* see params_set_groups */
    char *optimizer;                    /* see params_set_optimizer; NULL: not called */
    bool in_workers;                    /* see params_in_workers */
    bool synchronous;                   /* see params_set_synchronous */
    struct wanted_step wanted;          /* by the next push */
    float *vector;                      /* owned, see params_make_vector */
    float *gradients[PARAMS_GRADIENTS]; /* memory of params_own_gradients */
    bool in_flight;                     /* a push was started and not finished */
    uint64_t moved;                     /* see params_moved */
    int64_t watch_after_ms;
    params_watch_fn *watch;
    void *watch_user;
};
void params_setup(struct params *p, const struct params_ops *ops, const struct params_admin_ops *admin,
                  const struct layout *l, size_t nps, const struct params_identity *id);
void params_make_vector(struct params *p); /* zeroed memory */
void params_release(struct params *p);
/* Memory of the process for params_gradients, allocated by the first call. */
MUST_USE int params_own_gradients(struct params *p, int which, float **ret, struct err *e);

#endif
