/* Keys and certificates by OpenSSL 3. Errors of OpenSSL that only a lack of memory or a bug can cause end as
 * ERR_INTERNAL; what a file or a peer can cause is ERR_INPUT or ERR_REFUSED with a sentence. */
#include "identity/certificate.h"

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/str.h"

enum { CAS_MAX = 16, SCALAR_SIZE = 32, SERIAL_SIZE = 16 };
static const int64_t CA_SECONDS = INT64_C(10) * 365 * 24 * 3600; /* the job ends before it */
#define SALT "trainyard job CA v1"

/* AUTO() of base/mem.h for OpenSSL's types, which are not named by a struct tag. */
#define DEFINE_AUTO_SSL(type, free_fn)                                                                                 \
    static inline void type##_auto_(type **p)                                                                          \
    {                                                                                                                  \
        free_fn(*p);                                                                                                   \
    }                                                                                                                  \
    struct mem_wants_semicolon_
#define AUTO_SSL(type) __attribute__((cleanup(type##_auto_))) type
DEFINE_AUTO_SSL(BIO, BIO_free_all);
DEFINE_AUTO_SSL(EVP_PKEY, EVP_PKEY_free);
DEFINE_AUTO_SSL(X509, X509_free);
DEFINE_AUTO_SSL(BIGNUM, BN_clear_free);
DEFINE_AUTO_SSL(EC_GROUP, EC_GROUP_free);
DEFINE_AUTO_SSL(EC_POINT, EC_POINT_free);
DEFINE_AUTO_SSL(OSSL_PARAM_BLD, OSSL_PARAM_BLD_free);
DEFINE_AUTO_SSL(OSSL_PARAM, OSSL_PARAM_free);
DEFINE_AUTO_SSL(EVP_PKEY_CTX, EVP_PKEY_CTX_free);
DEFINE_AUTO_SSL(EVP_KDF, EVP_KDF_free);
DEFINE_AUTO_SSL(EVP_KDF_CTX, EVP_KDF_CTX_free);
DEFINE_AUTO_SSL(X509_STORE, X509_STORE_free);
DEFINE_AUTO_SSL(X509_STORE_CTX, X509_STORE_CTX_free);
DEFINE_AUTO_SSL(GENERAL_NAMES, GENERAL_NAMES_free);

struct ca {
    struct identity job; /* namespace and uid */
    EVP_PKEY *key;
    X509 *certificate;
    char *pem;
    char id[CA_ID_SIZE];
};

static int openssl_failed(struct err *e, const char *what)
{
    char text[200];
    ERR_error_string_n(ERR_get_error(), text, sizeof(text));
    ERR_clear_error();
    return err_set(e, ERR_INTERNAL, "OpenSSL: %s: %s", what, text);
}

/* ---- keys ---- */

static int hkdf(const unsigned char master[CA_MASTER_SIZE], const char *info, unsigned char out[SCALAR_SIZE],
                struct err *e)
{
    AUTO_SSL(EVP_KDF) *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    AUTO_SSL(EVP_KDF_CTX) *ctx = EVP_KDF_CTX_new(kdf);
    char digest[] = "SHA256", salt[] = SALT;
    auto_free char *info_text = xstrdup(info);
    unsigned char key[CA_MASTER_SIZE];
    memcpy(key, master, sizeof(key));
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key, sizeof(key)),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salt, strlen(SALT)),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info_text, strlen(info)),
        OSSL_PARAM_construct_end(),
    };
    int ok = ctx != NULL && EVP_KDF_derive(ctx, out, SCALAR_SIZE, params) == 1;
    explicit_bzero(key, sizeof(key));
    return ok ? 0 : openssl_failed(e, "HKDF");
}

/* The public point of a scalar, as the uncompressed bytes that a key is built from. */
static bool public_point(const EC_GROUP *group, const BIGNUM *d, unsigned char out[65])
{
    AUTO_SSL(EC_POINT) *point = EC_POINT_new(group);
    return point != NULL && EC_POINT_mul(group, point, d, NULL, NULL, NULL) == 1 &&
           EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, out, 65, NULL) == 65;
}

