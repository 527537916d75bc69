/* Reads the limits out of the API server's message, and compares them with the sums of the job's pods. */
#include "build/quota_shortage.h"

#include <string.h>

#include "build/pod_resources.h"

#define OVER_QUOTA "exceeded quota: "
#define LIMITED    ", limited: "

bool is_over_quota(const char *message)
{
    return strstr(message, OVER_QUOTA) != NULL;
}

struct need {
    const struct job_spec *v;
    const json_t *spec;
    const struct build_settings *settings;
    int pods[ROLE_COUNT]; /* the least number */
};

static void shortage_add_pods(const struct need *n, struct quantity_sum *ret)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        ret->milli += (int64_t)1000 * n->pods[r];
}

/* "cpu" is "requests.cpu"; of resources that are not of containers nothing is known. */
static bool shortage_add_resource(const struct need *n, const char *name, struct quantity_sum *ret)
{
    AUTO_FINI(resource_sums) sums = { .failed = false };
    bool limits = str_starts(name, "limits.");
    const char *dot = strchr(name, '.');
    const char *resource = limits || str_starts(name, "requests.") ? dot + 1 : name;
    resource_sums_add(&sums, n->v, n->spec, n->settings, n->pods, limits ? "limits" : "requests");
    const struct quantity_sum *sum = map_get(&sums.by_name, resource);
    if (sum == NULL || sums.failed)
        return false;
    *ret = *sum;
    return true;
}

/* "pods=2" */
static char *shortage_of(const struct need *n, const char *limit)
{
    struct quantity_sum needed = { .milli = 0 }, has = { .milli = 0 };
    const char *equals = strchr(limit, '=');
    if (equals == NULL)
        return NULL;
    auto_free char *name = xstrndup(limit, (size_t)(equals - limit));
    json_auto_t *value = json_string(equals + 1);
    if (value == NULL || quantity_sum_add(&has, value, 1) < 0)
        return NULL;
    if (str_eq(name, "pods") || str_eq(name, "count/pods"))
        shortage_add_pods(n, &needed);
    else if (!shortage_add_resource(n, name, &needed))
        return NULL;
    if (needed.milli <= has.milli)
        return NULL;
    json_auto_t *text = quantity_sum_value(&needed);
    return xasprintf("the job needs %s=%s to train, and the quota has %s", name, json_string_value(text), limit);
}

char *quota_shortage(const struct job_spec *v, const json_t *spec, const struct build_settings *s, const char *message)
{
    struct need n = { .v = v, .spec = spec, .settings = s };
    AUTO_FINI(strlist) limits = { .n = 0 };
    const char *at = strstr(message, LIMITED);
    char *text = NULL;
    if (!is_over_quota(message) || at == NULL)
        return NULL;
    job_spec_minimum(v, n.pods);
    strlist_split(&limits, at + strlen(LIMITED), ',');
    for (size_t i = 0; i < limits.n && text == NULL; i++)
        text = shortage_of(&n, limits.items[i]);
    return text;
}
