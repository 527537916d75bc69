/* pod_resources - what the containers of a job's pods request together, for a gang scheduler and for a quota. */
#ifndef TRAINYARD_BUILD_POD_RESOURCES_H
#define TRAINYARD_BUILD_POD_RESOURCES_H

#include "base/map.h"
#include "build/objects.h"
#include "build/quantity_sum.h"

/* Sums by resource, in the order of their first use. */
struct resource_sums {
    struct map by_name; /* of struct quantity_sum */
    bool failed;        /* a value is not a quantity, or a sum is too large */
};
void resource_sums_fini(struct resource_sums *s);
DEFINE_AUTO_FINI(resource_sums, resource_sums_fini);

/* Adds the containers of so many pods of each role. spec: job_spec_json(v). what: "requests" or "limits"; NULL: the
 * requests, or the limits of a container without requests, as training-operator counts. */
void resource_sums_add(struct resource_sums *s, const struct job_spec *v, const json_t *spec,
                       const struct build_settings *settings, const int pods[ROLE_COUNT], const char *what);

#endif
