/* tls_case - shared by the tests with certificates: a folder with identities, a server that proves one, and what is
 * written to stderr meanwhile. */
#ifndef TRAINYARD_TEST_TLS_CASE_H
#define TRAINYARD_TEST_TLS_CASE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "check_main.h"
#include "codec/pb.h"
#include "identity/tls_dir.h"
#include "rpc/rpc.h"
#include "temp_folder.h"

enum { VALID_S = 2 * 3600, CALL_MS = 10000 };

struct tls_case {
    char *folder, *log_path;
    int saved_stderr;
    struct ca *ca, *other; /* of this job, and of another one */
    struct rpc_tls *ps;
    struct rpc_server *server;
    char target[32];
};

static inline int64_t now_s(void)
{
    return (int64_t)clock_wall();
}

/* The folder of an identity, made at a time and valid for so many seconds from then. */
static inline char *case_identity(const struct tls_case *c, const char *name, const struct ca *ca, int role, int index,
                                  int64_t at_s, int64_t seconds)
{
    struct err e;
    AUTO_FINI(leaf) leaf = { .certificate = NULL };
    char *dir = path_join(c->folder, name);
    ck_ok_e(ca_issue(ca, role, index, at_s, seconds, &leaf, &e));
    ck_ok_e(tls_dir_write(dir, ca_pem(ca), &leaf, &e));
    return dir;
}

static inline struct rpc_tls *case_tls(const struct tls_case *c, const char *name, const struct ca *ca, int role,
                                       int index)
{
    struct err e;
    struct rpc_tls *t = NULL;
    auto_free char *dir = case_identity(c, name, ca, role, index, now_s(), VALID_S);
    ck_ok_e(rpc_tls_new(dir, &t, &e));
    return t;
}

/* Answers with the name of the caller, in field 2. */
static inline int case_name(void *user UNUSED, const struct rpc_caller *caller, const struct rpc_message *q UNUSED,
                            struct rpc_reply *r, struct err *e UNUSED)
{
    char name[IDENTITY_NAME_SIZE];
    pb_put_str(&r->head, 2, caller->authenticated ? identity_name(&caller->identity, name) : "unknown");
    return 0;
}

static inline void case_open(struct tls_case *c)
{
    struct err e;
    const struct rpc_method methods[] = {
        { .path = "/t.T/Any", .handle = case_name, .callers = RPC_MEMBERS },
        { .path = "/t.T/Lead", .handle = case_name, .callers = RPC_LEADER },
        { .path = "/t.T/Nobody", .handle = case_name },
    };
    memset(c, 0, sizeof(*c));
    c->folder = xasprintf("%s/trainyard-tls-XXXXXX", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(c->folder));
    c->log_path = path_join(c->folder, "log");
    int log = open(c->log_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    c->saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    ck_assert(log >= 0 && dup2(log, STDERR_FILENO) >= 0);
    close(log);
    rpc_init();
    ck_ok_e(ca_new("local", "uid-1", now_s(), &c->ca, &e));
    ck_ok_e(ca_new("local", "uid-2", now_s(), &c->other, &e));
    c->ps = case_tls(c, "ps-0", c->ca, ROLE_PS, 0);
    const struct rpc_credentials credentials = { .security = RPC_TLS, .tls = c->ps };
    ck_ok_e(rpc_server_start("127.0.0.1:0", &credentials, methods, COUNT_OF(methods),
                             &(struct rpc_server_options){ .threads = 2 }, &c->server, &e));
    snprintf(c->target, sizeof(c->target), "127.0.0.1:%d", rpc_server_port(c->server));
}

static inline char *case_log(const struct tls_case *c)
{
    struct err e;
    AUTO_FINI(buf) text = BUF_INIT;
    ck_ok_e(file_read(c->log_path, 1 << 20, &text, &e));
    return buf_detach(&text);
}

static inline void case_close(struct tls_case *c)
{
    rpc_server_free(c->server);
    rpc_tls_free(c->ps);
    ca_free(c->ca);
    ca_free(c->other);
    rpc_shutdown();
    dup2(c->saved_stderr, STDERR_FILENO);
    close(c->saved_stderr);
    auto_free char *log = case_log(c);
    fputs(log, stderr);
    remove_tree(c->folder);
    free(c->folder);
    free(c->log_path);
}

static inline bool case_has_logged(const struct tls_case *c, const char *text)
{
    auto_free char *log = case_log(c);
    bool found = false;
    for (const char *at = log; *at != '\0' && !found; at++)
        found = str_starts(at, text);
    return found;
}
static inline void case_wait_log(const struct tls_case *c, const char *text)
{
    ck_wait(case_has_logged(c, text));
}

/* A call whose header names the sender; 0, or the code of the error. */
static inline enum err_code case_call_on(struct rpc_channel *channel, const char *method, const char *sender,
                                         struct err *e)
{
    AUTO_FINI(buf) header = BUF_INIT;
    AUTO_FINI(buf) message = BUF_INIT;
    AUTO(rpc_message) *m = NULL;
    pb_put_str(&header, 3, sender);
    pb_put_bytes(&message, 1, header.data, header.len);
    return rpc_unary(channel, method, message.data, message.len, NULL, 0, CALL_MS, &m, e) == 0 ? ERR_NONE : e->code;
}

/* tls NULL: in plain text. */
static inline enum err_code case_call(const struct tls_case *c, const struct rpc_tls *tls, const char *peer,
                                      const char *method, const char *sender, struct err *e)
{
    const struct rpc_credentials credentials = { .security = tls != NULL ? RPC_TLS : RPC_PLAINTEXT, .tls = tls };
    AUTO(rpc_channel) *channel =
        rpc_channel_new(c->target, &credentials, &(struct rpc_channel_options){ .peer = peer });
    return case_call_on(channel, method, sender, e);
}

/* Runs `openssl s_client` against the server, from the folder of the identities, and returns what it printed. */
static inline char *case_s_client(const struct tls_case *c, const char *options)
{
    AUTO_FINI(buf) out = BUF_INIT;
    auto_free char *command = xasprintf("cd %s && exec timeout 20 openssl s_client -connect %s -alpn h2 -CAfile "
                                        "ps-0/ca.crt %s </dev/null 2>&1",
                                        c->folder, c->target, options);
    FILE *f = popen(command, "re");
    ck_assert_ptr_nonnull(f);
    char part[4096];
    size_t n;
    while ((n = fread(part, 1, sizeof(part), f)) > 0)
        buf_add(&out, part, n);
    pclose(f);
    return buf_detach(&out);
}

#endif
