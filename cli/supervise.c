/* The state machine of a local job: start, restart with back-off, orderly stop, end. Exit codes 2 and 3 are final, and
 * the job's exit code is that of the replica that decided it. */
#include "supervise.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include "base/str.h"

enum phase {
    PHASE_RUN,
    PHASE_END, /* the chief exited with 0, the others exit by themselves */
    PHASE_STOP_CHIEF,
    PHASE_STOP_WORKERS,
    PHASE_STOP_PS,
    PHASE_KILL,
    PHASE_OVER
};
enum { STOP_GROUP_MS = 10000, INSIST_MS = 500, KILL_MS = 5000, STOPPED_DELAY_MS = 1000 };

struct supervisor {
    struct supervisor_config config;
    struct supervisor_ops ops;
    void *user;
    struct supervised_replica *replicas;
    size_t n;
    enum phase phase;
    int64_t phase_deadline;
    bool group_killed; /* of this phase */
    int64_t insist_at; /* when the group is stopped again; INT64_MAX: that was done */
    bool user_stop;
    bool again;       /* it stops in order to restart all replicas */
    int64_t again_ms; /* the delay after the end of the last replica */
    int64_t deadline; /* of the job; INT64_MAX: none */
    int64_t restarts;
    int exit_code;
    char reason[ERR_TEXT_MAX];
};

struct supervisor *supervisor_new(const struct supervisor_config *config, const struct supervisor_ops *ops, void *user,
                                  int64_t now)
{
    struct supervisor *s = xcalloc(1, sizeof(*s));
    s->config = *config;
    s->ops = *ops;
    s->user = user;
    s->phase_deadline = s->insist_at = INT64_MAX;
    s->deadline = config->active_deadline_ms > 0 ? now + config->active_deadline_ms : INT64_MAX;
    return s;
}

void supervisor_free(struct supervisor *s)
{
    if (s == NULL)
        return;
    free(s->replicas);
    free(s);
}

void supervisor_add(struct supervisor *s, enum role role, int index, const char *name, enum restart_policy policy,
                    bool decides)
{
    s->replicas = xrealloc(s->replicas, (s->n + 1) * sizeof(s->replicas[0]));
    struct supervised_replica *r = &s->replicas[s->n++];
    *r = (struct supervised_replica){
        .role = role, .index = index, .policy = policy, .decides = decides, .delay_ms = RESTART_DELAY_MS
    };
    if (name != NULL)
        str_fmt(r->name, sizeof(r->name), "%s", name);
    else
        str_fmt(r->name, sizeof(r->name), "%s-%d", role_name(role), index);
}

size_t supervisor_count(const struct supervisor *s)
{
    return s->n;
}

const struct supervised_replica *supervisor_replica(const struct supervisor *s, size_t i)
{
    return &s->replicas[i];
}

static PRINTF_LIKE(3, 4) void log_event(struct supervisor *s, enum log_level level, const char *fmt, ...)
{
    AUTO_FINI(buf) text = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    s->ops.log(s->user, level, text.data);
}

const char *supervise_exit_text(int exit_code, char out[64])
{
    /* 138 and 143 are Trainyard's codes for "peer lost" and "stopped"; a shell reports a signal as another code above
     * 128 */
    if (exit_code == EXIT_RETRY || exit_code == EXIT_STOPPED || exit_code <= 128 || exit_code > 128 + SIGRTMAX)
        str_fmt(out, 64, "ended with exit code %d", exit_code);
    else
        str_fmt(out, 64, "was killed by signal %d (%s)", exit_code - 128, strsignal(exit_code - 128));
    return out;
}

/* ---- phases ---- */

/* An evaluator is not part of a restart of all replicas. */
static bool in_group(const struct supervisor *s, const struct supervised_replica *r, enum phase phase)
{
    if (s->again && r->role == ROLE_EVALUATOR)
        return false;
    switch (phase) {
    case PHASE_STOP_CHIEF:
        return r->decides;
    case PHASE_STOP_WORKERS:
        return !r->decides && r->role != ROLE_PS;
    case PHASE_STOP_PS:
        return !r->decides && r->role == ROLE_PS;
    case PHASE_RUN:
    case PHASE_END:
    case PHASE_KILL:
    case PHASE_OVER:
    default:
        return true;
    }
}

