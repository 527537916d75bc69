/* job - a TrainJob as plain values: parsed, defaulted, checked (docs/manifest.md lists every field).
 *
 * One source for the operator, the CLI and the replicas. What only the nn library can check (layer arguments, shapes,
 * optimizer arguments) stays JSON here, as nodes with their place; nn/model.h checks it. A job is immutable after
 * job_parse and may be shared by threads.
 */
#ifndef TRAINYARD_JOB_JOB_H
#define TRAINYARD_JOB_JOB_H

#include "base/map.h"
#include "base/str.h"
#include "codec/node.h"

/* X(enum, lower-case name in flags and logs, TrainJob/TFJob key) */
#define ROLES(X)                                                                                                       \
    X(ROLE_PS, "ps", "PS")                                                                                             \
    X(ROLE_WORKER, "worker", "Worker")                                                                                 \
    X(ROLE_CHIEF, "chief", "Chief")                                                                                    \
    X(ROLE_EVALUATOR, "evaluator", "Evaluator")
enum role {
#define X(id, name, key) id,
    ROLES(X)
#undef X
        ROLE_COUNT
};
const char *role_name(enum role r);                                    /* "ps" */
const char *role_key(enum role r);                                     /* "PS" */
MUST_USE int role_parse(const char *s, enum role *ret, struct err *e); /* also "master" = chief */

enum restart_policy { RESTART_EXIT_CODE, RESTART_ON_FAILURE, RESTART_ALWAYS, RESTART_NEVER };
const char *restart_policy_name(enum restart_policy p); /* "ExitCode", ... */
/* True when a replica that ended this way must be started again. ExitCode: 1..127 permanent, 0 done, from 128 (and
 * death by signal: code 128+n) retryable. */
bool restart_wanted(enum restart_policy p, int exit_code);

/* Layers of one model. The operator checks a spec in the thread that renews its leadership, so the cost of a spec is
 * bounded. */
enum { MODEL_LAYERS_MAX = 5000 };

enum data_format {
    DATA_IDX,
    DATA_CSV,
    DATA_NPY,
    DATA_TFRECORD,
    DATA_NPZ,
    DATA_CIFAR,
    DATA_IMAGES,
    DATA_JSONL,
    DATA_TEXT,
    DATA_FORMAT_COUNT
};
extern const char *const DATA_FORMAT_NAMES[DATA_FORMAT_COUNT];
/* A record has fields, which are texts, numbers or missing: csv and jsonl, with the same columns, and text with one. */
static inline bool data_has_fields(enum data_format f)
{
    return f == DATA_CSV || f == DATA_JSONL || f == DATA_TEXT;
}
/* Each file is an example, and each directory a class. */
static inline bool data_has_classes(enum data_format f)
{
    return f == DATA_IMAGES || f == DATA_TEXT;
}
enum data_encoding { ENCODING_AUTO, ENCODING_UTF8, ENCODING_UTF16, ENCODING_LATIN1 };
/* Limits of the images of files, and of what they become. */
enum { IMAGE_SIDE_MAX = 65535, IMAGE_PIXELS_MAX = 1 << 26 };
enum image_interpolation { IMAGE_BILINEAR, IMAGE_NEAREST };
enum image_color { IMAGE_RGB, IMAGE_RGBA, IMAGE_GRAYSCALE };
enum data_missing { MISSING_ERROR, MISSING_DROP, MISSING_MEAN, MISSING_MODE, MISSING_COUNT };
extern const char *const DATA_MISSING_NAMES[MISSING_COUNT];
static inline bool data_missing_is_learned(enum data_missing m)
{
    return m == MISSING_MEAN || m == MISSING_MODE;
}
/* The numbers that a csv column of type date can have; the first DATE_DEFAULT_PARTS are its default. */
#define DATE_PARTS(X)                                                                                                  \
    X(DATE_YEAR, "year")                                                                                               \
    X(DATE_MONTH, "month")                                                                                             \
    X(DATE_DAY_OF_WEEK, "dayofweek")                                                                                   \
    X(DATE_DAY_OF_YEAR, "dayofyear")                                                                                   \
    X(DATE_SECONDS, "seconds")                                                                                         \
    X(DATE_DAY, "day")                                                                                                 \
    X(DATE_HOUR, "hour")                                                                                               \
    X(DATE_MINUTE, "minute")
enum date_part {
#define X(id, name) id,
    DATE_PARTS(X)
#undef X
        DATE_PART_COUNT
};
enum { DATE_DEFAULT_PARTS = 5 };
extern const char *const DATE_PART_NAMES[DATE_PART_COUNT];

enum { NA_VALUES_MAX = 1000, NA_VALUE_MAX = 255 };

