/* Finds the kubeconfig or the service account, and keeps its credentials current: a token file is read again every
 * minute, an exec plugin runs again before its credential expires. If a token cannot be read again, the old one is
 * kept. */
#include "kube/kubeconfig.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "kube/kubeconfig_parse.h"

enum {
    CONFIG_MAX = 4 << 20,
    TOKEN_MAX = 1 << 20,
    RETRY_MS = 60000,
    PLUGIN_LIMIT_MS = 10000,
    PLUGIN_PAUSE_MS = 5000, /* a plugin that failed is not run again sooner */
    PLUGIN_AGAIN_MS = 1000, /* a plugin whose credentials expire at once does not run for each request */
    EARLY_MS = 10000        /* before the end of a credential */
};

/* ---- tokens ---- */

/* A token must fit into one header line. */
static int token_check(const char *token, struct err *e)
{
    for (const char *p = token; *p != '\0'; p++)
        if (*p <= ' ' || *p > '~')
            return err_set(e, ERR_INPUT, "invalid character at byte %zu of the bearer token", (size_t)(p - token) + 1);
    return 0;
}

static int read_token(struct kubeconfig *c, int64_t now_ms, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;

    c->asked = true;
    c->asked_ms = now_ms;
    if (file_read(c->token_file, TOKEN_MAX, &text, e) < 0)
        return err_wrap(e, "token");
    while (text.len > 0 && strchr(" \t\r\n", text.data[text.len - 1]) != NULL)
        text.data[--text.len] = '\0';
    if (text.len == 0)
        return err_set(e, ERR_INPUT, "token: %s is empty", c->token_file);
    if (token_check(text.data, e) < 0)
        return err_wrap(e, "%s", c->token_file);
    free(c->token);
    c->token = buf_detach(&text);
    return 0;
}

static int token_of_file(struct kubeconfig *c, int64_t now_ms, bool refused, struct err *e)
{
    struct err why = { .code = ERR_NONE };

    if (c->asked && !refused && now_ms < c->asked_ms + RETRY_MS)
        return 0;
    if (read_token(c, now_ms, &why) == 0)
        return 0;
    if (c->token == NULL)
        return err_set(e, why.code, "%s", why.msg);
    log_debug("%s; keeping the last token", why.msg);
    return 0;
}

static void set_tls(struct kubeconfig *c)
{
    c->tls = (struct http_tls){
        .ca = c->ca, .cert = c->cert, .key = c->key, .server_name = c->server_name, .insecure = c->insecure
    };
    c->tls_version++;
}

static void store_credential(struct kubeconfig *c, struct exec_credential *got, int64_t now_ms)
{
    double left_s = got->expires - clock_wall();

    c->expires_ms =
        got->expires <= 0 || left_s > 1e9 ? INT64_MAX : now_ms + (int64_t)(fmax(left_s, 0) * 1000) - EARLY_MS;
    free(c->token);
    c->token = TAKE(got->token);
    if (str_eq(c->cert, got->cert) && str_eq(c->key, got->key))
        return;
    free(c->cert);
    free(c->key);
    c->cert = TAKE(got->cert);
    c->key = TAKE(got->key);
    set_tls(c);
}

static int token_of_plugin(struct kubeconfig *c, int64_t now_ms, bool refused, struct err *e)
{
    AUTO_FINI(exec_credential) got = { .token = NULL };
    bool failed = c->trouble.code != ERR_NONE;
    int64_t began_ms = clock_ms();

    if (c->asked && !failed && !refused && now_ms < MAX(c->expires_ms, c->asked_ms + PLUGIN_AGAIN_MS))
        return 0;
    if (failed && now_ms < c->asked_ms + PLUGIN_PAUSE_MS)
        return err_set(e, c->trouble.code, "%s", c->trouble.msg);
    c->asked = true;
    c->trouble.code = ERR_NONE;
    int r = exec_run(&c->exec, c->exec_info, PLUGIN_LIMIT_MS, &got, &c->trouble);
    if (r == 0 && got.token != NULL && token_check(got.token, &c->trouble) < 0)
        r = err_wrap(&c->trouble, "exec plugin '%s'", c->exec.command);
    c->asked_ms = now_ms + (clock_ms() - began_ms); /* the pause begins after the plugin has ended */
    if (r < 0)
        return err_set(e, c->trouble.code, "%s", c->trouble.msg);
    store_credential(c, &got, now_ms);
    return 0;
}

