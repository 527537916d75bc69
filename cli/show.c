/* trainyard show THING: the table of things, and the small ones (model, cluster). */
#include <string.h>

#include "base/file.h"
#include "cli.h"
#include "data/job_learn.h"
#include "graph_svg.h"
#include "job/cluster.h"
#include "nn/model_outline.h"

enum { MODEL_FILE_MAX = 64 << 20 };

static const struct command THINGS[] = {
    { "checkpoint", show_checkpoint_command, "tensors of a checkpoint: names, types, shapes, values" },
    { "data", show_data_command, "examples of a manifest's data: counts, ranges, missing values, classes, images" },
    { "events", show_events_command, "content of TensorBoard event files; --plot draws curves" },
    { "model", show_model_command, "layers and parameters of a manifest's model, or of Keras JSON" },
    { "cluster", show_cluster_command, "what TF_CONFIG or JOB_NAME, PS_HOSTS, ... resolve to" },
};

static const struct command_help HELP = {
    .program = { .name = "trainyard show",
                 .usage = "THING [flags] [arguments]",
                 .about = "Shows files of a run.",
                 .epilog = "`trainyard show THING --help` shows details." },
    .title = "Things",
    .table = THINGS,
    .n = COUNT_OF(THINGS),
};

int show_command(int argc, char **argv, int *ret_exit, struct err *e)
{
    const struct command *thing;

    AUTO_FINI(buf) help = BUF_INIT;
    *ret_exit = argc < 2 ? 2 : 0;
    if (command_help(&HELP, argc < 2 ? "--help" : argv[1], &help))
        return cli_print(&help, e);
    if (command_find(THINGS, COUNT_OF(THINGS), "thing to show", argv[1], &thing, e) < 0)
        return -1;
    return thing->run(argc - 1, argv + 1, ret_exit, e);
}

/* Keras's own file (Model.to_json()) instead of a manifest? */
static bool is_keras_json(const char *path)
{
    AUTO_FINI(buf) text = BUF_INIT;
    json_auto_t *v = NULL;
    return file_read(path, MODEL_FILE_MAX, &text, NULL) == 0 && json_parse(text.data, text.len, path, &v, NULL) == 0 &&
           json_object_get(v, "class_name") != NULL;
}

static int load_model(const char *path, const char *data_dir, struct model **ret, struct err *e)
{
    AUTO(job) *job = NULL;
    auto_free char *beside = path_dir(path);

    if (is_keras_json(path)) {
        const char *slash = strrchr(path, '/');
        json_auto_t *v = json_pack("{s:s}", "kerasFile", slash != NULL ? slash + 1 : path);
        struct node model = node_root(v, NULL);
        return model_build(&model, NULL, beside, ret, e);
    }
    if (job_load(path, &job, e) < 0)
        return -1;
    if (!job->has_model)
        return err_set(e, ERR_INPUT, "%s: job '%s' has no model", job->file, job->name);
    const char *base = data_dir != NULL ? data_dir : beside;
    AUTO_FINI(strlist) notes = { 0 };
    if (job_learns(job) && job_learn(job, NULL, base, NULL, &notes, e) < 0)
        return -1;
    return model_build(&job->model, &job->compile, base, ret, e);
}

/* In the manner of keras.utils.plot_model(). */
static int draw_model(const struct model *m, struct buf *out, struct err *e)
{
    AUTO_FINI(model_outline) o = model_outline_of(m);
    auto_free struct graph_box *boxes = xcalloc(o.nboxes + 1, sizeof(*boxes));
    auto_free struct graph_group *groups = xcalloc(o.ngroups + 1, sizeof(*groups));
    for (size_t i = 0; i < o.nboxes; i++) {
        const struct outline_box *b = &o.boxes[i];
        boxes[i] = (struct graph_box){ .name = b->name,
                                       .class_name = b->class_name,
                                       .in_shape = b->in,
                                       .out_shape = b->out,
                                       .from = b->from,
                                       .nfrom = b->nfrom,
                                       .group = b->group };
    }
    for (size_t i = 0; i < o.ngroups; i++)
        groups[i] = (struct graph_group){ .name = o.groups[i].name,
                                          .class_name = o.groups[i].class_name,
                                          .parent = o.groups[i].parent };
    struct graph_picture picture = {
        .title = model_name(m), .boxes = boxes, .nboxes = o.nboxes, .groups = groups, .ngroups = o.ngroups
    };
    return graph_svg(&picture, out, e);
}

/* - is the standard output. */
static int plot_model(const struct model *m, const char *file, struct buf *out, struct err *e)
{
    AUTO_FINI(buf) svg = BUF_INIT;
    if (str_eq(file, "-"))
        return draw_model(m, out, e);
    if (draw_model(m, &svg, e) < 0 || file_write(file, svg.data, svg.len, e) < 0)
        return -1;
    buf_printf(out, "model '%s' drawn to %s\n", model_name(m), file);
    return 0;
}

