/* As test_growth.c, for archives and files of arrays, models in Keras's functional notation, and messages that carry
 * lists. */
#include <unistd.h>

#include "../coord/small_model.h"
#include "../data/put_zip.h"
#include "../growth.h"
#include "base/file.h"
#include "codec/json.h"
#include "coord/coordinator_service.h"
#include "data/dataset.h"
#include "data/h5.h"
#include "data/job_learn.h"
#include "data/safetensors.h"
#include "data/zip.h"
#include "growth_data.h"
#include "job/fields.h"
#include "nn/metrics/metrics.h"
#include "nn/model_graph.h"
#include "params/parameters_codec.h"
#include "params/shard_service.h"

/* ---- archives ---- */

static void add_npy(struct zip_out *z, const char *name, size_t n, bool deflated)
{
    AUTO_FINI(buf) npy = BUF_INIT;
    AUTO_FINI(buf) dict = BUF_INIT;
    buf_printf(&dict, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu,), }\n", n);
    buf_add(&npy, "\x93NUMPY\x01\x00", 8);
    buf_u16le(&npy, (uint16_t)dict.len);
    buf_add(&npy, dict.data, dict.len);
    for (size_t i = 0; i < n; i++)
        buf_u32le(&npy, (uint32_t)i);
    put_zip_member(z, name, npy.data, npy.len, deflated);
}

/* n members, of which the last one is wanted. */
static void zip_members(size_t n, struct buf *out)
{
    struct zip_out z = { .out = out };
    for (size_t i = 0; i < n; i++) {
        auto_free char *name = xasprintf("a%zu.npy", i);
        put_zip_member(&z, name, "", 0, false);
    }
    add_npy(&z, "x.npy", 1, false);
    put_zip_end(&z);
}

static void zip_deflated(size_t n, struct buf *out)
{
    struct zip_out z = { .out = out };
    add_npy(&z, "x.npy", n, true);
    put_zip_end(&z);
}

static void read_zip(const char *text, size_t len)
{
    AUTO_FINI(zip_archive) z = { 0 };
    struct err e = { .code = ERR_NONE };
    auto_free void *owned = NULL;
    const void *bytes;
    ck_ok_e(zip_open(text, len, "growth", &z, &e));
    ck_ok_e(zip_read(&z, zip_find(&z, "x.npy"), &bytes, &owned, &e));
}

static void read_npz(const char *text, size_t len)
{
    growth_open_data("{format: npz, files: t, features: x}", text, len);
}

/* ---- files of weights ---- */

static void read_safetensors(const char *text, size_t len)
{
    AUTO_FINI(named_arrays) l = { 0 };
    struct err e = { .code = ERR_NONE };
    ck_ok_e(safetensors_read(text, len, "growth", &l, &e));
    ck_assert_uint_gt(l.n, 0);
}

static void safetensors(size_t n, struct buf *out)
{
    AUTO_FINI(buf) header = BUF_INIT;
    buf_str(&header, "{\"__metadata__\": {}");
    number(&header, n, ", \"layer/", "\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}");
    buf_char(&header, '}');
    buf_u64le(out, header.len);
    buf_add(out, header.data, header.len);
    buf_u32le(out, 0);
}

static void read_h5(const char *text, size_t len)
{
    AUTO_FINI(named_arrays) l = { 0 };
    struct err e = { .code = ERR_NONE };
    ck_ok_e(h5_read(text, len, "growth", &l, &e));
    ck_assert_uint_gt(l.n, 0);
    ck_assert_msg(l.items[0].unread == NULL, "%s", l.items[0].unread);
}

static void h5_message(struct buf *out, unsigned type, const struct buf *body)
{
    buf_u16le(out, (uint16_t)type);
    buf_u16le(out, (uint16_t)body->len);
    buf_u32le(out, 0);
    buf_add(out, body->data, body->len);
}

static void h5_object(struct buf *out, unsigned messages, const struct buf *all)
{
    buf_u16le(out, 1);
    buf_u16le(out, (uint16_t)messages);
    buf_u32le(out, 1);
    buf_u32le(out, (uint32_t)all->len);
    buf_u32le(out, 0);
    buf_add(out, all->data, all->len);
}

