/* The tables of the manifest, from the top down. Names and defaults are design part 5's; those of checkpoint, summaries
 * and the waits are MonitoredTrainingSession's. */
#include "job/fields.h"

#define DEST(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)NULL)->member)
#define ROWS(array)        .rows = (array), .nrows = COUNT_OF(array)
#define NAMES(array)       .names = (array), .nnames = COUNT_OF(array), .nworking = COUNT_OF(array)
#define NO_MAX             INT64_MAX

enum { REPLICAS_MAX = 5000, TOWERS_MAX = 256, BATCH_MAX = 1 << 24, KEEP_MAX = 1000000, EPOCHS_MAX = 1000000000 };
#define STEPS_MAX INT64_C(1000000000000000) /* far from where sums and products with it overflow */

/* ---- model and compile: lib/nn checks their values ---- */

static const struct field MODEL[] = {
    { "name", FIELD_STRING, .fallback_text = "`sequential`", .help = "The model's name." },
    { "inputShape", FIELD_LIST, .type_text = "list of numbers",
      .fallback_text = "with `layers`: that of an example of `data.train`",
      .help = "Shape of one example, without the batch: `[28, 28]`. Required with `layers`, unless they start with an "
              "`InputLayer`; allowed beside `keras` and `kerasFile`, and required if these do not have it." },
    { "layers", FIELD_LIST, .max = MODEL_LAYERS_MAX, .type_text = "list of layers",
      .help =
          "The short form: `- Dense: {units: 128, activation: relu}`. Names and arguments are Keras's. At most 5000." },
    { "keras", FIELD_ANY, .type_text = "map or JSON text",
      .help = "Instead of `layers`: the output of `Model.to_json()` in Keras 2 or 3, of a Sequential or "
              "functional model; at most 5000 layers." },
    { "kerasFile", FIELD_STRING, .type_text = "path",
      .help = "Instead of `layers`: a file with such JSON, relative to the data folder." },
};
static const struct field_table MODEL_FIELDS = {
    "spec.model",
    "The network. Without `model` every replica has its own image, and Trainyard only starts and supervises it.",
    ROWS(MODEL), .check = NULL
};

static const struct field COMPILE[] = {
    { "optimizer", FIELD_ANY, .type_text = "name or map", .fallback_text = "`rmsprop`, as in Keras",
      .help = "`Adam`, or with arguments `{Adam: {learning_rate: 0.001}}`.", .rerun = RERUN_RESUME },
    { "loss", FIELD_ANY, .type_text = "name or map; for several outputs a map or list of them",
      .help = "`sparse_categorical_crossentropy`, or `{SparseCategoricalCrossentropy: {from_logits: true}}`. A model "
              "with several outputs has one for all, or one for each by its name, such as `{price: mse, kind: "
              "sparse_categorical_crossentropy}`. Required, unless a compiled Keras model has it.",
      .rerun = RERUN_FRESH },
    { "lossWeights", FIELD_ANY, .type_text = "map or list of numbers", .fallback_text = "1 for each",
      .help = "Keras's `loss_weights`: what the loss of each output counts in the sum that is minimised.",
      .rerun = RERUN_FRESH },
    { "metrics", FIELD_ANY, .type_text = "list of names or maps; for several outputs a map or list of them",
      .help = "Metrics in addition to the loss. For a model with several outputs those of each, by its name, such as "
              "`{price: mae, kind: [accuracy]}`; they are reported as `price_mae` and `kind_accuracy`.",
      .rerun = RERUN_FRESH },
    { "weightedMetrics", FIELD_ANY, .type_text = "as `metrics`", .rerun = RERUN_FRESH,
      .help = "Keras's `weighted_metrics`: metrics in which examples count by their weight (`fit.classWeight`, "
              "`sampleWeight`). If the name is already used, it becomes `weighted_NAME`." },
};
static const struct field_table COMPILE_FIELDS = {
    "spec.compile",
    "Arguments of Keras's `Model.compile`. As in Keras, fields accept a name or a map. Where a field is absent, the "
    "`compile_config` of a compiled Keras model counts.",
    ROWS(COMPILE),
    .check = NULL,
};

