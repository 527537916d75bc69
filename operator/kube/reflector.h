/* reflector - reports the objects of one kind and their changes: LIST in small pages, then WATCH from there.
 *
 * It works as client-go's: a stream that ends continues where it stopped, at the resourceVersion of the last event or
 * bookmark. After 410 Gone or an ERROR event it lists again, and reports objects that vanished meanwhile as deleted.
 * After 429 and failures it waits 0.8 s, doubled up to 30 s with jitter, and 0.8 s again after two minutes without a
 * failure. A watch lasts 5-10 minutes (random) with bookmarks; it is aborted after 2 more minutes without a byte.
 *
 * It stores no objects; its user does. For a relist the user enumerates its objects, and those that were not listed are
 * reported as deleted. Pages have 100 objects and are parsed one at a time, so memory stays small.
 */
#ifndef TRAINYARD_KUBE_REFLECTOR_H
#define TRAINYARD_KUBE_REFLECTOR_H

#include "kube/client.h"

enum { REFLECTOR_PAGE = 100 };

struct reflector_user {
    /* An object is new or changed; a relist also repeats unchanged ones. Borrowed. */
    void (*on_object)(void *user, const json_t *object);
    /* An object was deleted. `last` is its last state, or NULL when a relist found it missing. */
    void (*on_gone)(void *user, const char *ns, const char *name, const char *uid, const json_t *last);
    /* Calls back for each object that the user has, for comparison with a relist. */
    void (*each)(void *user, void (*tell)(void *reflector, const char *ns, const char *name, const char *uid),
                 void *reflector);
    /* After each complete list; from the first one on the cache is complete. */
    void (*on_synced)(void *user);
    void *user;
};

struct reflector_spec {
    struct kube_resource resource;
    const char *ns;                              /* NULL: all namespaces */
    const char *label_selector, *field_selector; /* NULL: all */
    const char *const *prune; /* NULL: none. NULL-ended, at most 15: members that on_object() and on_gone() do not use,
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
/* Why a LIST fails, for users, after 404 (the kind is not installed) or 403; NULL while it works. The reflector keeps
 * retrying. */
const char *reflector_trouble(const struct reflector *r);

#endif
