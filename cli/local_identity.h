/* local_identity - the identities of replicas that no operator starts: a certification authority (CA) whose key is in
 * the memory of this process only, and a folder for each member of the job (identity/tls_dir.h), named as the member:
 *
 *     DIR/worker-0/   ca.crt tls.crt tls.key
 *     DIR/launcher/   for this process, and for people: curl --cacert --cert --key
 *
 * Time is a parameter: seconds since 1970. Not thread-safe.
 */
#ifndef TRAINYARD_CLI_LOCAL_IDENTITY_H
#define TRAINYARD_CLI_LOCAL_IDENTITY_H

#include "identity/certificate.h"

struct local_identity;
/* Certificates are valid for `seconds`. dir: made if it is absent; NULL: a new folder in XDG_RUNTIME_DIR,
 * /dev/shm, TMPDIR or /tmp. A new folder has mode 0700. */
MUST_USE int local_identity_new(const char *dir, int64_t now_s, int64_t seconds, struct local_identity **ret,
                                struct err *e);
/* Removes the folders too, unless they are kept. */
void local_identity_free(struct local_identity *l);
DEFINE_AUTO(local_identity, local_identity_free);

void local_identity_keep(struct local_identity *l);
/* Folders get plain files, to be copied; no certificate is renewed then. */
void local_identity_plain(struct local_identity *l);
/* A new key and certificate for a member, in its folder. An earlier one is replaced. */
MUST_USE int local_identity_issue(struct local_identity *l, int role, int index, int64_t now_s, struct err *e);
/* Replaces each one for which leaf_is_due(). The first error, after all were tried; a failed one remains due. */
MUST_USE int local_identity_renew(struct local_identity *l, int64_t now_s, struct err *e);
/* The folder of a member. xmalloc'ed. */
char *local_identity_folder(const struct local_identity *l, int role, int index);

#endif
