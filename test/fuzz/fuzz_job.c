/* Any bytes as a manifest. Input that begins with "--set TEXT" is applied to a small manifest instead. */
#include <stdlib.h>
#include <string.h>

#include "job/fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_set(const char *set)
{
    static const char DOC[] = "spec: {compile: {optimizer: Adam}, model: {layers: [{Dense: {units: 1}}]}}\n";
    struct err e = { .code = ERR_NONE };
    json_auto_t *v = NULL;
    AUTO(source) *src = NULL;

    if (yaml_parse(DOC, strlen(DOC), "doc", &v, &src, &e) < 0)
        abort();
    if (override_apply(v, src, set, &e) < 0 && e.msg[0] == '\0')
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char SET[] = "--set ";
    struct err e = { .code = ERR_NONE };
    AUTO(job) *j = NULL;

    if (size > strlen(SET) && memcmp(data, SET, strlen(SET)) == 0) {
        auto_free char *set = xstrndup((const char *)data + strlen(SET), size - strlen(SET));
        try_set(set);
        return 0;
    }
    if (job_parse((const char *)data, size, "fuzz", &j, &e) < 0) {
        if (e.msg[0] == '\0' || j != NULL)
            abort();
        return 0;
    }
    if (job_check_name(j->name, &e) < 0 || j->fit.batch_size < 1)
        abort();
    if (j->has_model && (j->fit.epochs > 0) == (j->fit.steps > 0))
        abort();
    return 0;
}