/* One number of float32, at byte 0. */
static void h5_dataset(struct buf *out)
{
    static const unsigned char TYPE[20] = { 0x11, 0x20, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0 };
    AUTO_FINI(buf) all = BUF_INIT;
    AUTO_FINI(buf) space = BUF_INIT;
    AUTO_FINI(buf) type = BUF_INIT;
    AUTO_FINI(buf) layout = BUF_INIT;
    buf_u64le(&space, 0x0101); /* version 1, 1 axis */
    buf_u64le(&space, 1);
    buf_add(&type, TYPE, sizeof(TYPE));
    buf_add(&layout, "\x03\x01", 2);
    buf_u64le(&layout, 0);
    buf_u64le(&layout, 4);
    h5_message(&all, 1, &space);
    h5_message(&all, 3, &type);
    h5_message(&all, 8, &layout);
    h5_object(out, 3, &all);
}

enum { H5_ROOT = 96, H5_TREE = 136, H5_NODE_SYMBOLS = 1000, H5_NAME = 8 };

/* A group of n datasets, all of them the same object under different names; leaves of H5_NODE_SYMBOLS. */
static void h5_datasets(size_t n, struct buf *out)
{
    size_t leaves = (n + H5_NODE_SYMBOLS - 1) / H5_NODE_SYMBOLS, tree = 24 + 16 * leaves + 8;
    size_t heap = H5_TREE + tree, names = heap + 32, dataset = names + H5_NAME * n, leaf = dataset + 512;
    AUTO_FINI(buf) table = BUF_INIT;

    buf_add(out, "\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0", 16);
    while (out->len < 24 + 32 + 8)
        buf_char(out, 0);
    buf_u64le(out, H5_ROOT);
    while (out->len < H5_ROOT)
        buf_char(out, 0);
    buf_u64le(&table, H5_TREE);
    buf_u64le(&table, heap);
    AUTO_FINI(buf) message = BUF_INIT;
    h5_message(&message, 0x11, &table);
    h5_object(out, 1, &message);
    ck_assert_uint_eq(out->len, H5_TREE);

    buf_add(out, "TREE\0\0", 6);
    buf_u16le(out, (uint16_t)leaves);
    buf_u64le(out, UINT64_MAX);
    buf_u64le(out, UINT64_MAX);
    for (size_t i = 0; i < leaves; i++) {
        buf_u64le(out, 0);
        buf_u64le(out, leaf + i * (8 + 40 * H5_NODE_SYMBOLS));
    }
    buf_u64le(out, 0);
    buf_add(out, "HEAP\0\0\0\0", 8);
    buf_u64le(out, H5_NAME * n);
    buf_u64le(out, 1);
    buf_u64le(out, names);
    for (size_t i = 0; i < n; i++) {
        char name[H5_NAME + 1];
        str_fmt(name, sizeof(name), "a%06zu", i);
        buf_add(out, name, H5_NAME);
    }
    h5_dataset(out);
    while (out->len < leaf)
        buf_char(out, 0);
    for (size_t i = 0; i < leaves; i++) {
        size_t here = MIN(n - i * H5_NODE_SYMBOLS, (size_t)H5_NODE_SYMBOLS);
        buf_add(out, "SNOD\1\0", 6);
        buf_u16le(out, (uint16_t)here);
        for (size_t j = 0; j < H5_NODE_SYMBOLS; j++) {
            buf_u64le(out, H5_NAME * (i * H5_NODE_SYMBOLS + j));
            buf_u64le(out, dataset);
            for (int word = 0; word < 3; word++)
                buf_u64le(out, 0);
        }
    }
}

/* ---- models ---- */

static void read_functional(const char *text, size_t len)
{
    struct err e = { .code = ERR_NONE };
    json_auto_t *config = NULL;
    AUTO_FINI(model_graph) g = { 0 };
    ck_ok_e(json_parse(text, len, "growth", &config, &e));
    struct node root = node_root(config, NULL);
    ck_ok_e(graph_read_functional(&root, &g, &e));
    ck_assert_uint_gt(g.ncalls, 0);
}

