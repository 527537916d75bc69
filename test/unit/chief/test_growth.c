/* Every parser of lib/ reads in time that grows with the input, not with its square. In each input, whatever a parser
 * looks up, counts or compares occurs n times. */
#include <unistd.h>
#include <zlib.h>

#include "../growth.h"
#include "base/file.h"
#include "base/str.h"
#include "codec/base64.h"
#include "codec/crc32c.h"
#include "codec/json_prune.h"
#include "codec/pb.h"
#include "codec/yaml.h"
#include "data/arrays.h"
#include "data/dataset.h"
#include "data/gzip.h"
#include "data/transcode.h"
#include "growth_data.h"
#include "job/fields.h"
#include "job/tf_config.h"
#include "nn/model.h"
#include "rpc/split.h"
#include "shard/ordinal_set.h"
#include "tfio/bundle_index.h"
#include "tfio/bundle_table.h"
#include "tfio/checkpoint_state.h"
#include "tfio/event_value.h"

/* ---- YAML ---- */

static void read_yaml(const char *text, size_t len)
{
    struct err e = { .code = ERR_NONE };
    json_auto_t *v = NULL;
    AUTO(source) *src = NULL;
    ck_ok_e(yaml_parse(text, len, "growth", &v, &src, &e));
}

static void refuse_yaml(const char *text, size_t len)
{
    json_auto_t *v = NULL;
    AUTO(source) *src = NULL;
    ck_assert_int_eq(yaml_parse(text, len, "growth", &v, &src, NULL), -1);
}

static void yaml_keys(size_t n, struct buf *out)
{
    number(out, n, "key", ": 1\n");
}

static void yaml_items(size_t n, struct buf *out)
{
    buf_str(out, "list:\n");
    number(out, n, "- {name: a", ", value: 1.5}\n");
}

/* The path of each item is as long as the list. */
static void yaml_long_path(size_t n, struct buf *out)
{
    buf_str(out, "? ");
    repeat(out, n, "abcdefgh");
    buf_str(out, "\n: [1");
    repeat(out, n, ", 1");
    buf_str(out, "]\n");
}

static void yaml_documents(size_t n, struct buf *out)
{
    repeat(out, n, "---\na: 1\n");
}

static void yaml_anchors(size_t n, struct buf *out)
{
    buf_str(out, "list:\n");
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "- &a%zu {b: 1}\n- *a%zu\n- <<: *a%zu\n", i, i, i);
}

static void yaml_text(size_t n, struct buf *out)
{
    buf_str(out, "a: \"");
    repeat(out, n, "x\\ty ");
    buf_str(out, "\"\nb: |\n");
    repeat(out, n, "  text\n");
    buf_str(out, "c: ");
    repeat(out, n, "word ");
}

static void yaml_digits(size_t n, struct buf *out)
{
    buf_str(out, "a: 0.");
    repeat(out, n, "1234567");
}

static void yaml_brackets(size_t n, struct buf *out)
{
    buf_str(out, "a: ");
    repeat(out, n, "[");
}

static void yaml_tag_directives(size_t n, struct buf *out)
{
    number(out, n, "%TAG !h", "! tag:a\n");
    buf_str(out, "---\na: 1\n");
}

/* ---- JSON ---- */

static void read_json(const char *text, size_t len)
{
    struct err e = { .code = ERR_NONE };
    json_auto_t *v = NULL;
    AUTO_FINI(buf) out = BUF_INIT;
    ck_ok_e(json_parse(text, len, "growth", &v, &e));
    json_emit(v, &out);
}

static void cut_json(const char *text, size_t len)
{
    AUTO_FINI(strlist) paths = { 0 };
    AUTO_FINI(buf) out = BUF_INIT;
    strlist_split(&paths, "items.*.metadata.managedFields items.*.spec", ' ');
    json_prune(text, len, &paths, &out);
    ck_assert_uint_lt(out.len, len);
}

static void json_keys(size_t n, struct buf *out)
{
    buf_str(out, "{\"text\": \"");
    repeat(out, n, "a\\n\\u00e9");
    buf_str(out, "\"");
    number(out, n, ", \"key", "\": [0.905, 12]");
    buf_str(out, "}");
}