/* The number of running replicas in the phase's group; *ret_names lists them. */
static size_t count_running(const struct supervisor *s, enum phase phase, struct buf *ret_names)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct supervised_replica *r = &s->replicas[i];
        if (r->state != REPLICA_RUNNING || !in_group(s, r, phase))
            continue;
        if (ret_names != NULL)
            buf_printf(ret_names, "%s%s", n > 0 ? ", " : "", r->name);
        n++;
    }
    return n;
}

static void signal_group(struct supervisor *s, int signal)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->replicas[i].state == REPLICA_RUNNING && in_group(s, &s->replicas[i], s->phase))
            s->ops.signal(s->user, i, signal);
}

static int64_t phase_ms(const struct supervisor *s, enum phase phase)
{
    switch (phase) {
    case PHASE_END:
        return s->config.end_grace_ms;
    case PHASE_STOP_CHIEF:
        return s->config.stop_grace_ms;
    case PHASE_STOP_WORKERS:
    case PHASE_STOP_PS:
        return STOP_GROUP_MS;
    case PHASE_KILL:
        return KILL_MS;
    case PHASE_RUN:
    case PHASE_OVER:
    default:
        return 0;
    }
}

static void enter_phase(struct supervisor *s, enum phase phase, int64_t now)
{
    s->phase = phase;
    s->group_killed = false;
    s->phase_deadline = phase == PHASE_OVER ? INT64_MAX : now + phase_ms(s, phase);
    s->insist_at = phase == PHASE_STOP_WORKERS || phase == PHASE_STOP_PS ? now + INSIST_MS : INT64_MAX;
    for (size_t i = 0; i < s->n && !s->again; i++) /* not while the job ends */
        if (s->replicas[i].state == REPLICA_WAITING)
            s->replicas[i].state = REPLICA_ENDED;

    if (phase == PHASE_KILL)
        signal_group(s, SIGKILL);
    else if (phase >= PHASE_STOP_CHIEF && phase <= PHASE_STOP_PS)
        signal_group(s, SIGTERM);
}

/* True if all replicas that are to be restarted together have ended. */
static void start_all(struct supervisor *s, int64_t now)
{
    s->again = false;
    s->phase = PHASE_RUN;
    s->phase_deadline = s->insist_at = INT64_MAX;
    for (size_t i = 0; i < s->n; i++)
        if (s->replicas[i].state == REPLICA_WAITING && s->replicas[i].role != ROLE_EVALUATOR)
            s->replicas[i].start_at = now + s->again_ms;
}

static void set_reason(struct supervisor *s, const char *what, const char *last_words)
{
    str_fmt(s->reason, sizeof(s->reason), "%s%s%s", what, last_words[0] != '\0' ? ": " : "", last_words);
}

/* last_words: of the replica that failed it, which has shown them. */
static void fail_job(struct supervisor *s, int exit_code, int64_t now, const char *what, const char *last_words)
{
    s->exit_code = exit_code;
    s->again = false;
    set_reason(s, what, last_words);
    log_event(s, LOG_ERROR, "%s", what);
    enter_phase(s, PHASE_STOP_CHIEF, now);
}

/* With the word that the operator and a Kubernetes Job have for it. */
static void pass_deadline(struct supervisor *s, int64_t now)
{
    char what[160];
    str_fmt(what, sizeof(what),
            "DeadlineExceeded: the job was active longer than %lld s (runPolicy.activeDeadlineSeconds); the same "
            "command continues it",
            (long long)s->config.active_deadline_ms / 1000);
    fail_job(s, EXIT_DEADLINE, now, what, "");
}

/* Without a chief, workers cannot deregister and no chief saves a ps: a second signal makes them exit at once. */
static void signal_again(struct supervisor *s)
{
    s->insist_at = INT64_MAX;
    signal_group(s, SIGTERM);
}

/* The timeout of a phase has passed. */
static void phase_late(struct supervisor *s, int64_t now)
{
    char text[32];
    AUTO_FINI(buf) names = BUF_INIT;
    count_running(s, s->phase, &names);

    if (s->phase == PHASE_END) {
        log_event(s, LOG_INFO, "stopping %s, still running %s after the end of the job", names.data,
                  str_duration((double)s->config.end_grace_ms / 1000, text));
        enter_phase(s, PHASE_STOP_WORKERS, now);
    } else if (s->phase == PHASE_KILL) {
        log_event(s, LOG_ERROR, "%s cannot be killed", names.data);
        s->exit_code = s->again ? 138 : s->exit_code;
        s->again = false;
        enter_phase(s, PHASE_OVER, now);
    } else if (!s->group_killed) {
        log_event(s, LOG_WARNING, "%s did not stop within %s, killing", names.data,
                  str_duration((double)phase_ms(s, s->phase) / 1000, text));
        s->group_killed = true;
        s->phase_deadline = now + KILL_MS;
        signal_group(s, SIGKILL);
    } else {
        enter_phase(s, PHASE_KILL, now);
    }
}

