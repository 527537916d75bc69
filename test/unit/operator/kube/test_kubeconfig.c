/* Kubeconfigs: test/data/kube/config/valid/<case>/{config,expected.json}, invalid/<case>/{config,error}. */
#include "operator/api_case.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "kube/kubeconfig_parse.h"

#define CASES "test/data/kube/config/"

static json_t *list_json(const struct strlist *l)
{
    json_t *all = json_array();
    for (size_t i = 0; i < l->n; i++)
        json_array_append_new(all, json_string(l->items[i]));
    return all;
}

static json_t *config_json(const struct kubeconfig *c)
{
    json_t *v = json_pack("{s:s, s:s, s:s?, s:s?, s:s?, s:s?, s:s?, s:s?, s:b}", "server", c->server, "namespace",
                          c->ns, "ca", c->ca, "cert", c->cert, "key", c->key, "serverName", c->server_name, "token",
                          c->token, "tokenFile", c->token_file, "insecure", c->insecure);

    if (c->exec.command != NULL)
        json_object_set_new(v, "exec",
                            json_pack("{s:s, s:s, s:s?, s:o, s:o, s:s}", "command", c->exec.command, "apiVersion",
                                      c->exec.api_version, "installHint", c->exec.install_hint, "args",
                                      list_json(&c->exec.args), "env", list_json(&c->exec.env), "info", c->exec_info));
    return v;
}

static int parse_case(const char *path, struct kubeconfig **ret, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    auto_free char *config = path_join(path, "config");

    ck_assert_int_eq(file_read(config, API_CASE_MAX, &text, e), 0);
    return kubeconfig_parse(text.data, text.len, "config", path, NULL, ret, e);
}

static void valid_case(const char *path)
{
    struct err e = { .code = ERR_NONE };
    AUTO(kubeconfig) *c = NULL;

    ck_ok_e(parse_case(path, &c, &e));
    json_auto_t *got = config_json(c);
    api_expect(path, got);
}

START_TEST(valid_files)
{
    api_each(CASES "valid", valid_case);
}
END_TEST

static void invalid_case(const char *path)
{
    struct err e = { .code = ERR_NONE };
    AUTO(kubeconfig) *c = NULL;
    AUTO_FINI(buf) want = BUF_INIT;
    auto_free char *error = path_join(path, "error");

    ck_assert_msg(parse_case(path, &c, &e) < 0, "%s: is taken", path);
    if (getenv("TRAINYARD_SHOW") != NULL) {
        printf("%s\n%s\n", error, e.msg);
        return;
    }
    struct err f = { .code = ERR_NONE };
    ck_assert_msg(file_read(error, API_CASE_MAX, &want, &f) == 0, "%s", f.msg);
    want.data[strcspn(want.data, "\n")] = '\0';
    ck_assert_str_eq(e.msg, want.data);
}

START_TEST(invalid_files)
{
    api_each(CASES "invalid", invalid_case);
}
END_TEST

/* ---- files of a folder ---- */

struct folder {
    char path[64];
};

static struct folder folder_new(void)
{
    struct folder f = { "/tmp/kube-config-XXXXXX" };
    ck_assert_ptr_nonnull(mkdtemp(f.path));
    return f;
}

static void folder_fini(struct folder *f)
{
    AUTO_FINI(strlist) names = { .n = 0 };
    struct err e;

    ck_assert_int_eq(dir_list(f->path, &names, &e), 0);
    for (size_t i = 0; i < names.n; i++) {
        auto_free char *path = path_join(f->path, names.items[i]);
        unlink(path);
    }
    rmdir(f->path);
}
DEFINE_AUTO_FINI(folder, folder_fini);

static char *put(const struct folder *f, const char *name, const char *text)
{
    char *path = path_join(f->path, name);
    struct err e = { .code = ERR_NONE };

    ck_ok_e(file_write(path, text, strlen(text), &e));
    return path;
}

static void store(const struct folder *f, const char *name, const char *text)
{
    free(put(f, name, text));
}

#define PEM "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

static const char *token(struct kubeconfig *c, int64_t now_ms, bool refused)
{
    struct err e = { .code = ERR_NONE };
    const char *t = NULL;
    ck_ok_e(kubeconfig_token(c, now_ms, refused, &t, &e));
    return t;
}

