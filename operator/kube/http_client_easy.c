/* Options of libcurl's easy handles, and the headers of answers. Only the given certificate authority is trusted, no
 * proxy is used, and dead connections are found by keepalive and TCP_USER_TIMEOUT. */
#include "kube/http_client_internal.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/str.h"

enum {
    CONNECT_TIMEOUT_MS = 10000,
    WARNINGS_MAX = 16,         /* read from one answer */
    KEEPALIVE_S = 15,          /* an idle connection is probed after this long, then every 5 s */
    UNACKNOWLEDGED_MS = 20000, /* unacknowledged data of this age ends the connection */
    IN_BUFFER = 8192,          /* per handle, of which there are dozens; curl's defaults are 16 and 64 kB */
    OUT_BUFFER = 16384,
};

static int curl_sockopt(void *user, curl_socket_t fd, curlsocktype purpose)
{
    unsigned ms = UNACKNOWLEDGED_MS;
    (void)user;

    if (purpose == CURLSOCKTYPE_IPCXN) /* a kernel without it still has keepalive */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
    return CURL_SOCKOPT_OK;
}

static void set_blob(CURL *easy, CURLoption option, char *pem)
{
    struct curl_blob blob = { .data = pem, .len = pem != NULL ? strlen(pem) : 0, .flags = CURL_BLOB_NOCOPY };
    curl_easy_setopt(easy, option, pem != NULL ? &blob : NULL);
}

/* A handle that is used again must not keep anything of the last transfer's own certificates. */
static void set_alone(CURL *easy, bool alone)
{
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, alone ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, alone ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, alone ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_CERTINFO, alone ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, alone ? (long)CURL_SSLVERSION_TLSv1_3 : (long)CURL_SSLVERSION_DEFAULT);
}

static void copy_blob(CURL *easy, CURLoption option, const char *pem)
{
    struct curl_blob blob = { .data = (char *)(uintptr_t)pem, .len = strlen(pem), .flags = CURL_BLOB_COPY };
    curl_easy_setopt(easy, option, &blob);
}

void http_set_own_tls(struct http_call *c, const struct http_own_tls *tls)
{
    set_alone(c->easy, true);
    curl_easy_setopt(c->easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(c->easy, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(c->easy, CURLOPT_CAPATH, NULL);
    copy_blob(c->easy, CURLOPT_CAINFO_BLOB, tls->ca);
    copy_blob(c->easy, CURLOPT_SSLCERT_BLOB, tls->cert);
    copy_blob(c->easy, CURLOPT_SSLKEY_BLOB, tls->key);
}

const char *http_peer_of(const struct http_call *c)
{
    static const char FIELD[] = "Cert:";
    struct curl_certinfo *chain = NULL;

    if (!c->own_tls || curl_easy_getinfo(c->easy, CURLINFO_CERTINFO, &chain) != CURLE_OK || chain == NULL ||
        chain->num_of_certs < 1)
        return NULL;
    for (const struct curl_slist *l = chain->certinfo[0]; l != NULL; l = l->next)
        if (str_starts(l->data, FIELD))
            return l->data + strlen(FIELD);
    return NULL;
}

void http_set_tls_of(struct http_call *c)
{
    const struct http_client *h = c->http;
    CURL *easy = c->easy;

    set_alone(easy, false);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, h->insecure ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, h->insecure ? 0L : 2L);
    set_blob(easy, CURLOPT_CAINFO_BLOB, h->ca);
    if (h->ca != NULL)
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* trust only the given authority */
    set_blob(easy, CURLOPT_SSLCERT_BLOB, h->cert);
    set_blob(easy, CURLOPT_SSLKEY_BLOB, h->key);
}

CURL *http_easy_new(struct http_call *c, curl_write_callback on_data, curl_write_callback on_header)
{
    const struct http_client *h = c->http;
    CURL *easy = curl_easy_init();

    if (easy == NULL)
        abort();
    curl_easy_setopt(easy, CURLOPT_PRIVATE, c);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, c->trouble);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, c);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, curl_sockopt);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)IN_BUFFER);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)OUT_BUFFER);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, h->http2 ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, h->http2 ? 1L : 0L);
    return easy;
}

