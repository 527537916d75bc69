/* trainyard wait: sleeps, so that one can `kubectl exec` into a pod of the image (docs/operating.md). */
#include <poll.h>

#include "base/clock.h"
#include "base/opt.h"
#include "base/stop.h"
#include "cli.h"

int wait_command(int argc, char **argv, int *ret_exit UNUSED, struct err *e)
{
    static const struct opt_program PROGRAM = {
        .name = "trainyard wait",
        .usage = "[flags]",
        .about = "Sleeps for some time, or until it is stopped. Use it in a pod that mounts a volume, to inspect it "
                 "with `kubectl exec POD -- trainyard show checkpoint /logs`: the image has no shell.",
    };
    AUTO_FINI(strlist) args = { 0 };
    int64_t seconds = 600;
    enum opt_result result;
    const struct opt opts[] = {
        OPT_INT("seconds", NULL, "N", &seconds, 1, 1000000, "how long (default 600)"),
        OPT_END,
    };

    if (opt_parse(&PROGRAM, opts, argc, argv, &args, &result, e) < 0 || result == OPT_DONE)
        return result == OPT_DONE ? 0 : -1;
    if (cli_arguments(&PROGRAM, &args, 0, 0, e) < 0 || stop_install(e) < 0)
        return -1;
    struct pollfd stopped = { .fd = stop_fd(), .events = POLLIN };
    for (int64_t until = clock_ms() + seconds * 1000, left; (left = until - clock_ms()) > 0 && stop_count() == 0;)
        poll(&stopped, 1, (int)MIN(left, 60000));
    return 0;
}