/* What the numbers of a csv column of words are. */
#define COLUMN_ENCODINGS(X)                                                                                            \
    X(COLUMN_INT_ENCODING, "int")                                                                                      \
    X(COLUMN_ONE_HOT, "one_hot")                                                                                       \
    X(COLUMN_MULTI_HOT, "multi_hot")                                                                                   \
    X(COLUMN_COUNT, "count")                                                                                           \
    X(COLUMN_TF_IDF, "tf_idf")
enum column_encoding {
#define X(id, name) id,
    COLUMN_ENCODINGS(X)
#undef X
        COLUMN_ENCODING_COUNT
};
extern const char *const COLUMN_ENCODING_NAMES[COLUMN_ENCODING_COUNT];

/* How a csv column of type text becomes tokens. */
enum text_standardize {
    STANDARDIZE_LOWER_AND_STRIP_PUNCTUATION,
    STANDARDIZE_LOWER,
    STANDARDIZE_STRIP_PUNCTUATION,
    STANDARDIZE_NONE,
    STANDARDIZE_COUNT
};
enum text_split { SPLIT_WHITESPACE, SPLIT_CHARACTER, SPLIT_COUNT };
extern const char *const TEXT_STANDARDIZE_NAMES[STANDARDIZE_COUNT], *const TEXT_SPLIT_NAMES[SPLIT_COUNT];
enum { NGRAM_MAX = 10 }; /* tokens of an n-gram */
struct text_form {
    enum text_standardize standardize;
    enum text_split split;
    size_t n_ngrams;                 /* 0: tokens stand alone */
    unsigned char ngrams[NGRAM_MAX]; /* the lengths of n-grams, each once, in this order */
};
/* Numbers of hashed words; those that one_hot may make of an example; ranges of numbers that are learned, and that a
 * job lists. */
enum { HASH_BINS_MAX = 1 << 24, HASH_ONE_HOT_MAX = 1 << 20, BINS_MAX = 1000, BIN_BOUNDARIES_MAX = 10000 };
/* Bytes of a word of a vocabulary; words that are learned; the least `maxTokens`, that of other words and a word; the
 * numbers of a text. */
enum { VOCABULARY_WORD_MAX = 255, VOCABULARY_LEARNED_MAX = 100000, MAX_TOKENS_MIN = 2, TEXT_LENGTH_MAX = 1 << 20 };

/* Where examples come from. Paths are as written; data/dataset.h resolves them against the data folder.
 *   idx, npy:  features and labels are files (labels may be NULL: no labels)
 *   npz:       files is one archive; features and labels are the names of arrays in it
 *   csv:       files; encoding, header, delimiter, decimal, thousands, skipRows, naValues, missing, columns,
 *              dropColumns, label
 *   cifar:     files; label is fine or coarse
 *   images:    images, or files without labels; label is not given, or ""
 *   tfrecord:  files; columns name the features of a tf.Example that are read, label those that are the label */
/* What an input or an output of the model is made of: columns (csv, tfrecord), or a file or array. */
struct data_part {
    const char *name;
    struct strlist from; /* of files and arrays one */
};
struct data_parts { /* in the order of the manifest */
    struct data_part *v;
    size_t n; /* 0: not given */
};

/* Of format images; of tfrecord interpolation and crop_to_aspect_ratio. */
struct image_spec {
    const char *directory; /* NULL where `files` names them */
    int64_t height, width; /* of each example */
    enum image_color color;
    enum image_interpolation interpolation;
    bool crop_to_aspect_ratio;
    struct strlist class_names; /* n 0: the names of the directories */
    bool mixed;                 /* not in the order of their names, so that both parts of a split have all classes */
};

