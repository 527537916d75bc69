/* bench_tls - credentials for benchmarks: plain text, or identities of one job in a folder that is removed at the end.
 * bench_tls_make is called before the server process is forked off, bench_credentials in each process. */
#ifndef TRAINYARD_BENCH_TLS_H
#define TRAINYARD_BENCH_TLS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "identity/tls_dir.h"
#include "rpc/rpc.h"

static char bench_tls_dir[64]; /* "": plain text */

static inline void bench_tls_must(int rc, const struct err *e)
{
    if (rc < 0) {
        fprintf(stderr, "certificates: %s\n", e->msg);
        exit(1);
    }
}

static inline void bench_tls_remove(void)
{
    auto_free char *command = xasprintf("rm -rf '%s'", bench_tls_dir);
    if (bench_tls_dir[0] != '\0' && system(command) != 0)
        fprintf(stderr, "certificates: cannot remove %s\n", bench_tls_dir);
}

static inline void bench_tls_make(void)
{
    struct err e;
    static const struct {
        int role, index;
    } MEMBERS[] = { { ROLE_PS, 0 },     { ROLE_CHIEF, 0 },  { ROLE_WORKER, 0 },
                    { ROLE_WORKER, 1 }, { ROLE_WORKER, 2 }, { ROLE_WORKER, 3 } };
    int64_t now = (int64_t)clock_wall();
    AUTO(ca) *ca = NULL;
    str_fmt(bench_tls_dir, sizeof(bench_tls_dir), "/tmp/trainyard-bench-XXXXXX");
    if (mkdtemp(bench_tls_dir) == NULL)
        exit(1);
    bench_tls_must(ca_new("local", "bench", now, &ca, &e), &e);
    for (size_t i = 0; i < COUNT_OF(MEMBERS); i++) {
        char name[IDENTITY_NAME_SIZE];
        AUTO_FINI(leaf) leaf = { 0 };
        auto_free char *dir =
            path_join(bench_tls_dir,
                      identity_name(&(struct identity){ .role = MEMBERS[i].role, .index = MEMBERS[i].index }, name));
        bench_tls_must(ca_issue(ca, MEMBERS[i].role, MEMBERS[i].index, now, 24 * 3600, &leaf, &e), &e);
        bench_tls_must(tls_dir_write(dir, ca_pem(ca), &leaf, &e), &e);
    }
}

/* Kept until the process ends. */
static inline struct rpc_credentials bench_credentials(const char *name)
{
    struct err e;
    struct rpc_tls *tls = NULL;
    if (bench_tls_dir[0] == '\0')
        return RPC_INSECURE;
    auto_free char *dir = path_join(bench_tls_dir, name);
    bench_tls_must(rpc_tls_new(dir, &tls, &e), &e);
    return (struct rpc_credentials){ .security = RPC_TLS, .tls = tls };
}

#endif
