/* Hyperparameters for TensorBoard's HParams tab: three summaries of the plugin "hparams" at step 0 carry all in their
 * metadata (tfio/hparams.proto); their tensor is an empty float32 vector. */
#include "tensor/tensor.h"
#include "tfio/event_writer_internal.h"
#include "tfio/hparams.pb-c.h"

static int write_plugin_data(struct event_writer *w, double wall, const char *tag,
                             const Tensorboard__HParamsPluginData *data, struct err *e)
{
    AUTO_FINI(buf) content = BUF_INIT;
    Tensorflow__Summary__Value v;
    tensorflow__summary__value__init(&v);
    Tensorflow__SummaryMetadata metadata = TENSORFLOW__SUMMARY_METADATA__INIT;
    Tensorflow__SummaryMetadata__PluginData plugin;
    tensorflow__summary_metadata__plugin_data__init(&plugin);
    Tensorflow__TensorProto tensor = TENSORFLOW__TENSOR_PROTO__INIT;
    Tensorflow__TensorShapeProto shape = TENSORFLOW__TENSOR_SHAPE_PROTO__INIT;
    Tensorflow__TensorShapeProto__Dim dim = TENSORFLOW__TENSOR_SHAPE_PROTO__DIM__INIT, *dims[] = { &dim };

    protobuf_append(&data->base, &content);
    plugin.plugin_name = unconst("hparams");
    plugin.content = (ProtobufCBinaryData){ .len = content.len, .data = (uint8_t *)content.data };
    metadata.plugin_data = &plugin;
    metadata.data_class = DATA_CLASS_TENSOR;
    shape.dim = dims;
    shape.n_dim = COUNT_OF(dims);
    tensor.dtype = DT_FLOAT;
    tensor.tensor_shape = &shape;
    v.tag = unconst(tag);
    v.metadata = &metadata;
    v.value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_TENSOR;
    v.tensor = &tensor;
    return event_writer_value(w, wall, 0, &v, e);
}

static Tensorboard__DataType type_of(const json_t *v)
{
    return json_is_boolean(v)  ? TENSORBOARD__DATA_TYPE__DATA_TYPE_BOOL
           : json_is_number(v) ? TENSORBOARD__DATA_TYPE__DATA_TYPE_FLOAT64
                               : TENSORBOARD__DATA_TYPE__DATA_TYPE_STRING;
}

/* text: becomes the JSON of what is neither string, number nor boolean. */
static void set_value(const json_t *v, struct buf *text, Tensorboard__Value *ret)
{
    if (json_is_boolean(v)) {
        ret->kind_case = TENSORBOARD__VALUE__KIND_BOOL_VALUE;
        ret->bool_value = json_is_true(v);
    } else if (json_is_number(v)) {
        ret->kind_case = TENSORBOARD__VALUE__KIND_NUMBER_VALUE;
        ret->number_value = json_number_value(v);
    } else {
        if (!json_is_string(v))
            json_emit(v, text);
        ret->kind_case = TENSORBOARD__VALUE__KIND_STRING_VALUE;
        ret->string_value = unconst(json_is_string(v) ? json_string_value(v) : text->data);
    }
}

static void set_hparam_infos(const json_t *hparams, Tensorboard__HParamInfo *infos, Tensorboard__HParamInfo **ret)
{
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)unconst(hparams), key, item)
    {
        tensorboard__hparam_info__init(infos);
        infos->name = unconst(key);
        infos->type = type_of(item);
        *ret++ = infos++;
    }
}

struct metric_entry {
    Tensorboard__MetricInfo info;
    Tensorboard__MetricName name;
};

static void set_metric_infos(const char *const metrics[], size_t n, struct metric_entry *entries,
                             Tensorboard__MetricInfo **ret)
{
    for (size_t i = 0; i < n; i++) {
        tensorboard__metric_info__init(&entries[i].info);
        tensorboard__metric_name__init(&entries[i].name);
        entries[i].name.tag = unconst(metrics[i]);
        entries[i].info.name = &entries[i].name;
        ret[i] = &entries[i].info;
    }
}

