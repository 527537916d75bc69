/* TLS of all connections: the one file that uses gRPC's certificate providers and verifiers (an experimental interface
 * of gRPC). Guarantees: TLS 1.3, both sides have a certificate of the same job that is valid now, and a client reaches
 * the member it wanted.
 *
 * gRPC reads key and certificate one after the other, and would take a pair of which one part is new. So this file
 * reads the folder, checks it, and shows gRPC a copy in memory that holds key and certificate together. */
#include "rpc/tls.h"

#include <fcntl.h>
#include <grpc/support/alloc.h>
#include <grpc/support/string_util.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"
#include "identity/tls_dir.h"
#include "rpc/last_read.h"
#include "rpc/peer_address.h"
#include "rpc/refusal_log.h"

enum { READ_EVERY_MS = 1000, GRPC_READS_EVERY_S = 1, PATH_SIZE = 32, WARN_BEFORE_S = 3600 };

struct rpc_tls {
    char *dir;
    struct identity identity;
    struct tls_dir files; /* in use; of the thread once it runs, as the next one */
    struct tls_dir_stamps stamps;
    int pair_fd, ca_fd; /* what gRPC reads, as /proc/self/fd/N; each is replaced as a whole */
    grpc_tls_certificate_provider *provider;
    struct mutex lock;
    struct cond stop;
    bool stopping;
    char told[ERR_TEXT_MAX]; /* the last problem with the folder, which is told once */
    atomic_int_fast64_t not_after_s;
    int64_t warned_of_s; /* the end of a certificate that is told, too */
    struct thread thread;
};

void tls_setup(void)
{
    /* gRPC has no setting for the lowest version. Our certificates have P-256 keys, so TLS 1.2 has no cipher in
     * common with this list; it does not apply to TLS 1.3. */
    setenv("GRPC_SSL_CIPHER_SUITES", "ECDHE-RSA-AES128-GCM-SHA256", 1);
}

/* ---- the files ---- */

static int memory_file(const char *name, const char *const texts[], size_t n, struct err *e)
{
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0)
        return err_errno(e, ERR_IO, "memory for certificates");
    for (size_t i = 0; i < n; i++) {
        size_t size = strlen(texts[i]);
        if (write(fd, texts[i], size) != (ssize_t)size) {
            close(fd);
            return err_errno(e, ERR_IO, "memory for certificates");
        }
    }
    return fd;
}

/* Shows gRPC the files: an open descriptor that it reads by name is replaced in one step. */
static int show(struct rpc_tls *t, const struct tls_dir *d, struct err *e)
{
    auto_close int pair = memory_file("trainyard-tls", (const char *const[]){ d->key, "\n", d->certificate }, 3, e);
    auto_close int ca = pair < 0 ? -1 : memory_file("trainyard-ca", (const char *const[]){ d->ca }, 1, e);
    if (ca < 0)
        return -1;
    if (t->pair_fd < 0) {
        t->pair_fd = fcntl(pair, F_DUPFD_CLOEXEC, 0);
        t->ca_fd = fcntl(ca, F_DUPFD_CLOEXEC, 0);
        return t->pair_fd < 0 || t->ca_fd < 0 ? err_errno(e, ERR_IO, "memory for certificates") : 0;
    }
    if (dup3(ca, t->ca_fd, O_CLOEXEC) < 0 || dup3(pair, t->pair_fd, O_CLOEXEC) < 0)
        return err_errno(e, ERR_IO, "memory for certificates");
    return 0;
}

/* A connection that closes in the background may let gRPC read once more. So the descriptor stays in use, without the
 * key, and as one that cannot be opened by name: an empty key would make gRPC abort, what cannot be read is reported.
 */
static void hide(struct rpc_tls *t)
{
    auto_close int nothing = eventfd(0, EFD_CLOEXEC);
    if (t->pair_fd >= 0 && (nothing < 0 || dup3(nothing, t->pair_fd, O_CLOEXEC) < 0))
        close(t->pair_fd);
}

static bool same_files(const struct tls_dir *a, const struct tls_dir *b)
{
    return strcmp(a->ca, b->ca) == 0 && strcmp(a->certificate, b->certificate) == 0 && strcmp(a->key, b->key) == 0;
}

