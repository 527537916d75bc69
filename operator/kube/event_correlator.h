/* event_correlator - series of events, their limits and requests. For this folder and its tests. Pure: the time is a
 * parameter. */
#ifndef TRAINYARD_KUBE_EVENT_CORRELATOR_H
#define TRAINYARD_KUBE_EVENT_CORRELATOR_H

#include "base/map.h"
#include "kube/event_recorder.h"

enum {
    EVENT_DELAY_MS = 1000,         /* from record to request */
    EVENT_PACE_MAX_MS = 30 * 1000, /* the longest interval between two patches of a series that continues */
    EVENT_SERIES_MS = 600 * 1000,  /* a series ends this long after its last event */
    EVENT_BURST = 25,              /* series of one object at once */
    EVENT_REFILL_MS = 300 * 1000,  /* and then one per this interval */
    EVENT_NOTE_MAX = 1024,
    EVENT_WAITING_MAX = 32768, /* some 300 bytes each */
};

enum series_state {
    SERIES_IDLE,    /* posted completely */
    SERIES_WAITING, /* to be sent at due_ms */
    SERIES_DUE,     /* in the list of due series */
    SERIES_SENDING
};

/* Thousands of series may wait, and each is kept for ten minutes after its last event. */
struct event_series {
    struct event_subject *subject;
    struct event_series *next;                /* of its subject */
    struct event_series *due_prev, *due_next; /* in the list of due series */
    struct event_recorder *events;
    struct timer timer;
    struct kube_call *call;
    int64_t last_ms, due_ms; /* our clock */
    double first_wall, last_wall;
    int64_t name_ns; /* in the name of its Event; 0 before the first try */
    char *note;      /* NULL while it is posted completely */
    int count, patches;
    enum event_type type;
    enum series_state state;
    bool created, again; /* created: the server has it; again: it changed while it was being sent */
    uint16_t about;      /* its offset in text */
    char text[];         /* reason, about */
};

/* An object that events were recorded about. */
struct event_subject {
    struct event_series *first;
    double tokens;
    int64_t refilled_ms;
    bool gone;
    char *version;
    const char *api_version, *kind, *ns, *name, *uid;
    char text[]; /* these five */
};

struct event_correlator {
    struct map subjects; /* by uid, or by kind/ns/name without one */
    size_t waiting;      /* series that are not idle */
    int64_t last_ns;     /* time in the last name, so that names are unique */
};

/* Returns the series of this event, which waits or is being sent. NULL: the limits dropped it. */
struct event_series *event_correlator_record(struct event_correlator *b, const struct event_object *o,
                                             enum event_type type, const char *reason, const char *about,
                                             const char *note, int64_t now_ms, double wall);
/* The series is being sent. Its Event gets a name if it has none. */
void event_correlator_sending(struct event_correlator *b, struct event_series *s);

enum event_outcome { EVENT_POSTED, EVENT_GONE /* it was deleted at the server */, EVENT_FAILED };
/* Handles the answer. true: the series waits again, until due_ms. */
bool event_correlator_sent(struct event_correlator *b, struct event_series *s, enum event_outcome outcome,
                           int64_t now_ms);
/* Ends a series; the caller has cancelled its timer and its call. */
void event_correlator_end(struct event_correlator *b, struct event_series *s, int64_t now_ms);
struct event_subject *event_correlator_find(const struct event_correlator *b, const char *uid);
/* The object was deleted: frees posted series now (the caller has cleared their timers), and the other series once they
 * are posted. */
void event_correlator_gone(struct event_correlator *b, struct event_subject *o);
void event_correlator_fini(struct event_correlator *b);

/* "digits.17d3a1b2c3d4e5f6": the object's name and the time in nanoseconds, as client-go names events. Only after
 * event_correlator_sending(). */
enum { EVENT_NAME_MAX = 254 };
const char *event_name(const struct event_series *s, char out[EVENT_NAME_MAX]);
/* New references: the Event to create, and the merge patch that raises its count. */
json_t *event_create_body(const struct event_series *s, const char *component, const char *instance);
json_t *event_patch_body(const struct event_series *s);
/* An Event is in the namespace of its object, and in "default" for cluster-scoped objects. */
const char *event_namespace(const struct event_subject *o);

#endif