/* ---- data ---- */

static const struct field DATA[] = {
    { "train", FIELD_TABLE, DEST(struct job, train), .table = &DATA_FIELDS, .required = true, .help = "Training data.",
      .rerun = RERUN_REBASE },
    { "validation", FIELD_TABLE, DEST(struct job, validation), .table = &DATA_FIELDS,
      .help = "Validation data: the model is evaluated on it after every epoch and at the end. What describes the "
              "content of "
              "the files, such as `columns`, `label` and `delimiter`, need not be repeated.",
      .rerun = RERUN_RESUME },
};
static const struct field_table DATA_SETS = { "spec.data", "Data sets.", ROWS(DATA), .check = NULL };

/* ---- fit ---- */

static const struct field FIT[] = {
    { "epochs", FIELD_INT, DEST(struct job, fit.epochs), .min = 1, .max = EPOCHS_MAX,
      .help = "Passes over the training data. Exactly one of `epochs` and `steps` is required.",
      .rerun = RERUN_LONGER },
    { "steps", FIELD_INT, DEST(struct job, fit.steps), .min = 1, .max = STEPS_MAX,
      .help = "The global step to stop at (TensorFlow's StopAtStepHook).", .rerun = RERUN_LONGER },
    { "batchSize", FIELD_INT, DEST(struct job, fit.batch_size), .min = 1, .max = BATCH_MAX, .fallback = "32",
      .help = "Examples of one batch; an update of `updates: sync`, `Mirrored` and `MultiWorkerMirrored` has "
              "`replicasToAggregate` batches.",
      .rerun = RERUN_REBASE },
    { "validationBatchSize", FIELD_INT, DEST(struct job, fit.validation_batch_size), .min = 1, .max = BATCH_MAX,
      .fallback_text = "`batchSize`", .help = "Examples in one batch of an evaluation. Does not change its result.",
      .rerun = RERUN_FREE },
    { "validationSplit", FIELD_NUMBER, DEST(struct job, fit.validation_split), .above_min = true, .below_max = true,
      .max = 1,
      .help = "Instead of `data.validation`: Keras's `validation_split`: the last examples of `data.train` in file "
              "order, this fraction of all, are used for evaluation and not for training.",
      .rerun = RERUN_REBASE },
    { "seed", FIELD_INT, DEST(struct job, fit.seed), .min = 0, .max = INT64_MAX - 1, .fallback = "0",
      .help = "Seed of all random numbers: initial values, order of examples, dropout.", .rerun = RERUN_REBASE },
    { "initialWeights", FIELD_STRING, DEST(struct job, fit.initial_weights), .type_text = "path",
      .help = "Initial values of variables: a file or folder, relative to the data folder. Formats: a run's folder, a "
              "TensorFlow checkpoint, safetensors, npz, Keras's `.weights.h5` or `.keras`. Variables are matched by "
              "name; the log lists them. Only values are read, and only if the job has no checkpoint of its own. See "
              "[keras.md](keras.md#initial-weights).",
      .rerun = RERUN_FRESH },
    { "chiefTrains", FIELD_BOOL, DEST(struct job, fit.chief_trains), .fallback = "false",
      .help = "The chief also trains. In a job without workers it always does.", .rerun = RERUN_FREE },
    { "logEverySteps", FIELD_INT, DEST(struct job, fit.log_every_steps), .min = 1, .max = STEPS_MAX, .fallback = "100",
      .help = "Steps between two progress lines in the log.", .rerun = RERUN_FREE },
    { "resume", FIELD_BOOL, DEST(struct job, fit.resume), .fallback = "false", .rerun = RERUN_FREE,
      .help = "Continue the run in the output folder even if it has finished, or with other hyperparameters of the "
              "optimizer (`trainyard run --resume`)." },
    { "rebase", FIELD_BOOL, DEST(struct job, fit.rebase), .fallback = "false", .rerun = RERUN_FREE,
      .help = "Like `resume`, and also with other training data, `batchSize` or `seed`, from the next epoch on "
              "(`trainyard run --rebase`)." },
    { "callbacks", FIELD_LIST, DEST(struct job, callbacks), .type_text = "list of names or maps", .rerun = RERUN_RESUME,
      .help = "Keras's callbacks, at most 16: `- EarlyStopping: {monitor: val_loss, patience: 3, restore_best_weights: "
              "true}`, `ReduceLROnPlateau`, `ModelCheckpoint` (layers.md, Callbacks). Cost: at the end of every epoch "
              "workers wait until all batches are applied and the decision is saved in a checkpoint. If a callback "
              "reads `val_...`, they also wait for the evaluation, which otherwise runs during the next epoch." },
    { "classWeight", FIELD_MAP, DEST(struct job, class_weight), .type_text = "map of class number to number",
      .rerun = RERUN_FRESH,
      .help = "Keras's `class_weight`: `{0: 1.0, 1: 5.0}`. The loss of a training example is multiplied by the weight "
              "of its class; the mean is still over the number of examples. Classes that are not listed have weight 1. "
              "Evaluations ignore class weights. For sparse and categorical losses, and labels 0 and 1 of a single "
              "output." },
    { "maxWaitSeconds", FIELD_NUMBER, DEST(struct job, limits.max_wait_seconds), .above_min = true, .max = NO_MAX,
      .fallback = "7200",
      .help = "Maximum time without progress that a replica waits for others, or the chief for storage at the "
              "end or for space at the start. Then it exits with 138.",
      .rerun = RERUN_FREE },
    { "stopGraceSeconds", FIELD_NUMBER, DEST(struct job, limits.stop_grace_seconds), .max = NO_MAX, .fallback = "120",
      .help = "Maximum time for a stopped replica to save and exit.", .rerun = RERUN_FREE },
    { "evaluationGraceSeconds", FIELD_NUMBER, DEST(struct job, limits.evaluation_grace_seconds), .max = NO_MAX,
      .fallback = "300", .help = "Maximum time that the chief waits at the end for an evaluator's last result.",
      .rerun = RERUN_FREE },
};
static const struct field_table FIT_FIELDS = { "spec.fit", "Duration and batches of training.", ROWS(FIT),
                                               .check = NULL };