START_TEST(a_pods_own_account)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO(kubeconfig) *c = NULL;
    AUTO(kubeconfig) *six = NULL;
    struct err e = { .code = ERR_NONE };

    ck_assert_int_lt(kubeconfig_in_cluster(f.path, "10.96.0.1", "443", &c, &e), 0);
    store(&f, "ca.crt", PEM);
    ck_assert_int_lt(kubeconfig_in_cluster(f.path, "10.96.0.1", "443", &c, &e), 0);
    store(&f, "token", "first\n");
    store(&f, "namespace", "training\n");
    ck_ok_e(kubeconfig_in_cluster(f.path, "10.96.0.1", "443", &c, &e));
    ck_assert_str_eq(kubeconfig_server(c), "https://10.96.0.1:443");
    ck_assert_str_eq(kubeconfig_namespace(c), "training");
    ck_assert_str_eq(kubeconfig_tls(c)->ca, PEM);
    ck_ok_e(kubeconfig_in_cluster(f.path, "fd00::1", "443", &six, &e));
    ck_assert_str_eq(kubeconfig_server(six), "https://[fd00::1]:443");
}
END_TEST

/* A rotated token is read after a minute, or at once when the server refuses the last one. A file that is missing for a
 * moment does no harm. */
START_TEST(a_token_file_is_read_again)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO(kubeconfig) *c = NULL;
    struct err e = { .code = ERR_NONE };
    store(&f, "ca.crt", PEM);
    auto_free char *file = put(&f, "token", "first\n");
    const int64_t now = clock_ms();

    ck_ok_e(kubeconfig_in_cluster(f.path, "10.96.0.1", "443", &c, &e));
    ck_assert_str_eq(kubeconfig_namespace(c), "default");
    ck_assert_str_eq(token(c, now, false), "first");
    store(&f, "token", "second");
    ck_assert_str_eq(token(c, now + 50000, false), "first");
    ck_assert_str_eq(token(c, now + 61000, false), "second");
    store(&f, "token", "third");
    ck_assert_str_eq(token(c, now + 62000, false), "second");
    ck_assert_str_eq(token(c, now + 62000, true), "third");
    unlink(file);
    ck_assert_str_eq(token(c, now + 200000, false), "third");
    store(&f, "token", "evil\r\nX-Header: 1");
    ck_assert_str_eq(token(c, now + 300000, false), "third");
}
END_TEST

/* ---- where it is searched ---- */

static char *kubeconfig(const struct folder *f, const char *name, const char *server)
{
    AUTO_FINI(buf) text = BUF_INIT;
    buf_printf(&text,
               "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}, {name: b, context: {cluster: "
               "a, user: a, namespace: other}}]\nclusters: [{name: a, cluster: {server: \"%s\"}}]\nusers: [{name: a, "
               "user: {token: t}}]\n",
               server);
    return put(f, name, text.data);
}

START_TEST(path_environment_home)
{
    AUTO_FINI(folder) f = folder_new();
    struct err e = { .code = ERR_NONE };
    AUTO(kubeconfig) *by_path = NULL, *by_env = NULL, *by_home = NULL;
    auto_free char *one = kubeconfig(&f, "one", "https://one/"), *two = kubeconfig(&f, "two", "https://two");
    auto_free char *list = xasprintf("%s/absent:%s:%s", f.path, two, one);
    auto_free char *absent = xasprintf("%s/absent", f.path);

    unsetenv("KUBERNETES_SERVICE_HOST");
    setenv("HOME", f.path, 1);
    setenv("KUBECONFIG", list, 1);
    ck_ok_e(kubeconfig_load(one, "b", &by_path, &e));
    ck_assert_str_eq(kubeconfig_server(by_path), "https://one");
    ck_assert_str_eq(kubeconfig_namespace(by_path), "other");
    ck_ok_e(kubeconfig_load(NULL, NULL, &by_env, &e));
    ck_assert_str_eq(kubeconfig_server(by_env), "https://two");
    ck_assert_str_eq(kubeconfig_namespace(by_env), "default");
    setenv("KUBECONFIG", absent, 1);
    ck_assert_int_lt(kubeconfig_load(NULL, NULL, &by_home, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.msg, absent));
    unsetenv("KUBECONFIG");
    ck_assert_int_lt(kubeconfig_load(NULL, NULL, &by_home, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.msg, ".kube/config"));
    auto_free char *dot = path_join(f.path, ".kube");
    ck_assert_int_eq(mkdir(dot, 0700), 0);
    auto_free char *usual = kubeconfig(&f, ".kube/config", "https://home");
    ck_ok_e(kubeconfig_load(NULL, NULL, &by_home, &e));
    ck_assert_str_eq(kubeconfig_server(by_home), "https://home");
    unlink(usual);
    rmdir(dot);
}
END_TEST

