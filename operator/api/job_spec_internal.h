/* job_spec_internal - how a job_spec is made: job_spec_read.c reads the object, job_spec_validate.c checks it. */
#ifndef TRAINYARD_API_JOB_SPEC_INTERNAL_H
#define TRAINYARD_API_JOB_SPEC_INTERNAL_H

#include "api/job_spec.h"

/* The object being read. Nodes point into it; they have no line numbers, because the API server keeps none. */
struct spec_reader {
    struct job_spec *v;
    const json_t *object;
    struct node metadata, spec, roles, policy;
    struct node role[ROLE_COUNT]; /* v NULL: the role is absent */
    struct err fault;             /* the first thing that is wrong; ERR_NONE: nothing yet */
};

/* Where the next error is stored: only the first one is kept. */
static inline struct err *spec_reader_fault(struct spec_reader *r)
{
    return r->fault.code == ERR_NONE ? &r->fault : NULL;
}

/* The role that a key names; -1 none. *ret_master: spelled Master. */
int job_spec_role_of(const struct job_kind *k, const char *key, bool *ret_master);
/* Fills everything except `invalid` and `deflated`. A member with a wrong value keeps its default; the first error is
 * kept. */
void job_spec_read(struct spec_reader *r, enum clean_pod_policy default_clean);
/* Validates what was read by the rules of its kind. */
void job_spec_validate(struct spec_reader *r);

#endif
