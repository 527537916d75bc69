/* The I/O half of `trainyard run`: one poll(2) loop starts processes, reads their lines, polls the chief's /progress
 * and reports exits to the supervisor, which decides (supervise.c). The kernel kills the replicas if this process dies.
 */
#include "launcher.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/stop.h"
#include "command_line.h"
#include "console.h"
#include "http_get.h"
#include "local_identity.h"
#include "ports.h"
#include "progress_bar.h"
#include "subprocess.h"
#include "supervise.h"

/* After the chief's end the work of a worker or ps no longer matters; most exit with it. */
enum { END_GRACE_MS = 2000 };
/* REPLICA_FILES is above what a replica checks itself (cluster_files), so that no run begins whose replicas end. */
enum { FILES_NEEDED = 16, REPLICA_FILES = 48 };
enum { ASK_MS = 200, ASK_TIMEOUT_MS = 2000, STOPPING_POLL_MS = 100, LAST_WORDS_MAX = 400, RENEW_MS = 10000 };

struct process { /* the process of the supervisor's replica i */
    struct subprocess subprocess;
    int http_port, https_port; /* https_port 0: it has no identity */
    char last_error[LAST_WORDS_MAX];
};

struct launcher {
    const struct launch *launch;
    struct supervisor *supervisor;
    struct process *processes;
    size_t n, chief;
    struct cluster cluster; /* empty in single-machine mode */
    char *programs[2];      /* for ps, for all others */
    struct console console;
    int child_events; /* signalfd of SIGCHLD */
    int seen_stops;
    struct http_get get;
    int64_t poll_at;
    struct job_progress progress;
    bool has_progress;
    struct progress_rate rate;
    struct local_identity *identity; /* NULL: no peers, or --insecure */
    int64_t renew_at;
    struct ports ports; /* of all replicas, 3 each: gRPC, HTTP, HTTPS */
};

/* ---- what the supervisor asks for ---- */

/* *ret: the folder of the replica's identity, NULL where there is none. */
static int give_identity(const struct launcher *l, const struct supervised_replica *r, char **ret, struct err *e)
{
    *ret = NULL;
    if (l->identity == NULL)
        return 0;
    if (local_identity_issue(l->identity, (int)r->role, r->index, (int64_t)clock_wall(), e) < 0)
        return -1;
    *ret = local_identity_folder(l->identity, (int)r->role, r->index);
    return 0;
}

static int start_replica(void *user, size_t i, struct err *e)
{
    struct launcher *l = user;
    const struct supervised_replica *r = supervisor_replica(l->supervisor, i);
    AUTO_FINI(strlist) argv = { 0 }, env = { 0 };
    auto_free char *tls_dir = NULL;

    l->processes[i].last_error[0] = '\0';
    if (give_identity(l, r, &tls_dir, e) < 0)
        return -1;
    const struct replica_endpoint pages = { .http_port = l->processes[i].http_port,
                                            .https_port = l->processes[i].https_port,
                                            .tls_dir = tls_dir };
    command_arguments(l->launch, l->programs[r->role == ROLE_PS ? 0 : 1], &pages, &argv);
    command_environment(l->launch->uid, &l->cluster, r->role, r->index, &env);
    return subprocess_start(&l->processes[i].subprocess, argv.items, env.items, e);
}

static void signal_replica(void *user, size_t i, int signal)
{
    const struct launcher *l = user;
    subprocess_signal(&l->processes[i].subprocess, signal);
}

static void log_line(void *user, enum log_level level, const char *text)
{
    struct launcher *l = user;
    console_log(&l->console, level, text);
}

/* ---- lines of the replicas ---- */

struct line_user {
    struct launcher *l;
    size_t i;
};

/* The message of a line that reports an error, used as the reason of a failed job. */
static void note_error(struct process *p, bool json, const char *text)
{
    if (!json && str_starts(text, "error: ")) {
        str_fmt(p->last_error, LAST_WORDS_MAX, "%s", text + strlen("error: "));
    } else if (json && strstr(text, "\"level\":\"error\"") != NULL) {
        json_auto_t *v = NULL;
        if (json_parse(text, strlen(text), "log", &v, NULL) == 0 && json_is_string(json_object_get(v, "msg")))
            str_fmt(p->last_error, LAST_WORDS_MAX, "%s", json_string_value(json_object_get(v, "msg")));
    }
}