static void json_items(size_t n, struct buf *out)
{
    buf_str(out, "{\"items\": [{}");
    number(out, n, ", {\"metadata\": {\"name\": \"p", "\", \"managedFields\": [{}, 1]}, \"spec\": {\"a\": \"]}\"}}");
    buf_str(out, "]}");
}

static void json_digits(size_t n, struct buf *out)
{
    buf_str(out, "[0.");
    repeat(out, n, "1234567");
    buf_str(out, "]");
}

/* ---- manifests ---- */

static const char HEAD[] = "apiVersion: trainyard.dev/v1alpha1\nkind: TrainJob\nmetadata: {name: a}\nspec:\n";
static const char TAIL[] = "  compile: {optimizer: SGD, loss: mse}\n  fit: {epochs: 1}\n";

static void judge(const char *text, size_t len)
{
    struct err e = { .code = ERR_NONE };
    AUTO(job) *j = NULL;
    AUTO(model) *m = NULL;
    ck_ok_e(job_parse(text, len, "growth", &j, &e));
    ck_ok_e(model_build(&j->model, &j->compile, "", &m, &e));
}

static void refuse_job(const char *text, size_t len)
{
    struct err e = { .code = ERR_NONE };
    AUTO(job) *j = NULL;
    ck_assert_int_eq(job_parse(text, len, "growth", &j, &e), -1);
    ck_assert_str_ne(e.msg, "");
}

static void job_layers(size_t n, struct buf *out)
{
    buf_printf(
        out, "%s%s  data: {train: {format: idx, features: x, labels: y}}\n  model:\n    inputShape: [1]\n    layers:\n",
        HEAD, TAIL);
    repeat(out, n / 2, "    - Dense: {units: 1}\n    - Flatten\n");
}

/* Automatic names meet given ones. */
static void job_named_layers(size_t n, struct buf *out)
{
    buf_printf(
        out, "%s%s  data: {train: {format: idx, features: x, labels: y}}\n  model:\n    inputShape: [1]\n    layers:\n",
        HEAD, TAIL);
    number(out, n / 2, "    - Dense: {units: 1, name: dense_", "}\n");
    repeat(out, n / 2, "    - Dense: {units: 1}\n");
}

static void job_keras(size_t n, struct buf *out)
{
    buf_printf(out,
               "%s%s  data: {train: {format: idx, features: x, labels: y}}\n  model:\n    keras: '{\"class_name\": "
               "\"Sequential\", \"config\": {\"name\": \"s\", \"layers\": [{\"class_name\": \"InputLayer\", "
               "\"config\": {\"batch_shape\": [null, 1]}}",
               HEAD, TAIL);
    repeat(out, n, ", {\"class_name\": \"Dense\", \"config\": {\"units\": 1}}");
    buf_str(out, "]}}'\n");
}

static void job_columns(size_t n, struct buf *out)
{
    buf_printf(out,
               "%s%s  model: {inputShape: [1], layers: [Dense: {units: 1}]}\n  data: {train: {format: csv, files: [a",
               HEAD, TAIL);
    number(out, n, ", f", "");
    buf_str(out, "], columns: [{name: c, type: category, vocabulary: [w");
    number(out, n, ", v", "");
    buf_str(out, "], encoding: int}");
    number(out, n, ", {name: c", ", type: int, default: 3}");
    buf_str(out, "]}}\n");
}

/* One map with n keys where the manifest expects few. */
static void job_strange_keys(size_t n, struct buf *out)
{
    buf_printf(out,
               "%s%s  data: {train: {format: idx, features: x, labels: y}}\n  model:\n    inputShape: [1]\n    "
               "layers:\n    - {",
               HEAD, TAIL);
    number(out, n, "k", ": {}, ");
    buf_str(out, "}\n");
    number(out, n, "  k", ": 1\n");
}

static void read_set(const char *text, size_t len)
{
    struct err e = { .code = ERR_NONE };
    json_auto_t *doc = json_pack("{s:{s:{}}}", "spec", "fit");
    AUTO(source) *src = source_new("growth");
    (void)len;
    if (override_apply(doc, src, text, &e) < 0)
        ck_assert_str_ne(e.msg, "");
}