static void advance_phase(struct supervisor *s, int64_t now)
{
    while (s->phase >= PHASE_STOP_CHIEF && s->phase < PHASE_STOP_PS && count_running(s, s->phase, NULL) == 0)
        enter_phase(s, s->phase + 1, now);
    if (s->phase == PHASE_RUN || s->phase == PHASE_OVER || count_running(s, PHASE_KILL, NULL) > 0)
        return;
    if (s->again)
        start_all(s, now);
    else
        enter_phase(s, PHASE_OVER, now);
}

/* ---- events ---- */

/* The other running replicas are stopped first, in the order of a normal end. */
static void restart_all(struct supervisor *s, int64_t delay_ms, int64_t now)
{
    s->again = true;
    s->again_ms = delay_ms;
    enter_phase(s, PHASE_STOP_CHIEF, now);
}

static void restart(struct supervisor *s, struct supervised_replica *r, int exit_code, int64_t now)
{
    char how[64], delay[32];
    bool all = s->config.restart_all && r->role != ROLE_EVALUATOR;

    if (now - r->started_at >= RESTART_FORGET_MS) /* it had run long enough to reset the back-off */
        r->delay_ms = RESTART_DELAY_MS;
    if (exit_code == EXIT_STOPPED && !r->decides && !all) /* the chief may be ending the job: await its exit */
        r->delay_ms = MAX(r->delay_ms, STOPPED_DELAY_MS);
    s->restarts++;
    r->restarts++;
    r->state = REPLICA_WAITING;
    r->start_at = now + r->delay_ms;
    if (all)
        log_event(s, LOG_WARNING, "%s %s; restarting all replicas (restart %" PRId64 " of at most %" PRId64 ")",
                  r->name, supervise_exit_text(exit_code, how), s->restarts, s->config.backoff_limit);
    else
        log_event(s, LOG_WARNING, "%s %s; restarting it in %s (restart %" PRId64 " of at most %" PRId64 ")", r->name,
                  supervise_exit_text(exit_code, how), str_duration((double)r->delay_ms / 1000, delay), s->restarts,
                  s->config.backoff_limit);
    if (all)
        restart_all(s, r->delay_ms, now);
    r->delay_ms = MIN(r->delay_ms * 2, RESTART_DELAY_MAX_MS);
}

/* Bad input or divergence: a restart would fail in the same way. */
static bool is_final(int exit_code)
{
    return exit_code == EXIT_INPUT || exit_code == EXIT_DIVERGED;
}

static void exited_while_running(struct supervisor *s, struct supervised_replica *r, int exit_code,
                                 const char *last_words, int64_t now)
{
    char how[64];
    AUTO_FINI(buf) what = BUF_INIT;

    if (r->decides && exit_code == 0) {
        enter_phase(s, PHASE_END, now);
        return;
    }
    bool wanted = restart_wanted(r->policy, exit_code) && !is_final(exit_code);
    if (!wanted && exit_code == 0)
        return;
    if (wanted && s->restarts < s->config.backoff_limit) {
        restart(s, r, exit_code, now);
        return;
    }
    buf_printf(&what, "%s %s", r->name, supervise_exit_text(exit_code, how));
    if (wanted)
        buf_printf(&what, ", and the limit of %" PRId64 " restarts is reached (runPolicy.backoffLimit)", s->restarts);
    fail_job(s, exit_code != 0 ? exit_code : 138, now, what.data, wanted ? "" : last_words);
}

/* Handles the exit of a replica that a restart of all stops, or of an evaluator meanwhile. */
static void exited_to_start_again(struct supervisor *s, struct supervised_replica *r, int exit_code,
                                  const char *last_words, int64_t now)
{
    if (r->role == ROLE_EVALUATOR || is_final(exit_code)) {
        exited_while_running(s, r, exit_code, last_words, now);
    } else if (exit_code != 0) {
        r->state = REPLICA_WAITING;
        r->start_at = INT64_MAX;
        r->restarts++;
    } else if (r->decides) { /* it had reached its end */
        s->again = false;
        enter_phase(s, PHASE_END, now);
    }
}

/* The chief ends after a worker that failed the job: in the same way, or the chief had stopped the worker (143). Then
 * the chief knows the cause. A job that the chief had finished is not late, even when that was seen after the deadline.
 */