/* The layers are in the list from the last to the first. */
static void functional_layers(size_t n, struct buf *out)
{
    buf_str(out, "{\"layers\": [");
    for (size_t i = n; i > 0; i--)
        buf_printf(out,
                   "{\"class_name\": \"Dense\", \"name\": \"d%zu\", \"config\": {\"units\": 1, \"name\": \"d%zu\"}, "
                   "\"inbound_nodes\": [{\"args\": [{\"class_name\": \"__keras_tensor__\", \"config\": "
                   "{\"keras_history\": [\"d%zu\", 0, 0]}}], \"kwargs\": {}}]}, ",
                   i, i, i - 1);
    buf_str(out, "{\"class_name\": \"InputLayer\", \"name\": \"d0\", \"config\": {\"batch_shape\": [null, 1], "
                 "\"name\": \"d0\"}, \"inbound_nodes\": []}], \"input_layers\": [\"d0\", 0, 0], ");
    buf_printf(out, "\"output_layers\": [\"d%zu\", 0, 0]}", n);
}

/* ---- data sets of many labels ---- */

static void read_labels(const char *text, size_t len)
{
    struct err e = { .code = ERR_NONE };
    json_auto_t *doc = NULL;
    AUTO(source) *src = NULL;
    struct data_spec spec = { .present = false };
    ck_ok_e(yaml_parse(text, len, "growth", &doc, &src, &e));
    struct node root = node_root(doc, src);
    ck_ok_e(fields_read(&DATA_FIELDS, &root, &spec, &e));
    data_spec_fini(&spec);
}

static void labels(size_t n, struct buf *out)
{
    buf_str(out, "{format: csv, files: t, label: [y");
    number(out, n, ", y", "");
    buf_str(out, "], columns: [{name: x}");
    number(out, n, ", {name: y", ", type: float}");
    buf_str(out, "]}");
}

/* ---- what a job leaves to its data ---- */

static void learn_means(const char *text, size_t len)
{
    static const char JOB[] =
        "{apiVersion: trainyard.dev/v1alpha1, kind: TrainJob, metadata: {name: g}, spec: {fit: {epochs: 1}, model: "
        "{layers: [Dense: {units: 1}]}, compile: {optimizer: SGD, loss: mse}, data: {train: {format: csv, files: %s, "
        "missing: mean}}}}";
    auto_free char *path = xasprintf("/dev/shm/trainyard-growth-%d", (int)getpid()), *said = xasprintf(JOB, path);
    AUTO_FINI(strlist) notes = { 0 };
    AUTO(job) *j = NULL;
    struct err e = { .code = ERR_NONE };
    ck_ok_e(file_write(path, text, len, &e));
    ck_ok_e(job_parse(said, strlen(said), "growth", &j, &e));
    ck_ok_e(job_learn(j, NULL, "/dev/shm", NULL, &notes, &e));
    unlink(path);
}

static void means(size_t n, struct buf *out)
{
    buf_str(out, "y");
    number(out, n, ",c", "");
    buf_str(out, "\n1");
    number(out, n, ",", "");
    buf_char(out, '\n');
}

/* ---- messages ---- */

static void handle(const struct rpc_method *method, const char *text, size_t len)
{
    AUTO(rpc_message) *m = NULL;
    struct err e = { .code = ERR_NONE };
    struct rpc_reply reply = { .head = BUF_INIT };
    ck_ok_e(rpc_message_of(text, len, &m, &e));
    ck_ok_e(rpc_method_call(method, &(struct rpc_connection){ .leader = ROLE_CHIEF }, m, &reply, &e));
    for (size_t i = 0; i < reply.npieces; i++)
        reply.pieces[i].done(reply.pieces[i].user);
    buf_fini(&reply.head);
}

static struct coordinator_sender worker(uint64_t generation)
{
    return (struct coordinator_sender){
        .job_uid = "u", .name = "worker-0", .role = ROLE_WORKER, .generation = generation, .incarnation = 1
    };
}