/* ---- plugins ---- */

static struct kubeconfig *with_plugin(const struct folder *f, const char *script)
{
    struct kubeconfig *c = NULL;
    struct err e = { .code = ERR_NONE };
    auto_free char *plugin = put(f, "plugin", script);
    auto_free char *path =
        put(f, "config",
            "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
            "clusters: [{name: a, cluster: {server: \"https://a\"}}]\nusers:\n- name: a\n  user:\n    exec:\n"
            "      apiVersion: client.authentication.k8s.io/v1\n      command: ./plugin\n      args: [x, y]\n"
            "      env: [{name: WHO, value: me}]\n      interactiveMode: Never\n      provideClusterInfo: true\n");

    ck_assert_int_eq(chmod(plugin, 0700), 0);
    ck_ok_e(kubeconfig_load(path, NULL, &c, &e));
    return c;
}

#define CREDENTIAL(status)                                                                                             \
    "{\\\"kind\\\":\\\"ExecCredential\\\",\\\"apiVersion\\\":\\\"client.authentication.k8s.io/"                        \
    "v1\\\",\\\"status\\\":{" status "}}"

/* The token shows the call, its arguments, its environment, and that it received the cluster. */
START_TEST(a_plugin_gives_tokens_until_they_expire)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO(kubeconfig) *c = with_plugin(
        &f, "#!/bin/sh\ncd \"$(dirname \"$0\")\" && echo >>calls\n"
            "case \"$KUBERNETES_EXEC_INFO\" in *'\"server\":\"https://a\"'*) info=told ;; esac\n"
            "expires=$(date -u -d '+100 seconds' +%Y-%m-%dT%H:%M:%S.5Z)\n"
            "echo \"" CREDENTIAL("\\\"token\\\":\\\"$(wc -l <calls | tr -d ' "
                                 "')-$1$2-$WHO-$info\\\",\\\"expirationTimestamp\\\":\\\"$expires\\\"") "\"\n");
    const int64_t now = clock_ms();

    ck_assert_str_eq(token(c, now, false), "1-xy-me-told");
    ck_assert_str_eq(token(c, now + 60000, false), "1-xy-me-told");
    ck_assert_str_eq(token(c, now + 95000, false), "2-xy-me-told"); /* ten seconds before it expires */
    ck_assert_str_eq(token(c, now + 96000, true), "3-xy-me-told");
    ck_assert_uint_eq(kubeconfig_tls_version(c), 1);
}
END_TEST

START_TEST(a_plugin_may_give_a_certificate)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO(kubeconfig) *c =
        with_plugin(&f, "#!/bin/sh\necho \"" CREDENTIAL(
                            "\\\"clientCertificateData\\\":\\\"cert\\\",\\\"clientKeyData\\\":\\\"key\\\"") "\"\n");

    ck_assert_ptr_null(kubeconfig_tls(c)->cert);
    ck_assert_ptr_null(token(c, clock_ms(), false));
    ck_assert_str_eq(kubeconfig_tls(c)->cert, "cert");
    ck_assert_str_eq(kubeconfig_tls(c)->key, "key");
    ck_assert_uint_eq(kubeconfig_tls_version(c), 2);
}
END_TEST

static const struct {
    const char *script, *message;
} BAD_PLUGINS[] = {
    { "#!/bin/sh\nexit 3\n", "it exited with status 3" },
    { "#!/bin/sh\nkill -9 $$\n", "it exited with signal 9" },
    { "#!/no/such/shell\n", "it cannot be run" },
    { "#!/bin/sh\necho nonsense\n", "credential:1:" },
    { "#!/bin/sh\necho '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\"}'\n",
      "not an ExecCredential of client.authentication.k8s.io/v1" },
    { "#!/bin/sh\necho "
      "'{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{}}'\n",
      "neither a token nor a certificate" },
    { "#!/bin/sh\necho "
      "'{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"a "
      "b\"}}'\n",
      "byte 2 of the bearer token" },
    { "#!/bin/sh\necho "
      "'{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"
      "v1\",\"status\":{\"token\":\"a\",\"expirationTimestamp\":\"soon\"}}'\n",
      "'soon' is not a valid time" },
};

