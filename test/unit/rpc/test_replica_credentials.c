/* Which flags give a replica which credentials, and the mistakes that end it before it opens a port. */
#include "rpc/replica_credentials.h"

#include <string.h>

#include "base/clock.h"
#include "identity/tls_dir.h"
#include "temp_folder.h"

static char *folder;

static void make_folder(void)
{
    auto_free char *path = xstrdup("/tmp/trainyard-credentials.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(path));
    folder = TAKE(path);
    rpc_init();
}

static void remove_folder(void)
{
    remove_tree(folder);
    free(folder);
    rpc_shutdown();
}

static void write_identity(int role, int index)
{
    AUTO(ca) *c = NULL;
    AUTO_FINI(leaf) leaf = { .certificate = NULL };
    struct err e = { 0 };
    int64_t now_s = (int64_t)clock_wall();
    ck_ok_e(ca_new("local", "u-1", now_s, &c, &e));
    ck_ok_e(ca_issue(c, role, index, now_s, 3600, &leaf, &e));
    ck_ok_e(tls_dir_write(folder, ca_pem(c), &leaf, &e));
}

static const struct cluster ALONE = { .configured = false };
static const struct cluster WORKER_2 = { .configured = true, .role = ROLE_WORKER, .index = 2 };
static const struct cluster MASTER = { .configured = true, .role = ROLE_CHIEF, .index = 0, .master = true };

static void opens(const struct replica_options *o, const struct cluster *c, enum role role, enum rpc_security want)
{
    AUTO_FINI(replica_credentials) r = { .tls = NULL };
    struct err e = { 0 };
    ck_ok_e(replica_credentials_open(o, c, role, &r, &e));
    ck_assert_int_eq(r.rpc.security, want);
    ck_assert((r.rpc.tls != NULL) == (want == RPC_TLS));
}

static void fails(const struct replica_options *o, const struct cluster *c, enum role role, const char *message)
{
    AUTO_FINI(replica_credentials) r = { .tls = NULL };
    struct err e = { 0 };
    ck_assert_int_eq(replica_credentials_open(o, c, role, &r, &e), -1);
    ck_assert_int_eq(err_exit_code(&e), 2);
    ck_assert_msg(strstr(e.msg, message) != NULL, "'%s' is not in: %s", message, e.msg);
}

START_TEST(a_replica_has_an_identity_or_says_that_it_has_none)
{
    const struct replica_options none = { .tls_dir = NULL }, insecure = { .insecure = true },
                                 both = { .tls_dir = folder, .insecure = true }, tls = { .tls_dir = folder };
    write_identity(ROLE_WORKER, 2);
    opens(&tls, &WORKER_2, ROLE_WORKER, RPC_TLS);
    opens(&insecure, &WORKER_2, ROLE_WORKER, RPC_PLAINTEXT);
    fails(&none, &WORKER_2, ROLE_WORKER,
          "this replica has no identity: give --tls-dir (`trainyard certs` makes the folders), or --insecure to let "
          "everything travel in plain text");
    fails(&both, &WORKER_2, ROLE_WORKER, "--insecure are mutually exclusive");
}
END_TEST

START_TEST(a_training_without_peers_needs_none)
{
    const struct replica_options none = { .tls_dir = NULL }, tls = { .tls_dir = folder };
    opens(&none, &ALONE, ROLE_COUNT, RPC_PLAINTEXT);
    write_identity(ROLE_CHIEF, 0); /* for its pages */
    opens(&tls, &ALONE, ROLE_COUNT, RPC_TLS);
}
END_TEST

START_TEST(a_ps_without_a_cluster_needs_one)
{
    const struct replica_options none = { .tls_dir = NULL }, tls = { .tls_dir = folder };
    fails(&none, &ALONE, ROLE_PS, "this replica has no identity");
    write_identity(ROLE_PS, 7);
    opens(&tls, &ALONE, ROLE_PS, RPC_TLS);
    write_identity(ROLE_WORKER, 0);
    fails(&tls, &ALONE, ROLE_PS, "the certificate is that of worker-0, but this replica is a ps");
}
END_TEST

START_TEST(the_certificate_is_that_of_the_task)
{
    const struct replica_options tls = { .tls_dir = folder };
    write_identity(ROLE_WORKER, 1);
    fails(&tls, &WORKER_2, ROLE_WORKER, "the certificate is that of worker-1, but this replica is worker-2");
    write_identity(ROLE_PS, 2);
    fails(&tls, &WORKER_2, ROLE_WORKER, "the certificate is that of ps-2, but this replica is worker-2");
    write_identity(IDENTITY_OPERATOR, 0);
    fails(&tls, &WORKER_2, ROLE_WORKER, "the certificate is that of operator, but this replica is worker-2");
    write_identity(ROLE_CHIEF, 0);
    opens(&tls, &MASTER, ROLE_CHIEF, RPC_TLS);
}
END_TEST

START_TEST(a_folder_without_the_files_is_named)
{
    const struct replica_options tls = { .tls_dir = folder };
    fails(&tls, &WORKER_2, ROLE_WORKER, folder);
    fails(&tls, &WORKER_2, ROLE_WORKER, "ca.crt");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("replica_credentials");
    TCase *t = tcase_create("replica_credentials");
    tcase_add_checked_fixture(t, make_folder, remove_folder);
    tcase_add_test(t, a_replica_has_an_identity_or_says_that_it_has_none);
    tcase_add_test(t, a_training_without_peers_needs_none);
    tcase_add_test(t, a_ps_without_a_cluster_needs_one);
    tcase_add_test(t, the_certificate_is_that_of_the_task);
    tcase_add_test(t, a_folder_without_the_files_is_named);
    suite_add_tcase(s, t);
    return s;
}
