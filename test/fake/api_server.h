/* api_server - a scripted API server for unit tests: plain HTTP/1.1 on 127.0.0.1, in a thread of its own.
 *
 *     AUTO(fake_api) *api = fake_api_new();
 *     fake_api_on(api, "GET", "/api/v1/pods?*", &(struct fake_answer){ .status = 429, .headers = "Retry-After: 1\r\n",
 * .times = 1 }); fake_api_on(api, "GET", "/api/v1/pods?*", &(struct fake_answer){ .body = "{\"items\":[]}" });
 *     AUTO(kubeconfig) *config = fake_api_config(api);
 *     ...
 *     fake_api_wait(api, loop, "GET", "/api/v1/pods?*", 2); // turns the loop until two such requests have come
 *
 * Patterns are shell patterns (fnmatch) for path and query as they were sent (escaped: "labelSelector=a%3Db"); method
 * "*" is any. For a request the first answer with `times` left is taken, in the order they were given; then the newest
 * of those without `times`. What nothing answers gets 404 and a Status. All calls may be made from the test's thread;
 * they abort when something is wrong with the server itself.
 *
 * After fake_api_share_clock() nothing waits: the loop and the server have one virtual clock. A wait lets everything
 * happen that follows from what was done, moves the clock to the next timer of the loop or the next delayed answer, and
 * so on. What a test sees then depends neither on the speed of the machine nor on what else runs on it.
 */
#ifndef TRAINYARD_FAKE_API_SERVER_H
#define TRAINYARD_FAKE_API_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "kube/kubeconfig.h"

struct fake_request {          /* valid until fake_api_free() */
    const char *method, *path; /* path with query */
    const char *headers;       /* lines as sent, each with \r\n */
    const char *body;          /* "" */
    size_t body_len;
    int connection; /* which one brought it, from 0 */
};

struct fake_answer {
    int status;          /* 0: 200 */
    const char *headers; /* more lines, each with \r\n; copied. Content-Type is application/json without */
    const char *body;    /* copied; NULL: "" */
    size_t body_len;     /* 0: strlen(body) */
    int64_t delay_ms;    /* before the first byte, by the shared clock if there is one */
    bool held;           /* not answered before fake_api_release() */
    int times;           /* answers so many requests; 0: any number */
    bool silent;         /* the request is recorded and never answered */
    bool drop;           /* the connection is closed instead of an answer */
    size_t cut;          /* > 0: the connection is closed after so many bytes of the body */
    bool open;           /* a watch: `body` goes out at once, then what fake_api_push() gives, until fake_api_end() */
    /* Instead of body: gives the status and appends the body. In the server's thread, one at a time. */
    int (*handle)(void *user, const struct fake_request *r, struct buf *body);
    void *user;
};

struct fake_api;
struct fake_api *fake_api_new(void);
void fake_api_free(struct fake_api *f);
DEFINE_AUTO(fake_api, fake_api_free);
const char *fake_api_url(const struct fake_api *f); /* "http://127.0.0.1:PORT" */
/* A configuration for it, namespace "default", with the bearer token when it is not NULL. Free it after its clients. */
struct kubeconfig *fake_api_config(const struct fake_api *f, const char *token);

/* Before clients are made with the loop. The clock begins at clock_ms(). Several servers may share it. */
void fake_api_share_clock(struct fake_api *f, struct loop *l);
void fake_clock(struct loop *l); /* for a loop without a server */

void fake_api_on(struct fake_api *f, const char *method, const char *pattern, const struct fake_answer *a);
void fake_api_forget(struct fake_api *f); /* all answers given so far (streams stay open) */
/* Answers the requests whose answers are held; those answers are no longer held for later requests either. */
void fake_api_release(struct fake_api *f);

/* Requests that came so far and match. */
size_t fake_api_count(struct fake_api *f, const char *method, const char *pattern);
/* The i-th of them, from 0; false when it did not come (yet). */
bool fake_api_request(struct fake_api *f, const char *method, const char *pattern, size_t i, struct fake_request *ret);
/* The value of a header of a request, "" when it has none. out: at least 256 bytes. */
const char *fake_header(const struct fake_request *r, const char *name, char out[256]);

/* Writes to all open answers whose request matches and gives their number. A line of a watch ends with \n. */
size_t fake_api_push(struct fake_api *f, const char *pattern, const char *text);
size_t fake_api_end(struct fake_api *f, const char *pattern);     /* ends them as a server does */
size_t fake_api_break(struct fake_api *f, const char *pattern);   /* closes their connections */
size_t fake_api_streams(struct fake_api *f, const char *pattern); /* open now */

void fake_api_freeze(struct fake_api *f, bool frozen);  /* as SIGSTOP: connections stay, nothing is read nor written */
void fake_api_refuse(struct fake_api *f, bool refused); /* as a server that is down: closes all, accepts none */
int fake_api_connections(struct fake_api *f);           /* accepted so far */

/* Lets everything happen that does not need time to pass; then lets ms pass. With a shared clock only. */
void fake_settle(struct loop *l);
void fake_pass(struct loop *l, int64_t ms);
/* Turns the loop until n requests match, or `ready` says yes; aborts with what came after 20 s, with a shared clock
 * after an hour of it. */
void fake_api_wait(struct fake_api *f, struct loop *l, const char *method, const char *pattern, size_t n);
void fake_until(struct loop *l, bool (*ready)(void *user), void *user);

#endif
