/* leader_elector - leader election by a coordination.k8s.io/v1 Lease, with client-go's rules and numbers.
 *
 * Lease 15 s, renew every 2 s, give up after 10 s without success; a lease has expired when its record has not changed
 * for its duration by the local clock. lease_next() is pure and decides; struct leader_elector acts. Losing the lease
 * is final: the program exits, so that two leaders never write. Stopping releases it at once (holderIdentity "").
 */
#ifndef TRAINYARD_KUBE_LEADER_ELECTOR_H
#define TRAINYARD_KUBE_LEADER_ELECTOR_H

#include "kube/client.h"

struct lease_settings {
    const char *ns, *name, *identity; /* identity: pod name _ random */
    int duration_s, renew_s, retry_s; /* 15, 10, 2 */
};

/* The lease as last read, and when it last changed by the local clock. */
struct lease_record {
    bool exists;
    char holder[256], version[64];
    int duration_s, transitions;
    int64_t changed_ms;
};
enum lease_step { LEASE_WAIT, LEASE_CREATE, LEASE_TAKE, LEASE_RENEW, LEASE_LOST };
/* holding: this program holds it and renewed it last at renewed_ms. */
enum lease_step lease_next(const struct lease_settings *s, const struct lease_record *seen, bool holding,
                           int64_t renewed_ms, int64_t now_ms);

struct leader_callbacks {
    void (*on_leading)(void *user);                      /* once */
    void (*on_lost)(void *user, const char *why);        /* once; the program must exit */
    void (*on_leader)(void *user, const char *identity); /* whenever another leader is observed */
    void *user;
};
struct leader_elector;
struct leader_elector *leader_elector_new(struct kube_client *k, const struct lease_settings *s,
                                          const struct leader_callbacks *u);
/* Releases the lease if it is held, and calls done within 2 s. */
void leader_elector_release(struct leader_elector *el, void (*done)(void *user), void *user);
void leader_elector_free(struct leader_elector *el);
DEFINE_AUTO(leader_elector, leader_elector_free);

#endif
