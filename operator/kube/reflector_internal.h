/* reflector_internal - parses watch events and list pages, and decides the next step. For this folder, its tests and
 * its fuzz target. Pure. */
#ifndef TRAINYARD_KUBE_REFLECTOR_INTERNAL_H
#define TRAINYARD_KUBE_REFLECTOR_INTERNAL_H

#include "kube/reflector.h"

enum {
    WATCH_LINE_MAX = 16 << 20,
    WATCH_MIN_S = 300,
    WATCH_MAX_S = 600,
    WATCH_GRACE_S = 120, /* without a byte, beyond the requested timeout */
    PAUSE_FIRST_MS = 800,
    PAUSE_MAX_MS = 30 * 1000,
    HEALTHY_MS = 120 * 1000, /* after this long without a failure the back-off is reset */
    SHORT_WATCH_MS = 1000,   /* a watch that ends sooner without an event has failed */
    FUTILE_MAX = 5           /* failures in the middle of a stream without an event between them: list again */
};

/* ---- a line of a watch ---- */

enum watch_type { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED, WATCH_BOOKMARK, WATCH_ERROR, WATCH_STRANGE };
struct watch_event {
    enum watch_type type;
    json_t *root;
    json_t *object;                        /* the rest is borrowed from root */
    const char *ns, *name, *uid, *version; /* "" when there is none */
    int code;                              /* of an ERROR */
    const char *reason, *message;          /* of an ERROR */
};
void watch_event_fini(struct watch_event *w);
DEFINE_AUTO_FINI(watch_event, watch_event_fini);
/* ERR_INPUT when the line is not a JSON object, or an event without a required member. An unknown type is
 * WATCH_STRANGE. */
MUST_USE int watch_parse(const char *line, size_t n, struct watch_event *ret, struct err *e);

/* The object's namespace, name, uid and version; "" where absent. Borrowed. */
struct object_names {
    const char *ns, *name, *uid, *version;
};
struct object_names object_names_of(const json_t *object);

/* ---- a page of a list ---- */

struct list_page { /* borrowed from the answer */
    const json_t *items;
    const char *version, *next; /* next: "" on the last page */
};
MUST_USE int list_page_read(const json_t *body, struct list_page *ret, struct err *e);

/* ---- back-off ---- */

struct backoff {
    int failures;
    int64_t last_ms; /* of the last failure */
};
/* Counts one more failure and returns how long to wait. chance: [0, 1). */
int64_t backoff_next(struct backoff *b, int64_t now_ms, double chance);

/* ---- after the end of a list or watch ---- */

struct reflector_end {
    bool watching;    /* it was a watch; else a list */
    bool partial;     /* a list that had reached a later page */
    int status;       /* of HTTP, or of the ERROR event or the broken line within a watch */
    bool in_stream;   /* the status came as an event */
    int events;       /* of this watch */
    int64_t lived_ms; /* of this watch */
    int futile;       /* failures within streams since the last event, this one included */
};
enum reflector_act { REFLECTOR_WATCH, REFLECTOR_LIST };
enum reflector_pause {
    PAUSE_NONE,
    PAUSE_NONE_ONCE /* at once the first time, afterwards as after a failure */,
    PAUSE_FAILURE
};
struct reflector_next {
    enum reflector_act act;
    enum reflector_pause pause;
};
struct reflector_next reflector_decide(const struct reflector_end *end);

/* ---- for a test with a real API server, which sends a bookmark two seconds before a watch ends ---- */

void reflector_watch_for(struct reflector *r, int seconds); /* from the next watch on */
const char *
reflector_version(const struct reflector *r); /* where the next watch continues; NULL before the first list */

#endif