static void set_names(size_t n, struct buf *out)
{
    repeat(out, n, "a.");
    buf_str(out, "b=1");
}

static void set_value(size_t n, struct buf *out)
{
    buf_str(out, "a.b=[1");
    repeat(out, n, ", 1");
    buf_str(out, "]");
}

static void read_tf_config(const char *text, size_t len)
{
    struct cluster_input nothing = { .tf_config = NULL }, env = { .tf_config = text };
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(cluster) c = { .configured = false };
    (void)len;
    ck_ok_e(cluster_resolve(&nothing, &env, &c, &e));
}

static void tf_config_dense(size_t n, struct buf *out)
{
    buf_str(out, "{\"cluster\": {\"ps\": [\"p:1\"], \"worker\": [\"w:1\"");
    number(out, n - 1, ", \"w", ":2222\"");
    buf_str(out, "]}, \"task\": {\"type\": \"worker\", \"index\": 0}}");
}

static void tf_config_sparse(size_t n, struct buf *out)
{
    buf_str(out, "{\"cluster\": {\"ps\": [\"p:1\"], \"worker\": {\"0\": \"w:1\"");
    for (size_t i = 1; i < n; i++)
        buf_printf(out, ", \"%zu\": \"w%zu:2222\"", i, i);
    buf_str(out, "}}, \"task\": {\"type\": \"worker\", \"index\": 0}}");
}

/* ---- data files ---- */

static void read_csv(const char *text, size_t len)
{
    growth_open_data("{format: csv, files: t}", text, len);
}

static void csv_rows(size_t n, struct buf *out)
{
    buf_str(out, "a,b,label\n");
    repeat(out, n, "1.5,\"2\",0\n\n");
}

static void read_jsonl(const char *text, size_t len)
{
    growth_open_data("{format: jsonl, files: t, dropColumns: [b]}", text, len);
}

static void jsonl_rows(size_t n, struct buf *out)
{
    repeat(out, n, "{\"a\": 1.5, \"label\": 0, \"b\": {\"c\": [null]}}\n\n");
}

static void jsonl_keys(size_t n, struct buf *out)
{
    for (int row = 0; row < 2; row++) {
        buf_char(out, '{');
        number(out, n, "\"name", "\": 0.25, ");
        buf_str(out, "\"b\": {}, \"label\": 1}\n");
    }
}

static void read_lists(const char *text, size_t len)
{
    growth_open_data("{format: jsonl, files: t, columns: [{name: a, type: int, outputSequenceLength: 9}]}", text, len);
}

static void jsonl_list(size_t n, struct buf *out)
{
    buf_str(out, "{\"label\": 1, \"a\": [0");
    repeat(out, n, ", 7");
    buf_str(out, "]}\n");
}

static int count_bytes(void *user, const void *data, size_t n, struct err *e)
{
    (void)data, (void)e;
    *(size_t *)user += n;
    return 0;
}

/* The check of UTF-8, and what is found not to be UTF-8 at its end. */
static void read_latin1(const char *text, size_t len)
{
    struct encoded_text t = {
        .encoding = TEXT_WINDOWS_1252, .p = (const unsigned char *)text, .n = len, .path = "growth"
    };
    struct err e = { .code = ERR_NONE };
    size_t total = 0;
    ck_assert_uint_eq(transcode_utf8(t.p, t.n), len - 1);
    ck_ok_e(transcode_pieces(&t, count_bytes, &total, &e));
}

static void latin1_text(size_t n, struct buf *out)
{
    repeat(out, n, "1,K\xC3\xB6ln\n");
    buf_char(out, '\xF6');
}

static void read_utf16(const char *text, size_t len)
{
    struct encoded_text t = { .encoding = TEXT_UTF16LE, .p = (const unsigned char *)text, .n = len, .path = "growth" };
    struct err e = { .code = ERR_NONE };
    size_t total = 0;
    ck_ok_e(transcode_pieces(&t, count_bytes, &total, &e));
}

static void utf16_text(size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++)
        buf_add(out, "1\0,\0\x3D\xD8\0\xDE\n", 10);
}