int kubeconfig_token(struct kubeconfig *c, int64_t now_ms, bool refused, const char **ret, struct err *e)
{
    if (c->exec.command != NULL && token_of_plugin(c, now_ms, refused, e) < 0)
        return -1;
    if (c->exec.command == NULL && c->token_file != NULL && token_of_file(c, now_ms, refused, e) < 0)
        return -1;
    *ret = c->token;
    return 0;
}

/* ---- finding the configuration ---- */

static int check_token_now(struct kubeconfig *c, struct err *e)
{
    set_tls(c);
    if (c->token_file != NULL && read_token(c, clock_ms(), e) < 0)
        return -1;
    return c->token != NULL ? token_check(c->token, e) : 0;
}

static int load_file(const char *path, const char *context, struct kubeconfig **ret, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    AUTO(kubeconfig) *c = NULL;
    auto_free char *folder = path_dir(path);

    if (file_read(path, CONFIG_MAX, &text, e) < 0)
        return err_wrap(e, "kubeconfig");
    if (kubeconfig_parse(text.data, text.len, path, folder, context, &c, e) < 0)
        return -1;
    if (check_token_now(c, e) < 0)
        return err_wrap(e, "%s", path);
    *ret = TAKE(c);
    return 0;
}

int kubeconfig_in_cluster(const char *account, const char *host, const char *port, struct kubeconfig **ret,
                          struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    AUTO(kubeconfig) *c = xcalloc(1, sizeof(*c));
    auto_free char *ca = path_join(account, "ca.crt");
    auto_free char *ns = path_join(account, "namespace");

    if (file_read(ca, CONFIG_MAX, &text, e) < 0)
        return err_wrap(e, "service account");
    c->ca = buf_detach(&text);
    bool v6 = strchr(host, ':') != NULL;
    c->server = xasprintf("https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
    c->token_file = path_join(account, "token");
    if (file_exists(ns) && file_read(ns, TOKEN_MAX, &text, e) < 0)
        return err_wrap(e, "service account");
    size_t n = strcspn(text.data, " \r\n");
    c->ns = n > 0 ? xstrndup(text.data, n) : xstrdup("default");
    if (check_token_now(c, e) < 0)
        return err_wrap(e, "service account");
    *ret = TAKE(c);
    return 0;
}

/* The first file of $KUBECONFIG that exists, or NULL. */
static char *first_existing(const char *list)
{
    AUTO_FINI(strlist) paths = { .items = NULL };

    strlist_split(&paths, list, ':');
    for (size_t i = 0; i < paths.n; i++)
        if (file_exists(paths.items[i]))
            return xstrdup(paths.items[i]);
    return NULL;
}

int kubeconfig_load(const char *path, const char *context, struct kubeconfig **ret, struct err *e)
{
    const char *list = getenv("KUBECONFIG"), *home = getenv("HOME"), *host = getenv("KUBERNETES_SERVICE_HOST"),
               *port = getenv("KUBERNETES_SERVICE_PORT");

    if (path != NULL)
        return load_file(path, context, ret, e);
    if (list != NULL && *list != '\0') {
        auto_free char *found = first_existing(list);
        if (found == NULL)
            return err_set(e, ERR_INPUT, "KUBECONFIG: no file of '%s' exists", list);
        return load_file(found, context, ret, e);
    }
    if (host != NULL && *host != '\0' && file_exists(SERVICE_ACCOUNT "/token"))
        return kubeconfig_in_cluster(SERVICE_ACCOUNT, host, port != NULL ? port : "443", ret, e);
    auto_free char *usual = xasprintf("%s/.kube/config", home != NULL ? home : "");
    if (file_exists(usual))
        return load_file(usual, context, ret, e);
    return err_set(e, ERR_INPUT,
                   "cannot find the API server: no --kubeconfig, no KUBECONFIG, no %s, and not running in a pod",
                   usual);
}

/* ---- fields ---- */

const char *kubeconfig_server(const struct kubeconfig *c)
{
    return c->server;
}

const char *kubeconfig_namespace(const struct kubeconfig *c)
{
    return c->ns;
}

const struct http_tls *kubeconfig_tls(const struct kubeconfig *c)
{
    return &c->tls;
}

unsigned kubeconfig_tls_version(const struct kubeconfig *c)
{
    return c->tls_version;
}
