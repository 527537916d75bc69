/* Reads the Secret with the master keys, creates it when it does not exist, and decides which keys are trusted. A key
 * is never logged. */
#include "control/master_key.h"

#include <string.h>
#include <sys/random.h>

#include "api/kind.h"
#include "api/time.h"
#include "base/log.h"
#include "base/str.h"
#include "codec/base64.h"

enum { READ_MS = 60000, READ_LEAST_MS = 1000, RETRY_MS = 5000, RETRY_FIRST_MS = 1000, AN_ISSUE = 144, A_REST = 24 };

struct master_keys {
    struct kube_client *client;
    struct master_keys_settings settings;
    struct master_key keys[MASTER_KEYS_MAX];
    size_t n;
    uint64_t version;
    char *fault, *told; /* told: the entries that were named in the log */
    int faults;         /* in a row */
    struct timer again;
    struct kube_call *call;
};

/* ---- pure ---- */

/* "20261123T100000Z" */
static bool parse_name(const char *name, int64_t *ret_ms)
{
    char text[32], again[32];
    if (strlen(name) != MASTER_KEY_NAME_SIZE - 1)
        return false;
    str_fmt(text, sizeof(text), "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", name, name + 4, name + 6, name + 9, name + 11,
            name + 13);
    *ret_ms = time_parse(text);
    return *ret_ms > 0 && name[8] == 'T' && name[15] == 'Z' && str_eq(time_text(*ret_ms, again), text);
}

static bool parse_key(const char *name, const json_t *v, struct master_key *ret)
{
    AUTO_FINI(buf) bytes = BUF_INIT;
    struct err e;
    const char *text = json_string_value(v);
    bool valid = text != NULL && base64_decode(text, strlen(text), &bytes, &e) == 0 && bytes.len == CA_MASTER_SIZE &&
                 parse_name(name, &ret->time_ms);
    if (valid) {
        str_fmt(ret->name, sizeof(ret->name), "%s", name);
        memcpy(ret->bytes, bytes.data, CA_MASTER_SIZE);
    }
    if (bytes.len > 0)
        explicit_bzero(bytes.data, bytes.len);
    return valid;
}

/* Keeps the newest ones. */
static size_t insert(struct master_key *keys, size_t n, const struct master_key *one)
{
    size_t at = 0;
    while (at < n && keys[at].time_ms < one->time_ms)
        at++;
    if (n == MASTER_KEYS_MAX) {
        if (at == 0)
            return n;
        memmove(keys, keys + 1, (--at) * sizeof(*keys));
    } else {
        memmove(keys + at + 1, keys + at, (n++ - at) * sizeof(*keys));
    }
    keys[at] = *one;
    return n;
}

size_t master_keys_parse(const json_t *data, struct master_key ret[MASTER_KEYS_MAX], struct buf *bad)
{
    struct master_key one = { .time_ms = 0 };
    const char *name;
    json_t *v;
    size_t n = 0;
    json_object_foreach((json_t *)(uintptr_t)data, name, v)
    {
        if (parse_key(name, v, &one))
            n = insert(ret, n, &one);
        else
            buf_printf(bad, "%s%.64s", bad->len > 0 ? ", " : "", name);
    }
    explicit_bzero(&one, sizeof(one));
    return n;
}

static void changes_at(struct master_key_set *s, int64_t at_ms, int64_t now_ms)
{
    if (at_ms > now_ms && (s->until_ms == 0 || at_ms < s->until_ms))
        s->until_ms = at_ms;
}

void master_keys_select(const struct master_key *keys, size_t n, int64_t lifetime_ms, int64_t now_ms,
                        struct master_key_set *ret)
{
    int64_t issue_after = lifetime_ms / AN_ISSUE, trust_for = lifetime_ms + lifetime_ms / A_REST;
    size_t issuing = 0;

    *ret = (struct master_key_set){ .n = 0 };
    for (size_t i = 0; i < n; i++) {
        if (now_ms >= keys[i].time_ms + issue_after)
            issuing = i;
        else if (i > 0)
            changes_at(ret, keys[i].time_ms + issue_after, now_ms);
    }
    if (n > 0)
        ret->keys[ret->n++] = &keys[issuing];
    for (size_t i = n; i-- > 0;) { /* the newest first, which is the one that everybody will have */
        int64_t end = i < issuing ? keys[i + 1].time_ms + issue_after + trust_for : INT64_MAX;
        if (i == issuing || now_ms >= end)
            continue;
        ret->keys[ret->n++] = &keys[i];
        if (i < issuing)
            changes_at(ret, end, now_ms);
    }
}

