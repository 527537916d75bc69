/* controller_settings - settings that the program passes to a controller and its parts. */
#ifndef TRAINYARD_CONTROL_CONTROLLER_SETTINGS_H
#define TRAINYARD_CONTROL_CONTROLLER_SETTINGS_H

#include "build/objects.h"
#include "plan/plan.h"

struct dispatch;
struct identity_issuer;
struct registry;
struct controller_settings { /* strings, lists and the dispatch must outlive the controller */
    struct plan_settings plan;
    struct build_settings build;
    const struct strlist *namespaces;    /* empty: all */
    enum clean_pod_policy default_clean; /* of jobs that set none */
    int workers;                         /* jobs reconciled between two rounds of I/O */
    int64_t progress_ms;                 /* shortest interval between two polls of a chief's /progress */
    const char *instance;                /* name of this operator, for events */
    struct registry *registry;
    struct identity_issuer *issuer; /* of certificates; NULL: none are made */
    struct dispatch *dispatch;      /* order of requests, shared by all controllers */
};

#endif
