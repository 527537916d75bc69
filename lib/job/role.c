/* Names of roles: in the cluster spec (worker) and in the manifest (Worker). */
#include "job/job.h"

static const char *const NAMES[] = {
#define X(id, name, key) name,
    ROLES(X)
#undef X
        "master",
};
static const char *const KEYS[] = {
#define X(id, name, key) key,
    ROLES(X)
#undef X
};

const char *role_name(enum role r)
{
    return NAMES[r];
}

const char *role_key(enum role r)
{
    return KEYS[r];
}

int role_parse(const char *s, enum role *ret, struct err *e)
{
    char cure[64];

    for (size_t i = 0; i < COUNT_OF(NAMES); i++) {
        if (str_eq(s, NAMES[i])) {
            *ret = i < ROLE_COUNT ? (enum role)i : ROLE_CHIEF; /* TFJob's Master is the old name of Chief */
            return 0;
        }
    }
    str_did_you_mean(s, NAMES, COUNT_OF(NAMES), cure, sizeof(cure));
    return err_set(e, ERR_INPUT, "role '%.60s' is not known%s", s,
                   cure[0] != '\0' ? cure : "; it must be ps, worker, chief or evaluator");
}
