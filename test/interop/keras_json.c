/* keras_json FILE - what our reader makes of models that Keras wrote: FILE is a JSON list of {name, model, compile},
 * model being Keras's to_json() and compile a spec.compile; prints the list of our to_json(), or {"error": text} for
 * one that is refused. */
#include <stdio.h>

#include "base/file.h"
#include "nn/model.h"

static json_t *rewrite(const json_t *c)
{
    json_auto_t *spec = json_pack("{s:O}", "keras", json_object_get(c, "model"));
    struct node model = node_root(spec, NULL), compile = node_root(json_object_get(c, "compile"), NULL);
    struct err e = { .code = ERR_NONE };
    AUTO(model) *m = NULL;

    if (model_build(&model, node_present(&compile) ? &compile : NULL, ".", &m, &e) < 0)
        return json_pack("{s:s}", "error", e.msg);
    return model_to_json(m);
}

int main(int argc, char **argv)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) text = BUF_INIT, out = BUF_INIT;
    json_auto_t *cases = NULL, *results = json_array();

    if (argc != 2 || file_read(argv[1], 64 << 20, &text, &e) < 0 ||
        json_parse(text.data, text.len, argv[1], &cases, &e) < 0)
        return fprintf(stderr, "keras_json: %s\n", e.msg), 2;
    for (size_t i = 0; i < json_array_size(cases); i++)
        json_array_append_new(results, rewrite(json_array_get(cases, i)));
    json_emit(results, &out);
    puts(out.data);
    return 0;
}
