/* output_dir - the small files of a job's output folder, and where the large ones are (docs/formats.md).
 *
 *   <output>/generation       which chief is in charge (shard/generation.h), written before first use
 *   <output>/uid              the job that writes here; the last one to begin
 *   <output>/finished         {"uid","step","weights_sha256"}: the job is over; written after the final checkpoint.
 *                             Also "checkpoint" and "best_epoch" if an earlier one is the result, "stopped_epoch"
 *                             if a callback ended it
 *   <output>/model.json       Keras's Model.to_json()
 *   <output>/history.json     metrics by epoch, final metrics
 *   <output>/checkpoints/
 *   <output>/summaries/{train,validation}/
 */
#ifndef TRAINYARD_CHIEF_OUTPUT_DIR_H
#define TRAINYARD_CHIEF_OUTPUT_DIR_H

#include "codec/json.h"
#include "codec/sha256.h"

/* Removes what killed saves of a chief left behind in the folder and in checkpoints/: temporaries of files that a
 * chief writes, but never one whose writer still runs. Returns the number removed. */
size_t output_dir_tidy(const char *dir);

char *output_dir_path(const char *dir, const char *name); /* xmalloc'ed "<dir>/<name>" */
/* The folder of event files: `named` (spec.summaries.directory; NULL: "summaries") in the output folder, or that
 * path itself when it is absolute. xmalloc'ed. */
char *output_dir_summaries(const char *dir, const char *named);
/* Creates nothing. ERR_INPUT as in output_dir_prepare() when the folder, or its nearest existing parent, is not
 * writable. */
MUST_USE int output_dir_check_access(const char *dir, struct err *e);
/* Creates the folders. ERR_INPUT naming the folder, its owner and mode, the user and the remedy when it is not
 * writable.
 */
MUST_USE int output_dir_prepare(const char *dir, const char *summaries, struct err *e);

MUST_USE int output_dir_uid(const char *dir, char **ret, struct err *e); /* xmalloc'ed; "": no file */
MUST_USE int output_dir_set_uid(const char *dir, const char *uid, struct err *e);
/* 1 and the step when the job with this uid has finished, 0 when not. */
int output_dir_finished(const char *dir, const char *uid, int64_t *ret_step, struct err *e);
/* What `finished` says about the weights; "": nothing. */
void output_dir_weights_sha256(const char *dir, char ret[SHA256_TEXT]);
struct job_result {                   /* how the job ended */
    int64_t step;                     /* trained to */
    const char *checkpoint;           /* name of the one with the job's result; NULL: the newest */
    int64_t best_epoch;               /* of that checkpoint, from 0; with checkpoint */
    int64_t stopped_epoch;            /* after which a callback ended training, from 0; -1: none did */
    char weights_sha256[SHA256_TEXT]; /* of the result (nn/weights_hash.h); "": not known */
    const json_t *best; /* checkpoints that callbacks keep: [{callback, monitor, value, epoch, checkpoint}]; or NULL */
};
void job_result_json(const struct job_result *end, json_t *v); /* except for the step */
MUST_USE int output_dir_set_finished(const char *dir, const char *uid, const struct job_result *end, struct err *e);
/* Prefix of the checkpoint that is the result of a run's folder: the one that `finished` names, if the job that
 * wrote here last wrote that file, else the newest one. xmalloc'ed. ERR_NOT_FOUND: there is none, or the named one
 * is gone. */
MUST_USE int output_dir_model(const char *dir, char **ret_prefix, struct err *e);
MUST_USE int output_dir_json(const char *dir, const char *name, const json_t *v, struct err *e);

#endif