int show_model_command(int argc, char **argv, int *ret_exit UNUSED, struct err *e)
{
    static const struct opt_program PROGRAM = {
        .name = "trainyard show model",
        .usage = "[flags] FILE",
        .about = "Prints the model of a TrainJob manifest, or of a file with Keras's Model.to_json(), as "
                 "model.summary() does. With --plot it draws the layers, as plot_model() does.",
    };
    AUTO_FINI(strlist) args = { 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    AUTO(model) *model = NULL;
    enum opt_result result;
    bool json = false;
    const char *data_dir = NULL, *plot = NULL;
    const struct opt opts[] = {
        OPT_BOOL("json", &json, "Keras's Model.to_json() instead"),
        OPT_STR("plot", NULL, "FILE", &plot, "draw the layers into this SVG file, - for standard output"),
        OPT_STR("data-dir", NULL, "DIR", &data_dir, "folder of a kerasFile (default: the manifest's folder)"),
        OPT_END,
    };

    if (opt_parse(&PROGRAM, opts, argc, argv, &args, &result, e) < 0)
        return -1;
    if (result == OPT_DONE)
        return 0;
    if (cli_arguments(&PROGRAM, &args, 1, 1, e) < 0 || load_model(args.items[0], data_dir, &model, e) < 0)
        return -1;
    if (plot != NULL && json)
        return err_set(e, ERR_INPUT, "--json and --plot exclude each other");
    if (plot != NULL) {
        if (plot_model(model, plot, &text, e) < 0)
            return -1;
        if (!str_eq(plot, "-")) {
            cli_note(&text);
            return 0;
        }
    } else if (json) {
        json_auto_t *v = model_to_json(model);
        json_emit_pretty(v, &text);
    } else {
        model_summary(model, &text);
    }
    return cli_print(&text, e);
}

static void describe_cluster(const struct cluster *c, struct buf *out)
{
    char name[64];

    if (!c->configured) {
        buf_str(out, "no cluster is configured: Running single-machine training\n");
        return;
    }
    const char *chief = cluster_chief_address(c);
    buf_printf(out, "this task   %s%s\n", cluster_task_name(c, name), cluster_is_chief(c) ? " (hosts the chief)" : "");
    buf_printf(out, "chief at    %s\n", chief != NULL ? chief : "none: the cluster has neither a chief nor a worker 0");
    for (enum role r = ROLE_PS; r < ROLE_COUNT; r++)
        for (size_t i = 0; i < c->hosts[r].n; i++)
            if (c->hosts[r].items[i] != NULL)
                buf_printf(out, "%s-%-*zu%s\n", role_name(r), (int)(11 - strlen(role_name(r))), i,
                           c->hosts[r].items[i]);
}

int show_cluster_command(int argc, char **argv, int *ret_exit UNUSED, struct err *e)
{
    static const struct opt_program PROGRAM = {
        .name = "trainyard show cluster",
        .usage = "[flags]",
        .about = "Prints the task and the peers of a replica that is started here: from these flags, else from the "
                 "environment's JOB_NAME, TASK_INDEX, PS_HOSTS, WORKER_HOSTS, CHIEF_HOST, else from TF_CONFIG.",
    };
    struct cluster_input flags = { 0 }, env = cluster_env();
    AUTO_FINI(cluster) cluster = { 0 };
    AUTO_FINI(strlist) args = { 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    enum opt_result result;
    const struct opt opts[] = {
        OPT_STR("tf-config", NULL, "JSON", &flags.tf_config, "as the environment's TF_CONFIG"),
        OPT_STR("job-name", NULL, "ROLE", &flags.job_name, "ps, worker, chief or evaluator"),
        OPT_STR("task-index", NULL, "N", &flags.task_index, "index within the role"),
        OPT_STR("ps-hosts", NULL, "HOST:PORT,...", &flags.ps_hosts, "parameter servers"),
        OPT_STR("worker-hosts", NULL, "HOST:PORT,...", &flags.worker_hosts, "workers"),
        OPT_STR("chief-host", NULL, "HOST:PORT", &flags.chief_host, "chief, when it is not worker 0"),
        OPT_END,
    };

    if (opt_parse(&PROGRAM, opts, argc, argv, &args, &result, e) < 0)
        return -1;
    if (result == OPT_DONE)
        return 0;
    if (cli_arguments(&PROGRAM, &args, 0, 0, e) < 0 || cluster_resolve(&flags, &env, &cluster, e) < 0)
        return -1;
    describe_cluster(&cluster, &text);
    return cli_print(&text, e);
}
