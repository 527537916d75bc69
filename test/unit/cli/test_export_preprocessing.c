#include "check_main.h"
#include "cli/export_preprocessing.h"

#include <string.h>

/* A job of one model, whose data have these fields. */
#define JOB(model, data)                                                                                               \
    "{apiVersion: trainyard.dev/v1alpha1, kind: TrainJob, metadata: {name: j}, spec: {fit: {epochs: 1}, "              \
    "model: " model ", compile: {optimizer: SGD, loss: mse}, data: {train: {files: t.csv, " data "}}}}"
#define ROW(n)  "{inputShape: [" #n "], layers: [Dense: {units: 1}]}"
#define TWO     "{kerasFile: penguins/model.json}" /* bill of 3 numbers, group of 5; its name is penguins */
#define CSV     "format: csv, label: y, "
#define TWO_CSV "format: csv, label: {species: s, mass: y}, "

/* The layers, as "CLASS NAME(CONFIG) <- LAYER, LAYER". */
static const struct {
    const char *job, *names; /* of the features in the checkpoint */
    const char *layers;      /* NULL: an error */
    const char *error;
} CASES[] = {
    { JOB(ROW(8), CSV "columns: [{name: t, type: text, vocabulary: ['', '[UNK]', the, 2], outputSequenceLength: 3, "
                      "standardize: none, split: character}, {name: 'fur coat', type: category, vocabulary: [' red', "
                      "'[UNK]'], numOovIndices: 1, encoding: one_hot}, {name: n}, {name: i, type: int}]"),
      "t,fur coat,n,i",
      "InputLayer t({\"batch_shape\":[null,1],\"dtype\":\"string\"})\n"
      "InputLayer fur_coat({\"batch_shape\":[null,1],\"dtype\":\"string\"})\n"
      "InputLayer n({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "InputLayer i({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "TextVectorization t_words({\"standardize\":null,\"ngrams\":null,\"split\":\"character\",\"output_mode\":\"int\","
      "\"output_sequence_length\":3,\"vocabulary\":[\"the\",\"2\"]}) <- t\n"
      "StringLookup "
      "fur_coat_words({\"num_oov_indices\":1,\"mask_token\":null,\"oov_token\":\"[[UNK]]\",\"output_mode\":"
      "\"one_hot\",\"vocabulary\":[\"red\",\"[UNK]\"]}) <- fur_coat\n"
      "Concatenate input_layer_row({\"axis\":-1}) <- t_words, fur_coat_words, n, i\n"
      "Sequential sequential <- input_layer_row\n",
      NULL },
    /* the order of the run counts, and a text that is counted has its row */
    { JOB(ROW(4), CSV "columns: [{name: n}, {name: t, type: text, vocabulary: [a, b], encoding: count}]"), "t,n",
      "InputLayer t({\"batch_shape\":[null,1],\"dtype\":\"string\"})\n"
      "InputLayer n({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "TextVectorization t_words({\"standardize\":\"lower_and_strip_punctuation\",\"ngrams\":null,\"split\":"
      "\"whitespace\",\"output_mode\":\"count\",\"output_sequence_length\":null,\"vocabulary\":[\"a\",\"b\"]}) <- t\n"
      "Reshape t_row({\"target_shape\":[3]}) <- t_words\n"
      "Concatenate input_layer_row({\"axis\":-1}) <- t_row, n\n"
      "Sequential sequential <- input_layer_row\n",
      NULL },
    /* n-grams; the vocabulary begins with the token of other words where these have a weight */
    { JOB(ROW(9), CSV "columns: [{name: t, type: text, vocabulary: [a, a b], ngrams: [2, 1], encoding: tf_idf, "
                      "idfWeights: [1, 0.5]}, {name: c, type: category, vocabulary: [x, '[UNK]'], numOovIndices: 1, "
                      "encoding: tf_idf, idfWeights: [2, 0.5]}, {name: d, type: category, vocabulary: [u, v, w], "
                      "encoding: tf_idf, idfWeights: [3, 2, 1]}]"),
      "t,c,d",
      "InputLayer t({\"batch_shape\":[null,1],\"dtype\":\"string\"})\n"
      "InputLayer c({\"batch_shape\":[null,1],\"dtype\":\"string\"})\n"
      "InputLayer d({\"batch_shape\":[null,1],\"dtype\":\"string\"})\n"
      "TextVectorization t_words({\"standardize\":\"lower_and_strip_punctuation\",\"ngrams\":[2,1],\"split\":"
      "\"whitespace\",\"output_mode\":\"tf_idf\",\"output_sequence_length\":null,\"vocabulary\":[\"[UNK]\",\"a\",\"a "
      "b\"],\"idf_weights\":[0.75,1.0,0.5]}) <- t\n"
      "Reshape t_row({\"target_shape\":[3]}) <- t_words\n"
      "StringLookup c_words({\"num_oov_indices\":1,\"mask_token\":null,\"oov_token\":\"[[UNK]]\",\"output_mode\":"
      "\"tf_idf\",\"vocabulary\":[\"[[UNK]]\",\"x\",\"[UNK]\"],\"idf_weights\":[1.25,2.0,0.5]}) <- c\n"
      "StringLookup d_words({\"num_oov_indices\":0,\"mask_token\":null,\"oov_token\":\"[UNK]\",\"output_mode\":"
      "\"tf_idf\",\"vocabulary\":[\"u\",\"v\",\"w\"],\"idf_weights\":[3.0,2.0,1.0]}) <- d\n"
      "Concatenate input_layer_row({\"axis\":-1}) <- t_row, c_words, d_words\n"
      "Sequential sequential <- input_layer_row\n",
      NULL },
    { JOB(ROW(2), CSV "columns: [{name: a, type: category, numBins: 5, salt: 7, encoding: int}, {name: b, type: "
                      "category, numBins: 6, salt: [-1, 2], encoding: int}]"),
      "a,b",
      "InputLayer a({\"batch_shape\":[null,1],\"dtype\":\"string\"})\n"
      "InputLayer b({\"batch_shape\":[null,1],\"dtype\":\"string\"})\n"
      "Hashing a_hash({\"num_bins\":5,\"output_mode\":\"int\",\"salt\":7}) <- a\n"
      "Hashing b_hash({\"num_bins\":6,\"output_mode\":\"int\",\"salt\":[-1,2]}) <- b\n"
      "Concatenate input_layer_row({\"axis\":-1}) <- a_hash, b_hash\n"
      "Sequential sequential <- input_layer_row\n",
      NULL },
    /* a column alone is the input; a name of the model is taken */
    { JOB(ROW(1), CSV "columns: [{name: sequential, type: category, vocabulary: [a], encoding: int}]"), "sequential",
      "InputLayer sequential({\"batch_shape\":[null,1],\"dtype\":\"string\"})\n"
      "StringLookup "
      "sequential_words({\"num_oov_indices\":0,\"mask_token\":null,\"oov_token\":\"[UNK]\",\"output_mode\":"
      "\"int\",\"vocabulary\":[\"a\"]}) <- sequential\n"
      "Sequential sequential_1 <- sequential_words\n",
      NULL },
    /* without a header the columns are numbers */
    { JOB(ROW(2), "format: csv, header: false, label: -1, sampleWeight: 1"), "0,2",
      "InputLayer column_0({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "InputLayer column_2({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "Concatenate input_layer_row({\"axis\":-1}) <- column_0, column_2\n"
      "Sequential sequential <- input_layer_row\n",
      NULL },
    { JOB(ROW(2), "format: csv, header: false, label: 0, columns: [{name: '3'}, {name: '1'}]"), "3,1",
      "InputLayer column_3({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "InputLayer column_1({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "Concatenate input_layer_row({\"axis\":-1}) <- column_3, column_1\n"
      "Sequential sequential <- input_layer_row\n",
      NULL },
    { JOB(ROW(2),
          "format: csv, header: false, label: -1, columns: [{name: '3', type: float}, {name: '2'}, {name: '0'}]"),
      "2,0",
      "InputLayer column_2({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "InputLayer column_0({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "Concatenate input_layer_row({\"axis\":-1}) <- column_2, column_0\n"
      "Sequential sequential <- input_layer_row\n",
      NULL },
    { JOB(ROW(2), "format: csv, header: false, label: -1, columns: [{name: '3'}, {name: '2'}]"), "3,2",
      "InputLayer column_3({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "InputLayer column_2({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "Concatenate input_layer_row({\"axis\":-1}) <- column_3, column_2\n"
      "Sequential sequential <- input_layer_row\n",
      NULL },
    { JOB(ROW(1), "format: csv, header: false, label: -1, columns: [{name: '1', type: category, vocabulary: [a, b]}]"),
      "0",
      "InputLayer column_0({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "Sequential sequential <- column_0\n",
      NULL },
    { JOB(ROW(1), "format: csv, header: false, label: -1, columns: [{name: '1', type: float}]"), "1",
      "InputLayer column_1({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "Sequential sequential <- column_1\n",
      NULL },
    { JOB(ROW(1), "format: csv, header: false, label: -1"), "", NULL,
      "--preprocessing: the checkpoint does not say which columns the features are" },
    { JOB(TWO, "format: csv, header: false, label: {species: -2, mass: -1}, columns: [{name: '5', type: category, "
               "vocabulary: [u, v]}], inputs: {group: ['0', '1', '2', '3', '4'], bill: ['4', '2', '0']}"),
      "0,1,2,3,4",
      "InputLayer column_0({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "InputLayer column_1({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "InputLayer column_2({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "InputLayer column_3({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "InputLayer column_4({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "Concatenate bill_row({\"axis\":-1}) <- column_4, column_2, column_0\n"
      "Concatenate group_row({\"axis\":-1}) <- column_0, column_1, column_2, column_3, column_4\n"
      "Functional penguins <- bill_row, group_row\n",
      NULL },
    /* two inputs, of which each takes a; nothing takes the date */
    { JOB(TWO,
          TWO_CSV "inputs: {group: [g, a], bill: [c, a, b]}, columns: [{name: g, type: category, vocabulary: [u, v, "
                  "w, x], encoding: one_hot}, {name: d, type: date}, {name: a}, {name: b}, {name: c}]"),
      "g,d,a,b,c",
      "InputLayer g({\"batch_shape\":[null,1],\"dtype\":\"string\"})\n"
      "InputLayer a({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "InputLayer b({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "InputLayer c({\"batch_shape\":[null,1],\"dtype\":\"float32\"})\n"
      "StringLookup g_words({\"num_oov_indices\":0,\"mask_token\":null,\"oov_token\":\"[UNK]\",\"output_mode\":"
      "\"one_hot\",\"vocabulary\":[\"u\",\"v\",\"w\",\"x\"]}) <- g\n"
      "Concatenate bill_row({\"axis\":-1}) <- c, a, b\n"
      "Concatenate group_row({\"axis\":-1}) <- g_words, a\n"
      "Functional penguins <- bill_row, group_row\n",
      NULL },
    { JOB(ROW(6), CSV "columns: [{name: a}, {name: sailed, type: date}]"), "a,sailed", NULL,
      "--preprocessing: column 'sailed' is of type date, which no layer of Keras reads; export the model without "
      "--preprocessing" },
    { JOB(ROW(2), CSV "columns: [{name: t, type: text, vocabulary: [a, ''], outputSequenceLength: 2}]"), "t", NULL,
      "--preprocessing: the vocabulary of column 't' has an empty word, which Keras allows only before all words of a "
      "text" },
    /* a job that is not the completed one of the run */
    { JOB(ROW(1), CSV "columns: [{name: c, type: category, vocabulary: auto, encoding: int}]"), "c", NULL,
      "--preprocessing: job.yaml does not say which words or ranges column 'c' has" },
    { JOB(ROW(2), CSV "columns: [{name: t, type: text, vocabulary: auto, outputSequenceLength: 2}]"), "t", NULL,
      "--preprocessing: job.yaml does not say which words or ranges column 't' has" },
    { JOB(ROW(1), CSV "columns: [{name: n, numBins: 4, encoding: int}]"), "n", NULL,
      "--preprocessing: job.yaml does not say which words or ranges column 'n' has" },
    { JOB(ROW(3), CSV "columns: [{name: a}, {name: b}]"), "a,b", NULL,
      "the model's input 'input_layer' is (3,), and the columns of the run's job.yaml have 2 numbers" },
    { JOB(ROW(2), "format: jsonl, columns: [{name: a, type: float, shape: [2]}]"), "a", NULL,
      "--preprocessing: column 'a' is a list of numbers, and only columns of one value become inputs" },
    { JOB(ROW(2), "format: jsonl, columns: [{name: a, type: int, outputSequenceLength: 2}]"), "a", NULL,
      "--preprocessing: column 'a' is a list of numbers, and only columns of one value become inputs" },
    { JOB(ROW(2), "format: tfrecord, columns: [{name: a, type: float}, {name: label, type: float}]"), "a", NULL,
      "--preprocessing: the run's data are not csv or jsonl (format: tfrecord)" },
};

/* Of Keras's tensors, in an array of arrays. */
static void add_sources(const json_t *v, struct buf *ret)
{
    const json_t *history = json_at(v, "config.keras_history");
    if (history != NULL)
        buf_printf(ret, "%s%s", ret->data[ret->len - 1] == ' ' ? "" : ", ",
                   json_string_value(json_array_get(history, 0)));
    for (size_t i = 0; i < json_array_size(v); i++)
        add_sources(json_array_get(v, i), ret);
}

static void add_line(const json_t *layer, struct buf *ret)
{
    const char *class_name = json_string_value(json_object_get(layer, "class_name"));
    const json_t *args = json_at(layer, "inbound_nodes.0.args");
    json_auto_t *config = json_deep_copy(json_object_get(layer, "config"));
    ck_assert_str_eq(json_string_value(json_object_get(config, "name")),
                     json_string_value(json_object_get(layer, "name")));
    buf_printf(ret, "%s %s", class_name, json_string_value(json_object_get(config, "name")));
    json_object_del(config, "name");
    if (json_object_get(config, "layers") == NULL) { /* not the trained model */
        buf_char(ret, '(');
        json_emit(config, ret);
        buf_char(ret, ')');
    }
    buf_str(ret, args != NULL ? " <- " : "");
    if (args != NULL)
        add_sources(args, ret);
    buf_char(ret, '\n');
}

struct prepared {
    struct job *job;
    struct model *model;
    json_t *json;
    struct column_names names;
};

static void prepare(const char *text, const char *names, struct prepared *ret)
{
    struct err e = { .code = ERR_NONE };
    ck_ok_e(job_parse(text, strlen(text), "test", &ret->job, &e));
    ck_ok_e(model_build(&ret->job->model, NULL, "deploy/examples", &ret->model, &e));
    ret->json = model_to_json(ret->model);
    strlist_split(&ret->names.features, names, ',');
}

static void prepared_fini(struct prepared *p)
{
    json_decref(p->json);
    model_free(p->model);
    job_free(p->job);
    column_names_fini(&p->names);
}
DEFINE_AUTO_FINI(prepared, prepared_fini);

static int make(const struct prepared *p, struct preprocessing *ret, struct err *e)
{
    struct trained_on t = { .job = p->job, .names = &p->names, .model = p->model, .json = p->json };
    return preprocessing_make(&t, ret, e);
}

static void lines_of(const struct preprocessing *p, struct buf *ret)
{
    const json_t *layers = json_at(p->json, "config.layers");
    for (size_t i = 0; i < json_array_size(layers); i++)
        add_line(json_array_get(layers, i), ret);
}

START_TEST(the_layers_of_columns)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(prepared) in = { .job = NULL };
    AUTO_FINI(preprocessing) p = { 0 };
    AUTO_FINI(buf) lines = BUF_INIT;
    prepare(CASES[_i].job, CASES[_i].names, &in);
    int rc = make(&in, &p, &e);
    if (CASES[_i].layers == NULL) {
        ck_assert_int_eq(rc, -1);
        ck_assert_msg(strstr(e.msg, CASES[_i].error) != NULL, "%s", e.msg);
        return;
    }
    ck_ok_e(rc);
    lines_of(&p, &lines);
    ck_assert_str_eq(lines.data, CASES[_i].layers);
}
END_TEST

/* The fields that a run's job has for them. */
START_TEST(hashed_words_and_ranges_have_layers)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(prepared) in = { .job = NULL };
    AUTO_FINI(preprocessing) p = { 0 };
    AUTO_FINI(buf) lines = BUF_INIT;
    prepare(JOB(ROW(5), CSV "columns: [{name: w, type: category, vocabulary: [a], encoding: int}, {name: r}]"), "w,r",
            &in);
    json_t *columns = json_at(in.job->doc, "spec.data.train.columns");
    json_object_set_new(json_array_get(columns, 0), "numBins", json_integer(10));
    json_object_set_new(json_array_get(columns, 1), "binBoundaries", json_pack("[i, i, f]", 1, 2, 3.5));
    json_object_set_new(json_array_get(columns, 1), "encoding", json_string("one_hot"));
    ck_ok_e(make(&in, &p, &e));
    lines_of(&p, &lines);
    ck_assert_ptr_nonnull(strstr(lines.data, "Hashing w_hash({\"num_bins\":10,\"output_mode\":\"int\"}) <- w\n"));
    ck_assert_ptr_nonnull(strstr(
        lines.data, "Discretization r_bins({\"bin_boundaries\":[1.0,2.0,3.5],\"output_mode\":\"one_hot\"}) <- r\n"));
}
END_TEST

/* Keras reads them from the groups of both layers of a text. */
START_TEST(weights_of_words_have_groups)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(prepared) in = { .job = NULL };
    AUTO_FINI(preprocessing) p = { 0 };
    AUTO_FINI(buf) lists = BUF_INIT;
    prepare(JOB(ROW(4), CSV "columns: [{name: t, type: text, vocabulary: [a], encoding: tf_idf, idfWeights: [2]}, "
                            "{name: d, type: category, vocabulary: [u, v], encoding: tf_idf, idfWeights: [3, 1]}]"),
            "t,d", &in);
    ck_ok_e(make(&in, &p, &e));
    ck_assert_uint_eq(json_array_size(p.weights), p.groups.n);
    for (size_t i = 0; i < p.groups.n; i++) {
        buf_printf(&lists, "%s ", p.groups.items[i]);
        json_emit(json_array_get(p.weights, i), &lists);
        buf_char(&lists, '\n');
    }
    ck_assert_str_eq(lists.data, "layers/input_layer null\nlayers/input_layer_1 null\n"
                                 "layers/text_vectorization [2.0,2.0]\n"
                                 "layers/text_vectorization/_lookup_layer [2.0,2.0]\nlayers/reshape null\n"
                                 "layers/string_lookup [3.0,1.0]\nlayers/concatenate null\nlayers/sequential null\n");
}
END_TEST

/* Where Keras looks for the trained model's weights, and what the whole model returns. */
START_TEST(the_model_is_a_layer)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(prepared) in = { .job = NULL };
    AUTO_FINI(preprocessing) p = { 0 };
    AUTO_FINI(buf) groups = BUF_INIT, ends = BUF_INIT;
    prepare(JOB(TWO, TWO_CSV "inputs: {group: t, bill: [a, b, c]}, columns: [{name: t, type: text, vocabulary: [x], "
                             "outputSequenceLength: 5}, {name: a}, {name: b}, {name: c}]"),
            "t,a,b,c", &in);
    ck_ok_e(make(&in, &p, &e));
    for (size_t i = 0; i < p.groups.n; i++)
        buf_printf(&groups, "%s %s\n", p.groups.items[i], p.names.items[i]);
    ck_assert_str_eq(groups.data, "layers/input_layer t\nlayers/input_layer_1 a\nlayers/input_layer_2 "
                                  "b\nlayers/input_layer_3 c\nlayers/text_vectorization t_words\n"
                                  "layers/text_vectorization/_lookup_layer string_lookup\n"
                                  "layers/concatenate bill_row\nlayers/functional penguins\n");
    ck_assert_str_eq(p.model_group, "layers/functional");
    json_emit(json_at(p.json, "config.input_layers"), &ends);
    json_emit(json_at(p.json, "config.output_layers"), &ends);
    ck_assert_str_eq(ends.data,
                     "[[\"t\",0,0],[\"a\",0,0],[\"b\",0,0],[\"c\",0,0]][[\"penguins\",0,0],[\"penguins\",0,1]]");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cli/export_preprocessing");
    TCase *t = tcase_create("export_preprocessing");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, the_layers_of_columns, 0, COUNT_OF(CASES));
    tcase_add_test(t, hashed_words_and_ranges_have_layers);
    tcase_add_test(t, weights_of_words_have_groups);
    tcase_add_test(t, the_model_is_a_layer);
    return s;
}
