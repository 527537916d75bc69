/* The status as JSON: reads it from the object, and builds the patch from one status to another. */
#include <math.h>
#include <string.h>

#include "api/job_status_internal.h"
#include "api/time.h"

static const char *text_at(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : "";
}

static int64_t number_at(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return json_is_integer(v) ? json_integer_value(v) : 0;
}

static int count_in(const json_t *o, const char *key)
{
    return (int)MIN(MAX(number_at(o, key), 0), 1 << 24);
}

/* ---- reading ---- */

static bool condition_type_of(const char *name, enum condition_type *ret)
{
    for (int t = 0; t < COND_COUNT; t++)
        if (str_eq(condition_name((enum condition_type)t), name)) {
            *ret = (enum condition_type)t;
            return true;
        }
    return false;
}

static void parse_condition(const json_t *v, struct job_status *ret)
{
    enum condition_type type;
    if (!condition_type_of(text_at(v, "type"), &type) || job_status_find(ret, type) != NULL)
        return;
    job_status_put(ret, ret->nconds,
                   (struct condition){
                       .type = type,
                       .is_true = str_eq(text_at(v, "status"), "True"),
                       .reason = xstrdup(text_at(v, "reason")),
                       .message = xstrdup(text_at(v, "message")),
                       .updated_ms = time_parse(text_at(v, "lastUpdateTime")),
                       .changed_ms = time_parse(text_at(v, "lastTransitionTime")),
                       .generation = number_at(v, "observedGeneration"),
                   });
}

void job_status_set_foreign(struct job_status *s, const json_t *status)
{
    enum condition_type ours;
    json_t *v;
    size_t i;

    json_decref(s->foreign);
    s->foreign = NULL;
    json_array_foreach(json_object_get(status, "conditions"), i, v)
    {
        if (text_at(v, "type")[0] == '\0' || condition_type_of(text_at(v, "type"), &ours))
            continue;
        if (s->foreign == NULL)
            s->foreign = json_array();
        json_array_append_new(s->foreign, json_deep_copy(v));
    }
}

static void parse_role(const json_t *v, struct role_status *ret)
{
    struct err e;
    ret->active = count_in(v, "active");
    ret->succeeded = count_in(v, "succeeded");
    ret->failed = count_in(v, "failed");
    ret->restarts = number_at(v, "restarts");
    ret->counted = number_at(v, "countedRestarts");
    if (index_set_parse(text_at(v, "completedIndexes"), &ret->completed, &e) < 0)
        ret->completed = (struct index_set){ 0 };
    index_counts_parse(text_at(v, "restartsByIndex"), &ret->again);
}

static void parse_roles(const json_t *roles, struct job_status *ret)
{
    for (int r = 0; r < ROLE_COUNT; r++) {
        const json_t *v = json_object_get(roles, role_key((enum role)r));
        if (r == ROLE_CHIEF && v == NULL) {
            v = json_object_get(roles, "Master");
            ret->master = v != NULL;
        }
        parse_role(v, &ret->roles[r]);
    }
}

static void parse_progress(const json_t *v, struct training_progress *ret)
{
    const json_t *metrics = json_object_get(v, "metrics");
    if (!json_is_object(v))
        return;
    ret->present = true;
    ret->step = number_at(v, "step");
    ret->epoch = number_at(v, "epoch");
    ret->epochs = number_at(v, "epochs");
    ret->last_checkpoint_step = number_at(v, "lastCheckpointStep");
    ret->percent = number_at(v, "percent");
    ret->remaining_s = number_at(v, "remainingSeconds");
    ret->highest_step = MAX(number_at(v, "highestStep"), ret->step);
    str_fmt(ret->loss, sizeof(ret->loss), "%s", text_at(v, "loss"));
    ret->examples_per_second = json_number_value(json_object_get(v, "examplesPerSecond"));
    ret->updated_ms = time_parse(text_at(v, "lastUpdateTime"));
    str_fmt(ret->weights_sha256, sizeof(ret->weights_sha256), "%s", text_at(v, "weightsSHA256"));
    if (json_is_object(metrics)) {
        AUTO_FINI(buf) text = BUF_INIT;
        json_emit(metrics, &text);
        ret->metrics = buf_detach(&text);
    }
}

