/* event_recorder - core/v1 Events, as `kubectl get events` and `kubectl describe` show them.
 *
 * Events with the same (object, reason, about) form a series. The first one is created; later ones within ten minutes
 * patch its count, note and lastTimestamp. Events are sent as background requests a second after they were recorded,
 * and get a small share of the requests while others are running. An object may have 25 series, then one more every
 * five minutes (client-go's spam filter). At most 32,768 events wait, some 300 bytes each; more are dropped.
 */
#ifndef TRAINYARD_KUBE_EVENT_RECORDER_H
#define TRAINYARD_KUBE_EVENT_RECORDER_H

#include "kube/client.h"

struct event_object { /* borrowed during the call */
    const char *api_version, *kind, *ns, *name, *uid, *resource_version;
};
enum event_type { EVENT_NORMAL, EVENT_WARNING };

struct event_recorder;
struct registry;
/* component: "tfjob-controller", source.component; instance: the pod's name. */
struct event_recorder *event_recorder_new(struct kube_client *k, const char *component, const char *instance);
void event_recorder_free(struct event_recorder *ev);
DEFINE_AUTO(event_recorder, event_recorder_free);
/* about: what distinguishes series of one reason ("Worker"), or "". The note is cut to 1 kB. */
void event_record(struct event_recorder *ev, const struct event_object *about_object, enum event_type type,
                  const char *reason, const char *about, const char *note);
/* The object was deleted: its pending events are still posted, then all its series are freed. */
void event_recorder_forget(struct event_recorder *ev, const char *uid);
/* Before the program ends: sends all pending events at once. done() is called once, from the loop, when none is pending
 * or after max_ms; failed events are not retried. No event may be recorded after this call. */
void event_recorder_flush(struct event_recorder *ev, int64_t max_ms, void (*done)(void *user), void *user);
size_t event_recorder_waiting(const struct event_recorder *ev);

#endif
