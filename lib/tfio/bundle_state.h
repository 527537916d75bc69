/* bundle_state - inside of tfio/bundle.h: the text of a `checkpoint` file. Errors carry no file name. */
#ifndef TRAINYARD_TFIO_BUNDLE_STATE_H
#define TRAINYARD_TFIO_BUNDLE_STATE_H

#include "base/str.h"

/* As state_read; the outputs must be empty. */
MUST_USE int state_parse(const char *text, size_t n, struct strlist *ret_all, char **ret_latest, struct err *e);

#endif
