/* From text to a checked job: which document, what kind, its fields, the rules between them. */
#include "job/job.h"

#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "job/data_inherit.h"
#include "job/fields.h"

#define API_VERSION "trainyard.dev/v1alpha1"
#define KIND        "TrainJob"
enum { MANIFEST_MAX = 64 << 20 }; /* that of a run has the words of its texts, for data.validation once more */

static const char *member_str(const json_t *v, const char *key)
{
    return json_string_value(json_object_get(v, key));
}

/* ---- which document ---- */

static bool is_train_job(void *user UNUSED, const json_t *v)
{
    return str_eq(member_str(v, "kind"), KIND);
}

/* No document is a TrainJob: the error names the kind of the first one. */
static int not_a_train_job(const json_t *v, const struct source *src, struct err *e)
{
    struct node top = node_root(v, src), kind = node_get(&top, "kind");
    const char *word = json_string_value(kind.v);

    if (kind.v == NULL)
        return node_error(&top, e,
                          "'kind' is missing; a job begins with 'apiVersion: " API_VERSION "', 'kind: " KIND "'");
    if (word == NULL)
        return node_error(&kind, e, "must be the string '" KIND "', not %s", node_type(&kind));
    if (strcmp(word, "TFJob") == 0)
        return node_error(&kind, e,
                          "a TFJob has images and no model, and runs only on a cluster: use kubectl apply; to run "
                          "locally, write a " KIND " with spec.model (docs/manifest.md)");
    return node_error(&kind, e, "'%.60s' is not a " KIND "%s", word,
                      strcasestr(word, "train") != NULL ? "; did you mean '" KIND "'?" : "");
}

static int check_api_version(const json_t *v, const struct source *src, struct err *e)
{
    struct node top = node_root(v, src), version = node_get(&top, "apiVersion");
    const char *text;

    if (!node_present(&version))
        return node_error(&top, e, "'apiVersion' is missing; it is " API_VERSION);
    if (node_str(&version, &text, e) < 0)
        return -1;
    if (str_starts(text, "trainer.kubeflow.org/"))
        return node_error(&version, e,
                          "this is a TrainJob of Kubeflow Trainer; Trainyard's have apiVersion " API_VERSION);
    if (strcmp(text, API_VERSION) != 0)
        return node_error(&version, e, "'%.80s' is not supported; it must be " API_VERSION, text);
    return 0;
}

/* The document to take, with its places. */
static int read_document(const char *text, size_t n, const char *name, struct job *j, struct err *e)
{
    if (yaml_parse_wanted(text, n, name, is_train_job, NULL, &j->doc, &j->source, e) < 0)
        return -1;
    if (j->doc != NULL)
        return check_api_version(j->doc, j->source, e);
    if (yaml_parse(text, n, name, &j->doc, &j->source, e) < 0)
        return -1;
    return not_a_train_job(j->doc, j->source, e);
}

/* ---- parsing ---- */

static int apply_sets(struct job *j, const struct strlist *sets, struct err *e)
{
    for (size_t i = 0; sets != NULL && i < sets->n; i++)
        if (override_apply(j->doc, j->source, sets->items[i], e) < 0)
            return -1;
    return 0;
}

#define TRAIN      "spec.data.train"
#define VALIDATION "spec.data.validation"

/* What validation data take from data.train has its place there. */
static void inherit(struct job *j)
{
    json_t *to = json_at(j->doc, VALIDATION);
    const char *key;
    json_t *value;
    data_inherit(json_at(j->doc, TRAIN), to);
    json_object_foreach(to, key, value)
    {
        char from[NODE_PATH_MAX], path[NODE_PATH_MAX];
        str_fmt(from, sizeof(from), TRAIN ".%s", key);
        str_fmt(path, sizeof(path), VALIDATION ".%s", key);
        source_copy(j->source, from, path);
    }
}

