/* Who is refused, and what the log and the caller's error say about it; who is accepted; a change of certificates. */
#include "tls_case.h"

#include <stdatomic.h>

#include "base/thread.h"

static struct tls_case c;
static struct err e;

static void start(void)
{
    case_open(&c);
}

static void stop(void)
{
    case_close(&c);
}

/* ---- who may speak ---- */

START_TEST(members_of_the_job_reach_each_other)
{
    AUTO(rpc_tls) *worker = case_tls(&c, "worker-1", c.ca, ROLE_WORKER, 1);
    ck_assert_int_eq(rpc_tls_identity(worker)->index, 1);
    ck_assert_msg(case_call(&c, worker, "ps-0", "/t.T/Any", "worker-1", &e) == ERR_NONE, "%s", e.msg);
    ck_assert_msg(case_call(&c, worker, NULL, "/t.T/Any", "worker-1", &e) == ERR_NONE, "%s", e.msg);
    ck_ok_e(rpc_server_answers(c.server, CALL_MS, &e));
    auto_free char *log = case_log(&c);
    ck_assert_str_eq(log, "");
}
END_TEST

START_TEST(a_worker_may_not_call_what_the_leader_may)
{
    AUTO(rpc_tls) *worker = case_tls(&c, "worker-0", c.ca, ROLE_WORKER, 0);
    AUTO(rpc_tls) *chief = case_tls(&c, "chief-0", c.ca, ROLE_CHIEF, 0);
    ck_assert_msg(case_call(&c, chief, "ps-0", "/t.T/Lead", "chief-0", &e) == ERR_NONE, "%s", e.msg);
    ck_assert_int_eq(case_call(&c, worker, "ps-0", "/t.T/Lead", "worker-0", &e), ERR_REFUSED);
    ck_assert_str_eq(e.msg, "worker-0 may not call /t.T/Lead: only chief-0 may");
    case_wait_log(&c, "warning: refused: worker-0 may not call /t.T/Lead: only chief-0 may");
    ck_assert_int_eq(case_call(&c, chief, "ps-0", "/t.T/Nobody", "chief-0", &e), ERR_REFUSED);
    ck_assert_int_eq(case_call(&c, chief, "ps-0", "/t.T/Unknown", "chief-0", &e), ERR_REFUSED);
}
END_TEST

START_TEST(a_caller_may_not_take_another_name)
{
    AUTO(rpc_tls) *worker = case_tls(&c, "worker-1", c.ca, ROLE_WORKER, 1);
    ck_assert_int_eq(case_call(&c, worker, "ps-0", "/t.T/Any", "worker-2", &e), ERR_REFUSED);
    ck_assert_msg(strstr(e.msg, "'worker-2'") != NULL && strstr(e.msg, "worker-1") != NULL, "%s", e.msg);
    ck_assert_int_eq(case_call(&c, worker, "ps-0", "/t.T/Lead", "chief-0", &e), ERR_REFUSED);
    case_wait_log(&c, "warning: refused: worker-1 called /t.T/Any as 'worker-2'");
}
END_TEST

START_TEST(a_client_refuses_another_member_than_the_one_it_wants)
{
    static const char *const OTHERS[] = { "ps-1", "worker-0", "chief-0" };
    AUTO(rpc_tls) *worker = case_tls(&c, "worker-0", c.ca, ROLE_WORKER, 0);
    for (size_t i = 0; i < COUNT_OF(OTHERS); i++) {
        auto_free char *text =
            xasprintf("%s at %s cannot be reached: the TLS handshake failed: the peer is ps-0, not %s", OTHERS[i],
                      c.target, OTHERS[i]);
        ck_assert_int_eq(case_call(&c, worker, OTHERS[i], "/t.T/Any", "worker-0", &e), ERR_LOST);
        ck_assert_str_eq(e.msg, text);
    }
}
END_TEST

/* ---- who is refused before it can call ---- */

