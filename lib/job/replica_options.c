/* The end of ps and worker: the error is logged once and written to the termination message, and the exit code follows
 * from it. */
#include "job/replica_options.h"

#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "codec/json.h"

int replica_options_finish(struct replica_options *o, const char *program, const struct strlist *args, struct err *e)
{
    if (args->n > 0)
        return err_set(e, ERR_INPUT, "unexpected argument '%s': %s takes only flags", args->items[0], program);
    if (o->https_port != 0 && o->tls_dir == NULL)
        return err_set(e, ERR_INPUT,
                       "--https-port needs an identity: give --tls-dir (`trainyard certs` makes the folder)");
    if (o->metrics_tls && o->https_port == 0)
        return err_set(e, ERR_INPUT, "--metrics-tls needs a port for TLS: give --https-port");
    return log_level_parse(o->log_level, &o->level, e) < 0 || log_format_parse(o->log_format, &o->format, e) < 0 ? -1
                                                                                                                 : 0;
}

/* The file belongs to the container runtime and is mounted into the pod: it cannot be replaced, only written to. */
void termination_write(const char *path, const char *text)
{
    struct err e = { .code = ERR_NONE };

    if (path == NULL || *path == '\0')
        return;
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if ((fd < 0 ? file_error(path, &e) : fd_write(fd, text, strnlen(text, TERMINATION_MAX), &e)) < 0)
        log_debug("termination log: %s", e.msg);
}

/* The member whose text is longest; NULL of an empty object. */
static const char *largest(json_t *object)
{
    AUTO_FINI(buf) text = BUF_INIT;
    const char *key, *found = NULL;
    size_t most = 0;
    json_t *v;

    json_object_foreach(object, key, v)
    {
        buf_clear(&text);
        buf_str(&text, key);
        json_emit(v, &text);
        if (found == NULL || text.len > most) {
            found = key;
            most = text.len;
        }
    }
    return found;
}

void termination_write_json(const char *path, const char *json)
{
    AUTO_FINI(buf) text = BUF_INIT;
    json_auto_t *v = NULL;

    if (path == NULL || json_parse(json, strlen(json), "termination log", &v, NULL) < 0 || !json_is_object(v))
        return;
    for (json_emit(v, &text); text.len > TERMINATION_MAX; json_emit(v, &text)) {
        json_object_del(v, largest(v));
        buf_clear(&text);
    }
    termination_write(path, text.data);
}

static void write_error(const char *path, const struct err *e)
{
    auto_free char *line = xasprintf("error: %s", e->msg);

    for (char *c = line; *c != '\0'; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    termination_write(path, line);
}

int replica_end(const struct replica_options *o, const struct err *e)
{
    const char *path = o != NULL ? o->termination_log : getenv("TRAINYARD_TERMINATION_LOG");

    if (e == NULL || e->code == ERR_NONE)
        return 0;
    if (err_is(e, ERR_STOPPED)) {
        log_info("%s", e->msg);
    } else {
        log_error("%s", e->msg);
        write_error(path, e);
    }
    return err_exit_code(e);
}
