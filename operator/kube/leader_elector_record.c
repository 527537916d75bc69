/* The Lease object (client-go: LeaderElectionRecord): when it expires, what to do about it, and what to write. */
#include "kube/leader_elector_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static int64_t expires_at_ms(const struct lease_settings *s, const struct lease_record *seen)
{
    int64_t duration_s = seen->duration_s > 0 ? seen->duration_s : s->duration_s;
    return seen->changed_ms + duration_s * 1000;
}

enum lease_step lease_next(const struct lease_settings *s, const struct lease_record *seen, bool holding,
                           int64_t renewed_ms, int64_t now_ms)
{
    bool free_now = seen->holder[0] == '\0';
    bool ours = strcmp(seen->holder, s->identity) == 0;

    if (holding && now_ms - renewed_ms >= (int64_t)s->renew_s * 1000)
        return LEASE_LOST;
    if (!seen->exists)
        return LEASE_CREATE;
    if (ours)
        return LEASE_RENEW;
    if (holding && !free_now)
        return LEASE_LOST;
    return free_now || now_ms >= expires_at_ms(s, seen) ? LEASE_TAKE : LEASE_WAIT;
}

int64_t lease_next_ms(const struct lease_settings *s, const struct lease_record *seen, int64_t pause_ms, int64_t now_ms)
{
    int64_t next_ms = now_ms + pause_ms, over_ms = expires_at_ms(s, seen);

    if (!seen->exists || over_ms <= now_ms)
        return next_ms;
    return MIN(next_ms, over_ms);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s != NULL ? s : "";
}

static int number_of(const json_t *object, const char *key)
{
    json_int_t v = json_integer_value(json_object_get(object, key));
    return v < 0 ? 0 : (int)MIN(v, INT32_MAX);
}

void lease_observe(struct lease_record *seen, const json_t *object, int64_t now_ms)
{
    const json_t *spec = json_object_get(object, "spec");
    struct lease_record now = { .exists = object != NULL,
                                .duration_s = number_of(spec, "leaseDurationSeconds"),
                                .transitions = number_of(spec, "leaseTransitions"),
                                .changed_ms = now_ms };

    snprintf(now.holder, sizeof(now.holder), "%s", text_of(spec, "holderIdentity"));
    snprintf(now.version, sizeof(now.version), "%s", text_of(json_object_get(object, "metadata"), "resourceVersion"));
    if (now.exists && seen->exists && strcmp(now.version, seen->version) == 0)
        now.changed_ms = seen->changed_ms;
    *seen = now;
}

/* "2026-03-04T05:06:07.089000Z": a MicroTime has exactly six digits. */
static json_t *micro_time(double wall)
{
    char text[32];
    clock_rfc3339(wall, text);
    return json_sprintf("%.23s000Z", text);
}

static json_t *ensure_object(json_t *object, const char *key)
{
    json_t *v = json_object_get(object, key);
    if (json_is_object(v))
        return v;
    v = json_object();
    json_object_set_new(object, key, v);
    return v;
}

json_t *lease_body(const struct lease_settings *s, const json_t *object, bool release, double wall)
{
    json_t *body = object != NULL ? json_deep_copy(object) : json_object();
    json_t *meta = ensure_object(body, "metadata"), *spec = ensure_object(body, "spec");
    const char *holder = release ? "" : s->identity;
    bool stays = strcmp(text_of(spec, "holderIdentity"), s->identity) == 0;
    int transitions = number_of(spec, "leaseTransitions");

    json_object_set_new(body, "apiVersion", json_string("coordination.k8s.io/v1"));
    json_object_set_new(body, "kind", json_string("Lease"));
    json_object_set_new(meta, "name", json_string(s->name));
    json_object_set_new(meta, "namespace", json_string(s->ns));
    json_object_set_new(spec, "holderIdentity", json_string(holder));
    json_object_set_new(spec, "leaseDurationSeconds", json_integer(release ? 1 : s->duration_s));
    json_object_set_new(spec, "renewTime", micro_time(wall));
    if (!stays || json_object_get(spec, "acquireTime") == NULL)
        json_object_set_new(spec, "acquireTime", micro_time(wall));
    if (!stays && object != NULL && transitions < INT32_MAX)
        transitions++;
    json_object_set_new(spec, "leaseTransitions", json_integer(transitions));
    return body;
}
