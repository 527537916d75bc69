/* queue_internal - what the queue decides, for its tests. Pure. */
#ifndef TRAINYARD_KUBE_QUEUE_INTERNAL_H
#define TRAINYARD_KUBE_QUEUE_INTERNAL_H

#include <stdint.h>

enum { QUEUE_PAUSE_MS = 5, QUEUE_PAUSE_MAX_MS = 1000 * 1000 };
/* The pause after so many failures before this one: 5, 10, 20 ms ... 1000 s. */
int64_t queue_pause_ms(unsigned failures);

#endif
