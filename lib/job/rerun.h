/* rerun - a job that finds the run of an earlier one in its output folder: which fields differ, and what each of them
 * needs so that the run may continue.
 *
 * Pure. The rule of a field is in the manifest's tables (job/fields.h, `rerun`), so no field can be missed. Both sides
 * are the `spec` of a document; a field that is absent has its default.
 */
#ifndef TRAINYARD_JOB_RERUN_H
#define TRAINYARD_JOB_RERUN_H

#include "codec/json.h"

/* Ordered: a later one requires more. */
enum rerun {
    RERUN_UNSAID, /* that of the row above in the manifest */
    RERUN_FREE,   /* may differ */
    RERUN_LONGER, /* may grow; a run that has finished, and any other change, needs --resume */
    RERUN_RESUME, /* needs --resume, or fit.resume: true */
    RERUN_REBASE, /* needs --rebase, or fit.rebase: true: other batches from the next epoch */
    RERUN_FRESH,  /* the run cannot continue with it */
};

struct rerun_change {
    char *path;      /* "fit.batchSize" */
    char *was, *now; /* for people; NULL: not set */
    enum rerun need; /* RERUN_RESUME, RERUN_REBASE or RERUN_FRESH */
};
struct rerun_changes {
    struct rerun_change *items;
    size_t n;
};
void rerun_changes_fini(struct rerun_changes *c);
DEFINE_AUTO_FINI(rerun_changes, rerun_changes_fini);

/* Adds the fields that differ and may not differ freely. finished: the earlier run has ended. */
void rerun_compare(const json_t *was, const json_t *now, bool finished, struct rerun_changes *ret);
/* was, now: copied, NULL: not set. */
void rerun_add(struct rerun_changes *c, const char *path, const char *was, const char *now, enum rerun need);
/* Drops the changes at the path and below. */
void rerun_forget(struct rerun_changes *c, const char *path);
/* The strongest need among them; RERUN_FREE: there is none. */
enum rerun rerun_need(const struct rerun_changes *c);
/* "fit.batchSize is 32, was 64; fit.seed is 2, was 1": those that need more than `allowed`; after the first few, only
 * their number. */
void rerun_text(const struct rerun_changes *c, enum rerun allowed, struct buf *out);

#endif