struct data_spec {
    bool present;
    bool sound; /* it has no fault by itself */
    enum data_format format;
    const char *features, *labels;     /* NULL where they are maps */
    struct data_parts inputs, outputs; /* `inputs`, or a map of features; a map of label or labels */
    struct strlist files;              /* all but idx and npy: glob patterns allowed */
    bool header;                       /* csv: first line names the columns (default true) */
    int64_t skip_rows;                 /* csv: lines before the header; default 0 */
    char delimiter;                    /* csv: default ',' */
    char decimal;                      /* csv: default '.' */
    char thousands;                    /* csv: NUL: none, the default */
    struct strlist na_values;          /* csv: the texts that stand for a missing value, besides an empty field */
    bool own_na_values;                /* they are the job's, not the default */
    enum data_missing missing;         /* csv: what becomes of an example without a value; default error */
    struct node columns;               /* csv: optional [{name, type: float|int|category|date|text, ...}];
                                          tfrecord: [{name, type: float|int64|bytes|image, shape}] */
    struct node drop_columns; /* csv: names; with it all other columns are features, and `columns` only describes */
    struct strlist label;   /* csv: names or indexes of columns ("-1" = last, the default); tfrecord: names of features;
                               cifar: fine or coarse; images: "directory".
                               Of several the label is all their numbers, in this order; n 0: none */
    struct map label_names; /* the same, to be found by name */
    char *sample_weight; /* NULL: all examples count the same. idx, npy: a file; npz: an array; csv: name or index of a
                            column; tfrecord: a feature. Owned */
    bool shuffle;        /* default true for train */
    bool categories_are_int;     /* the model takes a category's number: a feature column need not state its encoding */
    int64_t max_unpacked;        /* bytes that a compressed file may become; 0: the default of data/decompress.h */
    enum data_encoding encoding; /* csv: of its text */
    struct image_spec images;
    struct node node; /* the whole map, for messages */
};

/* A manifest that names no strategy and no PS also has STRATEGY_SINGLE: such a job runs as one process. A replica of
 * it that gets a cluster with ps by hand trains with them. */
enum strategy {
    STRATEGY_PARAMETER_SERVER,
    STRATEGY_SINGLE,
    STRATEGY_MIRRORED,
    STRATEGY_HOGWILD,
    STRATEGY_MULTI_WORKER_MIRRORED
};
enum updates { UPDATES_ASYNC, UPDATES_SYNC, UPDATES_BOUNDED };
enum placement_kind { PLACEMENT_GREEDY, PLACEMENT_ROUND_ROBIN };

enum restart_scope { SCOPE_REPLICA, SCOPE_JOB };
enum stall_policy { STALL_NOTIFY, STALL_RESTART, STALL_FAIL };
enum clean_pod_policy { CLEAN_RUNNING, CLEAN_ALL, CLEAN_NONE };

struct replica_spec {
    bool present;
    int count; /* 0 when not present; default 1 */
    enum restart_policy restart;
    struct node node;
};

struct job {
    json_t *doc;            /* the whole object, owned; the nodes below point into it */
    struct source *source;  /* owned */
    char *file;             /* name for messages */
    const char *name, *uid; /* metadata; uid "" when there is none (a laptop run makes one) */
    const char *managed_by; /* spec.managedBy; NULL: not given */
    bool has_model;         /* false: replicas bring their own image (as in a TFJob) */
    struct node model;      /* spec.model */
    struct node compile;    /* spec.compile: optimizer, loss, metrics */
    struct data_spec train, validation;
    struct {
        int64_t epochs;     /* 0: not given; exactly one of epochs and steps is > 0 */
        int64_t steps;      /* StopAtStep: global step to stop at */
        int64_t batch_size; /* default 32, as Keras */
        uint64_t seed;      /* default 0 */
        bool has_seed;
        const char *initial_weights; /* NULL: the initializers determine the values */
        bool chief_trains;
        bool resume, rebase;           /* what is allowed with an earlier run in the output folder */
        int64_t log_every_steps;       /* default 100 */
        int64_t validation_batch_size; /* default batch_size */
        double validation_split;       /* fraction of data.train that is kept for evaluation; 0: none */
    } fit;
    struct node callbacks;    /* spec.fit.callbacks, a list; nn/callback.h checks it */
    struct node class_weight; /* spec.fit.classWeight, a map; nn/class_weight.h checks it */
    struct {
        enum strategy name;
        enum updates updates; /* Mirrored and MultiWorkerMirrored: sync */
        enum placement_kind placement;
        int64_t replicas, concurrent_steps; /* threads of Mirrored; of Hogwild */
        int64_t replicas_to_aggregate;      /* updates sync: batches of a group; 0: not given */
        int64_t min_replicas;               /* MultiWorkerMirrored: with fewer workers training waits; default 1 */
        bool deterministic;                 /* updates sync: all workers must compute the same bits; default true */
        bool overlap;                       /* compute the next batch while a push is in flight; default false */
    } strategy;
    struct {
        double every_seconds; /* default 600; 0 when steps are given */
        int64_t every_steps;  /* 0: by time */
        int64_t keep;         /* default 5 */
    } checkpoint;
    struct {
        int64_t every_steps; /* default 100; 0: by time */
        double every_seconds;
        bool histograms;       /* weight histograms, default true */
        const char *directory; /* in the output folder, default "summaries" */
    } summaries;
    struct {
        double max_wait_seconds;         /* default 7200 */
        double stop_grace_seconds;       /* default 120 */
        double evaluation_grace_seconds; /* default 300 */
    } limits;
    struct replica_spec replicas[ROLE_COUNT];
    struct {
        struct node data, output; /* a Kubernetes volume source each; v NULL: none */
    } storage;
    struct {
        enum clean_pod_policy clean_pod_policy;
        int64_t backoff_limit; /* default 6 */
        enum restart_scope restart_scope;
        int64_t active_deadline_seconds; /* 0: none */
        bool has_ttl;
        int64_t ttl_seconds_after_finished; /* with has_ttl; 0: at once */
        int64_t stall_seconds;              /* 0: stalls are not detected */
        enum stall_policy stall_policy;
        bool suspend;
        const char *managed_by; /* NULL: us */
        struct {
            bool present;
            int64_t min_available;              /* 0: all replicas */
            const char *queue, *priority_class; /* NULL: not given */
            struct node min_resources;
            int64_t schedule_timeout_seconds; /* 0: not given */
        } scheduling;
    } run_policy;
    struct {
        bool present;
        const char *image;     /* NULL: the operator's choice */
        struct node resources; /* v NULL: the operator's choice */
    } tensorboard;
};