static void handle_line(void *user, const char *line)
{
    const struct line_user *u = user;
    struct launcher *l = u->l;
    const char *name = supervisor_replica(l->supervisor, u->i)->name;
    const char *text = line;
    size_t n = strlen(name);

    if (text[0] == '[' && strncmp(text + 1, name, n) == 0 && str_starts(text + 1 + n, "] "))
        text += n + 3;
    note_error(&l->processes[u->i], l->console.json, text);
    enum line_kind kind = l->console.terminal && u->i == l->chief ? progress_line_kind(text) : LINE_SHOW;
    if (kind == LINE_SHOW) {
        console_line(&l->console, u->i, name, line);
    } else if (kind == LINE_EPOCH) {
        AUTO_FINI(buf) bar = BUF_INIT;
        console_measure(&l->console);
        progress_epoch_line(text, l->console.width, &bar);
        console_bar_keep(&l->console, bar.data);
        l->has_progress = false; /* earlier answers are outdated */
    }
}

static void read_lines(struct launcher *l, size_t i)
{
    struct line_user user = { .l = l, .i = i };
    subprocess_read(&l->processes[i].subprocess, handle_line, &user);
}

/* ---- progress ---- */

static void draw_bar(struct launcher *l)
{
    AUTO_FINI(buf) bar = BUF_INIT;
    if (supervisor_stopping(l->supervisor) || !l->has_progress) {
        console_bar(&l->console, "");
        return;
    }
    console_measure(&l->console);
    progress_bar(&l->progress, &l->rate, false, l->console.width - 1, &bar);
    console_bar(&l->console, bar.data);
}

static void update_progress(struct launcher *l, const char *body, size_t n, int64_t now)
{
    if (progress_parse(body, n, &l->progress, NULL) < 0)
        return;
    /* a full bar was already drawn from the chief's own line */
    l->has_progress = l->progress.epoch_total == 0 || l->progress.epoch_done < l->progress.epoch_total;
    progress_rate_update(&l->rate, &l->progress, now);
    draw_bar(l);
}

static void ask_progress(struct launcher *l, int64_t now)
{
    const struct process *leader = &l->processes[l->chief];
    if (l->identity == NULL) {
        (void)http_get_start(&l->get, leader->http_port, NULL, "/progress", now, ASK_TIMEOUT_MS);
        return;
    }
    const struct supervised_replica *r = supervisor_replica(l->supervisor, l->chief);
    auto_free char *own = local_identity_folder(l->identity, IDENTITY_LAUNCHER, 0);
    const struct http_get_tls tls = { .dir = own, .role = (int)r->role, .index = r->index };
    (void)http_get_start(&l->get, leader->https_port, &tls, "/progress", now, ASK_TIMEOUT_MS);
}

/* Polls five times per second, and does not wait for an answer. */
static void poll_progress(struct launcher *l, int64_t now)
{
    const char *body;
    size_t n;

    if (!l->console.terminal)
        return;
    if (l->get.fd >= 0) {
        if (http_get_step(&l->get, now, &body, &n) == HTTP_GET_DONE)
            update_progress(l, body, n, now);
    } else if (now >= l->poll_at && !supervisor_stopping(l->supervisor)) {
        l->poll_at = now + ASK_MS;
        ask_progress(l, now);
    }
}

/* ---- certificates ---- */

/* Replicas read the files again when they change. */
static void renew_certificates(struct launcher *l, int64_t now)
{
    struct err e = { 0 };
    if (l->identity == NULL || now < l->renew_at)
        return;
    l->renew_at = now + RENEW_MS;
    if (local_identity_renew(l->identity, (int64_t)clock_wall(), &e) < 0)
        console_log(&l->console, LOG_ERROR, e.msg);
}

static int make_identity(struct launcher *l, struct err *e)
{
    int64_t now_s = (int64_t)clock_wall();
    if (local_identity_new(l->launch->tls_dir, now_s, LEAF_SECONDS, &l->identity, e) < 0)
        return -1;
    if (l->launch->tls_dir != NULL)
        local_identity_keep(l->identity);
    return local_identity_issue(l->identity, IDENTITY_LAUNCHER, 0, now_s, e);
}

/* ---- the loop ---- */

static void reap(struct launcher *l, int64_t now)
{
    struct signalfd_siginfo info;
    while (read(l->child_events, &info, sizeof(info)) == (ssize_t)sizeof(info))
        ; /* one signal may report several exits, so every child is checked below */
    for (size_t i = 0; i < l->n; i++) {
        int code;
        if (!subprocess_ended(&l->processes[i].subprocess, &code))
            continue;
        read_lines(l, i);
        supervisor_exited(l->supervisor, i, code, l->processes[i].last_error, now);
        draw_bar(l);
    }
}