static int take_files(struct rpc_tls *t, struct err *e)
{
    AUTO_FINI(tls_dir) now = { .ca = NULL };
    char date[32], uri[IDENTITY_URI_SIZE], own[IDENTITY_URI_SIZE];
    if (tls_dir_read(t->dir, (int64_t)clock_wall(), &now, e) < 0)
        return -1;
    if (same_files(&now, &t->files))
        return 0;
    identity_uri(&t->identity, own);
    if (strcmp(identity_uri(&now.info.identity, uri), own) != 0)
        return err_set(e, ERR_INPUT, "%s: the new certificate is that of %s, and this is %s", t->dir, uri, own);
    if (show(t, &now, e) < 0)
        return -1;
    log_info("took the new certificate in %s, valid until %s", t->dir,
             clock_rfc3339((double)now.info.not_after_s, date));
    tls_dir_fini(&t->files);
    t->files = now;
    atomic_store(&t->not_after_s, now.info.not_after_s);
    now = (struct tls_dir){ .ca = NULL };
    return 0;
}

/* Takes the files when they changed and are those of the same identity. Files that cannot be taken are read again. */
static int renew(struct rpc_tls *t, struct err *e)
{
    struct tls_dir_stamps seen = tls_dir_look(t->dir);
    if (!tls_dir_changed(&t->stamps, &seen))
        return 0;
    if (take_files(t, e) < 0)
        return -1;
    t->stamps = seen;
    return 0;
}

/* A leaf is renewed long before its end, so something does not work. */
static void warn_of_end(struct rpc_tls *t, int64_t now_s)
{
    char date[32];
    int64_t end_s = t->files.info.not_after_s;
    if (now_s < end_s - WARN_BEFORE_S || t->warned_of_s == end_s)
        return;
    t->warned_of_s = end_s;
    log_warning("the certificate in %s is valid until %s, and no newer one is there", t->dir,
                clock_rfc3339((double)end_s, date));
}

static bool wait_for_next_reading(struct rpc_tls *t)
{
    MUTEX_GUARD(&t->lock);
    int64_t until_ms = clock_ms() + READ_EVERY_MS;
    while (!t->stopping)
        if (!cond_wait_until(&t->stop, &t->lock, until_ms))
            break;
    return !t->stopping;
}

static void keep_current(void *user)
{
    struct rpc_tls *t = user;
    while (wait_for_next_reading(t)) {
        struct err e = { .code = ERR_NONE, .msg = "" };
        if (renew(t, &e) == 0) {
            t->told[0] = '\0';
        } else if (strcmp(t->told, e.msg) != 0) {
            str_fmt(t->told, sizeof(t->told), "%s", e.msg);
            log_warning("the earlier certificate stays in use: %s", e.msg);
        }
        warn_of_end(t, (int64_t)clock_wall());
    }
}

int rpc_tls_new(const char *tls_dir, struct rpc_tls **ret, struct err *e)
{
    char pair[PATH_SIZE], ca[PATH_SIZE];
    AUTO(rpc_tls) *t = xcalloc(1, sizeof(*t));
    mutex_init(&t->lock);
    cond_init(&t->stop);
    t->pair_fd = t->ca_fd = -1;
    t->dir = xstrdup(tls_dir);
    t->stamps = tls_dir_look(tls_dir);
    if (tls_dir_read(tls_dir, (int64_t)clock_wall(), &t->files, e) < 0 || show(t, &t->files, e) < 0)
        return -1;
    t->identity = t->files.info.identity;
    atomic_init(&t->not_after_s, t->files.info.not_after_s);
    str_fmt(pair, sizeof(pair), "/proc/self/fd/%d", t->pair_fd);
    str_fmt(ca, sizeof(ca), "/proc/self/fd/%d", t->ca_fd);
    t->provider = grpc_tls_certificate_provider_file_watcher_create(pair, pair, ca, GRPC_READS_EVERY_S);
    if (thread_start(&t->thread, "tls", keep_current, t, e) < 0)
        return -1;
    *ret = TAKE(t);
    return 0;
}

const struct identity *rpc_tls_identity(const struct rpc_tls *t)
{
    return &t->identity;
}

void rpc_tls_free(struct rpc_tls *t)
{
    if (t == NULL)
        return;
    {
        MUTEX_GUARD(&t->lock);
        t->stopping = true;
        cond_broadcast(&t->stop);
    }
    thread_join(&t->thread);
    if (t->provider != NULL)
        grpc_tls_certificate_provider_release(t->provider);
    hide(t);
    tls_dir_fini(&t->files);
    cond_fini(&t->stop);
    mutex_fini(&t->lock);
    free(t->dir);
    free(t);
}

/* ---- who is accepted ---- */

struct verifier {
    grpc_tls_certificate_verifier_external external;
    struct identity own;
    int role, index; /* of the only peer that is accepted; role -1: any */
};

static int judge(const struct verifier *v, const grpc_tls_custom_verification_check_request *q, struct err *e)
{
    struct identity peer;
    if (q->peer_info.san_names.uri_names_size != 1)
        return err_set(e, ERR_REFUSED, "the peer's certificate has %zu URIs instead of one",
                       q->peer_info.san_names.uri_names_size);
    if (identity_parse(q->peer_info.san_names.uri_names[0], &peer, e) < 0)
        return err_wrap(e, "the peer's certificate");
    return identity_accept(&v->own, &peer, v->role, v->index, e);
}