void job_status_parse(const json_t *status, struct job_status *ret)
{
    size_t i;
    json_t *v;

    *ret = (struct job_status){ 0 };
    json_array_foreach(json_object_get(status, "conditions"), i, v)
    {
        parse_condition(v, ret);
    }
    job_status_set_foreign(ret, status);
    parse_roles(json_object_get(status, "replicaStatuses"), ret);
    parse_progress(json_object_get(status, "progress"), &ret->progress);
    job_identity_parse(json_object_get(status, "identity"), &ret->identity);
    str_fmt(ret->state, sizeof(ret->state), "%s", text_at(status, "state"));
    str_fmt(ret->ready, sizeof(ret->ready), "%s", text_at(status, "ready"));
    str_fmt(ret->spec_hash, sizeof(ret->spec_hash), "%s", text_at(status, "specHash"));
    ret->start_ms = time_parse(text_at(status, "startTime"));
    ret->completion_ms = time_parse(text_at(status, "completionTime"));
    ret->observed_generation = number_at(status, "observedGeneration");
}

/* ---- writing ---- */

static json_t *time_value(int64_t ms)
{
    char text[32];
    return ms == 0 ? json_null() : json_string(time_text(ms, text));
}

static json_t *text_value(const char *s)
{
    return s == NULL || s[0] == '\0' ? json_null() : json_string(s);
}

static json_t *condition_value(const struct condition *c)
{
    json_t *v = json_object();
    json_object_set_new(v, "type", json_string(condition_name(c->type)));
    json_object_set_new(v, "status", json_string(c->is_true ? "True" : "False"));
    json_object_set_new(v, "reason", json_string(c->reason));
    json_object_set_new(v, "message", json_string(c->message));
    if (c->updated_ms > 0) /* a null in a list would be stored, and it is not a time */
        json_object_set_new(v, "lastUpdateTime", time_value(c->updated_ms));
    if (c->changed_ms > 0)
        json_object_set_new(v, "lastTransitionTime", time_value(c->changed_ms));
    if (c->generation > 0)
        json_object_set_new(v, "observedGeneration", json_integer(c->generation));
    return v;
}

static json_t *conditions_value(const struct job_status *s, const json_t *foreign)
{
    json_t *list = foreign != NULL ? json_copy((json_t *)(uintptr_t)foreign) : json_array();
    for (size_t i = 0; i < s->nconds; i++)
        json_array_append_new(list, condition_value(&s->conds[i]));
    return list;
}

static json_t *set_value(const struct index_set *s)
{
    AUTO_FINI(buf) text = BUF_INIT;
    index_set_emit(s, &text);
    return text_value(text.data);
}

static json_t *counts_value(const struct index_counts *c)
{
    AUTO_FINI(buf) text = BUF_INIT;
    index_counts_emit(c, &text);
    return text_value(text.data);
}

static json_t *selector_value(const struct job_kind *k, const struct job_status *s, enum role r)
{
    if (s->job[0] == '\0')
        return json_null();
    const char *p = k->label_prefix, *role = r == ROLE_CHIEF && s->master ? "master" : role_name(r);
    auto_free char *text =
        xasprintf("%soperator-name=%s,%sjob-name=%s,%sreplica-type=%s", p, k->controller, p, s->job, p, role);
    return json_string(text);
}

/* A role's entry. Zeros and nulls have the meaning of absent members. */
static json_t *role_value(const struct role_status *r)
{
    json_t *v = json_object();
    json_object_set_new(v, "active", json_integer(r->active));
    json_object_set_new(v, "succeeded", json_integer(r->succeeded));
    json_object_set_new(v, "failed", json_integer(r->failed));
    json_object_set_new(v, "completedIndexes", set_value(&r->completed));
    json_object_set_new(v, "restarts", r->restarts == 0 ? json_null() : json_integer(r->restarts));
    json_object_set_new(v, "countedRestarts", r->counted == 0 ? json_null() : json_integer(r->counted));
    json_object_set_new(v, "restartsByIndex", counts_value(&r->again));
    return v;
}

