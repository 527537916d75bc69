/* watch_handlers_internal - internals of watch_handlers.c, for its tests. */
#ifndef TRAINYARD_CONTROL_WATCH_HANDLERS_INTERNAL_H
#define TRAINYARD_CONTROL_WATCH_HANDLERS_INTERNAL_H

#include "control/watch_handlers.h"
#include "kube/reflector.h"

struct watches {
    struct controller_env *env;
    struct watches_user user;
    /* of each namespace: jobs, pods, services; of TrainJobs, ConfigMaps and NetworkPolicies, too */
    struct reflector **reflectors;
    size_t nreflectors, in_namespace;
    size_t jobs; /* entries whose job is known */
};

#endif