/* gRPC has verified the chain and the dates. */
static int verify(void *user, grpc_tls_custom_verification_check_request *q,
                  grpc_tls_on_custom_verification_check_done_cb later, void *later_arg, grpc_status_code *ret,
                  char **ret_details)
{
    (void)later, (void)later_arg;
    struct err e;
    *ret = GRPC_STATUS_OK;
    if (judge(user, q, &e) < 0) {
        *ret = GRPC_STATUS_UNAUTHENTICATED;
        *ret_details = gpr_strdup(e.msg);
    }
    return 1; /* decided */
}

static void verify_cancel(void *user, grpc_tls_custom_verification_check_request *q)
{
    (void)user, (void)q; /* verify never waits */
}

static grpc_tls_credentials_options *options_of(const struct rpc_tls *t, int role, int index)
{
    struct verifier *v = xcalloc(1, sizeof(*v));
    v->external = (grpc_tls_certificate_verifier_external){
        .user_data = v, .verify = verify, .cancel = verify_cancel, .destruct = free
    };
    v->own = t->identity;
    v->role = role;
    v->index = index;
    grpc_tls_certificate_verifier *verifier = grpc_tls_certificate_verifier_external_create(&v->external);
    grpc_tls_credentials_options *o = grpc_tls_credentials_options_create();
    grpc_tls_credentials_options_set_certificate_provider(o, t->provider);
    grpc_tls_credentials_options_watch_root_certs(o);
    grpc_tls_credentials_options_watch_identity_key_cert_pairs(o);
    grpc_tls_credentials_options_set_certificate_verifier(o, verifier);
    grpc_tls_credentials_options_set_check_call_host(o, 0);
    grpc_tls_certificate_verifier_release(verifier);
    return o;
}

/* "ps-1" is index 1 of role ps. */
static void parse_peer(const char *peer, int *ret_role, int *ret_index)
{
    char name[IDENTITY_NAME_SIZE];
    const char *dash = strrchr(peer, '-');
    int64_t index = 0;
    if (dash != NULL && str_i64(dash + 1, 0, IDENTITY_INDEX_MAX, &index, NULL) == 0)
        for (int role = 0; role < IDENTITY_ROLES; role++)
            if (str_eq(identity_name(&(struct identity){ .role = role, .index = (int)index }, name), peer)) {
                *ret_role = role;
                *ret_index = (int)index;
                return;
            }
    abort(); /* not a member's name: a bug of ours */
}

grpc_channel_credentials *tls_channel_credentials(const struct rpc_tls *t, const char *peer)
{
    int role = -1, index = 0;
    if (peer != NULL)
        parse_peer(peer, &role, &index);
    grpc_tls_credentials_options *o = options_of(t, role, index);
    grpc_tls_credentials_options_set_verify_server_cert(o, 1);
    return grpc_tls_credentials_create(o);
}