/* The document's fields and the rules between them. */
static int parse_and_check(struct job *j, struct err *e)
{
    struct node top = node_root(j->doc, j->source);

    inherit(j);
    return fields_read(&JOB_FIELDS, &top, j, e) < 0 || job_check(j, e) < 0 ? -1 : 0;
}

static int parse(const char *text, size_t n, const char *name, const struct strlist *sets, struct job **ret,
                 struct err *e)
{
    AUTO(job) *j = xcalloc(1, sizeof(*j));

    j->file = xstrdup(name);
    if (read_document(text, n, name, j, e) < 0 || apply_sets(j, sets, e) < 0 || parse_and_check(j, e) < 0)
        return -1;
    *ret = TAKE(j);
    return 0;
}

int job_parse(const char *text, size_t n, const char *name, struct job **ret, struct err *e)
{
    return parse(text, n, name, NULL, ret, e);
}

int job_load_with(const char *path, const struct strlist *sets, struct job **ret, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;

    if (file_read(path, MANIFEST_MAX, &text, e) < 0)
        return err_wrap(e, "job file");
    return parse(text.data, text.len, strcmp(path, "-") == 0 ? "standard input" : path, sets, ret, e);
}

int job_load_all(const char *path, const struct strlist *sets, struct strlist *faults, struct job **ret, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    AUTO(job) *j = xcalloc(1, sizeof(*j));
    struct err ignored;

    if (file_read(path, MANIFEST_MAX, &text, e) < 0)
        return err_wrap(e, "job file");
    j->file = xstrdup(strcmp(path, "-") == 0 ? "standard input" : path);
    if (read_document(text.data, text.len, j->file, j, e) < 0 || apply_sets(j, sets, e) < 0)
        return -1;
    source_collect(j->source, faults);
    if (parse_and_check(j, &ignored) < 0)
        job_keep_sound(j);
    *ret = TAKE(j);
    return 0;
}

int job_load(const char *path, struct job **ret, struct err *e)
{
    return job_load_with(path, NULL, ret, e);
}

/* ---- an object of the API server ---- */

/* Puts a copy of the member into `to`; absent stays absent. */
static void copy_member(const json_t *from, const char *key, json_t *to)
{
    json_t *v = json_object_get(from, key);
    if (v != NULL)
        json_object_set_new(to, key, json_deep_copy(v));
}

/* What a job is made of. The rest of an object (status, managedFields, what later servers may add) is the server's. */
static json_t *copy_object(const json_t *doc)
{
    static const char *const METADATA[] = { "name", "namespace", "uid", "labels", "annotations" };
    json_t *metadata = json_object(), *copy = json_object();

    for (size_t i = 0; i < COUNT_OF(METADATA); i++)
        copy_member(json_object_get(doc, "metadata"), METADATA[i], metadata);
    copy_member(doc, "apiVersion", copy);
    copy_member(doc, "kind", copy);
    json_object_set_new(copy, "metadata", metadata);
    copy_member(doc, "spec", copy);
    return copy;
}

int job_from_value(const json_t *doc, const char *name, struct job **ret, struct err *e)
{
    AUTO(job) *j = xcalloc(1, sizeof(*j));

    j->file = xstrdup(name);
    j->source = source_new(name);
    j->doc = copy_object(doc);
    if (json_depth(j->doc) > JSON_DEPTH_MAX)
        return err_set(e, ERR_INPUT, "%s: lists and maps are nested more than %d deep", name, JSON_DEPTH_MAX);
    if (!is_train_job(NULL, j->doc))
        return not_a_train_job(j->doc, j->source, e);
    if (check_api_version(j->doc, j->source, e) < 0 || parse_and_check(j, e) < 0)
        return -1;
    *ret = TAKE(j);
    return 0;
}

bool job_evaluates(const struct job *j)
{
    return j->validation.present || j->fit.validation_split > 0;
}

void job_free(struct job *j)
{
    if (j == NULL)
        return;
    data_spec_fini(&j->train);
    data_spec_fini(&j->validation);
    json_decref(j->doc);
    source_free(j->source);
    free(j->file);
    free(j);
}