/* The list nodes of the headers are ours: curl only reads them. They are offsets first, because the text may move while
 * it grows. */
static void set_headers(struct http_call *c, const char *const *headers)
{
    size_t at[HTTP_HEADERS_MAX], n = 0;

    buf_clear(&c->head);
    bool unpack = false;
    for (; headers != NULL && *headers != NULL && n < HTTP_HEADERS_MAX - 1; headers++) {
        if (strcasecmp(*headers, "Accept-Encoding: gzip") == 0) {
            unpack = true;
            continue;
        }
        at[n++] = c->head.len;
        buf_add(&c->head, *headers, strlen(*headers) + 1);
    }
    at[n++] = c->head.len;
    buf_add(&c->head, "Expect:", sizeof("Expect:")); /* none */
    for (size_t i = 0; i < n; i++)
        c->headers[i] = (struct curl_slist){ c->head.data + at[i], i + 1 < n ? &c->headers[i + 1] : NULL };
    curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->headers);
    if (unpack != c->unpack)
        curl_easy_setopt(c->easy, CURLOPT_ACCEPT_ENCODING, unpack ? "gzip" : NULL);
    c->unpack = unpack;
}

static void set_body(struct http_call *c, const struct http_transfer *t)
{
    buf_clear(&c->sent);
    if (t->body != NULL) {
        buf_add(&c->sent, t->body, t->body_len);
        curl_easy_setopt(c->easy, CURLOPT_POST, 1L);
        curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, c->sent.data);
        curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->body_len);
    } else {
        curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, NULL);
        curl_easy_setopt(c->easy, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST, str_eq(t->method, "GET") ? NULL : t->method);
}

/* The certificate is verified for the host of the URL, so the URL gets tls-server-name; CONNECT_TO keeps the address.
 */
static void set_url(struct http_call *c, const char *url)
{
    const struct http_client *h = c->http;
    const char *host = strstr(url, "://");

    if (h->server_name == NULL || host == NULL) {
        curl_easy_setopt(c->easy, CURLOPT_URL, url);
        return;
    }
    AUTO_FINI(buf) other = BUF_INIT;
    host += strlen("://");
    size_t all = strcspn(host, "/?"), name = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?");
    buf_add(&other, url, (size_t)(host - url));
    buf_printf(&other, "%s%s", h->server_name, host + name);
    buf_clear(&c->to);
    buf_printf(&c->to, "::%.*s%s", (int)all, host, name == all ? ":" : "");
    c->to_list = (struct curl_slist){ c->to.data, NULL };
    curl_easy_setopt(c->easy, CURLOPT_CONNECT_TO, &c->to_list);
    curl_easy_setopt(c->easy, CURLOPT_URL, other.data);
}

void http_set_request(struct http_call *c, const struct http_transfer *t)
{
    set_headers(c, t->headers);
    set_body(c, t);
    set_url(c, t->url);
}

/* ---- headers of answers ---- */

/* RFC 9111's form: 299 - "text", with \" and \\ in the text. Other codes concern caches. */
static void read_warning(const char *value, struct buf *out)
{
    const char *text = strchr(value, '"');

    if (!str_starts(value, "299 ") || text == NULL)
        return;
    if (out->len > 0)
        buf_char(out, '\n');
    for (text++; *text != '\0' && *text != '"'; text++) {
        text += text[0] == '\\' && text[1] != '\0';
        buf_char(out, *text == '\n' ? ' ' : *text);
    }
}

void http_read_headers(struct http_call *c, struct http_answer *ret)
{
    struct curl_header *h;
    curl_off_t retry_after = 0;

    curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &retry_after);
    ret->retry_after_s = (double)MAX(retry_after, 0);
    if (curl_easy_header(c->easy, "Date", 0, CURLH_HEADER, -1, &h) == CURLHE_OK)
        ret->date_ms = MAX((int64_t)curl_getdate(h->value, NULL), 0) * 1000;
    buf_clear(&c->warnings);
    for (size_t i = 0; i < WARNINGS_MAX && curl_easy_header(c->easy, "Warning", i, CURLH_HEADER, -1, &h) == CURLHE_OK;
         i++)
        read_warning(h->value, &c->warnings);
    ret->warnings = c->warnings.data;
}