static void csv_columns(size_t n, struct buf *out)
{
    number(out, n, "name", ",");
    buf_str(out, "label\n");
    for (int row = 0; row < 2; row++) {
        repeat(out, n, "0.25,");
        buf_str(out, "1\n");
    }
}

/* The description of the columns, which the file of csv_columns() has, comes first. */
static void read_described_csv(const char *text, size_t len)
{
    const char *file = strchr(text, '\n') + 1;
    auto_free char *yaml = xstrndup(text, (size_t)(file - text - 1));
    growth_open_data(yaml, file, len - (size_t)(file - text));
}

static void csv_described(size_t n, struct buf *out)
{
    buf_str(out, "{format: csv, files: t, columns: [");
    number(out, n, "{name: name", "}, ");
    buf_str(out, "]}\n");
    csv_columns(n, out);
}

static void read_tfrecord(const char *text, size_t len)
{
    growth_open_data(
        "{format: tfrecord, files: t, columns: [{name: a, type: float, default: 1}, {name: label, type: int64, "
        "default: 1}]}",
        text, len);
}

static void put_record(struct buf *out, const struct buf *message)
{
    uint64_t length = message->len;
    buf_u64le(out, length);
    buf_u32le(out, crc32c_mask(crc32c(0, &length, sizeof(length))));
    buf_add(out, message->data, message->len);
    buf_u32le(out, crc32c_mask(crc32c(0, message->data, message->len)));
}

static void tfrecord_records(size_t n, struct buf *out)
{
    AUTO_FINI(buf) empty = BUF_INIT;
    for (size_t i = 0; i < n; i++)
        put_record(out, &empty);
}

/* One record of n features, none of which is wanted. */
static void tfrecord_features(size_t n, struct buf *out)
{
    AUTO_FINI(buf) features = BUF_INIT, message = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        AUTO_FINI(buf) entry = BUF_INIT;
        auto_free char *name = xasprintf("f%zu", i);
        pb_put_str(&entry, 1, name);
        pb_put_bytes(&features, 1, entry.data, entry.len);
    }
    pb_put_bytes(&message, 1, features.data, features.len);
    put_record(out, &message);
}

static void read_feature_list(const char *text, size_t len)
{
    growth_open_data("{format: tfrecord, files: t, columns: [{name: a, type: int64, outputSequenceLength: 9}, {name: "
                     "label, type: int64, default: 1}]}",
                     text, len);
}

/* One record with a feature list of n steps, each the number 7. */
static void tfrecord_steps(size_t n, struct buf *out)
{
    static const unsigned char STEP[] = { 0x1a, 2, 0x08, 7 }; /* int64_list { value: 7 } */
    AUTO_FINI(buf) steps = BUF_INIT, entry = BUF_INIT, lists = BUF_INIT, message = BUF_INIT;
    for (size_t i = 0; i < n; i++)
        pb_put_bytes(&steps, 1, STEP, sizeof(STEP));
    pb_put_str(&entry, 1, "a");
    pb_put_bytes(&entry, 2, steps.data, steps.len);
    pb_put_bytes(&lists, 1, entry.data, entry.len);
    pb_put_bytes(&message, 2, lists.data, lists.len);
    put_record(out, &message);
}

static void cifar_records(size_t n, struct buf *out)
{
    repeat(out, 3073 * n, "\1");
}

static void read_cifar(const char *text, size_t len)
{
    growth_open_data("{format: cifar, files: t}", text, len);
}

static void read_idx(const char *text, size_t len)
{
    struct err e = { .code = ERR_NONE };
    struct array a;
    for (int i = 0; i < 1000; i++) /* only the header is read */
        ck_ok_e(idx_parse(text, len, "growth", &a, &e));
    ck_assert_uint_ne(crc32c(0, text, len), 0);
}

static void idx_bytes(size_t n, struct buf *out)
{
    const unsigned char head[] = {
        0, 0, 8, 1, (unsigned char)(n >> 24), (unsigned char)(n >> 16), (unsigned char)(n >> 8), (unsigned char)n
    };
    buf_add(out, head, sizeof(head));
    repeat(out, n, "x");
}

