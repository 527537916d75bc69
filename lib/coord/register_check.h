/* register_check - part of coordinator.h: may a process with this registration be a member of the job? Pure. */
#ifndef TRAINYARD_COORD_REGISTER_CHECK_H
#define TRAINYARD_COORD_REGISTER_CHECK_H

#include "coord/coordinator.h"

/* arithmetic: of the job; "": not known yet. ERR_REFUSED: it must not. */
MUST_USE int register_check(const struct coordinator_config *c, const char *arithmetic,
                            const struct register_request *q, struct err *e);

#endif