/* ---- strategy ---- */

static const char *const STRATEGIES[] = { "ParameterServer",     "Single",  "Mirrored", "Hogwild",
                                          "MultiWorkerMirrored", "Pipeline" };
const char *strategy_name(enum strategy name)
{
    return STRATEGIES[name];
}

static const char *const UPDATES[] = { "async", "sync", "bounded" };
static const char *const PLACEMENTS[] = { "greedy", "round_robin" };
static const struct field STRATEGY[] = {
    { "name", FIELD_CHOICE, DEST(struct job, strategy.name), .names = STRATEGIES, .nnames = COUNT_OF(STRATEGIES),
      .nworking = 5, .fallback_text = "`ParameterServer` if there are PS, else `Single`",
      .help =
          "Location of the variables, and who computes: on parameter servers; or in the only training process, with "
          "one thread (Single) or several: Mirrored averages the gradients of a group of batches before an update, "
          "Hogwild applies each gradient at once; or MultiWorkerMirrored: each worker has all variables, and the "
          "gradients of a group of batches are added between the workers (all-reduce), without parameter servers. See "
          "[strategies](strategies.md)." },
    { "replicas", FIELD_INT, DEST(struct job, strategy.replicas), .min = 1, .max = TOWERS_MAX,
      .fallback_text = "**required** with `Mirrored`",
      .help = "`Mirrored`: the number of threads that compute gradients. The result does not depend on it, if "
              "`replicasToAggregate` is the same." },
    { "concurrentSteps", FIELD_INT, DEST(struct job, strategy.concurrent_steps), .min = 1, .max = TOWERS_MAX,
      .fallback_text = "**required** with `Hogwild`",
      .help = "`Hogwild`: the number of threads that compute and apply gradients without waiting for each other." },
    { "updates", FIELD_CHOICE, DEST(struct job, strategy.updates), .names = UPDATES, .nnames = COUNT_OF(UPDATES),
      .nworking = 2, .fallback = "async",
      .help = "`ParameterServer`: when gradients are applied. async: as soon as they arrive. sync: those of a group of "
              "batches together, as their mean, so that the result does not depend on the number of workers or on "
              "time. See [strategies](strategies.md)." },
    { "replicasToAggregate", FIELD_INT, DEST(struct job, strategy.replicas_to_aggregate), .min = 1, .max = 10000,
      .fallback_text = "Worker.replicas, with `Mirrored` `replicas`, when the run begins",
      .help = "`updates: sync`, `Mirrored` and `MultiWorkerMirrored`: the number of batches that make one update. It "
              "stays the same when workers come or go, and for the whole run. With `MultiWorkerMirrored` and "
              "`fit.chiefTrains` its default is one more than Worker.replicas." },
    { "minReplicas", FIELD_INT, DEST(struct job, strategy.min_replicas), .min = 1, .max = REPLICAS_MAX, .fallback = "1",
      .help = "`MultiWorkerMirrored`: with fewer workers training waits, and the log of the chief says so. At most "
              "Worker.replicas." },
    { "deterministic", FIELD_BOOL, DEST(struct job, strategy.deterministic), .fallback = "true",
      .help =
          "`updates: sync`, `Mirrored` and `MultiWorkerMirrored`: the trained weights have the same bits whatever the "
          "number of workers, PS and threads. For that all workers need the same versions of OpenBLAS and of the C "
          "library. They "
          "also need one kind of CPU, or the same `OPENBLAS_CORETYPE` in their environment. This holds for a run "
          "that is continued, too. A worker with another arithmetic is refused. With false it trains, and the last "
          "bits of the weights depend on which worker computes which batch. `MultiWorkerMirrored` has only true in "
          "this "
          "release." },
    { "placement", FIELD_CHOICE, DEST(struct job, strategy.placement), NAMES(PLACEMENTS), .fallback = "greedy",
      .help = "Distribution of variables over PS. greedy: balanced by size, with large variables split. round_robin: "
              "whole variables in turn, like TensorFlow's replica_device_setter. `device: ps:1` of a layer places its "
              "variables itself." },
    { "overlap", FIELD_BOOL, DEST(struct job, strategy.overlap), .fallback = "false",
      .help = "A worker computes its next batch while a push is in flight, which hides a slow network. Cost: with W "
              "workers the mean staleness of gradients is 2W - 1 instead of W - 1, which can cost accuracy, and "
              "training with momentum or a high learning rate can diverge." },
};
static const struct field_table STRATEGY_FIELDS = { "spec.strategy", "How the replicas share the training of a model.",
                                                    ROWS(STRATEGY), .check = NULL };

