/* reflector - the present objects of one kind, told as they change: LIST in small pages, then WATCH from there.
 *
 * As client-go does it: a stream that ends is taken up where it stopped (resourceVersions of events and bookmarks are
 * kept); 410 Gone or an ERROR event means listing again, and what has vanished meanwhile is told as deleted; 429 and
 * failures wait 0.8 s, doubled up to 30 s with jitter, back to the beginning after two minutes of health. A watch asks
 * for 5-10 minutes (chosen anew each time) and bookmarks; one that gives no byte for 2 minutes beyond that is cut.
 *
 * It keeps no objects: its user does (facts, not JSON), and answers for a relist which keys it has: what was not
 * listed is told as deleted. Pages hold 100 objects and are parsed one at a time, so memory stays small.
 */
#ifndef TRAINYARD_KUBE_REFLECTOR_H
#define TRAINYARD_KUBE_REFLECTOR_H

#include "kube/client.h"

enum { REFLECTOR_PAGE = 100 };

struct reflector_user {
    /* An object that is new or changed (also told again by a relist, unchanged). Borrowed. */
    void (*on_object)(void *user, const json_t *object);
    /* An object is gone. `last` is its last state, or NULL when the watch missed its end (found by a relist). */
    void (*on_gone)(void *user, const char *ns, const char *name, const char *uid, const json_t *last);
    /* Calls back for each object the user has, for a relist to compare with. */
    void (*each)(void *user, void (*tell)(void *reflector, const char *ns, const char *name, const char *uid),
                 void *reflector);
    /* After each complete list; the first time the cache may be trusted. */
    void (*on_synced)(void *user);
    void *user;
};

struct reflector_spec {
    struct kube_resource resource;
    const char *ns;                              /* NULL: all namespaces */
    const char *label_selector, *field_selector; /* NULL: all */
    const char *const *prune; /* NULL: none. NULL-ended, at most 15: members on_object() and on_gone() do not look at,
                               * as "spec.volumes": they are not parsed. metadata.managedFields never comes */
    bool metadata_only;
    const char *name; /* in logs and metrics: "pods" */
};

struct reflector;
struct reflector *reflector_new(struct kube_client *k, const struct reflector_spec *spec,
                                const struct reflector_user *user);
void reflector_free(struct reflector *r);
DEFINE_AUTO(reflector, reflector_free);
bool reflector_synced(const struct reflector *r);
/* When a LIST answered 404 (the kind is not installed) or 403: what people need to know; NULL while all is well. It
 * goes on trying. */
const char *reflector_trouble(const struct reflector *r);

#endif
