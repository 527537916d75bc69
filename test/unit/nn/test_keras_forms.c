/* Each folder of test/data/nn/forms is a file that some version of Keras, or a tool around it, has written. spec.yaml
 * is the manifest that names it (default: only the file); same.yaml is the manifest in the short form that means the
 * same. A new case needs no code. Files that are refused are in test/data/nn/invalid. */
#include "case_folder.h"

#include <string.h>

#include "codec/yaml.h"
#include "nn/model.h"

#define FORMS "test/data/nn/forms"

/* compiled: with what the text, or else the file names, says in compile. */
static void build(const char *text, const char *name, const char *dir, bool compiled, struct model **ret)
{
    json_auto_t *doc = NULL;
    AUTO(source) *source = NULL;
    struct err e;
    ck_ok_e(yaml_parse(text, strlen(text), name, &doc, &source, &e));
    struct node root = node_root(doc, source), model = node_get(&root, "model"), compile = node_get(&root, "compile");
    ck_assert_msg(model_build(&model, compiled ? &compile : NULL, dir, ret, &e) == 0, "%s: %s", dir, e.msg);
}

static void read_text(const char *dir, const char *file, struct buf *ret)
{
    struct err e;
    auto_free char *path = path_join(dir, file);
    ck_ok_e(file_read(path, 1 << 20, ret, &e));
}

START_TEST(a_form_means_the_same)
{
    auto_free char *dir = case_path(FORMS, _i), *spec = path_join(dir, "spec.yaml");
    AUTO(model) *read = NULL, *same = NULL;
    AUTO_FINI(buf) text = BUF_INIT, same_text = BUF_INIT, got = BUF_INIT, want = BUF_INIT;
    if (file_exists(spec))
        read_text(dir, "spec.yaml", &text);
    else
        buf_str(&text, "model: {kerasFile: model.json}");
    read_text(dir, "same.yaml", &same_text);
    bool compiled = strstr(same_text.data, "\ncompile:") != NULL;
    build(text.data, "spec.yaml", dir, compiled, &read);
    build(same_text.data, "same.yaml", dir, compiled, &same);
    json_auto_t *is = model_to_json(read), *should_be = model_to_json(same);
    json_emit(is, &got);
    json_emit(should_be, &want);
    ck_assert_msg(strcmp(got.data, want.data) == 0, "%s:\n got %s\nwant %s", dir, got.data, want.data);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/keras_forms");
    TCase *t = tcase_create("keras_forms");
    tcase_add_loop_test(t, a_form_means_the_same, 0, case_count(FORMS));
    suite_add_tcase(s, t);
    return s;
}
