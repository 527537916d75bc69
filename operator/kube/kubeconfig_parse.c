/* Parses a kubeconfig as kubectl does. Files that it names are read here as well, so the result is complete or an
 * error. A field that would change the authentication and is not supported is an error, never ignored. */
#include "kube/kubeconfig_parse.h"

#include <string.h>

#include "base/file.h"
#include "codec/base64.h"

enum { FILE_MAX = 1 << 20 };

void kubeconfig_free(struct kubeconfig *c)
{
    if (c == NULL)
        return;
    free(c->server);
    free(c->ns);
    free(c->ca);
    free(c->cert);
    free(c->key);
    free(c->server_name);
    free(c->token);
    free(c->token_file);
    free(c->exec_info);
    exec_spec_fini(&c->exec);
    free(c);
}

/* ---- helpers ---- */

static int reject_keys(const struct node *n, const char *const keys[], size_t nkeys, struct err *e)
{
    for (size_t i = 0; i < nkeys; i++) {
        struct node one = node_get(n, keys[i]);
        if (node_present(&one))
            return node_key_error(n, keys[i], e, "'%s' is not supported", keys[i]);
    }
    return 0;
}

/* The entry `name` of the list `list` in the mapping `below`. */
static int find_entry(const struct node *root, const char *list, const char *name, const char *below, struct node *ret,
                      struct err *e)
{
    struct node all = node_get(root, list);

    if (node_present(&all) && node_array(&all, e) < 0)
        return -1;
    for (size_t i = 0; i < node_size(&all); i++) {
        struct node entry = node_item(&all, i);
        const char *its = NULL;
        if (node_object(&entry, e) < 0 || node_str_or(&entry, "name", "", &its, e) < 0)
            return -1;
        if (!str_eq(its, name))
            continue;
        *ret = node_get(&entry, below);
        return node_object(ret, e);
    }
    return node_error(root, e, "%s has no entry named '%s'", list, name);
}

static int copy_str(const struct node *n, const char *key, char **ret, struct err *e)
{
    const char *s = NULL;

    if (node_str_or(n, key, NULL, &s, e) < 0)
        return -1;
    if (s != NULL && *s != '\0') {
        free(*ret);
        *ret = xstrdup(s);
    }
    return 0;
}

/* "KEY-data" in base64, or the file named by "KEY": a PEM text. */
static int read_pem(const struct node *n, const char *folder, const char *key, char **ret, struct err *e)
{
    AUTO_FINI(buf) data_key = BUF_INIT;
    AUTO_FINI(buf) text = BUF_INIT;
    const char *data = NULL, *file = NULL;

    buf_printf(&data_key, "%s-data", key);
    if (node_str_or(n, data_key.data, NULL, &data, e) < 0 || node_str_or(n, key, NULL, &file, e) < 0)
        return -1;
    if (data != NULL && *data != '\0') {
        struct err why;
        if (base64_decode(data, strlen(data), &text, &why) < 0)
            return node_key_error(n, data_key.data, e, "%s: %s", data_key.data, why.msg);
    } else if (file != NULL && *file != '\0') {
        auto_free char *path = path_join(folder, file);
        if (file_read(path, FILE_MAX, &text, e) < 0)
            return err_wrap(e, "%s", key);
    } else {
        return 0;
    }
    if (strlen(text.data) != text.len || strstr(text.data, "-----BEGIN ") == NULL)
        return node_error(n, e, "%s is not PEM text", key);
    *ret = buf_detach(&text);
    return 0;
}

/* ---- sections of the file ---- */

static int parse_cluster(const struct node *n, const char *folder, struct kubeconfig *c, struct err *e)
{
    static const char *const STRANGE[] = { "proxy-url" };

    if (reject_keys(n, STRANGE, COUNT_OF(STRANGE), e) < 0 || copy_str(n, "server", &c->server, e) < 0)
        return -1;
    if (c->server == NULL)
        return node_error(n, e, "has no server");
    if (!str_starts(c->server, "https://") && !str_starts(c->server, "http://"))
        return node_key_error(n, "server", e, "'%s' is not a URL with https:// or http://", c->server);
    for (size_t len = strlen(c->server); len > 0 && c->server[len - 1] == '/';)
        c->server[--len] = '\0';
    if (copy_str(n, "tls-server-name", &c->server_name, e) < 0 ||
        node_bool_or(n, "insecure-skip-tls-verify", false, &c->insecure, e) < 0)
        return -1;
    if (read_pem(n, folder, "certificate-authority", &c->ca, e) < 0)
        return -1;
    if (c->insecure && c->ca != NULL)
        return node_key_error(n, "insecure-skip-tls-verify", e,
                              "cannot be combined with certificate-authority; remove one of them");
    return 0;
}

static int exec_env(const struct node *exec, struct strlist *ret, struct err *e)
{
    struct node env = node_get(exec, "env");

    if (node_present(&env) && node_array(&env, e) < 0)
        return -1;
    for (size_t i = 0; i < node_size(&env); i++) {
        struct node one = node_item(&env, i), name = node_get(&one, "name"), value = node_get(&one, "value");
        const char *n = NULL, *v = NULL;
        if (node_object(&one, e) < 0 || node_str(&name, &n, e) < 0 || node_str(&value, &v, e) < 0)
            return -1;
        auto_free char *line = xasprintf("%s=%s", n, v);
        strlist_add(ret, line);
    }
    return 0;
}