grpc_server_credentials *tls_server_credentials(const struct rpc_tls *t)
{
    grpc_tls_credentials_options *o = options_of(t, -1, 0);
    grpc_tls_credentials_options_set_cert_request_type(o, GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    return grpc_tls_server_credentials_create(o);
}

bool tls_identity_of(grpc_call *call, struct identity *ret)
{
    grpc_auth_context *context = grpc_call_auth_context(call);
    if (context == NULL)
        return false;
    grpc_auth_property_iterator i = grpc_auth_context_find_properties_by_name(context, GRPC_PEER_URI_PROPERTY_NAME);
    const grpc_auth_property *p = grpc_auth_property_iterator_next(&i);
    bool found = p != NULL && identity_parse(p->value, ret, NULL) == 0;
    grpc_auth_context_release(context);
    return found;
}

/* ---- handshakes that failed ---- */

/* What gRPC and OpenSSL say, and what it means: seen by a server, and by a client. */
static const struct reason {
    const char *text;
    const char *server, *client;
} REASONS[] = {
    { "peer did not return a certificate", "it has no certificate", NULL },
    { "no shared cipher", "it does not use TLS 1.3", NULL },
    { "unsupported protocol", "it does not use TLS 1.3", "the peer does not use TLS 1.3" },
    { "http request", "it sent plain text", NULL },
    { "wrong version number", "it sent plain text",
      "the peer answered in plain text: it runs with --insecure, or is not part of Trainyard" },
    { "certificate verify failed", "its certificate is not of this job, or not valid now (compare the clocks)",
      "the certificate of the peer is not of this job, or not valid now (compare the clocks)" },
    { "Handshaker shutdown", "it did not complete the handshake in time", "it was not complete in time" },
    { "Handshake timed out", "it did not complete the handshake in time", "the peer did not complete it in time" },
    { "Socket closed", "it closed the connection in the handshake, perhaps because it is of another job",
      "the peer closed the connection: its log says why, if it refused the certificate of this replica" },
    { "Connection reset by peer", "it closed the connection in the handshake, perhaps because it is of another job",
      "the peer closed the connection: its log says why, if it refused the certificate of this replica" },
};

/* The text after the mark, to the details in braces that gRPC appends. */
static bool text_after(const char *message, const char *mark, char *out, size_t size)
{
    const char *at = strstr(message, mark);
    if (at == NULL)
        return false;
    at += strlen(mark);
    const char *end = strstr(at, " {");
    str_fmt(out, size, "%.*s", end != NULL ? (int)(end - at) : (int)strlen(at), at);
    return true;
}

/* The reason that verify() gave. */
#define VERIFIER "Custom verification check failed with error: UNAUTHENTICATED: "

static void explain_to_server(const char *message, char *out, size_t size)
{
    if (text_after(message, VERIFIER, out, size))
        return;
    for (size_t i = 0; i < COUNT_OF(REASONS); i++)
        if (strstr(message, REASONS[i].text) != NULL) {
            str_fmt(out, size, "%s", REASONS[i].server);
            return;
        }
    if (!text_after(message, "Handshaking failed: ", out, size))
        str_fmt(out, size, "%s", message);
}

/* The address that gRPC names when the peer closed the connection: target_address:"ipv4:127.0.0.1:59072". */
static void address_in(const char *message, char out[PEER_NAME_SIZE])
{
    char text[PEER_NAME_SIZE];
    static const char MARK[] = "target_address:\"";
    const char *at = strstr(message, MARK);
    str_fmt(out, PEER_NAME_SIZE, "an unknown address");
    if (at == NULL)
        return;
    at = strchr(at + sizeof(MARK) - 1, ':');
    if (at == NULL)
        return;
    str_fmt(text, sizeof(text), "%.*s", (int)strcspn(at + 1, "\""), at + 1);
    char *port = strrchr(text, ':');
    if (port != NULL)
        *port = '\0';
    str_fmt(out, PEER_NAME_SIZE, "%s", text);
}

static _Thread_local char failed_peer[PEER_NAME_SIZE];

/* gRPC reports a failure twice in the same thread: while the connection is open, for either side, and then, on a
 * server only, with the same reason. */
void tls_read_log(const char *message)
{
    char why[ERR_TEXT_MAX], address[PEER_NAME_SIZE];
    if (str_starts(message, "Security handshake failed: ")) {
        const struct peer_address peer = peer_address_of(last_read());
        peer_address_name(&peer, failed_peer);
        return;
    }
    if (!str_starts(message, "Handshaking failed: ") || strstr(message, "stopped serving") != NULL)
        return;
    explain_to_server(message, why, sizeof(why));
    str_fmt(address, sizeof(address), "%s", failed_peer);
    if (address[0] == '\0')
        address_in(message, address);
    failed_peer[0] = '\0';
    rpc_log_refusal("a connection from %s: %s", address, why);
}

/* A refused connection or an unknown host is not about the handshake, and the end of a connection in use is neither:
 * gRPC then does not say that it failed to connect. */
bool tls_explain(const char *details, const struct rpc_credentials *own, char *out, size_t size)
{
    char date[32];
    if (strstr(details, "failed to connect") == NULL)
        return false;
    if (own->security == RPC_PLAINTEXT) {
        if (strstr(details, "Socket closed") == NULL && strstr(details, "Connection reset by peer") == NULL)
            return false;
        str_fmt(out, size, "the peer closed the connection at once, perhaps because it requires TLS (--tls-dir)");
        return true;
    }
    if (text_after(details, VERIFIER, out, size))
        return true;
    if (strstr(details, "Socket closed") != NULL && clock_wall() > (double)atomic_load(&own->tls->not_after_s)) {
        str_fmt(out, size, "the certificate of this replica, in %s, expired at %s", own->tls->dir,
                clock_rfc3339((double)atomic_load(&own->tls->not_after_s), date));
        return true;
    }
    for (size_t i = 0; i < COUNT_OF(REASONS); i++)
        if (REASONS[i].client != NULL && strstr(details, REASONS[i].text) != NULL) {
            str_fmt(out, size, "%s", REASONS[i].client);
            return true;
        }
    return strstr(details, "andshake failed") != NULL && text_after(details, "last error: ", out, size);
}
