/* master_key - the keys from which the CAs of all jobs are derived: one Secret in the operator's own namespace.
 *
 * Each entry of the Secret is 32 random bytes, named by the UTC time of its creation: 20261123T100000Z. A key is
 * trusted as soon as it is seen. It issues from 10 min after its time (or at once when it is the only one), so that all
 * replicas trust it by then, and it stays trusted until 25 h after its successor began to issue, when the last leaf of
 * it has expired. So a key is replaced by adding an entry. With another lifetime of leaves than 24 h both times change
 * in proportion.
 *
 * The Secret is read each minute. It is created when it does not exist: with the keys that are known, so that its
 * deletion harms no running job, or with a new one.
 */
#ifndef TRAINYARD_CONTROL_MASTER_KEY_H
#define TRAINYARD_CONTROL_MASTER_KEY_H

#include "api/job_identity.h"
#include "kube/client.h"

#define MASTER_KEY_SECRET "trainyard-master-key"
enum { MASTER_KEY_NAME_SIZE = 17, MASTER_KEYS_MAX = CA_LIST_MAX };

struct master_key {
    char name[MASTER_KEY_NAME_SIZE];
    int64_t time_ms; /* of its name */
    unsigned char bytes[CA_MASTER_SIZE];
};

/* The keys that are trusted at a time. */
struct master_key_set {
    const struct master_key *keys[MASTER_KEYS_MAX]; /* the issuing one first; borrowed */
    size_t n;                                       /* 0: not known yet, or none is valid */
    int64_t until_ms;                               /* it changes by itself then; 0: it does not */
};

struct master_keys;
struct master_keys_settings {
    int64_t lifetime_ms;           /* of leaves */
    void (*on_change)(void *user); /* other keys, or another fault */
    void *user;
};
struct master_keys *master_keys_new(struct kube_client *k, const struct master_keys_settings *s);
void master_keys_free(struct master_keys *k); /* wipes the keys */
DEFINE_AUTO(master_keys, master_keys_free);
/* Borrowed until on_change(). */
void master_keys_trusted(const struct master_keys *k, int64_t now_ms, struct master_key_set *ret);
/* Changes with the keys. */
uint64_t master_keys_version(const struct master_keys *k);
/* Why there are no keys, as a message with its cure; NULL: there are some, or none was asked for yet. */
const char *master_keys_fault(const struct master_keys *k);

/* ---- pure ---- */

/* Reads `data` of the Secret: the newest MASTER_KEYS_MAX keys in the order of their times. Names of entries that are
 * not keys are appended to bad, after ", ". */
size_t master_keys_parse(const json_t *data, struct master_key ret[MASTER_KEYS_MAX], struct buf *bad);
/* Which of n keys, in the order of their times, are trusted. */
void master_keys_select(const struct master_key *keys, size_t n, int64_t lifetime_ms, int64_t now_ms,
                        struct master_key_set *ret);

#endif
