/* small_model - a model for tests, from a few lines of manifest. */
#ifndef TRAINYARD_COORD_SMALL_MODEL_H
#define TRAINYARD_COORD_SMALL_MODEL_H

#include "check_main.h"
#include "nn/model.h"

#include <string.h>

static inline struct model *small_model(const char *layers, const char *compile)
{
    struct err e = { 0 };
    json_auto_t *doc = NULL;
    AUTO(source) *src = NULL;
    AUTO_FINI(buf) text = BUF_INIT;
    buf_printf(&text, "{model: {inputShape: [4], layers: %s}, compile: %s}", layers, compile);
    ck_ok_e(yaml_parse(text.data, text.len, "test", &doc, &src, &e));
    struct node root = node_root(doc, src), model = node_get(&root, "model"), comp = node_get(&root, "compile");
    struct model *m = NULL;
    ck_ok_e(model_build(&model, &comp, ".", &m, &e));
    return m;
}

#define SMALL_DENSE   "[{Dense: {units: 3}}]"
#define SMALL_COMPILE "{optimizer: Adam, loss: mse, metrics: [mae]}"

#endif