static int wait_ms(const struct launcher *l, int64_t now)
{
    int64_t next = supervisor_next(l->supervisor);
    if (l->console.terminal)
        next = MIN(next, l->get.fd >= 0 ? l->get.deadline : l->poll_at);
    if (l->identity != NULL)
        next = MIN(next, l->renew_at);
    if (l->seen_stops > 0) /* the stop descriptor stays readable and is no longer polled */
        next = MIN(next, now + STOPPING_POLL_MS);
    int64_t ms = next - now;
    return next == INT64_MAX || ms > 60000 ? 60000 : ms < 0 ? 0 : (int)ms;
}

static void wait_for_events(struct launcher *l, struct pollfd *fds)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) /* poll(2) ignores -1 */
        fds[n++] = (struct pollfd){ .fd = l->processes[i].subprocess.out, .events = POLLIN };
    fds[n++] = (struct pollfd){ .fd = l->child_events, .events = POLLIN };
    fds[n++] = (struct pollfd){ .fd = l->seen_stops == 0 ? stop_fd() : -1, .events = POLLIN };
    fds[n++] = http_get_poll(&l->get);
    if (poll(fds, n, wait_ms(l, clock_ms())) <= 0)
        return;
    for (size_t i = 0; i < l->n; i++)
        if (fds[i].revents != 0)
            read_lines(l, i);
}

static void event_loop(struct launcher *l)
{
    auto_free struct pollfd *fds = xcalloc(l->n + 3, sizeof(fds[0]));

    while (!supervisor_over(l->supervisor)) {
        supervisor_tick(l->supervisor, clock_ms());
        if (supervisor_over(l->supervisor))
            break;
        wait_for_events(l, fds);
        int64_t now = clock_ms();
        if (stop_count() != l->seen_stops) {
            l->seen_stops = stop_count();
            console_bar(&l->console, "");
            supervisor_stop(l->supervisor, l->seen_stops, now);
        }
        reap(l, now);
        renew_certificates(l, now);
        poll_progress(l, now);
    }
    console_bar(&l->console, "");
}

/* ---- setting up ---- */

static bool has_role(const struct job *job, enum role role)
{
    return job->replicas[role].present && job->replicas[role].count > 0;
}

static size_t replicas_of(const struct job *job)
{
    size_t n = 0;
    for (enum role role = ROLE_PS; role < ROLE_COUNT; role++)
        n += job->replicas[role].present ? (size_t)job->replicas[role].count : 0;
    return n;
}

static void add_replicas(struct launcher *l, const struct job *job)
{
    /* the order of TFJob's success rule: the chief decides, or worker 0 without a chief */
    bool chief = has_role(job, ROLE_CHIEF);
    for (enum role role = ROLE_PS; role < ROLE_COUNT; role++) {
        int count = job->replicas[role].present ? job->replicas[role].count : 0;
        for (int i = 0; i < count; i++) {
            bool decides = i == 0 && role == (chief ? ROLE_CHIEF : ROLE_WORKER);
            if (decides)
                l->chief = supervisor_count(l->supervisor);
            supervisor_add(l->supervisor, role, i, NULL, job->replicas[role].restart, decides);
        }
    }
    if (supervisor_count(l->supervisor) == 0) /* single-machine training, as its process is named in logs */
        supervisor_add(l->supervisor, ROLE_WORKER, 0, "local", RESTART_EXIT_CODE, true);
}

static void fill_cluster(struct launcher *l)
{
    l->cluster.configured = true;
    for (size_t i = 0; i < l->n; i++) {
        char address[32];
        str_fmt(address, sizeof(address), "127.0.0.1:%d", l->ports.number[i]);
        strlist_add(&l->cluster.hosts[supervisor_replica(l->supervisor, i)->role], address);
    }
}

static int find_programs(const struct job *job, char *ret[2], struct err *e)
{
    if (subprocess_find_program("trainyard-worker", &ret[1], e) < 0)
        return -1;
    return has_role(job, ROLE_PS) ? subprocess_find_program("trainyard-ps", &ret[0], e) : 0;
}

/* Each replica has three ports and a pipe here. It inherits the limit, and needs a connection with each of the others.
 */
