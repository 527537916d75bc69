/* leader_elector_internal - what an elector reads and writes, for its tests. Pure. */
#ifndef TRAINYARD_KUBE_LEADER_ELECTOR_INTERNAL_H
#define TRAINYARD_KUBE_LEADER_ELECTOR_INTERNAL_H

#include "kube/leader_elector.h"

/* What the object (NULL: there is none) says, taken into *seen: changed_ms moves when it is another than before. */
void lease_observe(struct lease_record *seen, const json_t *object, int64_t now_ms);
/* New reference: the object to write, everything else in `object` (NULL: there is none) as it was. release: held by
 * nobody. wall: seconds since the epoch. */
json_t *lease_body(const struct lease_settings *s, const json_t *object, bool release, double wall);
/* When to look next: in `pause_ms`, or as soon as the lease that was seen is over. */
int64_t lease_next_ms(const struct lease_settings *s, const struct lease_record *seen, int64_t pause_ms,
                      int64_t now_ms);

#endif
