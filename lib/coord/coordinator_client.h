/* coordinator_client - the calls of a worker or evaluator to the chief's coordinator as plain values, one struct for
 * each, and the table of operations that carries them: over gRPC (coordinator_client_new_grpc) or directly to a
 * coordinator of this process (coordinator_client_new_local). lib/rpc/coordinator.proto has them as messages.
 */
#ifndef TRAINYARD_COORD_COORDINATOR_CLIENT_H
#define TRAINYARD_COORD_COORDINATOR_CLIENT_H

#include "coord/ledger.h"
#include "data/dataset.h"

enum job_state { JOB_STARTING, JOB_TRAINING, JOB_FINISHED, JOB_STOPPING };

/* The limits of a request: far above what a worker sends (coord/chief_client.c), and little work under the lock. */
enum {
    COORDINATOR_HELD_MAX = 256,          /* values: two for each range */
    COORDINATOR_HELD_BATCHES = 1 << 16,  /* ordinals in all ranges */
    COORDINATOR_LEASE_RANGES = 15,       /* ranges of a lease beside the first */
    COORDINATOR_REPORT_MAX = 1 << 16,    /* ordinals */
    COORDINATOR_REQUEST_TEXT_MAX = 1000, /* bytes */
    COORDINATOR_MEMBERS_MAX = 20000,     /* of a job; members that left count until others take their places */
};

/* The caller. Every request has one; the coordinator identifies the members of the job by name and incarnation. */
struct coordinator_sender {
    const char *job_uid; /* "": not known yet (register only) */
    const char *name;    /* "worker-3" */
    enum role role;
    uint64_t generation;  /* that it knows */
    uint64_t incarnation; /* of its process */
};

/* What was computed and applied since the last report. */
struct coordinator_report {
    const int64_t *ordinals;
    size_t n;
    const double *sums; /* n * metrics_width */
    size_t nsums;
    uint64_t compute_ns, network_ns, data_ns, wait_ns, steps, staleness_sum;
};

struct register_request {
    struct coordinator_sender sender;
    struct ordinal_ranges held; /* leases of an earlier chief on which it still works */
    struct ordinal_space space;
    uint32_t shuffle_version;
    uint64_t layout_hash;
    uint32_t ps_count;
    uint64_t placement_hash; /* shard/layout.h; of those that train, as ps_count */
    const char *arithmetic;  /* tensor/arithmetic.h, likewise; NULL or "": not known */
    const char *address;     /* where the sender serves its peers (MultiWorkerMirrored); NULL or "": it does not */
};
struct heartbeat_request {
    struct coordinator_sender sender;
    struct coordinator_report report;
    struct ordinal_ranges held;
    const char *waiting_for; /* NULL or "": nothing */
    bool diverged;           /* the loss or a gradient of diverged_ordinal is not finite */
    int64_t diverged_ordinal;
};
struct lease_request {
    struct coordinator_sender sender;
    struct coordinator_report report;
    struct ordinal_ranges held;
    int64_t want;    /* ordinals, at most */
    bool lower_only; /* synchronous training: only ordinals below `below`, for which the worker waits */
    int64_t below;
};
struct leave_request {
    struct coordinator_sender sender;
    struct coordinator_report report;
    const char *reason;
};
struct evaluation_request {
    struct coordinator_sender sender;
    int64_t step;  /* of the checkpoint */
    bool announce; /* the evaluator begins to read that checkpoint: keep it */
    const char *const *names;
    const double *values;
    size_t nvalues;
};
struct stop_job_request { /* save and end the job early */
    struct coordinator_sender sender;
    bool from_launcher; /* its certificate proves it. The launcher is not a member, so it does not register */
    const char *reason;
};

/* The answer to each of them. */
struct coordinator_reply {
    uint64_t generation, chief_incarnation;
    enum job_state state;
    char message[240]; /* what the job waits for */
    char job_uid[128]; /* register: for a worker that did not have it */
    uint32_t heartbeat_ms;
    uint32_t wait_ms;     /* lease: ask again after so long */
    int64_t first, count; /* lease: ordinals [first, first + count) */
    /* lease in synchronous training: further half-open ranges, of the groups that follow */
    int64_t more[2 * COORDINATOR_LEASE_RANGES];
    size_t nmore;       /* values */
    int64_t group_size; /* register: ordinals of a group; 0: updates are asynchronous */
};

struct coordinator_client;
struct coordinator;
struct rpc_credentials;
/* leader: the name of the replica at that address, "chief-0" (rpc_channel_options.peer). */
struct coordinator_client *coordinator_client_new_grpc(const char *chief_address, const char *leader,
                                                       const struct rpc_credentials *credentials);
struct coordinator_client *coordinator_client_new_local(struct coordinator *c); /* borrowed */
void coordinator_client_free(struct coordinator_client *c);
DEFINE_AUTO(coordinator_client, coordinator_client_free);

/* The calls. Each blocks for at most deadline_ms and is thread-safe. Errors: ERR_REFUSED (this worker will never be
 * accepted; the message has the reason), ERR_FENCED (a newer process has taken the sender's name), ERR_NOT_READY
 * (register first), ERR_LOST/ERR_TIMEOUT (no chief there). */
MUST_USE int coordinator_client_register(struct coordinator_client *c, const struct register_request *q,
                                         int64_t deadline_ms, struct coordinator_reply *ret, struct err *e);
MUST_USE int coordinator_client_heartbeat(struct coordinator_client *c, const struct heartbeat_request *q,
                                          int64_t deadline_ms, struct coordinator_reply *ret, struct err *e);
MUST_USE int coordinator_client_lease(struct coordinator_client *c, const struct lease_request *q, int64_t deadline_ms,
                                      struct coordinator_reply *ret, struct err *e);
MUST_USE int coordinator_client_leave(struct coordinator_client *c, const struct leave_request *q, int64_t deadline_ms,
                                      struct coordinator_reply *ret, struct err *e);
MUST_USE int coordinator_client_report_evaluation(struct coordinator_client *c, const struct evaluation_request *q,
                                                  int64_t deadline_ms, struct coordinator_reply *ret, struct err *e);

#endif