/* ---- state ---- */

void master_keys_trusted(const struct master_keys *k, int64_t now_ms, struct master_key_set *ret)
{
    master_keys_select(k->keys, k->n, k->settings.lifetime_ms, now_ms, ret);
}

uint64_t master_keys_version(const struct master_keys *k)
{
    return k->version;
}

const char *master_keys_fault(const struct master_keys *k)
{
    return k->fault;
}

/* Takes ownership of the text. */
static void set_fault(struct master_keys *k, char *text)
{
    k->faults++;
    if (str_eq(k->fault, text)) {
        free(text);
        return;
    }
    free(k->fault);
    k->fault = text;
    log_warning("%s", text);
    k->settings.on_change(k->settings.user);
}

static void tell_bad(struct master_keys *k, const char *bad)
{
    if (bad[0] != '\0' && !str_eq(bad, k->told))
        log_warning(
            "Secret %s/%s: these entries are ignored: %s. An entry has a name such as 20261123T100000Z (UTC) and "
            "%d random bytes",
            kube_client_namespace(k->client), MASTER_KEY_SECRET, bad, CA_MASTER_SIZE);
    free(k->told);
    k->told = xstrdup(bad);
}

static bool same_keys(const struct master_keys *k, const struct master_key *keys, size_t n)
{
    bool same = n == k->n;
    for (size_t i = 0; same && i < n; i++)
        same = str_eq(keys[i].name, k->keys[i].name) && memcmp(keys[i].bytes, k->keys[i].bytes, CA_MASTER_SIZE) == 0;
    return same;
}

static void take_keys(struct master_keys *k, const json_t *data)
{
    struct master_key keys[MASTER_KEYS_MAX] = { { .time_ms = 0 } };
    AUTO_FINI(buf) bad = BUF_INIT;
    size_t n = master_keys_parse(data, keys, &bad);

    tell_bad(k, bad.data);
    if (n == 0) {
        set_fault(k, xasprintf("Secret %s/%s has no valid master key: delete it, and the operator makes it again",
                               kube_client_namespace(k->client), MASTER_KEY_SECRET));
    } else if (!same_keys(k, keys, n) || k->fault != NULL) {
        log_info("master keys of Secret %s/%s: %zu, the newest %s", kube_client_namespace(k->client), MASTER_KEY_SECRET,
                 n, keys[n - 1].name);
        memcpy(k->keys, keys, sizeof(keys));
        k->n = n;
        k->version++;
        free(TAKE(k->fault));
        k->settings.on_change(k->settings.user);
    }
    if (n > 0)
        k->faults = 0;
    explicit_bzero(keys, sizeof(keys));
}

/* ---- requests ---- */

static void read_keys(void *user);

static void read_after(struct master_keys *k, int64_t ms)
{
    struct loop *loop = kube_client_loop(k->client);
    timer_set(loop, &k->again, loop_now(loop) + ms, read_keys, k);
}

/* As often as the shortest of the times above demands. */
static int64_t read_interval(const struct master_keys *k)
{
    return MIN(MAX(k->settings.lifetime_ms / (10 * AN_ISSUE), (int64_t)READ_LEAST_MS), (int64_t)READ_MS);
}

static void failed(struct master_keys *k, const struct kube_answer *a, const char *verb)
{
    set_fault(k, xasprintf("cannot %s Secret %s/%s with the master keys: %s%s", verb, kube_client_namespace(k->client),
                           MASTER_KEY_SECRET, a->message,
                           a->status == 403 ? "; the chart and deploy/rbac grant this right" : ""));
    read_after(k, k->faults == 1 ? RETRY_FIRST_MS : RETRY_MS);
}

static void on_created(void *user, const struct kube_answer *a)
{
    struct master_keys *k = user;
    k->call = NULL;
    if (kube_ok(a))
        log_info("created Secret %s/%s with the master key of all certificates", kube_client_namespace(k->client),
                 MASTER_KEY_SECRET);
    if (kube_ok(a) || a->status == 409) /* another operator was faster: what is there counts */
        read_keys(k);
    else
        failed(k, a, "create");
}

