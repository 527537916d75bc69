/* job_learn - completes a job with what it leaves to its training data, so that from then on it says all itself:
 *
 *     data.train.columns[].vocabulary: auto      the words of the column
 *     data.train.columns[].numBins of a number   the `binBoundaries` of the column
 *     missing: mean | mode                       the `default` of the column
 *     model without inputShape                   the shape of an example
 *
 * data.validation gets the same words, boundaries and values. Every process that builds the model of a job calls it
 * between job_load() and model_build(), and gets the same result from the same data. A run keeps the completed job.
 */
#ifndef TRAINYARD_DATA_JOB_LEARN_H
#define TRAINYARD_DATA_JOB_LEARN_H

#include "base/map.h"
#include "job/job.h"

/* The job leaves something to its data. */
bool job_learns(const struct job *j);
/* Changes the document of j, which no other thread may use yet. `run` is the completed job of the run that is
 * continued: its words and boundaries are kept, because its weights know a word or a range by its place; NULL: there is
 * none. `notes` gets a sentence for each thing that was learned. Reads data.train; cache_dir as for dataset_open().
 * ERR_INPUT with its place. */
MUST_USE int job_learn(struct job *j, const struct job *run, const char *base_dir, const char *cache_dir,
                       struct strlist *notes, struct err *e);
/* Columns of data.train that list words: name -> json_t list, borrowed from the document of a job. */
void job_words(const json_t *doc, struct map *ret);

#endif
