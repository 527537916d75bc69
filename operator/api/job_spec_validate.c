/* Finds why a spec cannot run, as a message for users. A TrainJob is validated as by `trainyard validate`. A TFJob is
 * checked for errors that training-operator's webhook refuses, and for specs with which it would hang or end at once
 * (an older CRD may accept them). */
#include <ctype.h>
#include <string.h>

#include "api/job_spec_internal.h"
#include "api/job_status.h"
#include "job/pod_template.h"
#include "job/replica_file.h"
#include "nn/callback.h"
#include "nn/class_weight.h"
#include "nn/model.h"
#include "nn/sync_check.h"

enum { DNS_LABEL_MAX = 63 };
#define SOURCE "TrainJob" /* messages of lib/job begin with it here; it is removed afterwards */

/* ---- TrainJob ---- */

/* model NULL: the model is unknown here. */
static int validate_fit(const struct job *j, const struct model *model, struct err *e)
{
    return callbacks_check(&j->callbacks, model, job_evaluates(j), e) < 0
               ? -1
               : class_weights_check(&j->class_weight, model, e);
}

/* A kerasFile is on a volume that only the replicas mount: only the other fields of such a model are validated. */
static int validate_without_model(const struct job *j, struct err *e)
{
    return model_check_compile(&j->compile, e) < 0 ? -1 : validate_fit(j, NULL, e);
}

static int validate_model(const struct job *j, struct err *e)
{
    AUTO(model) *model = NULL;
    struct node file = node_get(&j->model, "kerasFile"), shape = node_get(&j->model, "inputShape");

    if (node_present(&file) && node_size(&j->model) == (node_present(&shape) ? 2 : 1))
        return validate_without_model(j, e);
    if (model_input_is_open(&j->model)) /* the data are not here */
        return model_check(&j->model, &j->compile, e) < 0 ? -1 : validate_fit(j, NULL, e);
    if (model_build(&j->model, &j->compile, "", &model, e) < 0 || sync_check(j, model, e) < 0)
        return -1;
    return validate_fit(j, model, e);
}

static int validate_train_job_spec(const json_t *object, struct err *e)
{
    AUTO(job) *j = NULL;

    if (job_from_value(object, SOURCE, &j, e) < 0)
        return -1;
    if (!j->has_model)
        return 0;
    if (job_replica_file_fits(object, e) < 0 || job_check_devices(j, job_ps_count(j), e) < 0)
        return -1;
    return validate_model(j, e);
}

/* The message without the name of its source. */
static void keep_fault(struct spec_reader *r, const struct err *why)
{
    const char *prefix = SOURCE ": ";
    const char *text = str_starts(why->msg, prefix) ? why->msg + strlen(prefix) : why->msg;

    err_put(&r->fault, why->code, "%s", text);
}

/* Every container except the trainer must name its image; the trainer may use the built-in one. */
static void validate_sidecars(struct spec_reader *r, enum role role)
{
    struct node template = node_get(&r->role[role], "template"), spec = node_get(&template, "spec"),
                list = node_get(&spec, "containers");

    for (size_t i = 0; json_is_array(list.v) && i < node_size(&list); i++) {
        struct node one = node_item(&list, i), image = node_get(&one, "image");
        const char *name = json_string_value(json_object_get(one.v, "name"));
        if (!str_eq(name, r->v->kind->container) && !node_present(&image))
            node_error(&one, spec_reader_fault(r), "has no image; only a container called '%s' has a built-in one",
                       r->v->kind->container);
    }
}

/* ---- both ---- */

/* Without a training replica the job could never succeed, or would succeed at once. */
static void validate_trainers(struct spec_reader *r)
{
    const struct role_spec *chief = &r->v->roles[ROLE_CHIEF], *worker = &r->v->roles[ROLE_WORKER];
    struct node count = node_get(&r->role[chief->present ? ROLE_CHIEF : ROLE_WORKER], "replicas");

    if (!chief->present && !worker->present)
        node_error(&r->roles, spec_reader_fault(r),
                   "no replica trains, so the job could never succeed; add 'Worker' or 'Chief'");
    else if (r->v->kind->own_processes ? chief->replicas + worker->replicas == 0
                                       : (chief->present ? chief : worker)->replicas == 0)
        node_error(&count, spec_reader_fault(r), "must be at least 1: the job ends when this role ends");
}

/* ---- TFJob ---- */

static bool is_dns_label(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || !islower((unsigned char)s[0]) || s[n - 1] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!islower((unsigned char)s[i]) && !isdigit((unsigned char)s[i]) && s[i] != '-')
            return false;
    return true;
}