START_TEST(a_client_of_another_job_refuses_this_one)
{
    AUTO(rpc_tls) *stranger = case_tls(&c, "stranger", c.other, ROLE_WORKER, 0);
    ck_assert_int_eq(case_call(&c, stranger, "ps-0", "/t.T/Any", "worker-0", &e), ERR_LOST);
    ck_assert_msg(strstr(e.msg, "ps-0 at 127.0.0.1") != NULL &&
                      strstr(e.msg, "the TLS handshake failed: the certificate of the peer is not of this job") != NULL,
                  "%s", e.msg);
    case_wait_log(&c, "warning: refused: a connection from 127.0.0.1: it closed the connection in the handshake");
}
END_TEST

START_TEST(a_client_in_plain_text_is_refused)
{
    ck_assert_int_eq(case_call(&c, NULL, "ps-0", "/t.T/Any", "worker-0", &e), ERR_LOST);
    ck_assert_msg(strstr(e.msg, "perhaps because it requires TLS") != NULL, "%s", e.msg);
    case_wait_log(&c, "warning: refused: a connection from 127.0.0.1: it sent plain text");
}
END_TEST

/* Certificates that a client of ours would not use, and versions that it does not speak. */
static const struct refused {
    const char *options, *log;
} REFUSED[] = {
    { "", "it has no certificate" },
    { "-cert other/tls.crt -key other/tls.key", "its certificate is not of this job, or not valid now" },
    { "-cert expired/tls.crt -key expired/tls.key", "its certificate is not of this job, or not valid now" },
    { "-cert early/tls.crt -key early/tls.key", "its certificate is not of this job, or not valid now" },
    { "-cert uid/tls.crt -key uid/tls.key", "the peer is worker-0 of job local/uid-3, and this is job local/uid-1" },
    { "-cert good/tls.crt -key good/tls.key -tls1_2", "it does not use TLS 1.3" },
    { "-cert good/tls.crt -key good/tls.key -tls1_1", "it does not use TLS 1.3" },
};

static void make_identities(void)
{
    int64_t day = 24 * 3600;
    free(case_identity(&c, "good", c.ca, ROLE_WORKER, 0, now_s(), VALID_S));
    free(case_identity(&c, "other", c.other, ROLE_WORKER, 0, now_s(), VALID_S));
    free(case_identity(&c, "expired", c.ca, ROLE_WORKER, 0, now_s() - day, VALID_S));
    free(case_identity(&c, "early", c.ca, ROLE_WORKER, 0, now_s() + day, VALID_S));
}

START_TEST(a_connection_is_refused_and_the_log_says_why)
{
    make_identities();
    AUTO(ca) *twin = NULL;
    if (strstr(REFUSED[_i].options, "uid/") != NULL) {
        ck_ok_e(ca_new("local", "uid-3", now_s(), &twin, &e)); /* a CA that the server trusts, for another job */
        free(case_identity(&c, "uid", twin, ROLE_WORKER, 0, now_s(), VALID_S));
    }
    auto_free char *trusted = xasprintf("%s%s", ca_pem(c.ca), twin != NULL ? ca_pem(twin) : "");
    AUTO_FINI(leaf) leaf = { .certificate = NULL };
    auto_free char *dir = path_join(c.folder, "ps-2");
    ck_ok_e(ca_issue(c.ca, ROLE_PS, 2, now_s(), VALID_S, &leaf, &e));
    ck_ok_e(tls_dir_write(dir, trusted, &leaf, &e));
    AUTO(rpc_tls) *ps = NULL;
    ck_ok_e(rpc_tls_new(dir, &ps, &e));
    const struct rpc_credentials credentials = { .security = RPC_TLS, .tls = ps };
    AUTO(rpc_server) *server = NULL;
    ck_ok_e(rpc_server_start("127.0.0.1:0", &credentials, NULL, 0, &(struct rpc_server_options){ .threads = 1 },
                             &server, &e));
    snprintf(c.target, sizeof(c.target), "127.0.0.1:%d", rpc_server_port(server));
    free(case_s_client(&c, REFUSED[_i].options));
    auto_free char *text = xasprintf("warning: refused: a connection from 127.0.0.1: %s", REFUSED[_i].log);
    case_wait_log(&c, text);
}
END_TEST

