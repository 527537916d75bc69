/* Combines events into series and limits them, as client-go's EventCorrelator does: an aggregator, and a token bucket
 * for each object against spam. Pure: the time is a parameter. */
#include "kube/event_correlator.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"

enum { TIME_DIGITS = 16, TOKENS_TO_FORGET = 20, WORDS_MAX = 1000 };

/* ---- objects ---- */

static const char *or_empty(const char *s)
{
    return s != NULL ? s : "";
}

static char *key_of(const char *uid, const char *kind, const char *ns, const char *name)
{
    return uid[0] != '\0' ? xstrdup(uid) : xasprintf("%s/%s/%s", kind, ns, name);
}

/* Copies s to *at and advances *at past it. */
static const char *copy_string(char **at, const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = memcpy(*at, s, n);
    *at += n;
    return copy;
}

static struct event_subject *subject_new(const struct event_object *o, int64_t now_ms)
{
    const char *const words[] = { or_empty(o->api_version), or_empty(o->kind), or_empty(o->ns), or_empty(o->name),
                                  or_empty(o->uid) };
    size_t n = 0;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        n += strlen(words[i]) + 1;
    struct event_subject *t = xcalloc(1, sizeof(*t) + n);
    char *at = t->text;
    t->tokens = EVENT_BURST;
    t->refilled_ms = now_ms;
    t->api_version = copy_string(&at, words[0]);
    t->kind = copy_string(&at, words[1]);
    t->ns = copy_string(&at, words[2]);
    t->name = copy_string(&at, words[3]);
    t->uid = copy_string(&at, words[4]);
    return t;
}

static struct event_subject *subject_of(struct event_correlator *b, const struct event_object *o, int64_t now_ms)
{
    auto_free char *key = key_of(or_empty(o->uid), or_empty(o->kind), or_empty(o->ns), or_empty(o->name));
    struct event_subject *t = map_get(&b->subjects, key);

    if (t == NULL) {
        t = subject_new(o, now_ms);
        map_put(&b->subjects, key, t);
    }
    if (!str_eq(t->version, o->resource_version)) {
        free(t->version);
        t->version = o->resource_version != NULL ? xstrdup(o->resource_version) : NULL;
    }
    return t;
}

struct event_subject *event_correlator_find(const struct event_correlator *b, const char *uid)
{
    return map_get(&b->subjects, uid);
}

static void refill(struct event_subject *t, int64_t now_ms)
{
    t->tokens = MIN(t->tokens + (double)(now_ms - t->refilled_ms) / EVENT_REFILL_MS, EVENT_BURST);
    t->refilled_ms = now_ms;
}

static void subject_end(struct event_correlator *b, struct event_subject *t)
{
    auto_free char *key = key_of(t->uid, t->kind, t->ns, t->name);
    map_remove(&b->subjects, key);
    free(t->version);
    free(t);
}

/* ---- series ---- */

static void series_free(struct event_correlator *b, struct event_series *s)
{
    if (s->state != SERIES_IDLE)
        b->waiting--;
    free(s->note);
    free(s);
}

static void unlink_series(struct event_series *s)
{
    struct event_series **at = &s->subject->first;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
}

/* Frees an object without series, unless it has spent many tokens and still exists: its bucket must not be refilled. */
static void forget_idle(struct event_correlator *b, struct event_subject *t)
{
    if (t->first != NULL || (!t->gone && t->tokens < TOKENS_TO_FORGET))
        return;
    subject_end(b, t);
}

void event_correlator_end(struct event_correlator *b, struct event_series *s, int64_t now_ms)
{
    struct event_subject *t = s->subject;

    unlink_series(s);
    series_free(b, s);
    refill(t, now_ms);
    forget_idle(b, t);
}

void event_correlator_gone(struct event_correlator *b, struct event_subject *t)
{
    t->gone = true;
    for (struct event_series *s = t->first, *next; s != NULL; s = next) {
        next = s->next;
        if (s->state != SERIES_IDLE)
            continue;
        unlink_series(s);
        series_free(b, s);
    }
    forget_idle(b, t);
}

static void subject_forget(struct event_correlator *b, struct event_subject *t)
{
    while (t->first != NULL) {
        struct event_series *s = t->first;
        t->first = s->next;
        series_free(b, s);
    }
    subject_end(b, t);
}

void event_correlator_fini(struct event_correlator *b)
{
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&b->subjects, &i)) != NULL;)
        subject_forget(b, slot->value);
    map_fini(&b->subjects);
}

static bool is_over(const struct event_series *s, int64_t now_ms)
{
    return s->state == SERIES_IDLE && now_ms - s->last_ms > EVENT_SERIES_MS;
}

static struct event_series *series_find(const struct event_subject *t, enum event_type type, const char *reason,
                                        const char *about, int64_t now_ms)
{
    for (struct event_series *s = t->first; s != NULL; s = s->next)
        if (s->type == type && !is_over(s, now_ms) && strcmp(s->text, reason) == 0 &&
            strcmp(s->text + s->about, about) == 0)
            return s;
    return NULL;
}