static void chief_exited_after_failure(struct supervisor *s, const struct supervised_replica *r, int exit_code,
                                       const char *last_words)
{
    char how[64];
    if (s->exit_code == EXIT_DEADLINE && exit_code == 0) {
        s->exit_code = 0;
        s->reason[0] = '\0';
    }
    if (!is_final(exit_code) || (s->exit_code != exit_code && s->exit_code != EXIT_STOPPED) || last_words[0] == '\0')
        return;
    s->exit_code = exit_code;
    auto_free char *what = xasprintf("%s %s", r->name, supervise_exit_text(exit_code, how));
    set_reason(s, what, last_words);
}

void supervisor_exited(struct supervisor *s, size_t i, int exit_code, const char *last_words, int64_t now)
{
    struct supervised_replica *r = &s->replicas[i];

    r->state = REPLICA_ENDED;
    if (s->again)
        exited_to_start_again(s, r, exit_code, last_words, now);
    else if (s->phase == PHASE_RUN)
        exited_while_running(s, r, exit_code, last_words, now);
    else if (s->user_stop && r->decides && s->phase == PHASE_STOP_CHIEF && !s->group_killed)
        s->exit_code = exit_code; /* 143: saved; 0: it had reached its end; else it could not save */
    else if (!s->user_stop && r->decides)
        chief_exited_after_failure(s, r, exit_code, last_words);
    advance_phase(s, now);
}

void supervisor_stop(struct supervisor *s, int count, int64_t now)
{
    char text[32];

    if (s->phase == PHASE_OVER || (s->phase == PHASE_KILL && !s->again))
        return;
    bool again = s->again;
    s->again = false;
    if (count >= 2) {
        log_event(s, LOG_WARNING, "stopping at once");
        enter_phase(s, PHASE_KILL, now);
    } else if (s->phase == PHASE_END) {
        enter_phase(s, PHASE_STOP_WORKERS, now);
    } else if (s->phase == PHASE_RUN || again) {
        AUTO_FINI(buf) names = BUF_INIT;
        s->user_stop = true;
        s->exit_code = EXIT_STOPPED;
        if (count_running(s, PHASE_STOP_CHIEF, &names) > 0)
            log_event(s, LOG_INFO,
                      "stopping: %s saves a checkpoint first (at most %s; press Ctrl-C again to stop at once)",
                      names.data, str_duration((double)s->config.stop_grace_ms / 1000, text));
        enter_phase(s, PHASE_STOP_CHIEF, now);
    }
    advance_phase(s, now);
}

static void start_due(struct supervisor *s, int64_t now)
{
    for (size_t i = 0; i < s->n && s->phase == PHASE_RUN; i++) {
        struct supervised_replica *r = &s->replicas[i];
        if (r->state != REPLICA_WAITING || now < r->start_at)
            continue;
        r->state = REPLICA_RUNNING;
        r->started_at = now;
        struct err e = { 0 };
        if (s->ops.start(s->user, i, &e) < 0) {
            log_event(s, LOG_ERROR, "%s", e.msg);
            supervisor_exited(s, i, err_exit_code(&e), e.msg, now);
        }
    }
}

void supervisor_tick(struct supervisor *s, int64_t now)
{
    if ((s->phase == PHASE_RUN || s->again) && now >= s->deadline)
        pass_deadline(s, now);
    if (s->phase == PHASE_RUN)
        start_due(s, now);
    else if (s->phase != PHASE_OVER && now >= s->phase_deadline)
        phase_late(s, now);
    else if (now >= s->insist_at)
        signal_again(s);
    advance_phase(s, now);
}

int64_t supervisor_next(const struct supervisor *s)
{
    if (s->phase != PHASE_RUN)
        return MIN(MIN(s->phase_deadline, s->insist_at), s->again ? s->deadline : INT64_MAX);
    int64_t next = s->deadline;
    for (size_t i = 0; i < s->n; i++)
        if (s->replicas[i].state == REPLICA_WAITING)
            next = MIN(next, s->replicas[i].start_at);
    return next;
}

bool supervisor_over(const struct supervisor *s)
{
    return s->phase == PHASE_OVER;
}

bool supervisor_stopping(const struct supervisor *s)
{
    return s->phase != PHASE_RUN && !s->again;
}

int supervisor_exit_code(const struct supervisor *s)
{
    return s->exit_code;
}

const char *supervisor_reason(const struct supervisor *s)
{
    return s->reason;
}
