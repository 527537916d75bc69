/* Any bytes as {model: ..., compile: ...}. A model that is accepted must read back the same from the Keras JSON
 * it writes, and compute when it is small. */
#include <stdlib.h>

#include "codec/yaml.h"
#include "nn/exec.h"
#include "nn/model_impl.h"

enum { SMALL = 4000 }; /* a window over all positions costs its square */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The memory of exec for an example: the inputs, and the output of each call of a layer. */
static bool is_small(const struct model *m)
{
    size_t floats = 0;
    for (size_t i = 0; i < model_tensors(m) && floats <= 2 * SMALL; i++)
        floats += shape_elements(model_tensor(m, i));
    return model_size(m) <= SMALL && floats <= 2 * SMALL;
}

/* Memory is allocated only when the parameters are few: a batch of one example of a wide model is refused or huge. */
static void compute(const struct model *m)
{
    struct err e = { .code = ERR_NONE };
    AUTO(exec) *x = NULL;
    if (!is_small(m) || exec_new(m, 2, 1, &x, &e) < 0)
        return;
    auto_free float *params = xcalloc(model_size(m) + 1, sizeof(float)),
                    *grads = xcalloc(model_size(m) + 1, sizeof(float));
    auto_free float *zeros = xcalloc(4 * SMALL, sizeof(float));
    struct batch b = { .n = 2 };
    double loss;
    for (size_t i = 0; i < model_inputs(m); i++)
        b.x[i] = (struct tensor){ .dtype = DT_FLOAT, .data = zeros };
    for (size_t i = 0; i < model_outputs(m); i++)
        b.y[i] = (struct tensor){ .dtype = DT_FLOAT, .data = zeros };

    model_init(m, 1, params);
    exec_predict(x, params, &b);
    if (m->heads[0].loss != NULL)
        exec_train(x, params, &b, grads, NULL, NULL, NULL, &loss);
}

static void read_back(const struct model *m)
{
    struct err e = { .code = ERR_NONE };
    json_auto_t *first = model_to_json(m), *spec = json_pack("{s:O}", "keras", first), *second = NULL;
    struct node n = node_root(spec, NULL);
    AUTO(model) *again = NULL;
    if (model_build(&n, NULL, ".", &again, &e) < 0)
        abort();
    second = model_to_json(again);
    json_object_del(first, "compile_config");
    if (!json_equal(first, second))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = { .code = ERR_NONE };
    json_auto_t *doc = NULL;
    AUTO(source) *source = NULL;
    AUTO(model) *m = NULL;
    AUTO_FINI(buf) text = BUF_INIT;

    if (yaml_parse((const char *)data, size, "fuzz", &doc, &source, &e) < 0)
        return 0;
    struct node root = node_root(doc, source), model = node_get(&root, "model"), compile = node_get(&root, "compile");
    if (node_get(&model, "kerasFile").v != NULL) /* no files */
        return 0;
    if (model_build(&model, node_present(&compile) ? &compile : NULL, "/nowhere", &m, &e) < 0) {
        if (e.msg[0] == '\0')
            abort();
        return 0;
    }
    model_summary(m, &text);
    read_back(m);
    compute(m);
    return 0;
}
