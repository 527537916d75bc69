/* leader_elector_internal - reads and writes Lease objects. For this folder and its tests. Pure. */
#ifndef TRAINYARD_KUBE_LEADER_ELECTOR_INTERNAL_H
#define TRAINYARD_KUBE_LEADER_ELECTOR_INTERNAL_H

#include "kube/leader_elector.h"

/* Updates *seen from the object (NULL: it does not exist); changed_ms changes only with the object. */
void lease_observe(struct lease_record *seen, const json_t *object, int64_t now_ms);
/* New reference: the object to write; all other fields of `object` (NULL: it does not exist) are kept. release: clears
 * the holder. wall: seconds since the epoch. */
json_t *lease_body(const struct lease_settings *s, const json_t *object, bool release, double wall);
/* When to poll next: in `pause_ms`, or as soon as the observed lease expires. */
int64_t lease_next_ms(const struct lease_settings *s, const struct lease_record *seen, int64_t pause_ms,
                      int64_t now_ms);

#endif