static void read_npy(const char *text, size_t len)
{
    struct err e = { .code = ERR_NONE };
    struct array a;
    ck_ok_e(npy_parse(text, len, "growth", &a, &e));
}

static void npy_header(size_t n, struct buf *out)
{
    AUTO_FINI(buf) dict = BUF_INIT;
    buf_str(&dict, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    repeat(&dict, n, " ");
    buf_str(&dict, "1,), }\n");
    buf_add(out, "\x93NUMPY\x02\x00", 8);
    buf_u32le(out, (uint32_t)dict.len);
    buf_add(out, dict.data, dict.len);
    buf_u32le(out, 0);
}

static void read_gzip(const char *text, size_t len)
{
    struct err e = { .code = ERR_NONE };
    size_t total = 0;
    ck_ok_e(decompress_pieces(PACKED_GZIP, text, len, "growth", count_bytes, &total, &e));
}

static void gzip_members(size_t n, struct buf *out)
{
    static const unsigned char MEMBER[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    for (size_t i = 0; i < n; i++)
        buf_add(out, MEMBER, sizeof(MEMBER));
}

/* ---- bytes of TensorFlow's formats and of the wire ---- */

static void read_base64(const char *text, size_t len)
{
    AUTO_FINI(buf) out = BUF_INIT;
    struct err e = { .code = ERR_NONE };
    ck_ok_e(base64_decode(text, len, &out, &e));
}

static void base64_lines(size_t n, struct buf *out)
{
    repeat(out, n, "QUJDREVGR0hJ\n");
}

static void read_pb(const char *text, size_t len)
{
    struct reader r = reader_of(text, len);
    struct pb_field f;
    while (pb_next(&r, &f) == 1)
        ;
    ck_assert_uint_eq(reader_left(&r), 0);
}

static void pb_fields(size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        pb_put_varint(out, 3, i);
        pb_put_str(out, 4, "text");
    }
}

static void read_split(const char *text, size_t len)
{
    struct rpc_split at;
    struct err e = { .code = ERR_NONE };
    struct rpc_span span = { (const unsigned char *)text, len };
    ck_ok_e(rpc_split(&span, 1, &at, &e));
}

static void read_event(const char *text, size_t len)
{
    AUTO_FINI(event_record) record = { .next = 0 };
    AUTO_FINI(event_value) value = EVENT_VALUE_INIT;
    AUTO_FINI(map) plugins = { 0 };
    const struct map_slot *plugin;
    ck_assert_int_eq(event_record_read(text, len, &record), 0);
    while (event_record_next(&record, &plugins, &value))
        ;
    for (size_t i = 0; (plugin = map_next(&plugins, &i)) != NULL;)
        free(plugin->value);
}

static void event_values(size_t n, struct buf *out)
{
    AUTO_FINI(buf) summary = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        AUTO_FINI(buf) value = BUF_INIT;
        auto_free char *tag = xasprintf("tag%zu", i);
        pb_put_str(&value, 1, tag);
        pb_put_float(&value, 2, 1.5f);
        pb_put_bytes(&summary, 1, value.data, value.len);
    }
    pb_put_varint(out, 2, 3);
    pb_put_bytes(out, 5, summary.data, summary.len);
}

static void read_state(const char *text, size_t len)
{
    AUTO_FINI(strlist) all = { 0 };
    auto_free char *latest = NULL;
    ck_assert_int_eq(checkpoint_state_parse(text, len, &all, &latest, NULL), 0);
}

static void state_paths(size_t n, struct buf *out)
{
    repeat(out, n, "model_checkpoint_path: \"m\"\n");
    number(out, n, "all_model_checkpoint_paths: \"model.ckpt-", "\"\n");
}

static void read_index(const char *text, size_t len)
{
    AUTO_FINI(bundle_index) x = { .n = 0 };
    struct err e = { .code = ERR_NONE };
    ck_ok_e(bundle_index_read(text, len, true, &x, &e));
}

