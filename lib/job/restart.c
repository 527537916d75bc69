/* Restart policies: which exit codes each of them retries. */
#include "job/job.h"

enum { RETRYABLE = 128 }; /* TFJob's rule for ExitCode: below it the fault would repeat */

static bool never(int exit_code UNUSED)
{
    return false;
}

static bool always(int exit_code UNUSED)
{
    return true;
}

static bool on_failure(int exit_code)
{
    return exit_code != 0;
}

static bool by_exit_code(int exit_code)
{
    return exit_code >= RETRYABLE;
}

static const struct {
    const char *name;
    bool (*wanted)(int exit_code);
} POLICIES[] = {
    [RESTART_EXIT_CODE] = { "ExitCode", by_exit_code },
    [RESTART_ON_FAILURE] = { "OnFailure", on_failure },
    [RESTART_ALWAYS] = { "Always", always },
    [RESTART_NEVER] = { "Never", never },
};

const char *restart_policy_name(enum restart_policy p)
{
    return POLICIES[p].name;
}

bool restart_wanted(enum restart_policy p, int exit_code)
{
    return POLICIES[p].wanted(exit_code);
}
