/* yaml_model - a model of a manifest's text: "model: ..." and perhaps "compile: ...". */
#ifndef TRAINYARD_TEST_NN_YAML_MODEL_H
#define TRAINYARD_TEST_NN_YAML_MODEL_H

#include "check_main.h"

#include <string.h>

#include "codec/yaml.h"
#include "nn/model_impl.h"

static inline struct model *yaml_model(const char *text)
{
    AUTO(source) *source = NULL;
    json_auto_t *doc = NULL;
    struct model *m = NULL;
    struct err e = { 0 };
    ck_ok_e(yaml_parse(text, strlen(text), "test", &doc, &source, &e));
    struct node root = node_root(doc, source), model = node_get(&root, "model"), compile = node_get(&root, "compile");
    ck_ok_e(model_build(&model, node_present(&compile) ? &compile : NULL, ".", &m, &e));
    return m;
}

#endif
