/* Stores a new spec in the cache: reads the object again and resets all data derived from the old spec. */
#include <string.h>

#include "control/cache.h"
#include "control/controller_settings.h"

/* The last accepted number of replicas of a role; -1: unknown. */
static int accepted_replicas(const struct cache_entry *entry, int role)
{
    if (!entry->known)
        return -1;
    return entry->spec.too_large ? entry->spec.accepted[role] : entry->spec.roles[role].replicas;
}

static void read_spec(struct cache_entry *entry, const struct job_kind *kind, const struct controller_settings *s,
                      const json_t *object)
{
    int before[ROLE_COUNT];
    for (int i = 0; i < ROLE_COUNT; i++)
        before[i] = accepted_replicas(entry, i);
    job_spec_fini(&entry->spec);
    job_spec_parse(kind, object, s->default_clean, &entry->spec);
    auto_free char *fault = build_cluster_fault(&entry->spec, &s->build);
    entry->spec.too_large = fault != NULL;
    memcpy(entry->spec.accepted, before, sizeof(before));
    if (entry->spec.invalid == NULL)
        entry->spec.invalid = TAKE(fault);
}

static void reset_claims(struct cache_entry *entry)
{
    for (size_t i = 0; entry->claims != NULL && i < entry->spec.nclaims; i++)
        free(entry->claims[i].name);
    free(TAKE(entry->claims));
    free(TAKE(entry->claims_fault));
    entry->claims_known = false;
    entry->claims_in_flight = 0;
    entry->claims_generation++;
}

/* The addresses in the ConfigMap may have changed; TensorBoard is created, updated or deleted by the new spec. */
void cache_entry_set_spec(struct cache_entry *entry, const struct job_kind *kind, const struct controller_settings *s,
                          const json_t *object)
{
    bool unobserved = entry->known && entry->spec.suspend && !job_status_is(&entry->status, COND_SUSPENDED);

    reset_claims(entry);
    entry->group = GROUP_UNKNOWN;
    for (int i = 0; i < CREATE_KINDS; i++)
        create_backoff_reset(&entry->create_backoff[i]);
    entry->delete_backoff = (struct retry_backoff){ 0 };
    read_spec(entry, kind, s, object);
    entry->resumed_unobserved = (entry->resumed_unobserved || unobserved) && !entry->spec.suspend;
    entry->config_ensured = entry->config_ensured && entry->spec.has_model;
    if (entry->spec.has_model && entry->config.uid != NULL && str_eq(entry->config.owner_uid, entry->spec.uid))
        job_spec_drop_model(&entry->spec);
    entry->tensorboard_ensured = entry->tensorboard_ensured && !entry->spec.tensorboard;
    entry->board.ready = false;
    entry->board.reads = 0;
    entry->board.next_ms = 0;
}
