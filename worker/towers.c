/* Starts and joins the threads. Each is a member of the job, "tower-3", so that leases, reports and a stall of one are
 * handled as those of a worker. */
#include "towers.h"

#include "base/log.h"
#include "base/stop.h"
#include "base/thread.h"

struct towers;
struct tower {
    struct towers *all;
    char name[32];
    struct params *params;
    struct thread thread;
    _Atomic int64_t computed; /* batches */
};

struct towers {
    const struct trainer *of;
    struct tower *items;
    size_t n;
    struct claims *claims;
    struct mutex lock;
    struct err error; /* under lock: the first failure, else why the first thread ended */
};

static void towers_fini(struct towers *t)
{
    for (size_t i = 0; i < t->n; i++)
        params_free(t->items[i].params);
    free(t->items);
    claims_free(t->claims);
    mutex_fini(&t->lock);
}
DEFINE_AUTO_FINI(towers, towers_fini);

/* Mirrored computes from the vector of the shard, Hogwild from copies. */
static void towers_init(struct towers *t, struct shard *shard)
{
    const struct replica *r = t->of->replica;
    struct params_identity id = { .job_uid = r->job_uid, .incarnation = r->incarnation };
    bool mirrored = t->of->strategy == STRATEGY_MIRRORED;
    mutex_init(&t->lock);
    t->n = (size_t)replica_towers(r);
    t->items = xcalloc(t->n, sizeof(*t->items));
    for (size_t i = 0; i < t->n; i++) {
        struct tower *w = &t->items[i];
        w->all = t;
        str_fmt(w->name, sizeof(w->name), "tower-%zu", i);
        id.sender = w->name;
        w->params = mirrored ? params_new_in_place(r->layout, shard, &id) : params_new_local(r->layout, shard, &id);
    }
    t->claims = mirrored ? claims_new(GROUP_MAX) : NULL;
}

static void note_end(struct towers *t, const struct err *e)
{
    bool failed = trainer_failed(e);
    {
        MUTEX_GUARD(&t->lock);
        if (t->error.code == ERR_NONE || (failed && !trainer_failed(&t->error)))
            t->error = *e;
    }
    if (failed)
        stop_request();
}

static void tower_run(void *user)
{
    struct tower *w = user;
    struct trainer t = *w->all->of;
    struct err e = { 0 };
    t.name = w->name;
    t.params = w->params;
    t.claims = w->all->claims;
    t.computed = &w->computed;
    if (trainer_run(&t, &e) < 0)
        note_end(w->all, &e);
}

/* The shares show whether the threads really ran at the same time. */
static void log_shares(const struct towers *t)
{
    AUTO_FINI(buf) text = BUF_INIT;
    for (size_t i = 0; i < t->n; i++)
        buf_printf(&text, "%s%lld", i > 0 ? ", " : "", (long long)atomic_load(&t->items[i].computed));
    log_info("batches computed by each thread: %s", text.data);
}

int towers_run(const struct trainer *of, struct shard *shard, struct err *e)
{
    AUTO_FINI(towers) t = { .of = of };
    struct err cause = { 0 };
    towers_init(&t, shard);
    for (size_t i = 1; i < t.n && cause.code == ERR_NONE; i++)
        if (thread_start(&t.items[i].thread, t.items[i].name, tower_run, &t.items[i], &cause) < 0)
            note_end(&t, &cause);
    if (cause.code == ERR_NONE)
        tower_run(&t.items[0]);
    for (size_t i = 1; i < t.n; i++)
        thread_join(&t.items[i].thread);
    log_shares(&t);
    return t.error.code == ERR_NONE ? 0 : err_set(e, t.error.code, "%s", t.error.msg);
}