/* ---- checkpoints and summaries ---- */

static const struct field CHECKPOINT[] = {
    { "everySeconds", FIELD_NUMBER, DEST(struct job, checkpoint.every_seconds), .above_min = true, .max = NO_MAX,
      .fallback_text = "600, unless `everySteps` is given", .help = "Time between two checkpoints." },
    { "everySteps", FIELD_INT, DEST(struct job, checkpoint.every_steps), .min = 1, .max = STEPS_MAX,
      .help = "Or: steps between two checkpoints." },
    { "keep", FIELD_INT, DEST(struct job, checkpoint.keep), .min = 1, .max = KEEP_MAX, .fallback = "5",
      .help = "Number of checkpoints to keep; older ones are deleted." },
};
static const struct field_table CHECKPOINT_FIELDS = {
    "spec.checkpoint",
    "Checkpoints in TensorFlow's format, in `checkpoints/` of the output folder. A checkpoint is also written at the "
    "end, and before the chief exits on SIGTERM.",
    ROWS(CHECKPOINT), .check = NULL
};

static const struct field SUMMARIES[] = {
    { "everySteps", FIELD_INT, DEST(struct job, summaries.every_steps), .min = 1, .max = STEPS_MAX,
      .fallback_text = "100, unless `everySeconds` is given", .help = "Steps between two summaries." },
    { "everySeconds", FIELD_NUMBER, DEST(struct job, summaries.every_seconds), .above_min = true, .max = NO_MAX,
      .help = "Or: time between two summaries." },
    { "histograms", FIELD_BOOL, DEST(struct job, summaries.histograms), .fallback = "true",
      .help = "Also write histograms of the weights." },
    { "directory", FIELD_STRING, DEST(struct job, summaries.directory), .type_text = "path", .fallback = "summaries",
      .help = "A folder within the output folder." },
};
static const struct field_table SUMMARIES_FIELDS = { "spec.summaries", "Event files that TensorBoard reads.",
                                                     ROWS(SUMMARIES), .check = NULL };

