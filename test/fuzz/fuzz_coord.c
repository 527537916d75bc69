/* fuzz_coord - calls the chief's coordinator with any requests, one after the other: [method][size, 2 bytes
 * little-endian] [request]... Also gives a worker any answer. Whatever comes, no report of a worker alone marks a batch
 * done. */
#include <stdlib.h>
#include <string.h>

#include "codec/yaml.h"
#include "coord/coordinator_service.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct model *make_model(void)
{
    static const char text[] =
        "{model: {inputShape: [1], layers: [{Dense: {units: 1}}]}, compile: {optimizer: SGD, loss: mse}}";
    json_auto_t *doc = NULL;
    AUTO(source) *src = NULL;
    struct model *m = NULL;
    struct err e;
    if (yaml_parse(text, sizeof(text) - 1, "fuzz", &doc, &src, &e) < 0)
        abort();
    struct node root = node_root(doc, src), model = node_get(&root, "model"), compile = node_get(&root, "compile");
    if (model_build(&model, &compile, ".", &m, &e) < 0)
        abort();
    return m;
}

static void call(const struct rpc_method *method, const uint8_t *data, size_t n)
{
    AUTO(rpc_message) *m = NULL;
    struct err e = { .code = ERR_NONE };
    struct rpc_reply reply = { .head = BUF_INIT };
    struct coordinator_reply answer;
    if (rpc_message_of(data, n, &m, NULL) < 0)
        return;
    int rc = rpc_method_call(method, &(struct rpc_connection){ .leader = ROLE_CHIEF }, m, &reply, &e);
    if ((rc == 0) != (e.code == ERR_NONE))
        abort();
    if (rc == 0 && coordinator_unpack_reply(reply.head.data, reply.head.len, &answer, &e) < 0)
        abort();
    buf_fini(&reply.head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(model) *m = make_model();
    AUTO(coordinator) *coord = coordinator_new(&(struct coordinator_config){ .model = m,
                                                                             .job_uid = "u",
                                                                             .incarnation = 1,
                                                                             .batches_per_epoch = 10,
                                                                             .total = 1000,
                                                                             .window = 7,
                                                                             .lease_ms = 1000,
                                                                             .heartbeat_ms = 100,
                                                                             .one_arithmetic = true });
    struct rpc_method methods[COORDINATOR_METHODS];
    struct coordinator_reply answer;
    struct coordinator_view view;

    (void)!coordinator_unpack_reply(data, size, &answer, NULL);
    coordinator_service_methods(coord, methods);
    coordinator_set(coord, JOB_TRAINING, 1, "");
    while (size >= 3) {
        size_t n = MIN((size_t)data[1] | (size_t)data[2] << 8, size - 3);
        call(&methods[data[0] % COORDINATOR_METHODS], data + 3, n);
        data += 3 + n;
        size -= 3 + n;
    }
    coordinator_tick(coord, INT64_MAX / 2);
    coordinator_view(coord, &view);
    if (view.done != 0)
        abort();
    return 0;
}