/* A member signs a certificate of the chief with its own key, and shows both. */
START_TEST(a_leaf_cannot_issue_certificates)
{
    make_identities();
    auto_free char *command = xasprintf(
        "cd %s && exec 2>/dev/null && "
        "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout forged.key -subj / -out forged.csr && "
        "printf 'subjectAltName=URI:spiffe://trainyard/local/uid-1/chief/0\\nbasicConstraints=CA:FALSE\\n"
        "extendedKeyUsage=clientAuth,serverAuth\\n' >forged.ext && "
        "openssl x509 -req -in forged.csr -CA good/tls.crt -CAkey good/tls.key -set_serial 7 -days 1 "
        "-extfile forged.ext -out forged.crt",
        c.folder);
    ck_assert_int_eq(system(command), 0);
    free(case_s_client(&c, "-cert forged.crt -key forged.key -cert_chain good/tls.crt"));
    case_wait_log(&c, "a connection from 127.0.0.1: its certificate is not of this job");
}
END_TEST

START_TEST(an_honest_s_client_is_accepted)
{
    make_identities();
    auto_free char *out = case_s_client(&c, "-cert good/tls.crt -key good/tls.key");
    ck_assert_msg(strstr(out, "TLSv1.3") != NULL && strstr(out, "Verification: OK") != NULL, "%s", out);
    auto_free char *log = case_log(&c);
    ck_assert_str_eq(log, "");
}
END_TEST

START_TEST(a_tls_client_says_that_the_server_is_in_plain_text)
{
    AUTO(rpc_tls) *worker = case_tls(&c, "worker-0", c.ca, ROLE_WORKER, 0);
    AUTO(rpc_server) *plain = NULL;
    ck_ok_e(rpc_server_start("127.0.0.1:0", &RPC_INSECURE, NULL, 0, &(struct rpc_server_options){ .threads = 1 },
                             &plain, &e));
    snprintf(c.target, sizeof(c.target), "127.0.0.1:%d", rpc_server_port(plain));
    ck_assert_int_eq(case_call(&c, worker, "ps-0", "/t.T/Any", "worker-0", &e), ERR_LOST);
    ck_assert_msg(strstr(e.msg, "the TLS handshake failed: the peer answered in plain text") != NULL, "%s", e.msg);
}
END_TEST

START_TEST(nobody_there_is_not_a_failed_handshake)
{
    AUTO(rpc_tls) *worker = case_tls(&c, "worker-0", c.ca, ROLE_WORKER, 0);
    rpc_server_free(TAKE(c.server));
    ck_assert_int_eq(case_call(&c, worker, "ps-0", "/t.T/Any", "worker-0", &e), ERR_LOST);
    ck_assert_msg(strstr(e.msg, "Connection refused") != NULL && strstr(e.msg, "TLS") == NULL, "%s", e.msg);
}
END_TEST

START_TEST(an_expired_client_says_so_itself)
{
    AUTO(rpc_tls) *worker = NULL;
    auto_free char *dir = case_identity(&c, "worker-0", c.ca, ROLE_WORKER, 0, now_s(), 2);
    ck_ok_e(rpc_tls_new(dir, &worker, &e));
    case_wait_log(&c, "no newer one is there");
    ck_wait(case_call(&c, worker, "ps-0", "/t.T/Any", "worker-0", &e) != ERR_NONE);
    ck_assert_int_eq(case_call(&c, worker, "ps-0", "/t.T/Any", "worker-0", &e), ERR_LOST);
    ck_assert_msg(strstr(e.msg, "the certificate of this replica") != NULL && strstr(e.msg, "expired at") != NULL, "%s",
                  e.msg);
    case_wait_log(&c, "its certificate is not of this job, or not valid now");
}
END_TEST

START_TEST(a_folder_without_an_identity_is_bad_input)
{
    struct rpc_tls *t = NULL;
    ck_assert_int_eq(rpc_tls_new(c.folder, &t, &e), -1);
    ck_assert_msg(strstr(e.msg, c.folder) != NULL, "%s", e.msg);
}
END_TEST

/* ---- new certificates ---- */

/* Writes a new leaf and returns its certificate. */
static char *replace(const char *name, const char *trusted, const struct ca *ca, int role, int index)
{
    AUTO_FINI(leaf) leaf = { .certificate = NULL };
    auto_free char *dir = path_join(c.folder, name);
    ck_ok_e(ca_issue(ca, role, index, now_s(), VALID_S, &leaf, &e));
    ck_ok_e(tls_dir_write(dir, trusted, &leaf, &e));
    return xstrdup(leaf.certificate);
}