static struct event_series *series_begin(struct event_correlator *b, struct event_subject *t, enum event_type type,
                                         const char *reason, const char *about, int64_t now_ms, double wall)
{
    refill(t, now_ms);
    if (t->tokens < 1 || b->waiting >= EVENT_WAITING_MAX)
        return NULL;
    t->tokens--;
    size_t nreason = strnlen(reason, WORDS_MAX) + 1, nabout = strnlen(about, WORDS_MAX) + 1;
    struct event_series *s = xcalloc(1, sizeof(*s) + nreason + nabout);
    s->subject = t;
    s->next = t->first;
    s->type = type;
    s->first_wall = wall;
    s->about = (uint16_t)nreason;
    memcpy(s->text, reason, nreason - 1);
    memcpy(s->text + nreason, about, nabout - 1);
    t->first = s;
    return s;
}

/* At most EVENT_NOTE_MAX bytes, cut between characters. */
static char *truncate_note(const char *note)
{
    size_t n = strnlen(note, EVENT_NOTE_MAX + 1);
    if (n > EVENT_NOTE_MAX)
        for (n = EVENT_NOTE_MAX; n > 0 && ((unsigned char)note[n] & 0xC0) == 0x80;)
            n--;
    return xstrndup(note, n);
}

/* A series that continues is patched at growing intervals; the count stays exact. */
static int64_t pace_ms(const struct event_series *s)
{
    return MIN(EVENT_DELAY_MS * ((int64_t)s->patches + 1), EVENT_PACE_MAX_MS);
}

struct event_series *event_correlator_record(struct event_correlator *b, const struct event_object *o,
                                             enum event_type type, const char *reason, const char *about,
                                             const char *note, int64_t now_ms, double wall)
{
    struct event_subject *t = subject_of(b, o, now_ms);
    struct event_series *s = series_find(t, type, reason, or_empty(about), now_ms);

    if (s == NULL)
        s = series_begin(b, t, type, reason, or_empty(about), now_ms, wall);
    if (s == NULL) {
        forget_idle(b, t);
        return NULL;
    }
    s->count++;
    s->last_ms = now_ms;
    s->last_wall = wall;
    free(s->note);
    s->note = truncate_note(or_empty(note));
    if (s->state == SERIES_SENDING)
        s->again = true;
    if (s->state != SERIES_IDLE)
        return s;
    if (b->waiting >= EVENT_WAITING_MAX)
        return NULL;
    s->state = SERIES_WAITING;
    s->due_ms = now_ms + pace_ms(s);
    b->waiting++;
    return s;
}

const char *event_name(const struct event_series *s, char out[EVENT_NAME_MAX])
{
    size_t n = strlen(s->subject->name), most = EVENT_NAME_MAX - 2 - TIME_DIGITS;

    if (n > most)
        for (n = most; n > 0 && !isalnum((unsigned char)s->subject->name[n - 1]);)
            n--;
    snprintf(out, EVENT_NAME_MAX, "%.*s.%" PRIx64, (int)n, s->subject->name, (uint64_t)s->name_ns);
    return out;
}

void event_correlator_sending(struct event_correlator *b, struct event_series *s)
{
    if (s->name_ns == 0)
        s->name_ns = b->last_ns = MAX((int64_t)(s->first_wall * 1e9), b->last_ns + 1);
    s->state = SERIES_SENDING;
    s->again = false;
}

bool event_correlator_sent(struct event_correlator *b, struct event_series *s, enum event_outcome outcome,
                           int64_t now_ms)
{
    bool again = s->again || outcome == EVENT_GONE;

    s->again = false;
    if (outcome == EVENT_POSTED && s->created)
        s->patches++;
    if (outcome == EVENT_POSTED)
        s->created = true;
    if (outcome == EVENT_GONE) {
        s->created = false;
        s->name_ns = 0;
    }
    s->state = again ? SERIES_WAITING : SERIES_IDLE;
    if (!again)
        free(TAKE(s->note));
    s->due_ms = now_ms + pace_ms(s);
    b->waiting -= !again;
    return again;
}

/* ---- requests ---- */

const char *event_namespace(const struct event_subject *o)
{
    return o->ns[0] != '\0' ? o->ns : "default";
}

static json_t *time_in_seconds(double wall)
{
    char text[32];
    clock_rfc3339(wall, text);
    return json_sprintf("%.19sZ", text);
}

static json_t *reference_of(const struct event_subject *t)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "apiVersion", t->api_version, "kind", t->kind, "namespace",
                     t->ns, "name", t->name, "uid", t->uid, "resourceVersion", or_empty(t->version));
}

json_t *event_create_body(const struct event_series *s, const char *component, const char *instance)
{
    const char *type = s->type == EVENT_WARNING ? "Warning" : "Normal";
    char name[EVENT_NAME_MAX];
    return json_pack("{s:s, s:s, s:{s:s, s:s}, s:o, s:s, s:s, s:s, s:{s:s}, s:s, s:s, s:o, s:o, s:i}", "apiVersion",
                     "v1", "kind", "Event", "metadata", "name", event_name(s, name), "namespace",
                     event_namespace(s->subject), "involvedObject", reference_of(s->subject), "type", type, "reason",
                     s->text, "message", s->note, "source", "component", component, "reportingComponent", component,
                     "reportingInstance", instance, "firstTimestamp", time_in_seconds(s->first_wall), "lastTimestamp",
                     time_in_seconds(s->last_wall), "count", s->count);
}

json_t *event_patch_body(const struct event_series *s)
{
    return json_pack("{s:i, s:o, s:s}", "count", s->count, "lastTimestamp", time_in_seconds(s->last_wall), "message",
                     s->note);
}