/* n tensors, all whole: variables in two slices would need more than an index holds. */
static void index_tensors(size_t n, struct buf *out)
{
    AUTO(table_writer) *t = table_writer_new();
    AUTO_FINI(buf) header = BUF_INIT;
    bundle_put_header(&header, 1);
    table_writer_add(t, "", 0, &header);
    for (size_t i = 0; i < n; i++) {
        AUTO_FINI(buf) entry = BUF_INIT;
        auto_free char *name = xasprintf("v%09zu", i);
        struct bundle_item item = { .entry = { .dtype = DT_FLOAT, .shape = shape_of(1, (int64_t[]){ 1 }), .size = 4 },
                                    .offset = 4 * i };
        bundle_put_entry(&entry, &item);
        table_writer_add(t, name, strlen(name), &entry);
    }
    table_writer_finish(t, out);
}

static void read_applied(const char *text, size_t len)
{
    AUTO_FINI(ordinal_set) a = ORDINAL_SET_INIT;
    struct err e = { .code = ERR_NONE };
    ck_ok_e(ordinal_set_from(0, (const int64_t *)(const void *)text, len / sizeof(int64_t), &a, &e));
}

static void applied_pairs(size_t n, struct buf *out)
{
    for (size_t i = 0; i < 2 * n; i++) {
        int64_t v = (int64_t)(2 * (i + 1) - i % 2);
        buf_add(out, &v, sizeof(v));
    }
}

static const struct growth GROWTH[] = {
    { "yaml keys", 8000, yaml_keys, read_yaml },
    { "yaml items", 4000, yaml_items, read_yaml },
    { "yaml long path", 20000, yaml_long_path, read_yaml },
    { "yaml documents", 4000, yaml_documents, read_yaml },
    { "yaml anchors", 4000, yaml_anchors, read_yaml },
    { "yaml text", 40000, yaml_text, read_yaml },
    { "yaml digits", 40000, yaml_digits, read_yaml },
    { "yaml brackets", 100000, yaml_brackets, refuse_yaml },
    { "yaml tag directives", 40000, yaml_tag_directives, refuse_yaml },
    { "json keys", 8000, json_keys, read_json },
    { "json items", 8000, json_items, read_json },
    { "json digits", 40000, json_digits, read_json },
    { "json cut", 20000, json_items, cut_json },
    { "manifest layers", MODEL_LAYERS_MAX / 4, job_layers, judge },
    { "manifest named layers", MODEL_LAYERS_MAX / 4, job_named_layers, judge },
    { "manifest keras text", MODEL_LAYERS_MAX / 4, job_keras, judge },
    { "manifest columns", 4000, job_columns, judge },
    { "manifest strange keys", 10000, job_strange_keys, refuse_job },
    { "--set names", 20000, set_names, read_set },
    { "--set value", 8000, set_value, read_set },
    { "TF_CONFIG lists", 2400, tf_config_dense, read_tf_config },
    { "TF_CONFIG maps", 2400, tf_config_sparse, read_tf_config },
    { "csv rows", 8000, csv_rows, read_csv },
    { "jsonl rows", 8000, jsonl_rows, read_jsonl },
    { "jsonl keys", 8000, jsonl_keys, read_jsonl },
    { "jsonl list", 200000, jsonl_list, read_lists },
    { "csv in UTF-16", 200000, utf16_text, read_utf16 },
    { "csv in Latin-1", 200000, latin1_text, read_latin1 },
    { "csv columns", 8000, csv_columns, read_csv },
    { "csv described columns", 4000, csv_described, read_described_csv },
    { "tfrecord records", 40000, tfrecord_records, read_tfrecord },
    { "tfrecord features", 20000, tfrecord_features, read_tfrecord },
    { "tfrecord steps", 100000, tfrecord_steps, read_feature_list },
    { "idx", 4000000, idx_bytes, read_idx },
    { "cifar", 2000, cifar_records, read_cifar },
    { "npy header", 200000, npy_header, read_npy },
    { "gzip members", 10000, gzip_members, read_gzip },
    { "base64", 40000, base64_lines, read_base64 },
    { "protobuf fields", 100000, pb_fields, read_pb },
    { "rpc split", 100000, pb_fields, read_split },
    { "event values", 20000, event_values, read_event },
    { "checkpoint state", 10000, state_paths, read_state },
    { "checkpoint index", 10000, index_tensors, read_index },
    { "applied ranges", 100000, applied_pairs, read_applied },
};

GROWTH_SUITE("growth")