static json_t *progress_value(const struct training_progress *p)
{
    json_t *v = json_object();
    if (!p->present)
        return v;
    json_object_set_new(v, "step", json_integer(p->step));
    json_object_set_new(v, "epoch", json_integer(p->epoch));
    json_object_set_new(v, "epochs", p->epochs == 0 ? json_null() : json_integer(p->epochs));
    json_object_set_new(v, "percent", json_integer(p->percent));
    json_object_set_new(v, "remainingSeconds", p->remaining_s == 0 ? json_null() : json_integer(p->remaining_s));
    json_object_set_new(v, "loss", text_value(p->loss));
    json_object_set_new(v, "examplesPerSecond",
                        isfinite(p->examples_per_second) ? json_real(p->examples_per_second) : json_null());
    json_object_set_new(v, "lastCheckpointStep", json_integer(p->last_checkpoint_step));
    json_object_set_new(v, "highestStep", p->highest_step > p->step ? json_integer(p->highest_step) : json_null());
    json_object_set_new(v, "lastUpdateTime", time_value(p->updated_ms));
    json_object_set_new(v, "weightsSHA256", text_value(p->weights_sha256));
    json_object_set_new(v, "metrics", p->metrics == NULL ? json_null() : json_loads(p->metrics, 0, NULL));
    return v;
}

/* Adds key to the patch if the values differ. Takes ownership of both; an absent value equals null. */
static void differ(json_t *patch, const char *key, json_t *was, json_t *is)
{
    if (!json_equal(was, is))
        json_object_set(patch, key, is);
    json_decref(was);
    json_decref(is);
}

/* The members of `is` that differ from `was`, and null for removed ones. Takes ownership of both. */
static json_t *members(json_t *was, json_t *is)
{
    json_t *patch = json_object(), *v;
    const char *key;
    json_object_foreach(is, key, v)
    {
        const json_t *old = json_object_get(was, key);
        if (!json_equal(old, v) && !(old == NULL && json_is_null(v)))
            json_object_set(patch, key, v);
    }
    json_object_foreach(was, key, v)
    {
        if (json_object_get(is, key) == NULL)
            json_object_set_new(patch, key, json_null());
    }
    json_decref(was);
    json_decref(is);
    return patch;
}

static void put(json_t *patch, const char *key, json_t *value)
{
    if (json_object_size(value) > 0)
        json_object_set_new(patch, key, value);
    else
        json_decref(value);
}

static json_t *roles_patch(const struct job_kind *k, const struct job_status *was, const struct job_status *is)
{
    json_t *patch = json_object();
    for (int r = 0; r < ROLE_COUNT; r++) {
        json_t *role = members(role_value(&was->roles[r]), role_value(&is->roles[r]));
        if (json_object_size(role) > 0 && is->job[0] != '\0')
            json_object_set_new(role, "selector", selector_value(k, is, (enum role)r));
        put(patch, r == ROLE_CHIEF && is->master ? "Master" : role_key((enum role)r), role);
    }
    return patch;
}

static json_t *progress_patch(const struct training_progress *was, const struct training_progress *is)
{
    json_t *before = progress_value(was), *after = progress_value(is);
    /* metrics are written completely, so that removed names disappear */
    json_t *old = json_object_get(before, "metrics"), *new = json_object_get(after, "metrics"), *v;
    const char *key;
    json_object_foreach(old, key, v)
    {
        if (json_is_object(new) && json_object_get(new, key) == NULL)
            json_object_set_new(new, key, json_null());
    }
    return members(before, after);
}

json_t *job_status_patch(const struct job_kind *k, const char *uid, int64_t version, const struct job_status *was,
                         const struct job_status *is)
{
    json_auto_t *status = json_object(), *metadata = json_pack("{s:s}", "uid", uid);
    char text[24];

    differ(status, "conditions", conditions_value(was, is->foreign), conditions_value(is, is->foreign));
    if (version > 0 && json_object_get(status, "conditions") != NULL &&
        str_fmt(text, sizeof(text), "%lld", (long long)version))
        json_object_set_new(metadata, "resourceVersion", json_string(text));
    put(status, "replicaStatuses", roles_patch(k, was, is));
    put(status, "progress", progress_patch(&was->progress, &is->progress));
    differ(status, "identity", job_identity_json(&was->identity), job_identity_json(&is->identity));
    differ(status, "state", text_value(was->state), text_value(is->state));
    differ(status, "ready", text_value(was->ready), text_value(is->ready));
    differ(status, "specHash", text_value(was->spec_hash), text_value(is->spec_hash));
    differ(status, "startTime", time_value(was->start_ms), time_value(is->start_ms));
    differ(status, "completionTime", time_value(was->completion_ms), time_value(is->completion_ms));
    differ(status, "observedGeneration", json_integer(was->observed_generation), json_integer(is->observed_generation));
    if (json_object_size(status) == 0)
        return NULL;
    return json_pack("{s:O, s:O}", "metadata", metadata, "status", status);
}
