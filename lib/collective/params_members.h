/* params_members - the third form of params/params.h: the state of the training is in the workers themselves
 * (collective/collective.h), all of it in each. For the chief it looks like one parameter server, which is lost only
 * when every worker is.
 *
 * params_describe polls the members, decides what to do about those that come and go (collective/view_plan.h), and does
 * it. So the chief's loop, which polls, drives the views:
 *
 *     newcomer    a member keeps a copy of its state for it (DONATE), the newcomer takes it and follows (JOIN)
 *     change      all stop (STOP) and say how far they are; the next view begins where the first of them is (START)
 *     a member is lost      the same without it
 *
 * What the others of the functions mean here: Init, Restore and Serve fill one member, and the others take the state
 * from it; Adopt goes to all that have the state; Snapshot and Pull ask one of them; Finish goes to all.
 */
#ifndef TRAINYARD_COLLECTIVE_PARAMS_MEMBERS_H
#define TRAINYARD_COLLECTIVE_PARAMS_MEMBERS_H

#include "base/report.h"
#include "collective/view.h"
#include "params/params.h"

/* Lists the workers of the job; returns their number. *ret: free(). */
typedef size_t known_members_fn(void *user, struct known_member **ret);
/* Another view runs now, and its members train. n 0: none. */
typedef void view_changed_fn(void *user, const struct view *v);

struct members_config {
    const struct layout *layout; /* all borrowed */
    struct params_identity id;
    const struct rpc_credentials *credentials;
    size_t wanted;      /* workers of the job */
    size_t min_members; /* a view with fewer does not begin */
    const struct report *report;
};
struct params *params_new_members(const struct members_config *config);
/* Before any other call. */
void params_members_source(struct params *p, known_members_fn *list, view_changed_fn *changed, void *user);

#endif
