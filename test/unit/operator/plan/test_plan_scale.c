/* Which pods are created first: those of the core of a job. */
#include "check_main.h"

#include <string.h>

#include "plan/plan.h"

#define COUNTS(ps, chief, worker, evaluator)                                                                           \
    {                                                                                                                  \
        [ROLE_PS] = { .present = (ps) > 0, .replicas = (ps) },                                                         \
        [ROLE_CHIEF] = { .present = (chief) > 0, .replicas = (chief) },                                                \
        [ROLE_WORKER] = { .present = (worker) > 0, .replicas = (worker) }, [ROLE_EVALUATOR] = {                        \
            .present = (evaluator) > 0,                                                                                \
            .replicas = (evaluator)                                                                                    \
        }                                                                                                              \
    }

START_TEST(ps_and_leader_come_before_workers)
{
    static const struct {
        struct role_spec roles[ROLE_COUNT];
        enum role creating, to_create;
        int creating_index, to_create_index; /* -1: none */
        bool want, all_reduce;
    } CASES[] = {
        { COUNTS(2, 1, 4, 0), ROLE_PS, ROLE_PS, -1, 1, true, false },
        { COUNTS(2, 1, 4, 0), ROLE_PS, ROLE_WORKER, 1, 0, true, false },
        { COUNTS(2, 1, 4, 0), ROLE_CHIEF, ROLE_WORKER, 0, 0, true, false },
        { COUNTS(2, 1, 4, 1), ROLE_WORKER, ROLE_EVALUATOR, 0, 0, false, false },
        { COUNTS(2, 1, 4, 1), ROLE_WORKER, ROLE_WORKER, -1, 3, false, false },
        { COUNTS(2, 0, 4, 0), ROLE_WORKER, ROLE_WORKER, -1, 0, true, false }, /* worker 0 leads */
        { COUNTS(2, 0, 4, 0), ROLE_WORKER, ROLE_WORKER, 0, 3, true, false },
        { COUNTS(2, 0, 4, 0), ROLE_WORKER, ROLE_WORKER, 1, 3, false, false },
        { COUNTS(0, 1, 4, 0), ROLE_WORKER, ROLE_CHIEF, 0, 0, true, false },
        { COUNTS(0, 0, 4, 0), ROLE_WORKER, ROLE_WORKER, 0, 1, false, false }, /* each of them needs the others */
        { COUNTS(0, 0, 4, 0), ROLE_WORKER, ROLE_WORKER, -1, 0, true, true },  /* one is enough to begin */
        { COUNTS(0, 0, 4, 0), ROLE_WORKER, ROLE_WORKER, 0, 1, true, true },
        { COUNTS(0, 1, 4, 0), ROLE_WORKER, ROLE_WORKER, 0, 1, false, true }, /* the chief leads */
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct job_spec v = { .kind = &KIND_TFJOB, .all_reduce = CASES[i].all_reduce };
        memcpy(v.roles, CASES[i].roles, sizeof(v.roles));
        struct pod_info made = { .role = ROLE_PS, .index = 0 },
                        making = { .role = CASES[i].creating, .index = CASES[i].creating_index, .creating = true };
        const struct pod_info *const pods[] = { &made, &making };
        const struct action actions[] = {
            { .kind = ACT_CREATE_SERVICE, .role = ROLE_PS, .index = 0 },
            { .kind = ACT_DELETE_POD, .role = ROLE_PS, .index = 0 },
            { .kind = ACT_CREATE_POD, .role = CASES[i].to_create, .index = CASES[i].to_create_index }
        };
        bool got = plan_core_comes_first(&v, pods, CASES[i].creating_index >= 0 ? 2 : 1, actions,
                                         CASES[i].to_create_index >= 0 ? 3 : 2);
        ck_assert_msg(got == CASES[i].want, "case %zu", i);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("plan_scale");
    TCase *t = tcase_create("plan_scale");
    tcase_add_test(t, ps_and_leader_come_before_workers);
    suite_add_tcase(s, t);
    return s;
}
