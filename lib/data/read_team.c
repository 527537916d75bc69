/* Batches wait in a list; each thread takes the next record of the first batch that has one left. */
#include "data/read_team.h"

#include "base/thread.h"

/* A batch that is being read. It lives on its caller's stack. */
struct read_batch {
    struct read_batch *next;
    const struct read_rows *rows;
    size_t taken;  /* records 0 .. taken - 1 are being read, or have been */
    size_t busy;   /* of them are being read */
    size_t failed; /* the first damaged one; rows->n: none */
    struct err err;
};

struct read_team {
    const struct records *records;
    size_t x_bytes, y_bytes; /* of a record */
    struct thread thread[READ_TEAM_MAX];
    size_t threads;

    struct mutex lock;   /* guards all below, and the batches in the list */
    struct cond work;    /* a batch was added, or `stop` */
    struct cond changed; /* the last busy record of a batch was read */
    bool stop, started;
    struct read_batch *first;
};

static bool read_batch_left(const struct read_batch *b)
{
    return b->taken < b->rows->n && b->failed == b->rows->n;
}

static int read_team_one(const struct read_team *t, const struct read_rows *rows, size_t i, struct err *e)
{
    const struct records *r = t->records;
    void *y = r->has_labels ? (char *)rows->y + i * t->y_bytes : NULL;
    float *w = r->has_weights ? rows->w + i : NULL;
    return r->ops->read(r, &rows->which[i], 1, (char *)rows->x + i * t->x_bytes, y, w, e);
}

/* Reads the next record of the batch. The lock is held before and after. */
static void read_team_step(struct read_team *t, struct read_batch *b)
{
    struct err e = { .code = ERR_NONE };
    size_t i = b->taken++;
    b->busy++;
    mutex_unlock(&t->lock);
    int rc = read_team_one(t, b->rows, i, &e);
    mutex_lock(&t->lock);
    b->busy--;
    if (rc < 0 && i < b->failed) {
        b->failed = i;
        b->err = e;
    }
    if (b->busy == 0)
        cond_broadcast(&t->changed);
}

static struct read_batch *read_team_next(const struct read_team *t)
{
    struct read_batch *b = t->first;
    while (b != NULL && !read_batch_left(b))
        b = b->next;
    return b;
}

static void read_team_run(void *user)
{
    struct read_team *t = user;
    MUTEX_GUARD(&t->lock);
    while (!t->stop) {
        struct read_batch *b = read_team_next(t);
        if (b != NULL)
            read_team_step(t, b);
        else
            cond_wait(&t->work, &t->lock);
    }
}

struct read_team *read_team_new(const struct records *r, size_t threads)
{
    struct read_team *t = xcalloc(1, sizeof(*t));
    t->records = r;
    t->x_bytes = shape_elements(&r->x) * dtype_size(r->x_type);
    t->y_bytes = r->has_labels ? shape_elements(&r->y) * sizeof(float) : 0;
    t->threads = MIN(threads, READ_TEAM_MAX);
    mutex_init(&t->lock);
    cond_init(&t->work);
    cond_init(&t->changed);
    return t;
}

void read_team_free(struct read_team *t)
{
    if (t == NULL)
        return;
    mutex_lock(&t->lock);
    t->stop = true;
    cond_broadcast(&t->work);
    mutex_unlock(&t->lock);
    for (size_t i = 0; i < t->threads; i++)
        thread_join(&t->thread[i]);
    cond_fini(&t->changed);
    cond_fini(&t->work);
    mutex_fini(&t->lock);
    free(t);
}

/* A thread that does not start is missed only in speed. */
static void read_team_start(struct read_team *t)
{
    bool ok = !t->started;
    t->started = true;
    for (size_t i = 0; ok && i < t->threads; i++)
        ok = thread_start(&t->thread[i], "reader", read_team_run, t, NULL) == 0;
}

static void read_team_remove(struct read_team *t, const struct read_batch *b)
{
    struct read_batch **p = &t->first;
    while (*p != b)
        p = &(*p)->next;
    *p = b->next;
}

int read_team_read(struct read_team *t, const struct read_rows *rows, struct err *e)
{
    struct read_batch b = { .rows = rows, .failed = rows->n };
    MUTEX_GUARD(&t->lock);
    read_team_start(t);
    b.next = t->first;
    t->first = &b;
    cond_broadcast(&t->work);
    while (read_batch_left(&b))
        read_team_step(t, &b);
    while (b.busy > 0)
        cond_wait(&t->changed, &t->lock);
    read_team_remove(t, &b);
    if (b.failed == rows->n)
        return 0;
    if (e != NULL)
        *e = b.err;
    return -1;
}