static int new_key(struct master_key *ret, int64_t now_ms)
{
    char text[32];
    time_text(now_ms, text);
    str_fmt(ret->name, sizeof(ret->name), "%.4s%.2s%.2sT%.2s%.2s%.2sZ", text, text + 5, text + 8, text + 11, text + 14,
            text + 17);
    ret->time_ms = now_ms / 1000 * 1000;
    return getrandom(ret->bytes, sizeof(ret->bytes), 0) == (ssize_t)sizeof(ret->bytes) ? 0 : -1;
}

static json_t *secret_of(const struct master_keys *k, const struct master_key *keys, size_t n)
{
    json_t *data = json_object();
    for (size_t i = 0; i < n; i++) {
        AUTO_FINI(buf) text = BUF_INIT;
        base64_encode(keys[i].bytes, CA_MASTER_SIZE, &text);
        json_object_set_new(data, keys[i].name, json_string(text.data));
        explicit_bzero(text.data, text.len);
    }
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s, s:s}}, s:s, s:o}", "apiVersion", "v1", "kind", "Secret",
                     "metadata", "name", MASTER_KEY_SECRET, "namespace", kube_client_namespace(k->client), "labels",
                     "app.kubernetes.io/name", "trainyard", "app.kubernetes.io/managed-by", "trainyard-operator",
                     "type", "Opaque", "data", data);
}

static void create(struct master_keys *k)
{
    struct master_key fresh = { .time_ms = 0 };
    AUTO_FINI(buf) path = BUF_INIT;
    if (k->n > 0) {
        log_warning("Secret %s/%s was deleted; it is made again with the same keys. To replace a key, add an entry",
                    kube_client_namespace(k->client), MASTER_KEY_SECRET);
    } else if (new_key(&fresh, kube_client_time(k->client)) < 0) {
        set_fault(k, xstrdup("no random bytes for a master key: getrandom() failed"));
        read_after(k, RETRY_MS);
        return;
    }
    json_auto_t *body = k->n > 0 ? secret_of(k, k->keys, k->n) : secret_of(k, &fresh, 1);
    explicit_bzero(&fresh, sizeof(fresh));
    kube_path(&path, &RESOURCE_SECRETS, kube_client_namespace(k->client), NULL, NULL);
    k->call = kube_send(k->client, &(struct kube_request){ .verb = KUBE_CREATE,
                                                           .priority = KUBE_NORMAL,
                                                           .path = path.data,
                                                           .body = body,
                                                           .metadata_only = true,
                                                           .discard_body = true,
                                                           .done = on_created,
                                                           .user = k });
}

static void on_read(void *user, const struct kube_answer *a)
{
    struct master_keys *k = user;
    k->call = NULL;
    if (a->status == 404) {
        create(k);
        return;
    }
    if (!kube_ok(a)) {
        failed(k, a, "read");
        return;
    }
    take_keys(k, json_object_get(a->body, "data"));
    read_after(k, k->n > 0 ? read_interval(k) : RETRY_MS);
}

static void read_keys(void *user)
{
    struct master_keys *k = user;
    AUTO_FINI(buf) path = BUF_INIT;
    kube_path(&path, &RESOURCE_SECRETS, kube_client_namespace(k->client), MASTER_KEY_SECRET, NULL);
    k->call = kube_send(k->client, &(struct kube_request){ .verb = KUBE_GET,
                                                           .priority = KUBE_NORMAL,
                                                           .path = path.data,
                                                           .retry_ms = RETRY_MS,
                                                           .done = on_read,
                                                           .user = k });
}

/* ---- life ---- */

struct master_keys *master_keys_new(struct kube_client *client, const struct master_keys_settings *s)
{
    struct master_keys *k = xcalloc(1, sizeof(*k));
    k->client = client;
    k->settings = *s;
    k->version = 1;
    read_keys(k);
    return k;
}

void master_keys_free(struct master_keys *k)
{
    if (k == NULL)
        return;
    kube_cancel(k->call);
    timer_clear(kube_client_loop(k->client), &k->again);
    explicit_bzero(k->keys, sizeof(k->keys));
    free(k->fault);
    free(k->told);
    free(k);
}