/* Waits until new connections to the server show the certificate. */
static void wait_shown(const struct rpc_server *server, const char *certificate)
{
    auto_free char *out = NULL;
    snprintf(c.target, sizeof(c.target), "127.0.0.1:%d", rpc_server_port(server));
    for (int i = 0; i < 1000 && (out == NULL || strstr(out, certificate) == NULL); i++) {
        free(out);
        out = case_s_client(&c, "-cert worker-0/tls.crt -key worker-0/tls.key");
    }
    ck_assert_msg(strstr(out, certificate) != NULL, "the server still shows:\n%s", out);
}

struct load {
    const struct rpc_tls *tls;
    char target[32];
    bool reconnect;
    atomic_bool stop;
    atomic_int calls;
    struct err failed;
    struct thread thread;
};

static struct rpc_channel *load_channel(const struct load *l)
{
    const struct rpc_credentials credentials = { .security = RPC_TLS, .tls = l->tls };
    return rpc_channel_new(l->target, &credentials, &(struct rpc_channel_options){ .peer = "ps-0" });
}

static void load_run(void *user)
{
    struct load *l = user;
    AUTO(rpc_channel) *channel = load_channel(l);
    while (!atomic_load(&l->stop) && l->failed.code == ERR_NONE) {
        if (l->reconnect) {
            rpc_channel_free(channel);
            channel = load_channel(l);
        }
        case_call_on(channel, "/t.T/Any", "worker-0", &l->failed);
        if (strstr(l->failed.msg, "not complete in time") != NULL) /* a busy machine */
            l->failed = (struct err){ 0 };
        atomic_fetch_add(&l->calls, 1);
    }
}

static void load_start(struct load *l, const struct rpc_tls *tls, bool reconnect)
{
    *l = (struct load){ .tls = tls, .reconnect = reconnect };
    snprintf(l->target, sizeof(l->target), "%s", c.target);
    ck_ok_e(thread_start(&l->thread, "load", load_run, l, &e));
}

static void load_stop(struct load *l)
{
    atomic_store(&l->stop, true);
    thread_join(&l->thread);
    ck_assert_msg(l->failed.code == ERR_NONE, "after %d calls: %s", atomic_load(&l->calls), l->failed.msg);
    ck_assert_int_gt(atomic_load(&l->calls), 1);
}

/* First new leaves, and a second CA that is trusted; then leaves of that CA. */
START_TEST(new_certificates_lose_no_call)
{
    AUTO(rpc_tls) *worker = case_tls(&c, "worker-0", c.ca, ROLE_WORKER, 0);
    AUTO(ca) *next = NULL;
    AUTO(rpc_server) *mirror = NULL; /* shows what the worker's connections use */
    struct load live, fresh;
    ck_ok_e(ca_new("local", "uid-1", now_s(), &next, &e));
    const struct rpc_credentials credentials = { .security = RPC_TLS, .tls = worker };
    ck_ok_e(rpc_server_start("127.0.0.1:0", &credentials, NULL, 0, &(struct rpc_server_options){ .threads = 1 },
                             &mirror, &e));
    load_start(&live, worker, false);
    load_start(&fresh, worker, true);
    auto_free char *both = xasprintf("%s%s", ca_pem(c.ca), ca_pem(next));
    for (int i = 0; i < 2; i++) {
        const struct ca *issuer = i == 0 ? c.ca : next;
        auto_free char *of_ps = replace("ps-0", both, issuer, ROLE_PS, 0);
        auto_free char *of_worker = replace("worker-0", both, issuer, ROLE_WORKER, 0);
        wait_shown(c.server, of_ps);
        wait_shown(mirror, of_worker);
    }
    load_stop(&live);
    load_stop(&fresh);
    case_wait_log(&c, "took the new certificate in");
    auto_free char *log = case_log(&c);
    ck_assert_msg(strstr(log, "warning") == NULL, "%s", log);
}
END_TEST

