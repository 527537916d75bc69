/* What a chief reports: any text as its page /progress, and as its pod's termination message. What is read goes into a
 * status patch, which must be valid and small. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "control/training_progress.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void heard(struct training_progress *p)
{
    struct job_status was = { 0 }, is = { 0 };
    must(p->present && p->step >= 0 && p->epoch >= 0 && p->epochs >= 0 && p->last_checkpoint_step >= 0);
    must(isfinite(p->examples_per_second) && strlen(p->loss) < sizeof(p->loss));
    must(p->metrics == NULL || strlen(p->metrics) < 8192);
    is.progress = *p;
    json_auto_t *patch = job_status_patch(&KIND_TRAINJOB, "uid", 0, &was, &is);
    const json_t *value = json_at(patch, "status.progress");
    must(json_is_object(value) && json_is_integer(json_object_get(value, "step")));
    must(p->metrics == NULL || json_is_object(json_object_get(value, "metrics")));
    char *text = json_dumps(patch, 0);
    must(text != NULL);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FINI(training_progress) page = { 0 }, words = { 0 };

    if (training_progress_parse((const char *)data, size, &page) == 0)
        heard(&page);
    json_auto_t *pod = json_pack("{s:{s:[{s:s,s:{s:{s:s%}}}]}}", "status", "containerStatuses", "name", "trainer",
                                 "state", "terminated", "message", (const char *)data, size);
    if (pod != NULL && training_progress_of_pod(&KIND_TRAINJOB, pod, &words) == 0)
        heard(&words);
    return 0;
}
