/* certificate - the certificates of a job: a certification authority (CA) for each job, and leaves for its members.
 *
 * Keys are ECDSA P-256, signatures SHA-256, texts PEM. A leaf has one URI (identity/identity.h), CA:FALSE, key usage
 * digitalSignature, extended key usage serverAuth and clientAuth; its issuer is the CA, and there is nothing between
 * them. Thread-safe: nothing is shared.
 *
 * The key of a job's CA on a cluster is a function of the operator's master key, so that nothing is stored for a job:
 *
 *     HKDF-SHA256(key = master, salt = "trainyard job CA v1", info = NAMESPACE "/" JOB-UID "/" COUNTER, 32 bytes)
 *
 * read as a big-endian number d. COUNTER is the decimal text of 0, 1, 2, ...: the first one for which 0 < d < n, the
 * order of P-256, is taken (a rejection has a probability below 2^-32).
 */
#ifndef TRAINYARD_IDENTITY_CERTIFICATE_H
#define TRAINYARD_IDENTITY_CERTIFICATE_H

#include "identity/identity.h"

enum {
    CA_MASTER_SIZE = 32,
    CA_ID_SIZE = 17,
    LEAF_SECONDS = 24 * 3600,    /* how long a leaf lives */
    LEAF_EARLY_SECONDS = 5 * 60, /* its validity begins so long before, for clocks that are late */
};

/* The CA of one job. Its certificate has no fixed text (an ECDSA signature is random), but every CA of the same key,
 * namespace and uid verifies the same leaves. */
struct ca;
/* A random key, for one launcher or one set of certificates. now_s: seconds since 1970, as everywhere here. */
MUST_USE int ca_new(const char *ns, const char *job_uid, int64_t now_s, struct ca **ret, struct err *e);
/* The key that the master key gives this job. */
MUST_USE int ca_derive(const unsigned char master[CA_MASTER_SIZE], const char *ns, const char *job_uid, int64_t now_s,
                       struct ca **ret, struct err *e);
void ca_free(struct ca *c); /* wipes the key */
DEFINE_AUTO(ca, ca_free);
const char *ca_pem(const struct ca *c); /* the certificate; borrowed */
const char *ca_id(const struct ca *c);  /* 16 hexadecimal digits, the start of SHA-256 of the public key */

struct leaf {
    char *certificate, *key; /* PEM; owned. The key is PKCS #8 */
    int64_t not_before_s, not_after_s;
};
void leaf_fini(struct leaf *l); /* wipes the key */
DEFINE_AUTO_FINI(leaf, leaf_fini);
/* A new key and a certificate for a member of the CA's job: namespace and uid are the CA's. Valid from
 * LEAF_EARLY_SECONDS before now for `seconds` from now. About 0.1 ms. */
MUST_USE int ca_issue(const struct ca *c, int role, int index, int64_t now_s, int64_t seconds, struct leaf *ret,
                      struct err *e);
/* When to replace a leaf of ca_issue(): two thirds of its seconds are over, or the clock was set back so that it is not
 * valid yet. Pure. */
bool leaf_is_due(int64_t not_before_s, int64_t not_after_s, int64_t now_s);

/* What a certificate says, without any check of who signed it. ERR_INPUT: not a certificate, or not one URI of ours. */
struct certificate_info {
    struct identity identity;
    int64_t not_before_s, not_after_s;
};
MUST_USE int certificate_read(const char *pem, struct certificate_info *ret, struct err *e);
/* The identity that a peer has proved with a DER certificate: signed by one of the CAs in ca_pem (one or more
 * certificates), valid now, of our form. ERR_REFUSED otherwise. */
MUST_USE int certificate_verify(const char *ca_pem, const void *der, size_t n, int64_t now_s, struct identity *ret,
                                struct err *e);
/* The key belongs to the certificate, and one of the CAs in ca_pem issued it: ERR_INPUT says which of these fails.
 * Dates are not checked. */
MUST_USE int certificate_check(const char *ca_pem, const char *certificate, const char *key, struct err *e);

#endif