static EVP_PKEY *key_of_scalar(const EC_GROUP *group, const BIGNUM *d)
{
    unsigned char point[65];
    EVP_PKEY *key = NULL;
    AUTO_SSL(OSSL_PARAM_BLD) *build = OSSL_PARAM_BLD_new();
    AUTO_SSL(EVP_PKEY_CTX) *ctx = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    if (build == NULL || ctx == NULL || !public_point(group, d, point) ||
        OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) != 1 ||
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_PRIV_KEY, d) != 1 ||
        OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)) != 1)
        return NULL;
    AUTO_SSL(OSSL_PARAM) *params = OSSL_PARAM_BLD_to_param(build);
    if (params == NULL || EVP_PKEY_fromdata_init(ctx) != 1 ||
        EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_KEYPAIR, params) != 1)
        return NULL;
    return key;
}

static int derive_key(const unsigned char master[CA_MASTER_SIZE], const char *ns, const char *job_uid, EVP_PKEY **ret,
                      struct err *e)
{
    AUTO_SSL(EC_GROUP) *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    AUTO_SSL(BIGNUM) *d = BN_secure_new();
    if (group == NULL || d == NULL)
        return openssl_failed(e, "P-256");
    for (unsigned counter = 0;; counter++) {
        unsigned char bytes[SCALAR_SIZE];
        auto_free char *info = xasprintf("%s/%s/%u", ns, job_uid, counter);
        if (hkdf(master, info, bytes, e) < 0)
            return -1;
        bool made = BN_bin2bn(bytes, sizeof(bytes), d) != NULL;
        explicit_bzero(bytes, sizeof(bytes));
        if (!made)
            return openssl_failed(e, "a number");
        if (!BN_is_zero(d) && BN_cmp(d, EC_GROUP_get0_order(group)) < 0)
            break;
    }
    *ret = key_of_scalar(group, d);
    return *ret != NULL ? 0 : openssl_failed(e, "a derived key");
}

/* ---- certificates ---- */

static bool add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = extension != NULL && X509_add_ext(x, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return ok;
}

static bool set_serial(X509 *x)
{
    unsigned char serial[SERIAL_SIZE];
    AUTO_SSL(BIGNUM) *number = NULL;
    if (RAND_bytes(serial, sizeof(serial)) != 1)
        return false;
    serial[0] = (unsigned char)((serial[0] & 0x7f) | 0x40); /* positive, and never zero */
    number = BN_bin2bn(serial, sizeof(serial), NULL);
    return number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x)) != NULL;
}

static bool set_validity(X509 *x, int64_t from_s, int64_t to_s)
{
    return ASN1_TIME_set(X509_getm_notBefore(x), (time_t)from_s) != NULL &&
           ASN1_TIME_set(X509_getm_notAfter(x), (time_t)to_s) != NULL;
}

static bool set_name(X509_NAME *name, const char *text)
{
    return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)text, -1, -1, 0) == 1;
}

/* A certificate with a subject, a validity and a public key; its issuer is set by the caller. */
static X509 *blank_certificate(const char *subject, EVP_PKEY *key, int64_t from_s, int64_t to_s)
{
    AUTO_SSL(X509) *x = X509_new();
    if (x == NULL || X509_set_version(x, X509_VERSION_3) != 1 || !set_serial(x) || !set_validity(x, from_s, to_s) ||
        !set_name(X509_get_subject_name(x), subject) || X509_set_pubkey(x, key) != 1)
        return NULL;
    return TAKE(x);
}

/* Subjects name the key, because a store with the CAs of two master keys finds an issuer by its name. */
static X509 *ca_certificate(const char *id, EVP_PKEY *key, int64_t now_s)
{
    char subject[64];
    str_fmt(subject, sizeof(subject), "trainyard job CA %s", id);
    AUTO_SSL(X509) *x = blank_certificate(subject, key, now_s - LEAF_EARLY_SECONDS, now_s + CA_SECONDS);
    if (x == NULL || X509_set_issuer_name(x, X509_get_subject_name(x)) != 1 ||
        !add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
        !add_extension(x, x, NID_key_usage, "critical,keyCertSign") ||
        !add_extension(x, x, NID_subject_key_identifier, "hash") || X509_sign(x, key, EVP_sha256()) == 0)
        return NULL;
    return TAKE(x);
}