/* ---- replicas ---- */

static const char *const RESTART_POLICIES[] = { "ExitCode", "OnFailure", "Always", "Never" };
static const struct field REPLICA[] = {
    { "replicas", FIELD_INT, DEST(struct replica_spec, count), .min = 0, .max = REPLICAS_MAX, .fallback = "1",
      .help = "Number of replicas; at most 1 Chief and 1 Evaluator. Without `spec.model` TF_CONFIG lists all replicas "
              "of the job, in at most 128 KiB: 1,500 to 3,500 with usual names, 600 with the longest." },
    { "restartPolicy", FIELD_CHOICE, DEST(struct replica_spec, restart), NAMES(RESTART_POLICIES),
      .fallback = "ExitCode",
      .help = "When a replica that has exited is restarted. ExitCode: if its exit code is 128 or more, or a signal "
              "killed it." },
    { "template", FIELD_MAP, .type_text = "PodTemplateSpec", .fallback_text = "the built-in image",
      .help = "The pod on a cluster; ignored by `trainyard run`." },
};
static int replica_check(void *base, const struct node *n, struct err *e);
static const struct field_table REPLICA_FIELDS = { "spec.replicaSpecs.Chief, .PS, .Worker, .Evaluator",
                                                   "The replicas of one role.", ROWS(REPLICA), .check = replica_check };

/* Chief and Master fill the same place; the second one given is one too many. */
static int replica_check(void *base, const struct node *n, struct err *e)
{
    struct replica_spec *r = base;
    if (r->present)
        return node_error(n, e, "Chief and Master are the same role; give one of them");
    r->present = true;
    r->node = *n;
    return 0;
}

#define ROLE_ROW(name, role, alias_, help_)                                                                            \
    {                                                                                                                  \
        name, FIELD_TABLE, DEST(struct job, replicas[role]), .alias = (alias_), .table = &REPLICA_FIELDS,              \
                                                             .help = (help_)                                           \
    }
static const struct field ROLES_ROWS[] = {
    ROLE_ROW(
        "Chief", ROLE_CHIEF, false,
        "Initialises the job, writes checkpoints, evaluates, and ends the job. Without a Chief, worker 0 does this."),
    ROLE_ROW("Master", ROLE_CHIEF, true, "Old name of Chief in TFJobs."),
    ROLE_ROW("PS", ROLE_PS, false, "Hold the variables and apply the optimizer."),
    ROLE_ROW("Worker", ROLE_WORKER, false, "Compute the gradients."),
    ROLE_ROW("Evaluator", ROLE_EVALUATOR, false, "Evaluates checkpoints during training."),
};
static const struct field_table ROLES_FIELDS = { "spec.replicaSpecs",
                                                 "The replicas. Without it the job is one process.", ROWS(ROLES_ROWS),
                                                 .check = NULL };

/* ---- what concerns a cluster only ---- */