static int write_experiment(struct event_writer *w, double wall, const json_t *hparams, const char *const metrics[],
                            size_t nmetrics, struct err *e)
{
    Tensorboard__HParamsPluginData data = TENSORBOARD__HPARAMS_PLUGIN_DATA__INIT;
    Tensorboard__Experiment experiment = TENSORBOARD__EXPERIMENT__INIT;
    size_t n = json_object_size(hparams);
    auto_free Tensorboard__HParamInfo *infos = xcalloc(n + 1, sizeof(*infos));
    auto_free Tensorboard__HParamInfo **info_list = xcalloc(n + 1, sizeof(*info_list));
    auto_free struct metric_entry *entries = xcalloc(nmetrics + 1, sizeof(*entries));
    auto_free Tensorboard__MetricInfo **metric_list = xcalloc(nmetrics + 1, sizeof(*metric_list));

    set_hparam_infos(hparams, infos, info_list);
    set_metric_infos(metrics, nmetrics, entries, metric_list);
    experiment.time_created_secs = wall;
    experiment.hparam_infos = info_list;
    experiment.n_hparam_infos = n;
    experiment.metric_infos = metric_list;
    experiment.n_metric_infos = nmetrics;
    data.data_case = TENSORBOARD__HPARAMS_PLUGIN_DATA__DATA_EXPERIMENT;
    data.experiment = &experiment;
    return write_plugin_data(w, wall, "_hparams_/experiment", &data, e);
}

/* An entry of the map, with the memory of its text. */
struct hparam_entry {
    Tensorboard__SessionStartInfo__HparamsEntry entry;
    Tensorboard__Value value;
    struct buf text;
};

static int write_session_start(struct event_writer *w, double wall, const json_t *hparams, const char *group,
                               struct err *e)
{
    Tensorboard__HParamsPluginData data = TENSORBOARD__HPARAMS_PLUGIN_DATA__INIT;
    Tensorboard__SessionStartInfo start;
    size_t n = json_object_size(hparams), i = 0;
    auto_free struct hparam_entry *entries = xcalloc(n + 1, sizeof(*entries));
    auto_free Tensorboard__SessionStartInfo__HparamsEntry **list = xcalloc(n + 1, sizeof(*list));
    const char *key;
    json_t *item;

    json_object_foreach((json_t *)unconst(hparams), key, item)
    {
        struct hparam_entry *h = &entries[i];
        tensorboard__session_start_info__hparams_entry__init(&h->entry);
        tensorboard__value__init(&h->value);
        h->text = (struct buf)BUF_INIT;
        set_value(item, &h->text, &h->value);
        h->entry.key = unconst(key);
        h->entry.value = &h->value;
        list[i++] = &h->entry;
    }
    tensorboard__session_start_info__init(&start);
    start.hparams = list;
    start.n_hparams = i;
    start.group_name = unconst(group);
    start.start_time_secs = wall;
    data.data_case = TENSORBOARD__HPARAMS_PLUGIN_DATA__DATA_SESSION_START_INFO;
    data.session_start_info = &start;
    int result = write_plugin_data(w, wall, "_hparams_/session_start_info", &data, e);
    while (i > 0)
        buf_fini(&entries[--i].text);
    return result;
}

int event_writer_hparams(struct event_writer *w, double wall, const json_t *hparams, const char *const metrics[],
                         size_t nmetrics, const char *group, struct err *e)
{
    if (write_experiment(w, wall, hparams, metrics, nmetrics, e) < 0)
        return -1;
    return write_session_start(w, wall, hparams, group, e);
}

int event_writer_hparams_end(struct event_writer *w, double wall, bool success, struct err *e)
{
    Tensorboard__HParamsPluginData data = TENSORBOARD__HPARAMS_PLUGIN_DATA__INIT;
    Tensorboard__SessionEndInfo end = TENSORBOARD__SESSION_END_INFO__INIT;
    end.status = success ? TENSORBOARD__STATUS__STATUS_SUCCESS : TENSORBOARD__STATUS__STATUS_FAILURE;
    end.end_time_secs = wall;
    data.data_case = TENSORBOARD__HPARAMS_PLUGIN_DATA__DATA_SESSION_END_INFO;
    data.session_end_info = &end;
    return write_plugin_data(w, wall, "_hparams_/session_end_info", &data, e);
}
