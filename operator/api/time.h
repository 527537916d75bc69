/* time - Kubernetes's times: RFC 3339 texts and milliseconds since 1970. Pure. */
#ifndef TRAINYARD_API_TIME_H
#define TRAINYARD_API_TIME_H

#include <stdint.h>

/* "2026-03-04T05:06:07Z", with or without a fraction and an offset; 0 for NULL or a text that is not a time. */
int64_t time_parse(const char *s);
const char *time_text(int64_t ms, char out[32]); /* whole seconds, as metav1.Time */

#endif