static const struct field STORAGE[] = {
    { "data", FIELD_MAP, DEST(struct job, storage.data), .type_text = "VolumeSource",
      .fallback_text = "the example data in the image",
      .help = "Mounted at `/data`; paths in `spec.data` are relative to it." },
    { "output", FIELD_MAP, DEST(struct job, storage.output), .type_text = "VolumeSource",
      .fallback_text = "the pod's file system, which is lost with it", .help = "Mounted at `/logs`." },
};
static const struct field_table STORAGE_FIELDS = {
    "spec.storage",
    "Volumes on a cluster: `{persistentVolumeClaim: {claimName: mnist-data}}`. `trainyard run` uses `--data-dir` and "
    "`--output-dir` instead.",
    ROWS(STORAGE), .check = NULL
};

static const struct field POD_DEFAULTS[] = {
    { "labels", FIELD_MAP, .help = "Additional labels." },
    { "annotations", FIELD_MAP, .help = "Annotations, such as `sidecar.istio.io/inject: \"false\"`." },
    { "imagePullSecrets", FIELD_LIST, .type_text = "list of `{name: ...}`", .help = "Secrets for image registries." },
    { "nodeSelector", FIELD_MAP, .help = "Required labels of nodes." },
    { "tolerations", FIELD_LIST, .type_text = "list of Toleration", .help = "Tolerated taints." },
    { "priorityClassName", FIELD_STRING, .help = "A PriorityClass." },
    { "serviceAccountName", FIELD_STRING, .fallback_text = "the namespace's `default`",
      .help = "A ServiceAccount. Its token is mounted only if a template requests it." },
    { "assignUser", FIELD_BOOL, .fallback_text = "`true`, unless the operator is configured otherwise",
      .help = "Pods run as user and group 65532. `false` omits runAsUser, runAsGroup and fsGroup, so that the platform "
              "assigns them, as OpenShift does." },
};
static const struct field_table POD_DEFAULTS_FIELDS = {
    "spec.podDefaults",
    "Common settings of all pods of the job, including TensorBoard's. Maps and lists are merged with those of a "
    "template, and other values are defaults. If both set the same value, the template's is used.",
    ROWS(POD_DEFAULTS), .check = NULL
};

static const char *const CLEAN_POD_POLICIES[] = { "Running", "All", "None" };
static const char *const RESTART_SCOPES[] = { "Replica", "Job" };
static const char *const STALL_POLICIES[] = { "Notify", "Restart", "Fail" };

static const struct field SCHEDULING[] = {
    { "minAvailable", FIELD_INT, DEST(struct job, run_policy.scheduling.min_available), .min = 1, .max = INT32_MAX,
      .fallback_text = "all replicas",
      .help = "Minimum number of pods that must be schedulable before any pod is started." },
    { "queue", FIELD_STRING, DEST(struct job, run_policy.scheduling.queue), .help = "Volcano's queue." },
    { "minResources", FIELD_MAP, DEST(struct job, run_policy.scheduling.min_resources), .type_text = "ResourceList",
      .fallback_text = "the requests of those pods",
      .help = "Minimum resources that must be available before any pod is started." },
    { "priorityClass", FIELD_STRING, DEST(struct job, run_policy.scheduling.priority_class),
      .help = "Name of a PriorityClass." },
    { "scheduleTimeoutSeconds", FIELD_INT, DEST(struct job, run_policy.scheduling.schedule_timeout_seconds), .min = 1,
      .max = INT32_MAX, .help = "scheduler-plugins: maximum time that a group may wait." },
};
static int scheduling_check(void *base, const struct node *n, struct err *e);
static const struct field_table SCHEDULING_FIELDS = {
    "spec.runPolicy.schedulingPolicy",
    "Gang scheduling: the pods of the job start together or not at all. Needs a scheduler that supports it.",
    ROWS(SCHEDULING), .check = scheduling_check
};

static int scheduling_check(void *base, const struct node *n UNUSED, struct err *e UNUSED)
{
    ((struct job *)base)->run_policy.scheduling.present = true;
    return 0;
}

