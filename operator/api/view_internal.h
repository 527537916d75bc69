/* view_internal - how a view comes about: view_read.c reads what is there, view_judge.c says what is wrong with it. */
#ifndef TRAINYARD_API_VIEW_INTERNAL_H
#define TRAINYARD_API_VIEW_INTERNAL_H

#include "api/view.h"

/* One object on its way into a view. Nodes point into the object and have no places, for the API server keeps none. */
struct reading {
    struct job_view *v;
    const json_t *object;
    struct node metadata, spec, roles, policy;
    struct node role[ROLE_COUNT]; /* v NULL: the role is absent */
    struct err fault;             /* the first thing that is wrong; ERR_NONE: nothing yet */
};

/* Where the next fault goes: only the first is kept. */
static inline struct err *reading_fault(struct reading *r)
{
    return r->fault.code == ERR_NONE ? &r->fault : NULL;
}

/* The role that a key names; -1 none. *ret_master: spelled Master. */
int view_role_of(const struct job_kind *k, const char *key, bool *ret_master);
/* Fills all of the view but invalid and packed; what is wrong is left at its default and noted. */
void view_read(struct reading *r, enum clean_pod_policy default_clean);
/* Judges what was read by the rules of its kind. */
void view_judge(struct reading *r);

#endif
