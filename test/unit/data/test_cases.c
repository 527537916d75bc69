/* Each folder of test/data/data/{valid,invalid} is a case: job.yaml is a data set of a manifest. `expected` lists what
 * it holds, in order; `error` is its error message. With like.yaml, another data set, its columns are those of that
 * one. With model.yaml it must be fit for that model. A new case needs no code. */
#include "case_folder.h"
#include "data_help.h"

#define VALID   "test/data/data/valid"
#define INVALID "test/data/data/invalid"

static void read_text(const char *dir, const char *name, struct buf *ret)
{
    struct err e;
    auto_free char *path = path_join(dir, name);
    ck_ok_e(file_read(path, 1 << 20, ret, &e));
}

/* m: NULL, or the model to which it is bound. */
static int open_case(const char *dir, const struct folder *cache, const struct model *m, struct dataset **ret,
                     struct err *e)
{
    AUTO_FINI(buf) yaml = BUF_INIT, like = BUF_INIT;
    AUTO_FINI(parsed_spec) p = { .doc = NULL };
    AUTO(dataset) *run = NULL;
    auto_free char *like_yaml = path_join(dir, "like.yaml");
    read_text(dir, "job.yaml", &yaml);
    if (file_exists(like_yaml)) {
        read_text(dir, "like.yaml", &like);
        if (open_yaml(like.data, dir, cache->path, &run, e) < 0)
            return -1;
    }
    if (open_like(yaml.data, dir, cache->path, run != NULL ? dataset_columns(run) : NULL, ret, e) < 0)
        return -1;
    return m == NULL ? 0 : parse_spec(yaml.data, &p, e) < 0 ? -1 : dataset_bind(*ret, &p.spec, m, e);
}

/* NULL: the case has none. */
static struct model *model_of(const char *dir)
{
    AUTO_FINI(buf) text = BUF_INIT;
    AUTO(source) *source = NULL;
    json_auto_t *doc = NULL;
    struct model *m = NULL;
    struct err e;
    auto_free char *path = path_join(dir, "model.yaml");
    if (!file_exists(path))
        return NULL;
    read_text(dir, "model.yaml", &text);
    ck_ok_e(yaml_parse(text.data, text.len, path, &doc, &source, &e));
    struct node root = node_root(doc, source), model = node_get(&root, "model"), compile = node_get(&root, "compile");
    ck_ok_e(model_build(&model, &compile, dir, &m, &e));
    return m;
}

static double feature(const struct tensor *x, size_t i)
{
    return x->dtype == DT_UINT8 ? (double)((uint8_t *)x->data)[i] : (double)((float *)x->data)[i];
}

/* Several inputs are separated by commas, several labels by arrows. */
static void render_row(const struct batch *b, size_t i, struct buf *out)
{
    for (size_t k = 0; k < b->nx; k++) {
        size_t count = shape_elements(&b->x[k].shape) / b->n;
        for (size_t j = 0; j < count; j++)
            buf_printf(out, "%s%.9g", j > 0 ? " " : k > 0 ? ", " : "", feature(&b->x[k], i * count + j));
    }
    for (size_t k = 0; k < b->ny; k++) {
        size_t count = shape_elements(&b->y[k].shape) / b->n;
        for (size_t j = 0; j < count; j++)
            if (b->y[k].dtype == DT_INT32)
                buf_printf(out, "%s%d", j > 0 ? " " : " -> ", ((int32_t *)b->y[k].data)[i * count + j]);
            else
                buf_printf(out, "%s%.9g", j > 0 ? " " : " -> ", (double)((float *)b->y[k].data)[i * count + j]);
    }
    if (b->weight != NULL)
        buf_printf(out, " x %.9g", (double)b->weight[i]);
    buf_char(out, '\n');
}

static void render_head(const struct dataset *d, struct buf *out)
{
    char x_shape[128], y_shape[128];
    AUTO_FINI(strlist) warnings = { 0 };
    const struct records *r = dataset_records(d);
    buf_printf(out, "%lld examples of %s", (long long)dataset_size(d), shape_text(&r->x, x_shape));
    if (r->has_labels)
        buf_printf(out, ", %s labels of %s", r->integer_labels ? "integer" : "float", shape_text(&r->y, y_shape));
    if (r->integer_labels && r->labels.n > 0)
        buf_printf(out, " up to %.0f", r->labels.max);
    buf_char(out, '\n');
    dataset_warnings(d, &warnings);
    dataset_left_out(d, &warnings);
    for (size_t i = 0; i < warnings.n; i++)
        buf_printf(out, "warning: %s\n", warnings.items[i]);
}

/* m: NULL, or the model that is trained on it. */
static int render(const struct dataset *d, const struct model *m, struct buf *out, struct err *e)
{
    AUTO(loader) *l = NULL;
    struct ordinal_space space = space_of(d, 2, false);
    render_head(d, out);
    if (loader_new(d, &space, m, &l, e) < 0)
        return -1;
    for (int64_t i = 0; i < ordinal_space_batches(&space); i++) {
        struct batch b;
        loader_hint(l, i);
        if (loader_get(l, i, &b, e) < 0)
            return -1;
        for (size_t j = 0; j < b.n; j++)
            render_row(&b, j, out);
    }
    return 0;
}