/* Pods and services are called NAME-ROLE-INDEX, which must be a DNS label too. */
static void validate_name(struct spec_reader *r)
{
    const struct job_spec *v = r->v;
    struct node name = node_get(&r->metadata, "name");
    char longest[128] = "", replica[128];

    if (!is_dns_label(v->name)) {
        node_error(
            &name, spec_reader_fault(r),
            "'%.80s' is not a valid job name: it is made of a-z, 0-9 and '-', begins with a letter and does not end "
            "with '-'",
            v->name);
        return;
    }
    for (int role = 0; role < ROLE_COUNT; role++) {
        if (v->roles[role].replicas == 0)
            continue;
        job_spec_pod_name(v, (enum role)role, v->roles[role].replicas - 1, replica);
        if (strlen(replica) > strlen(longest))
            str_fmt(longest, sizeof(longest), "%s", replica);
    }
    if (MAX(strlen(longest), strlen(v->name)) > DNS_LABEL_MAX)
        node_error(&name, spec_reader_fault(r),
                   "is too long: replica '%s' would have a name of %zu characters, at most %d are possible", longest,
                   strlen(longest), DNS_LABEL_MAX);
}

static void validate_container(struct spec_reader *r, const struct node *n)
{
    struct node image = node_get(n, "image");
    const char *text = json_string_value(image.v);

    if (!node_present(&image))
        node_error(n, spec_reader_fault(r), "'image' is missing");
    else if (text == NULL || text[0] == '\0')
        node_error(&image, spec_reader_fault(r), "must be the name of an image");
}

static void validate_template(struct spec_reader *r, enum role role)
{
    const char *wanted = r->v->kind->container;
    struct node template = node_get(&r->role[role], "template"), spec = node_get(&template, "spec"),
                list = node_get(&spec, "containers");
    bool found = false;

    if (!json_is_array(list.v) || node_size(&list) == 0) {
        node_error(&list, spec_reader_fault(r), "is missing; one called '%s' is needed", wanted);
        return;
    }
    for (size_t i = 0; i < node_size(&list); i++) {
        struct node one = node_item(&list, i);
        validate_container(r, &one);
        found = found || str_eq(json_string_value(json_object_get(one.v, "name")), wanted);
    }
    if (!found)
        node_error(&list, spec_reader_fault(r), "none is called '%s', which is the one that trains", wanted);
    struct err why = { .code = ERR_NONE };
    if (pod_template_check_resources(&template, &why) < 0)
        err_put(spec_reader_fault(r), why.code, "%s", why.msg);
}

static void validate_tf_job(struct spec_reader *r)
{
    if (!json_is_object(r->roles.v) || node_size(&r->roles) == 0) {
        node_error(&r->roles, spec_reader_fault(r), "is missing; it names the replicas: Chief, PS, Worker, Evaluator");
        return;
    }
    validate_name(r);
    for (int role = 0; role < ROLE_COUNT; role++)
        if (r->v->roles[role].present)
            validate_template(r, (enum role)role);
    validate_trainers(r);
}

static void validate_train_job(struct spec_reader *r)
{
    struct err why = { .code = ERR_NONE };

    if (validate_train_job_spec(r->object, &why) < 0) {
        keep_fault(r, &why);
        return;
    }
    for (int role = 0; role < ROLE_COUNT; role++)
        validate_sidecars(r, (enum role)role);
    validate_trainers(r);
}

/* The status has the result of the validation for a generation: the plan continued, or set the condition InvalidSpec.
 * So an operator that starts or becomes the leader validates only new generations. A refused change is validated again
 * to get the message. */
static bool was_validated(struct spec_reader *r)
{
    AUTO_FINI(job_status) st = { 0 };

    job_status_parse(json_object_get(r->object, "status"), &st);
    const struct condition *failed = job_status_find(&st, COND_FAILED);
    if (r->v->generation == 0 || st.observed_generation != r->v->generation || st.nconds == 0 ||
        job_status_is(&st, COND_REFUSED))
        return false;
    if (failed != NULL && failed->is_true && str_eq(failed->reason, "InvalidSpec"))
        err_put(spec_reader_fault(r), ERR_INPUT, "%s", failed->message);
    return true;
}

void job_spec_validate(struct spec_reader *r)
{
    if (r->v->deleting || r->v->managed_elsewhere || (r->v->kind->own_processes && was_validated(r)))
        return;
    if (r->v->kind->own_processes)
        validate_train_job(r);
    else
        validate_tf_job(r);
}