/* Parses YAML or JSON text. Checks everything that this library can check: unknown keys, types, ranges, required
 * fields, role keys, epochs xor steps, strategies. A known strategy that this release does not run is refused with a
 * message that states so. When the text has several documents, the first TrainJob is used. */
MUST_USE int job_parse(const char *text, size_t n, const char *name, struct job **ret, struct err *e);
MUST_USE int job_load(const char *path, struct job **ret, struct err *e); /* "-": standard input */
/* As job_load, then `sets` ("fit.epochs=1", "replicaSpecs.Worker.replicas=4",
 * "compile.optimizer.Adam.learning_rate=0.01"; paths are below spec; values parse as YAML scalars) are applied before
 * the checks. Errors name the --set. */
MUST_USE int job_load_with(const char *path, const struct strlist *sets, struct job **ret, struct err *e);
/* As job_load_with(), for callers that show all faults: adds every fault to `faults`, not only the first. With some
 * faults there is still a job, so that its model and its data can be checked for more (a data set with a fault is not
 * present then); -1: there is none. Faults about model and compile are added as long as the list exists. */
MUST_USE int job_load_all(const char *path, const struct strlist *sets, struct strlist *faults, struct job **ret,
                          struct err *e);
/* Checks an object as the API server stores it, with all checks of job_parse(). Messages have no line numbers and
 * begin with `name` ("digits: spec.fit.epochs: must be ..."). Of metadata only name, namespace, uid, labels and
 * annotations are read; status is ignored. What is kept is copied; doc is neither changed nor held. */
MUST_USE int job_from_value(const json_t *doc, const char *name, struct job **ret, struct err *e);
void job_free(struct job *j);
DEFINE_AUTO(job, job_free);

/* The part of a spec, as the API server stores it, that training depends on: model, compile, data, fit, strategy,
 * checkpoint and summaries. Nulls and defaults that are spelled out are left out. Two equivalent specs are equal, so
 * a default that a CRD fills in changes nothing. New reference. */
json_t *job_canonical(const json_t *spec);

/* PS of a manifest. JOB_PS_UNKNOWN: it leaves replicas to whoever starts them. Not for the file of a replica, which has
 * no counts (job/replica_file.h). */
enum { JOB_PS_UNKNOWN = -1 };
int job_ps_count(const struct job *j);
/* Every `device` of a layer is one of the job's nps ps; JOB_PS_UNKNOWN: it is the name of one, which job_parse()
 * checks. Placed ERR_INPUT. */
MUST_USE int job_check_devices(const struct job *j, int nps, struct err *e);

const char *strategy_name(enum strategy name);
/* Threads that compute in the only training process, each as a worker of its own: of Mirrored and Hogwild. 0: other
 * strategies. */
int job_towers(const struct job *j);
/* Batches of a group when neither the manifest nor the run has a number: the threads of Mirrored, or the workers. With
 * MultiWorkerMirrored a chief that trains beside workers counts as one, too. */
int64_t job_default_group(const struct job *j, int workers);

bool job_evaluates(const struct job *j); /* there is validation data: a separate set, or a part of data.train */

/* Kubernetes object name rules: RFC 1123 label, at most 63 minus the longest replica suffix. */
MUST_USE int job_check_name(const char *name, struct err *e);
/* Name of another object, such as a claim: an RFC 1123 subdomain. */
bool job_is_object_name(const char *name);
/* A job's uid, from any source: 1 to 128 letters, digits, '-', '_' and '.'. It is used in JSON, in messages and in
 * paths. */
MUST_USE int job_check_uid(const char *uid, struct err *e);

#endif