START_TEST(valid_data_is_read_as_expected)
{
    auto_free char *dir = case_path(VALID, _i);
    AUTO_FINI(folder) cache = folder_new();
    AUTO_FINI(buf) expected = BUF_INIT;
    AUTO_FINI(buf) got = BUF_INIT;
    AUTO_FINI(buf) again = BUF_INIT;
    AUTO(dataset) *d = NULL;
    AUTO(dataset) *cached = NULL;
    AUTO(model) *m = model_of(dir);
    struct err e = { .code = ERR_NONE };
    read_text(dir, "expected", &expected);
    ck_assert_msg(open_case(dir, &cache, m, &d, &e) == 0 && render(d, m, &got, &e) == 0, "%s: %s", dir, e.msg);
    ck_assert_msg(strcmp(got.data, expected.data) == 0, "%s: is\n%s", dir, got.data);
    ck_assert_msg(open_case(dir, &cache, m, &cached, &e) == 0 && render(cached, m, &again, &e) == 0, "%s: %s", dir,
                  e.msg);
    ck_assert_str_eq(again.data, expected.data);
}
END_TEST

START_TEST(invalid_data_is_named_with_its_place)
{
    auto_free char *dir = case_path(INVALID, _i);
    AUTO_FINI(folder) cache = folder_new();
    AUTO_FINI(buf) expected = BUF_INIT;
    AUTO_FINI(buf) got = BUF_INIT;
    AUTO(dataset) *d = NULL;
    AUTO(model) *m = model_of(dir);
    struct err e = { .code = ERR_NONE };
    read_text(dir, "error", &expected);
    int rc = open_case(dir, &cache, m, &d, &e);
    if (rc == 0)
        rc = render(d, m, &got, &e);
    ck_assert_msg(rc < 0, "%s: no error", dir);
    buf_clear(&got);
    buf_printf(&got, "%s\n", e.msg);
    ck_assert_msg(strcmp(got.data, expected.data) == 0, "%s: says\n%s", dir, got.data);
    ck_assert_int_eq(e.code, ERR_INPUT);
}
END_TEST

/* With the model of the case. */
static uint64_t bound_fingerprint(const char *dir, const char *yaml)
{
    AUTO_FINI(folder) cache = folder_new();
    AUTO_FINI(parsed_spec) p = { .doc = NULL };
    AUTO(dataset) *d = NULL;
    AUTO(model) *m = model_of(dir);
    struct err e;
    ck_ok_e(open_yaml(yaml, dir, cache.path, &d, &e));
    ck_ok_e(parse_spec(yaml, &p, &e));
    ck_ok_e(dataset_bind(d, &p.spec, m, &e));
    return dataset_fingerprint(d);
}

/* A run continues only with the same numbers in the same inputs and outputs. */
START_TEST(the_fingerprint_knows_inputs_and_outputs)
{
    static const struct {
        const char *dir, *one, *other;
    } CASES[] = {
        { VALID "/csv-inputs-and-weights",
          "{format: csv, files: t.csv, sampleWeight: w, inputs: {wide: [hours, age], deep: [age, hours, size]}}",
          "{format: csv, files: t.csv, sampleWeight: w, inputs: {wide: [age, hours], deep: [age, hours, size]}}" },
        { INVALID "/csv-outputs-label-of-bernoulli", "{format: csv, files: t.csv, label: {p: kind, price: price}}",
          "{format: csv, files: t.csv, label: {price: kind, p: price}}" },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        uint64_t one = bound_fingerprint(CASES[i].dir, CASES[i].one);
        ck_assert(one == bound_fingerprint(CASES[i].dir, CASES[i].one));
        ck_assert(one != bound_fingerprint(CASES[i].dir, CASES[i].other));
    }
}
END_TEST

START_TEST(the_fingerprint_knows_every_array)
{
    AUTO_FINI(folder) cache = folder_new();
    uint64_t prints[2];
    for (size_t i = 0; i < 2; i++) {
        AUTO(dataset) *d = NULL;
        struct err e;
        ck_ok_e(open_yaml(i == 0 ? "{format: npy, features: {image: i.npy, meta: m.npy}}"
                                 : "{format: npy, features: {image: i.npy, meta: p.npy}}",
                          VALID "/npy-inputs-and-outputs", cache.path, &d, &e));
        prints[i] = dataset_fingerprint(d);
    }
    ck_assert(prints[0] != prints[1]);
}
END_TEST

/* Each key in the object of a long key would be looked up by a path of that length. */
START_TEST(what_is_in_a_long_key_is_read_fast)
{
    enum { KEY = 2 << 20, MEMBERS = 100000 };
    AUTO_FINI(folder) dir = folder_new();
    AUTO_FINI(buf) text = BUF_INIT;
    AUTO(dataset) *d = NULL;
    struct err e;
    buf_str(&text, "{\"a\":1,\"label\":0,\"");
    for (int i = 0; i < KEY; i++)
        buf_char(&text, 'k');
    buf_str(&text, "\":{");
    for (int i = 0; i < MEMBERS; i++)
        buf_printf(&text, "%s\"m%d\":1", i == 0 ? "" : ",", i);
    buf_str(&text, "}}\n");
    put_file(&dir, "t.jsonl", text.data, text.len);
    ck_ok_e(open_yaml("{format: jsonl, files: t.jsonl, columns: [{name: a}]}", dir.path, dir.path, &d, &e));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/cases");
    TCase *t = tcase_create("cases");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, valid_data_is_read_as_expected, 0, case_count(VALID));
    tcase_add_test(t, the_fingerprint_knows_inputs_and_outputs);
    tcase_add_test(t, the_fingerprint_knows_every_array);
    tcase_add_test(t, what_is_in_a_long_key_is_read_fast);
    tcase_add_loop_test(t, invalid_data_is_named_with_its_place, 0, case_count(INVALID));
    return s;
}
