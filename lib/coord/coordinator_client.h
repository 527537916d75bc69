/* coordinator_client - what a worker says to the chief and hears from it, as plain values, and the table of operations
 * by which it travels: over gRPC (coordinator_client_new_grpc) or straight into a coordinator of this process
 * (coordinator_client_new_local).
 *
 * One struct serves all calls; `kind` says which fields count (lib/rpc/coordinator.proto has them by message).
 */
#ifndef TRAINYARD_COORD_COORDINATOR_CLIENT_H
#define TRAINYARD_COORD_COORDINATOR_CLIENT_H

#include "coord/ledger.h"
#include "data/dataset.h"

enum coord_kind {
    COORD_REGISTER,
    COORD_HEARTBEAT,
    COORD_LEASE,
    COORD_LEAVE,
    COORD_EVALUATION,
    COORD_STOP,
    COORD_KINDS
};
enum job_state { JOB_STARTING, JOB_TRAINING, JOB_FINISHED, JOB_STOPPING };

/* What a request may hold at most: far above what a worker sends (coord/chief_client.c), and little work under the
 * lock. */
enum {
    COORD_HELD_MAX = 128,       /* values: two for each range */
    COORD_REPORT_MAX = 1 << 16, /* ordinals */
    COORD_INDEX_MAX = 1 << 20,
    COORD_NAME_MAX = 63, /* of the sender: letters, digits, '-', '_' and '.' */
    COORD_TEXT_MAX = 1000,
    COORD_MEMBERS_MAX = 20000, /* of a job; those that left count until others take their places */
};

struct coord_report {
    const int64_t *ordinals; /* computed and applied since the last report */
    size_t n;
    const double *sums; /* n * metrics_width */
    size_t nsums;
    uint64_t compute_ns, network_ns, data_ns, wait_ns, steps, staleness_sum;
};

struct coord_request {
    enum coord_kind kind;
    const char *job_uid, *sender; /* uid "": not known yet (REGISTER only) */
    uint64_t generation, incarnation;
    struct ordinal_ranges held; /* REGISTER HEARTBEAT LEASE: what it still works on */
    struct coord_report report; /* HEARTBEAT LEASE LEAVE */
    enum role role;             /* REGISTER */
    int index;
    struct ordinal_space space;
    uint32_t shuffle_version;
    uint64_t layout_hash;
    uint32_t ps_count;
    const char *address;
    int64_t want;  /* LEASE: ordinals */
    bool diverged; /* HEARTBEAT: the loss or a gradient is not finite */
    int64_t diverged_ordinal;
    const char *text;         /* HEARTBEAT: what it waits for; LEAVE, STOP: the reason */
    int64_t step;             /* EVALUATION: checkpoint's step */
    bool announce;            /* EVALUATION: begins to read that checkpoint */
    const char *const *names; /* EVALUATION: results */
    const double *values;
    size_t nvalues;
};

struct coord_reply {
    uint64_t generation, chief_incarnation;
    enum job_state state;
    char message[240]; /* what is waited for */
    char job_uid[64];
    uint32_t wait_ms, heartbeat_ms, valid_ms;
    int64_t first, count; /* LEASE: ordinals [first, first + count) */
};

struct coordinator_client;
struct coordinator;
struct coordinator_client *coordinator_client_new_grpc(const char *chief_address);
struct coordinator_client *coordinator_client_new_local(struct coordinator *c); /* borrowed */
void coordinator_client_free(struct coordinator_client *c);
DEFINE_AUTO(coordinator_client, coordinator_client_free);
/* Blocks for at most deadline_ms. Errors: ERR_REFUSED (this worker will never be accepted: says why), ERR_FENCED
 * (sender was replaced by a newer process), ERR_LOST/ERR_TIMEOUT (no chief there). Thread-safe. */
MUST_USE int coord_call(struct coordinator_client *c, const struct coord_request *q, int64_t deadline_ms,
                        struct coord_reply *ret, struct err *e);

#endif