static const struct field RUN_POLICY[] = {
    { "cleanPodPolicy", FIELD_CHOICE, DEST(struct job, run_policy.clean_pod_policy), NAMES(CLEAN_POD_POLICIES),
      .fallback = "Running", .help = "Pods to delete when the job has ended." },
    { "backoffLimit", FIELD_INT, DEST(struct job, run_policy.backoff_limit), .min = 0, .max = INT32_MAX,
      .fallback = "6",
      .help = "Number of restarts before the job fails. On a cluster: since the last progress, without pods that were "
              "drained or evicted. In `trainyard run`: all restarts." },
    { "restartScope", FIELD_CHOICE, DEST(struct job, run_policy.restart_scope), NAMES(RESTART_SCOPES),
      .fallback = "Replica",
      .help = "What to restart when a replica fails and its restartPolicy restarts it. `Replica`: that replica. `Job`: "
              "all replicas except Evaluator and TensorBoard, counted as one restart. Use `Job` for programs with a "
              "fixed set of processes, such as all-reduce with MPI or Gloo. The field is immutable, and `Job` does not "
              "allow the restartPolicy `Always`." },
    { "activeDeadlineSeconds", FIELD_INT, DEST(struct job, run_policy.active_deadline_seconds), .min = 1, .max = NO_MAX,
      .help = "Maximum run time of the job, also in `trainyard run`. A job that takes longer fails with the reason "
              "DeadlineExceeded; `trainyard run` saves a checkpoint and exits with 124." },
    { "ttlSecondsAfterFinished", FIELD_INT, DEST(struct job, run_policy.ttl_seconds_after_finished), .min = 0,
      .max = INT32_MAX, .help = "Time after which an ended job is deleted." },
    { "stallSeconds", FIELD_INT, DEST(struct job, run_policy.stall_seconds), .min = 1, .max = INT32_MAX,
      .help = "On a cluster, a running job without a new step for this time is stalled. Needs a `model`." },
    { "stallPolicy", FIELD_CHOICE, DEST(struct job, run_policy.stall_policy), NAMES(STALL_POLICIES),
      .fallback = "Notify",
      .help = "Action for a stalled job. Notify: condition and event. Restart: its pods are restarted. Fail: the job "
              "fails." },
    { "suspend", FIELD_BOOL, DEST(struct job, run_policy.suspend), .fallback = "false",
      .help = "While true, the job has no pods." },
    { "schedulingPolicy", FIELD_TABLE, .table = &SCHEDULING_FIELDS, .help = "Gang scheduling, as in TFJobs." },
    { "managedBy", FIELD_STRING, DEST(struct job, run_policy.managed_by), .fallback_text = "the operator",
      .help = "The controller that manages the job. The operator ignores jobs with a name other than "
              "`trainyard.dev/trainjob-controller`." },
};
static const struct field_table RUN_POLICY_FIELDS = { "spec.runPolicy", "Restarts, deadlines and clean-up.",
                                                      ROWS(RUN_POLICY), .check = NULL };

static const struct field TENSORBOARD[] = {
    { "image", FIELD_STRING, DEST(struct job, tensorboard.image), .fallback_text = "the operator's",
      .help = "An image with TensorBoard." },
    { "resources", FIELD_MAP, DEST(struct job, tensorboard.resources), .type_text = "ResourceRequirements",
      .fallback_text = "the operator's", .help = "Requests and limits of its container." },
};
static int tensorboard_check(void *base, const struct node *n, struct err *e);
static const struct field_table TENSORBOARD_FIELDS = {
    "spec.tensorboard",
    "A TensorBoard for the job on a cluster: port 6006 of the service NAME-tensorboard. It reads the output volume.",
    ROWS(TENSORBOARD), .check = tensorboard_check
};

static int tensorboard_check(void *base, const struct node *n UNUSED, struct err *e UNUSED)
{
    ((struct job *)base)->tensorboard.present = true;
    return 0;
}

/* ---- the object ---- */

