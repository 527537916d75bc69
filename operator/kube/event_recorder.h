/* event_recorder - what is told to people through `kubectl get events` and `kubectl describe`: core/v1 Event objects.
 *
 * One series an (object, reason, about): the first event is created, those that follow within ten minutes raise its
 * count and change its note and lastTimestamp by a patch. Events go out as background requests, a second after they
 * were recorded; while others are under way they have a small share. At most 25 series an object and then one in five
 * minutes (client-go's spam filter), at most 32,768 wait (some 300 bytes each); what is more is dropped.
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
/* The object is gone: what is still to be told of it is told, then nothing of it is kept. */
void event_recorder_forget(struct event_recorder *ev, const char *uid);
/* The end is near: what waits is sent at once. done() is called once, from the loop, when nothing waits any more or
 * after max_ms; what was refused is not tried again. Nothing may be recorded from here on. */
void event_recorder_flush(struct event_recorder *ev, int64_t max_ms, void (*done)(void *user), void *user);
size_t event_recorder_waiting(const struct event_recorder *ev);

#endif
