/* Reads the names of devices. Only the variables of a layer are placed; all layers compute on the CPUs of the workers.
 */
#include "job/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { INDEX_DIGITS = 6 };

static bool device_is_about(const char *device, const char *word)
{
    return strcasestr(device, word) != NULL;
}

/* Moves *s behind the word, if it begins with it. */
static bool device_skip(const char **s, const char *word)
{
    size_t n = strlen(word);
    if (strncasecmp(*s, word, n) != 0)
        return false;
    *s += n;
    return true;
}

static bool device_index(const char **s, int *ret)
{
    size_t digits = strspn(*s, "0123456789");
    if (digits == 0 || digits > INDEX_DIGITS)
        return false;
    *ret = atoi(*s);
    *s += digits;
    return true;
}

/* The job and the task: "ps:1" or "/job:ps/task:1"; then nothing, or the CPU of that task. */
static bool device_is_task(const char *s, const char *job, int *ret)
{
    bool long_form = device_skip(&s, "/job:");
    if (!device_skip(&s, job))
        return false;
    if (long_form)
        (void)device_skip(&s, "/replica:0");
    if (!device_skip(&s, long_form ? "/task:" : ":") || !device_index(&s, ret))
        return false;
    return *s == '\0' || strcasecmp(s, "/cpu:0") == 0 || strcasecmp(s, "/device:cpu:0") == 0;
}

int device_parse(const struct node *device, int *ret_ps, struct err *e)
{
    const char *text;
    int worker;

    if (node_str(device, &text, e) < 0)
        return -1;
    if (device_is_about(text, "gpu") || device_is_about(text, "tpu"))
        return node_error(device, e, "'%.60s': GPUs are not supported yet; remove 'device'", text);
    if (device_is_task(text, "ps", ret_ps))
        return 0;
    if (device_is_task(text, "worker", &worker))
        return node_error(device, e,
                          "'%.60s': layers that compute on different workers (pipelines) are not available in this "
                          "release; 'device: ps:0' places only the variables",
                          text);
    return node_error(device, e, "'%.60s' is not a valid device; use a name like ps:1 or /job:ps/task:1", text);
}

int device_check(const struct node *device, int nps, struct err *e)
{
    int ps;
    if (device_parse(device, &ps, e) < 0)
        return -1;
    const char *text = json_string_value(device->v);
    if (ps < nps)
        return 0;
    if (nps == 0)
        return node_error(device, e, "'%.60s': the job has no PS; remove 'device', or add PS to replicaSpecs", text);
    if (nps == 1)
        return node_error(device, e, "'%.60s' does not exist: the job has one PS, ps:0", text);
    return node_error(device, e, "'%.60s' does not exist: the job has %d PS, ps:0 to ps:%d", text, nps, nps - 1);
}