static char *text_of(BIO *bio)
{
    char *data;
    long n = BIO_get_mem_data(bio, &data);
    char *text = xmalloc((size_t)n + 1);
    memcpy(text, data, (size_t)n);
    text[n] = '\0';
    return text;
}

static char *certificate_pem(X509 *x)
{
    AUTO_SSL(BIO) *bio = BIO_new(BIO_s_mem());
    return bio != NULL && PEM_write_bio_X509(bio, x) == 1 ? text_of(bio) : NULL;
}

static char *key_pem(const EVP_PKEY *key)
{
    AUTO_SSL(BIO) *bio = BIO_new(BIO_s_secmem());
    return bio != NULL && PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1 ? text_of(bio) : NULL;
}

static bool set_id(struct ca *c)
{
    unsigned char *der = NULL, hash[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    int n = i2d_PUBKEY(c->key, &der);
    bool ok = n > 0 && EVP_Digest(der, (size_t)n, hash, &size, EVP_sha256(), NULL) == 1;
    OPENSSL_free(der);
    for (size_t i = 0; ok && i < (CA_ID_SIZE - 1) / 2; i++)
        str_fmt(c->id + 2 * i, CA_ID_SIZE - 2 * i, "%02x", hash[i]);
    return ok;
}

void ca_free(struct ca *c)
{
    if (c == NULL)
        return;
    EVP_PKEY_free(c->key);
    X509_free(c->certificate);
    free(c->pem);
    free(c);
}

/* Takes the key, also on failure. */
static int ca_of(const struct identity *job, EVP_PKEY *key, int64_t now_s, struct ca **ret, struct err *e)
{
    AUTO(ca) *c = xcalloc(1, sizeof(*c));
    c->job = *job;
    c->key = key;
    if (key == NULL || !set_id(c) || (c->certificate = ca_certificate(c->id, key, now_s)) == NULL ||
        (c->pem = certificate_pem(c->certificate)) == NULL)
        return openssl_failed(e, "the CA of a job");
    *ret = TAKE(c);
    return 0;
}

static int job_of(const char *ns, const char *job_uid, struct identity *ret, struct err *e)
{
    struct identity i = { .role = ROLE_CHIEF };
    if (strlen(ns) >= sizeof(i.ns) || strlen(job_uid) >= sizeof(i.job_uid))
        return err_set(e, ERR_INPUT, "the namespace or the uid of a job is too long for its certificates");
    str_fmt(i.ns, sizeof(i.ns), "%s", ns);
    str_fmt(i.job_uid, sizeof(i.job_uid), "%s", job_uid);
    if (identity_check(&i, e) < 0)
        return -1;
    *ret = i;
    return 0;
}

int ca_new(const char *ns, const char *job_uid, int64_t now_s, struct ca **ret, struct err *e)
{
    struct identity job;
    if (job_of(ns, job_uid, &job, e) < 0)
        return -1;
    return ca_of(&job, EVP_EC_gen("P-256"), now_s, ret, e);
}

int ca_derive(const unsigned char master[CA_MASTER_SIZE], const char *ns, const char *job_uid, int64_t now_s,
              struct ca **ret, struct err *e)
{
    struct identity job;
    EVP_PKEY *key = NULL;
    if (job_of(ns, job_uid, &job, e) < 0 || derive_key(master, ns, job_uid, &key, e) < 0)
        return -1;
    return ca_of(&job, key, now_s, ret, e);
}

const char *ca_pem(const struct ca *c)
{
    return c->pem;
}

const char *ca_id(const struct ca *c)
{
    return c->id;
}

void leaf_fini(struct leaf *l)
{
    if (l->key != NULL)
        explicit_bzero(l->key, strlen(l->key));
    free(l->key);
    free(l->certificate);
}

static X509 *leaf_certificate(const struct ca *c, const struct identity *i, EVP_PKEY *key, const struct leaf *l)
{
    char name[IDENTITY_NAME_SIZE], uri[IDENTITY_URI_SIZE], san[IDENTITY_URI_SIZE + 8];
    str_fmt(san, sizeof(san), "URI:%s", identity_uri(i, uri));
    AUTO_SSL(X509) *x = blank_certificate(identity_name(i, name), key, l->not_before_s, l->not_after_s);
    if (x == NULL || X509_set_issuer_name(x, X509_get_subject_name(c->certificate)) != 1 ||
        !add_extension(x, c->certificate, NID_basic_constraints, "critical,CA:FALSE") ||
        !add_extension(x, c->certificate, NID_key_usage, "critical,digitalSignature") ||
        !add_extension(x, c->certificate, NID_ext_key_usage, "serverAuth,clientAuth") ||
        !add_extension(x, c->certificate, NID_authority_key_identifier, "keyid:always") ||
        !add_extension(x, c->certificate, NID_subject_alt_name, san) || X509_sign(x, c->key, EVP_sha256()) == 0)
        return NULL;
    return TAKE(x);
}

int ca_issue(const struct ca *c, int role, int index, int64_t now_s, int64_t seconds, struct leaf *ret, struct err *e)
{
    struct identity i = c->job;
    i.role = role;
    i.index = index;
    if (identity_check(&i, e) < 0)
        return -1;
    AUTO_FINI(leaf) l = { .not_before_s = now_s - LEAF_EARLY_SECONDS, .not_after_s = now_s + seconds };
    AUTO_SSL(EVP_PKEY) *key = EVP_EC_gen("P-256");
    AUTO_SSL(X509) *x = key != NULL ? leaf_certificate(c, &i, key, &l) : NULL;
    if (x == NULL || (l.certificate = certificate_pem(x)) == NULL || (l.key = key_pem(key)) == NULL)
        return openssl_failed(e, "a certificate");
    *ret = l;
    l = (struct leaf){ .certificate = NULL };
    return 0;
}

bool leaf_is_due(int64_t not_before_s, int64_t not_after_s, int64_t now_s)
{
    int64_t issued_s = not_before_s + LEAF_EARLY_SECONDS;
    return now_s < not_before_s || now_s - issued_s >= (not_after_s - issued_s) / 3 * 2;
}

/* ---- reading ---- */

static int parse_pem(const char *pem, X509 **ret, struct err *e)
{
    AUTO_SSL(BIO) *bio = BIO_new_mem_buf(pem, -1);
    X509 *x = bio != NULL ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    ERR_clear_error();
    if (x == NULL)
        return err_set(e, ERR_INPUT, "not a certificate in PEM form");
    *ret = x;
    return 0;
}

static bool seconds_of(const ASN1_TIME *t, int64_t *ret)
{
    struct tm tm;
    if (t == NULL || ASN1_TIME_to_tm(t, &tm) != 1)
        return false;
    *ret = (int64_t)timegm(&tm);
    return true;
}

/* The one URI of a certificate. */
static int read_identity(X509 *x, struct identity *ret, struct err *e)
{
    AUTO_SSL(GENERAL_NAMES) *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    ERR_clear_error();
    if (names == NULL || sk_GENERAL_NAME_num(names) != 1)
        return err_set(e, ERR_INPUT, "the certificate has not exactly one name: it is not a certificate of Trainyard");
    const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, 0);
    if (name->type != GEN_URI)
        return err_set(e, ERR_INPUT, "the name in the certificate is not a URI: it is not a certificate of Trainyard");
    const char *text = (const char *)ASN1_STRING_get0_data(name->d.uniformResourceIdentifier);
    int n = ASN1_STRING_length(name->d.uniformResourceIdentifier);
    char uri[IDENTITY_URI_SIZE];
    if (n < 0 || (size_t)n >= sizeof(uri) || memchr(text, '\0', (size_t)n) != NULL)
        return err_set(e, ERR_INPUT, "the URI in the certificate is not an identity of Trainyard");
    memcpy(uri, text, (size_t)n);
    uri[n] = '\0';
    return identity_parse(uri, ret, e);
}