static void read_report(const char *text, size_t len)
{
    AUTO(model) *m = small_model(SMALL_DENSE, SMALL_COMPILE);
    AUTO(coordinator) *coord = coordinator_new(&(struct coordinator_config){ .model = m,
                                                                             .job_uid = "u",
                                                                             .incarnation = 1,
                                                                             .batches_per_epoch = 1 << 20,
                                                                             .total = 1 << 20,
                                                                             .window = 100,
                                                                             .lease_ms = 1000,
                                                                             .heartbeat_ms = 100 });
    struct rpc_method methods[COORDINATOR_METHODS];
    struct register_request hello = { .sender = worker(0), .shuffle_version = SHUFFLE_VERSION };
    struct coordinator_reply answer;
    struct err e = { .code = ERR_NONE };
    coordinator_service_methods(coord, methods);
    coordinator_set(coord, JOB_TRAINING, 1, "");
    ck_ok_e(coordinator_register(coord, &hello, 0, &answer, &e));
    handle(&methods[COORDINATOR_HEARTBEAT], text, len);
}

/* Every second ordinal, from the last to the first. */
static void report(size_t n, struct buf *out)
{
    AUTO(model) *m = small_model(SMALL_DENSE, SMALL_COMPILE);
    size_t width = metrics_width(m);
    auto_free int64_t *ordinals = xcalloc(n, sizeof(*ordinals));
    auto_free double *sums = xcalloc(n * width, sizeof(*sums));
    for (size_t i = 0; i < n; i++)
        ordinals[i] = (int64_t)(2 * (n - i));
    struct heartbeat_request q = { .sender = worker(1) };
    q.report = (struct coordinator_report){ .ordinals = ordinals, .n = n, .sums = sums, .nsums = n * width };
    coordinator_pack_heartbeat(&q, out);
}

/* A message holds few of them, so it is read many times. */
static void read_init(const char *text, size_t len)
{
    for (int i = 0; i < 100; i++) {
        struct rpc_method methods[SHARD_METHODS];
        AUTO(shard) *s = shard_new(1);
        AUTO(shard_service) *v = shard_service_new(s);
        shard_service_methods(v, methods);
        handle(&methods[PS_INIT], text, len);
    }
}

static void learning_rates(size_t n, struct buf *out)
{
    Trainyard__V1__Header header;
    Trainyard__V1__InitRequest q;
    Trainyard__V1__Segment segment, *list[] = { &segment };
    auto_free int64_t *from = xcalloc(n, sizeof(*from));
    auto_free double *rates = xcalloc(n, sizeof(*rates));
    trainyard__v1__init_request__init(&q);
    trainyard__v1__header__init(&header);
    trainyard__v1__segment__init(&segment);
    header.job_uid = unconst("u");
    header.sender = unconst("chief-0");
    header.generation = 1;
    header.incarnation = 1;
    segment.count = 1;
    for (size_t i = 0; i < n; i++)
        from[i] = (int64_t)i;
    q.header = &header;
    q.optimizer = unconst("{\"Adam\":{}}");
    q.segments = list;
    q.n_segments = COUNT_OF(list);
    q.rate_from = from;
    q.rates = rates;
    q.n_rate_from = q.n_rates = n;
    codec_pack(&q.base, out);
}

static const struct growth GROWTH[] = {
    { "zip members", 10000, zip_members, read_zip },
    { "zip deflated", 200000, zip_deflated, read_zip },
    { "npz members", 10000, zip_members, read_npz },
    { "safetensors", 8000, safetensors, read_safetensors },
    { "h5 datasets", 10000, h5_datasets, read_h5 },
    { "functional layers", 4000, functional_layers, read_functional },
    { "several labels", 4000, labels, read_labels },
    { "csv columns with a mean", 4000, means, learn_means },
    { "report to the chief", COORDINATOR_REPORT_MAX / 4, report, read_report },
    { "learning rates of a ps", RATES_MAX / 4, learning_rates, read_init },
};

GROWTH_SUITE("growth of files")