static size_t launcher_files(const struct job *job)
{
    size_t n = MAX(replicas_of(job), (size_t)1);
    size_t connections = job->strategy.name == STRATEGY_MULTI_WORKER_MIRRORED ? 2 * n : n; /* in both directions */
    return MAX(FILES_NEEDED + 4 * n, REPLICA_FILES + connections);
}

static int check_replicas(const struct job *job, struct err *e)
{
    char *programs[2] = { NULL };
    int rc = find_programs(job, programs, e);
    free(programs[0]);
    free(programs[1]);
    if (rc == 0 && replicas_of(job) > 0 && !has_role(job, ROLE_CHIEF) && !has_role(job, ROLE_WORKER))
        return err_set(e, ERR_INPUT, "%s: replicaSpecs has neither a Chief nor a Worker, so no replica would train",
                       job->file);
    return rc;
}

int launcher_check(const struct job *job, struct err *e)
{
    return file_check_limit(launcher_files(job), e) < 0 ? -1 : check_replicas(job, e);
}

static int set_up_replicas(struct launcher *l, const struct job *job, struct err *e)
{
    size_t configured = replicas_of(job);

    if (check_replicas(job, e) < 0 || find_programs(job, l->programs, e) < 0)
        return -1;
    add_replicas(l, job);
    l->n = supervisor_count(l->supervisor);
    l->processes = xcalloc(l->n, sizeof(l->processes[0]));
    for (size_t i = 0; i < l->n; i++)
        l->processes[i].subprocess = (struct subprocess)SUBPROCESS_INIT;

    bool identity = configured > 0 && !l->launch->insecure; /* a training without peers needs none */
    if (ports_reserve(&l->ports, 3 * l->n, hash64_mix((uint64_t)clock_ns(), (uint64_t)getpid()), e) < 0)
        return -1;
    for (size_t i = 0; i < l->n; i++) {
        l->processes[i].http_port = l->ports.number[l->n + i];
        l->processes[i].https_port = identity ? l->ports.number[2 * l->n + i] : 0;
    }
    if (configured > 0)
        fill_cluster(l);
    return identity ? make_identity(l, e) : 0;
}

static int watch_children(struct launcher *l, struct err *e)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    l->child_events = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return l->child_events < 0 ? err_errno(e, ERR_IO, "signalfd") : 0;
}

static int64_t ms_of(double seconds)
{
    return (int64_t)(MIN(seconds, 1e9) * 1000);
}

static struct supervisor_config supervisor_config_of(const struct job *job)
{
    bool evaluator = has_role(job, ROLE_EVALUATOR);
    return (struct supervisor_config){
        .backoff_limit = job->run_policy.backoff_limit,
        .restart_all = job->run_policy.restart_scope == SCOPE_JOB,
        .active_deadline_ms = ms_of((double)job->run_policy.active_deadline_seconds),
        .stop_grace_ms = ms_of(job->limits.stop_grace_seconds),
        .end_grace_ms = END_GRACE_MS + (evaluator ? ms_of(job->limits.evaluation_grace_seconds) : 0),
    };
}

static void launcher_fini(struct launcher *l)
{
    for (size_t i = 0; i < l->n && l->processes != NULL; i++)
        subprocess_fini(&l->processes[i].subprocess);
    free(l->processes);
    free(l->programs[0]);
    free(l->programs[1]);
    supervisor_free(l->supervisor);
    cluster_fini(&l->cluster);
    console_fini(&l->console);
    local_identity_free(l->identity);
    ports_fini(&l->ports);
    http_get_fini(&l->get);
    fd_close(l->child_events);
}
DEFINE_AUTO_FINI(launcher, launcher_fini);

int launcher_run(const struct launch *launch, struct launch_end *ret, struct err *e)
{
    static const struct supervisor_ops OPS = { .start = start_replica, .signal = signal_replica, .log = log_line };
    AUTO_FINI(launcher) l = { .launch = launch, .child_events = -1, .get = HTTP_GET_INIT };
    struct supervisor_config config = supervisor_config_of(launch->job);

    l.console = console_open(launch->json);
    l.supervisor = supervisor_new(&config, &OPS, &l, clock_ms());
    if (set_up_replicas(&l, launch->job, e) < 0 || watch_children(&l, e) < 0)
        return -1;
    event_loop(&l);
    ret->exit_code = supervisor_exit_code(l.supervisor);
    str_fmt(ret->reason, sizeof(ret->reason), "%s", supervisor_reason(l.supervisor));
    return 0;
}