int certificate_read(const char *pem, struct certificate_info *ret, struct err *e)
{
    AUTO_SSL(X509) *x = NULL;
    struct certificate_info info;
    if (parse_pem(pem, &x, e) < 0 || read_identity(x, &info.identity, e) < 0)
        return -1;
    if (!seconds_of(X509_get0_notBefore(x), &info.not_before_s) ||
        !seconds_of(X509_get0_notAfter(x), &info.not_after_s))
        return err_set(e, ERR_INPUT, "the dates of the certificate are not valid");
    *ret = info;
    return 0;
}

/* ---- verification ---- */

static int load_cas(const char *pem, X509_STORE **ret, struct err *e)
{
    AUTO_SSL(BIO) *bio = BIO_new_mem_buf(pem, -1);
    AUTO_SSL(X509_STORE) *store = X509_STORE_new();
    int n = 0;
    if (bio == NULL || store == NULL)
        return openssl_failed(e, "a store of certificates");
    for (; n < CAS_MAX; n++) {
        AUTO_SSL(X509) *ca = PEM_read_bio_X509(bio, NULL, NULL, NULL);
        if (ca == NULL)
            break;
        if (X509_STORE_add_cert(store, ca) != 1)
            return openssl_failed(e, "a certificate of a CA");
    }
    ERR_clear_error();
    if (n == 0)
        return err_set(e, ERR_INPUT, "no certificate of a CA in PEM form");
    *ret = TAKE(store);
    return 0;
}