START_TEST(a_certificate_of_another_identity_is_not_taken)
{
    AUTO(rpc_tls) *worker = case_tls(&c, "worker-0", c.ca, ROLE_WORKER, 0);
    free(replace("worker-0", ca_pem(c.ca), c.ca, ROLE_WORKER, 1));
    case_wait_log(&c, "the earlier certificate stays in use");
    case_wait_log(&c, "the new certificate is that of spiffe://trainyard/local/uid-1/worker/1, and this is "
                      "spiffe://trainyard/local/uid-1/worker/0");
    ck_assert_msg(case_call(&c, worker, "ps-0", "/t.T/Any", "worker-0", &e) == ERR_NONE, "%s", e.msg);
    ck_assert_int_eq(rpc_tls_identity(worker)->index, 0);
}
END_TEST

START_TEST(broken_files_are_not_taken)
{
    AUTO(rpc_tls) *worker = case_tls(&c, "worker-0", c.ca, ROLE_WORKER, 0);
    auto_free char *path = xasprintf("%s/worker-0/" TLS_DIR_KEY, c.folder);
    ck_ok_e(file_write(path, "nothing", 7, &e));
    case_wait_log(&c, "the earlier certificate stays in use");
    ck_assert_msg(case_call(&c, worker, "ps-0", "/t.T/Any", "worker-0", &e) == ERR_NONE, "%s", e.msg);
}
END_TEST

/* The lowest descriptor above this one that shows a key; -1: none. gRPC may have opened it, too, only to read it. */
static int key_above(int fd)
{
    char path[32], target[64];
    while (++fd < 1024) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        target[MAX(n, (ssize_t)0)] = '\0';
        if (strstr(target, "trainyard-tls") != NULL && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR)
            return fd;
    }
    return -1;
}

/* A connection that closes in the background may let gRPC read the files of a process that ends. It aborts the process
 * when it reads an empty key, and passes over what cannot be opened. */
START_TEST(an_identity_that_is_not_used_any_more_cannot_be_read)
{
    char path[32];
    int of_server = key_above(-1);
    ck_assert_int_ge(of_server, 0);
    AUTO(rpc_tls) *worker = case_tls(&c, "worker-0", c.ca, ROLE_WORKER, 0);
    int of_worker = key_above(of_server) >= 0 ? key_above(of_server) : key_above(-1);
    ck_assert_int_ne(of_worker, of_server);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", of_worker);
    int copy = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(copy, 0);
    close(copy);
    rpc_tls_free(TAKE(worker));
    ck_assert_int_eq(open(path, O_RDONLY | O_CLOEXEC), -1);
    ck_assert_int_ge(fcntl(of_worker, F_GETFD), 0); /* no other file gets its number */
    ck_assert_int_ge(key_above(of_server - 1), 0);
}
END_TEST

/* gRPC 1.51 sometimes does not free the certificates of a peer that it refuses: some kB, and not for each. Our own use
 * of OpenSSL is checked for leaks by test/unit/identity. */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
    return "leak:libcrypto.so";
}

Suite *test_suite(void)
{
    Suite *s = suite_create("tls");
    TCase *t = tcase_create("tls");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, start, stop);
    tcase_add_test(t, members_of_the_job_reach_each_other);
    tcase_add_test(t, a_worker_may_not_call_what_the_leader_may);
    tcase_add_test(t, a_caller_may_not_take_another_name);
    tcase_add_test(t, a_client_refuses_another_member_than_the_one_it_wants);
    tcase_add_test(t, a_client_of_another_job_refuses_this_one);
    tcase_add_test(t, a_client_in_plain_text_is_refused);
    tcase_add_loop_test(t, a_connection_is_refused_and_the_log_says_why, 0, COUNT_OF(REFUSED));
    tcase_add_test(t, a_leaf_cannot_issue_certificates);
    tcase_add_test(t, an_honest_s_client_is_accepted);
    tcase_add_test(t, a_tls_client_says_that_the_server_is_in_plain_text);
    tcase_add_test(t, nobody_there_is_not_a_failed_handshake);
    tcase_add_test(t, an_expired_client_says_so_itself);
    tcase_add_test(t, a_folder_without_an_identity_is_bad_input);
    tcase_add_test(t, new_certificates_lose_no_call);
    tcase_add_test(t, a_certificate_of_another_identity_is_not_taken);
    tcase_add_test(t, broken_files_are_not_taken);
    tcase_add_test(t, an_identity_that_is_not_used_any_more_cannot_be_read);
    suite_add_tcase(s, t);
    return s;
}
