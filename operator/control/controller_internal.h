/* controller_internal - functions of controller.c for its tests. */
#ifndef TRAINYARD_CONTROL_CONTROLLER_INTERNAL_H
#define TRAINYARD_CONTROL_CONTROLLER_INTERNAL_H

#include "control/controller.h"
#include "control/controller_env.h"
#include "control/progress_poller.h"
#include "control/watch_handlers.h"

struct controller {
    struct controller_env env;
    struct controller_settings settings;
    struct progress_poller *poller;
    struct watches *watches;
    struct identity_issuer_user issuer_user;
};

#endif