/* now_s < 0: dates are not checked. */
static int verify_chain(X509_STORE *store, X509 *x, int64_t now_s, struct err *e)
{
    AUTO_SSL(X509_STORE_CTX) *ctx = X509_STORE_CTX_new();
    if (ctx == NULL || X509_STORE_CTX_init(ctx, store, x, NULL) != 1)
        return openssl_failed(e, "a verification");
    X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
    X509_VERIFY_PARAM_set_depth(param, 0); /* nothing between the CA and a leaf */
    if (now_s < 0)
        X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_NO_CHECK_TIME);
    else
        X509_VERIFY_PARAM_set_time(param, (time_t)now_s);
    if (X509_verify_cert(ctx) != 1) {
        ERR_clear_error();
        return err_set(e, ERR_REFUSED, "the certificate is not valid: %s",
                       X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)));
    }
    return 0;
}

int certificate_verify(const char *ca_pem, const void *der, size_t n, int64_t now_s, struct identity *ret,
                       struct err *e)
{
    AUTO_SSL(X509_STORE) *store = NULL;
    const unsigned char *at = der;
    struct identity i;
    AUTO_SSL(X509) *x = n <= INT32_MAX ? d2i_X509(NULL, &at, (long)n) : NULL;
    ERR_clear_error();
    if (x == NULL || at != (const unsigned char *)der + n)
        return err_set(e, ERR_REFUSED, "the certificate is malformed");
    if (load_cas(ca_pem, &store, e) < 0 || verify_chain(store, x, now_s, e) < 0)
        return -1;
    if (read_identity(x, &i, e) < 0) {
        if (e != NULL)
            e->code = ERR_REFUSED;
        return -1;
    }
    *ret = i;
    return 0;
}

int certificate_check(const char *ca_pem, const char *certificate, const char *key, struct err *e)
{
    AUTO_SSL(X509_STORE) *store = NULL;
    AUTO_SSL(X509) *x = NULL;
    AUTO_SSL(BIO) *bio = BIO_new_mem_buf(key, -1);
    AUTO_SSL(EVP_PKEY) *private_key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
    ERR_clear_error();
    if (private_key == NULL)
        return err_set(e, ERR_INPUT, "tls.key: not a private key in PEM form");
    if (parse_pem(certificate, &x, e) < 0)
        return err_wrap(e, "tls.crt");
    if (X509_check_private_key(x, private_key) != 1) {
        ERR_clear_error();
        return err_set(e, ERR_INPUT, "tls.key is not the key of tls.crt");
    }
    if (load_cas(ca_pem, &store, e) < 0)
        return err_wrap(e, "ca.crt");
    struct err cause = { 0 };
    if (verify_chain(store, x, -1, &cause) < 0)
        return err_set(e, ERR_INPUT, "tls.crt was not issued by a CA of ca.crt: %s", cause.msg);
    return 0;
}