START_TEST(bad_plugins)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO(kubeconfig) *c = with_plugin(&f, BAD_PLUGINS[_i].script);
    struct err e = { .code = ERR_NONE };
    const char *t = NULL;

    ck_assert_int_lt(kubeconfig_token(c, clock_ms(), false, &t, &e), 0);
    ck_assert_msg(strstr(e.msg, BAD_PLUGINS[_i].message) != NULL, "%s", e.msg);
    ck_assert_msg(strstr(e.msg, "./plugin") != NULL, "%s", e.msg);
}
END_TEST

/* The plugin is killed with its children, and not started again for some seconds: it may have blocked the loop for
 * ten. */
START_TEST(a_plugin_that_hangs_is_ended)
{
    AUTO_FINI(folder) f = folder_new();
    auto_free char *plugin = put(&f, "plugin", "#!/bin/sh\nsleep 1000 & wait\n");
    struct exec_spec s = { .command = plugin, .folder = f.path, .api_version = plugin };
    AUTO_FINI(exec_credential) got = { .token = NULL };
    struct err e = { .code = ERR_NONE };

    ck_assert_int_eq(chmod(plugin, 0700), 0);
    ck_assert_int_lt(exec_run(&s, "{}", 200, &got, &e), 0);
    ck_assert_int_eq(e.code, ERR_TIMEOUT);
}
END_TEST

START_TEST(a_plugin_that_failed_is_left_alone_for_a_while)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO(kubeconfig) *c = with_plugin(&f, "#!/bin/sh\necho >>\"$(dirname \"$0\")/calls\"\nexit 1\n");
    struct err e = { .code = ERR_NONE };
    const char *t = NULL;
    auto_free char *calls = path_join(f.path, "calls");
    uint64_t size = 0;
    const int64_t now = clock_ms();

    for (int i = 0; i < 5; i++)
        ck_assert_int_lt(kubeconfig_token(c, now + 100 * i, i % 2 == 1, &t, &e), 0);
    ck_ok_e(file_size(calls, &size, &e));
    ck_assert_uint_eq(size, 1);
    ck_assert_int_lt(kubeconfig_token(c, now + 20000, false, &t, &e), 0);
    ck_ok_e(file_size(calls, &size, &e));
    ck_assert_uint_eq(size, 2);
}
END_TEST

/* Five seconds from its end, not from its start: else the loop would block with a plugin that hangs for its ten
 * seconds. */
START_TEST(a_slow_plugin_that_fails_is_left_alone_as_long)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO(kubeconfig) *c = with_plugin(&f, "#!/bin/sh\necho >>\"$(dirname \"$0\")/calls\"\nsleep 1\nexit 1\n");
    struct err e = { .code = ERR_NONE };
    const char *t = NULL;
    auto_free char *calls = path_join(f.path, "calls");
    uint64_t size = 0;
    const int64_t now = clock_ms() - 20000; /* as if it had taken as long as it may */

    ck_assert_int_lt(kubeconfig_token(c, now, false, &t, &e), 0);
    ck_assert_int_lt(kubeconfig_token(c, now + 5900, false, &t, &e), 0);
    ck_ok_e(file_size(calls, &size, &e));
    ck_assert_uint_eq(size, 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("kubeconfig");
    TCase *c = tcase_create("kubeconfig");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, valid_files);
    tcase_add_test(c, invalid_files);
    tcase_add_test(c, a_pods_own_account);
    tcase_add_test(c, a_token_file_is_read_again);
    tcase_add_test(c, path_environment_home);
    tcase_add_test(c, a_plugin_gives_tokens_until_they_expire);
    tcase_add_test(c, a_plugin_may_give_a_certificate);
    tcase_add_loop_test(c, bad_plugins, 0, (int)COUNT_OF(BAD_PLUGINS));
    tcase_add_test(c, a_plugin_that_hangs_is_ended);
    tcase_add_test(c, a_plugin_that_failed_is_left_alone_for_a_while);
    tcase_add_test(c, a_slow_plugin_that_fails_is_left_alone_as_long);
    suite_add_tcase(s, c);
    return s;
}