static const struct field METADATA[] = {
    { "name", FIELD_STRING, DEST(struct job, name), .required = true,
      .help = "Lower-case letters, digits and hyphens, starting with a letter; at most 51 characters." },
    { "namespace", FIELD_STRING, .help = "As defined by Kubernetes, like the other fields of metadata." },
    { "uid", FIELD_STRING, DEST(struct job, uid), .help = "Set by the API server." },
    { "labels", FIELD_MAP, .help = "" },
    { "annotations", FIELD_MAP, .help = "" },
    { "generateName", FIELD_ANY, .help = NULL },
    { "resourceVersion", FIELD_ANY, .help = NULL },
    { "generation", FIELD_ANY, .help = NULL },
    { "creationTimestamp", FIELD_ANY, .help = NULL },
    { "deletionTimestamp", FIELD_ANY, .help = NULL },
    { "deletionGracePeriodSeconds", FIELD_ANY, .help = NULL },
    { "finalizers", FIELD_ANY, .help = NULL },
    { "ownerReferences", FIELD_ANY, .help = NULL },
    { "managedFields", FIELD_ANY, .help = NULL },
    { "selfLink", FIELD_ANY, .help = NULL },
};
static const struct field_table METADATA_FIELDS = { "metadata", "Metadata of the job.", ROWS(METADATA), .check = NULL };

#define WITH_MODEL "**required** with `model`"
#define SPEC_TABLE(key, table_, fallback, rule, help_)                                                                 \
    {                                                                                                                  \
        key, FIELD_TABLE, .table = (table_), .fallback_text = (fallback), .rerun = (rule), .help = (help_)             \
    }
static const struct field SPEC[] = {
    SPEC_TABLE("model", &MODEL_FIELDS, NULL, RERUN_FRESH, "The network."),
    SPEC_TABLE("compile", &COMPILE_FIELDS, "**required** with `model`, unless a compiled Keras model has it",
               RERUN_UNSAID, "Optimizer, loss, metrics."),
    SPEC_TABLE("data", &DATA_SETS, WITH_MODEL, RERUN_UNSAID, "Data sets."),
    SPEC_TABLE("fit", &FIT_FIELDS, WITH_MODEL, RERUN_UNSAID, "Epochs, batch size, seed."),
    SPEC_TABLE("strategy", &STRATEGY_FIELDS, NULL, RERUN_FREE, "How the replicas share the training."),
    SPEC_TABLE("checkpoint", &CHECKPOINT_FIELDS, NULL, RERUN_FREE, "When to save checkpoints."),
    SPEC_TABLE("summaries", &SUMMARIES_FIELDS, NULL, RERUN_FREE, "Event files for TensorBoard."),
    SPEC_TABLE("storage", &STORAGE_FIELDS, NULL, RERUN_FREE, "Volumes on a cluster."),
    SPEC_TABLE("replicaSpecs", &ROLES_FIELDS, NULL, RERUN_FREE, "The replicas."),
    SPEC_TABLE("podDefaults", &POD_DEFAULTS_FIELDS, NULL, RERUN_FREE, "Common settings of all pods on a cluster."),
    SPEC_TABLE("runPolicy", &RUN_POLICY_FIELDS, NULL, RERUN_FREE, "Restarts, deadlines, clean-up."),
    { "managedBy", FIELD_STRING, DEST(struct job, managed_by), .rerun = RERUN_FREE,
      .help = "The same as `runPolicy.managedBy`, at the place where batch/v1 Job has it." },
    SPEC_TABLE("tensorboard", &TENSORBOARD_FIELDS, NULL, RERUN_FREE, "A TensorBoard for the job on a cluster."),
};
static const struct field_table SPEC_FIELDS = { "spec", "What to train, and how.", ROWS(SPEC), .check = NULL };

static const struct field TOP[] = {
    { "apiVersion", FIELD_STRING, .required = true, .help = "`trainyard.dev/v1alpha1`" },
    { "kind", FIELD_STRING, .required = true, .help = "`TrainJob`" },
    { "metadata", FIELD_TABLE, .table = &METADATA_FIELDS, .required = true, .help = "Metadata of the job." },
    { "spec", FIELD_TABLE, .table = &SPEC_FIELDS, .required = true, .help = "What to train, and how." },
    { "status", FIELD_ANY, .help = "Written by the operator; not read." },
};
const struct field_table JOB_FIELDS = { "TrainJob", "The object.", ROWS(TOP), .check = NULL };