static int exec_args(const struct node *exec, struct strlist *ret, struct err *e)
{
    struct node args = node_get(exec, "args");

    if (node_present(&args) && node_array(&args, e) < 0)
        return -1;
    for (size_t i = 0; i < node_size(&args); i++) {
        struct node one = node_item(&args, i);
        const char *s = NULL;
        if (node_str(&one, &s, e) < 0)
            return -1;
        strlist_add(ret, s);
    }
    return 0;
}

static int parse_exec(const struct node *n, const char *folder, struct kubeconfig *c, struct err *e)
{
    static const char *const VERSIONS[] = { "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1" };
    struct node exec = node_get(n, "exec"), version = node_get(&exec, "apiVersion");
    struct exec_spec *s = &c->exec;
    size_t which = 0;

    if (!node_present(&exec))
        return 0;
    if (node_object(&exec, e) < 0 || node_enum(&version, VERSIONS, COUNT_OF(VERSIONS), &which, e) < 0 ||
        copy_str(&exec, "command", &s->command, e) < 0 || copy_str(&exec, "installHint", &s->install_hint, e) < 0 ||
        node_bool_or(&exec, "provideClusterInfo", false, &s->cluster_info, e) < 0 ||
        exec_args(&exec, &s->args, e) < 0 || exec_env(&exec, &s->env, e) < 0)
        return -1;
    if (s->command == NULL)
        return node_error(&exec, e, "has no command");
    s->api_version = xstrdup(VERSIONS[which]);
    s->folder = xstrdup(folder);
    return 0;
}

static int parse_user(const struct node *n, const char *folder, struct kubeconfig *c, struct err *e)
{
    static const char *const STRANGE[] = { "auth-provider", "username",  "password",     "as",
                                           "as-uid",        "as-groups", "as-user-extra" };
    auto_free char *token_file = NULL;

    if (reject_keys(n, STRANGE, COUNT_OF(STRANGE), e) < 0 ||
        read_pem(n, folder, "client-certificate", &c->cert, e) < 0 ||
        read_pem(n, folder, "client-key", &c->key, e) < 0 || copy_str(n, "token", &c->token, e) < 0 ||
        copy_str(n, "tokenFile", &token_file, e) < 0 || parse_exec(n, folder, c, e) < 0)
        return -1;
    if ((c->cert == NULL) != (c->key == NULL))
        return node_error(n, e, "client-certificate and client-key belong together");
    if (token_file != NULL)
        c->token_file = path_join(folder, token_file);
    return 0;
}

static void set_exec_info(struct kubeconfig *c)
{
    json_auto_t *info = json_pack("{s:s, s:s, s:{s:b}}", "apiVersion", c->exec.api_version, "kind", "ExecCredential",
                                  "spec", "interactive", 0);
    AUTO_FINI(buf) text = BUF_INIT;

    if (c->exec.cluster_info) {
        AUTO_FINI(buf) ca = BUF_INIT;
        base64_encode(c->ca != NULL ? c->ca : "", c->ca != NULL ? strlen(c->ca) : 0, &ca);
        json_t *it = json_pack("{s:s, s:b}", "server", c->server, "insecure-skip-tls-verify", c->insecure);
        if (c->ca != NULL)
            json_object_set_new(it, "certificate-authority-data", json_string(ca.data));
        if (c->server_name != NULL)
            json_object_set_new(it, "tls-server-name", json_string(c->server_name));
        json_object_set_new(json_object_get(info, "spec"), "cluster", it);
    }
    json_emit(info, &text);
    c->exec_info = buf_detach(&text);
}

static int parse_root(const struct node *root, const char *folder, const char *context, struct kubeconfig *c,
                      struct err *e)
{
    struct node at, of_cluster, of_user;
    const char *cluster_name = NULL, *user_name = NULL;

    if (node_object(root, e) < 0 || (context == NULL && node_str_or(root, "current-context", "", &context, e) < 0))
        return -1;
    if (*context == '\0')
        return node_error(root, e, "has no current-context, and no --context was given");
    if (find_entry(root, "contexts", context, "context", &at, e) < 0 ||
        node_str_or(&at, "cluster", "", &cluster_name, e) < 0 || node_str_or(&at, "user", "", &user_name, e) < 0 ||
        copy_str(&at, "namespace", &c->ns, e) < 0 ||
        find_entry(root, "clusters", cluster_name, "cluster", &of_cluster, e) < 0 ||
        parse_cluster(&of_cluster, folder, c, e) < 0)
        return -1;
    if (*user_name != '\0' &&
        (find_entry(root, "users", user_name, "user", &of_user, e) < 0 || parse_user(&of_user, folder, c, e) < 0))
        return -1;
    if (c->ns == NULL)
        c->ns = xstrdup("default");
    if (c->exec.command != NULL)
        set_exec_info(c);
    return 0;
}

int kubeconfig_parse(const char *text, size_t n, const char *name, const char *folder, const char *context,
                     struct kubeconfig **ret, struct err *e)
{
    json_auto_t *v = NULL;
    AUTO(source) *src = NULL;
    AUTO(kubeconfig) *c = xcalloc(1, sizeof(*c));

    if (yaml_parse(text, n, name, &v, &src, e) < 0)
        return -1;
    struct node root = node_root(v, src);
    if (parse_root(&root, folder, context, c, e) < 0)
        return -1;
    *ret = TAKE(c);
    return 0;
}
