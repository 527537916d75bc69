/* Each folder of test/data/data/learn is a case: job.yaml is a manifest that leaves something to its data, run.yaml, if
 * there is one, the job of the run that is continued. `expected` is what it says afterwards, and what the user is told;
 * `error` is its error message. A new case needs no code. */
#include "case_folder.h"
#include "data/job_learn.h"
#include "data_help.h"

#define CASES "test/data/data/learn"

static void read_text(const char *dir, const char *name, struct buf *ret)
{
    struct err e;
    auto_free char *path = path_join(dir, name);
    if (file_exists(path))
        ck_ok_e(file_read(path, 1 << 20, ret, &e));
}

static void render(const struct job *j, const struct strlist *notes, struct buf *out)
{
    json_auto_t *said =
        json_pack("{s:O?, s:O?}", "model", json_at(j->doc, "spec.model"), "data", json_at(j->doc, "spec.data"));
    for (size_t i = 0; i < notes->n; i++)
        buf_printf(out, "%s\n", notes->items[i]);
    yaml_emit(said, out);
}

START_TEST(a_job_says_all_itself)
{
    auto_free char *dir = case_path(CASES, _i);
    auto_free char *path = path_join(dir, "job.yaml");
    AUTO_FINI(buf) want = BUF_INIT, error = BUF_INIT, got = BUF_INIT;
    AUTO_FINI(strlist) notes = { 0 }, none = { 0 };
    auto_free char *run_path = path_join(dir, "run.yaml");
    AUTO_FINI(folder) cache = folder_new();
    AUTO(job) *j = NULL, *run = NULL;
    struct err e = { .code = ERR_NONE };
    read_text(dir, "expected", &want);
    read_text(dir, "error", &error);
    ck_ok_e(job_load(path, &j, &e));
    if (file_exists(run_path))
        ck_ok_e(job_load(run_path, &run, &e));
    ck_assert(job_learns(j));
    int rc = job_learn(j, run, dir, cache.path, &notes, &e);
    if (rc < 0)
        buf_printf(&got, "%s\n", e.msg);
    else
        render(j, &notes, &got);
    ck_assert_msg(str_eq(got.data, rc < 0 ? error.data : want.data), "%s: %s\n%s", dir, rc < 0 ? "says" : "is",
                  got.data);
    if (rc < 0)
        return;
    ck_ok_e(job_learn(j, run, dir, NULL, &none, &e)); /* there is nothing left */
    ck_assert_uint_eq(none.n, 0);
}
END_TEST

/* A csv of one column `a` with 100,001 different words, and a job that learns from it as `column` says. */
static int learn_many(const char *column, struct job **ret, struct err *e)
{
    AUTO_FINI(folder) dir = folder_new();
    AUTO_FINI(buf) text = BUF_INIT;
    AUTO_FINI(strlist) notes = { 0 };
    buf_printf(&text, "a,y\nw7,1\n");
    for (int i = 0; i <= 100000; i++)
        buf_printf(&text, "w%d,1\n", i);
    put_file(&dir, "t.csv", text.data, text.len);
    ck_assert_msg(job_load(CASES "/error-not-a-word/job.yaml", ret, e) == 0, "%s", e->msg);
    json_t *columns = json_at((*ret)->doc, "spec.data.train.columns");
    json_array_set_new(columns, 0, json_loads(column, 0, NULL));
    return job_learn(*ret, NULL, dir.path, NULL, &notes, e);
}

/* A column of names would become as many inputs. */
START_TEST(a_column_has_so_many_words)
{
    AUTO(job) *j = NULL;
    struct err e = { .code = ERR_NONE };
    ck_assert_int_eq(learn_many("{\"name\": \"a\", \"type\": \"category\", \"vocabulary\": \"auto\", "
                                "\"encoding\": \"int\"}",
                                &j, &e),
                     -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "t.csv:100003:1: column 'a' has more than 100000 different values; is it the "
                                        "name of each example? Leave it out, list the words, or set maxTokens"));
}
END_TEST

START_TEST(a_text_has_so_many_words)
{
    AUTO(job) *j = NULL;
    struct err e = { .code = ERR_NONE };
    ck_assert_int_eq(learn_many("{\"name\": \"a\", \"type\": \"text\", \"vocabulary\": \"auto\", "
                                "\"outputSequenceLength\": 2}",
                                &j, &e),
                     -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "column 'a' has 100001 different tokens; set maxTokens, at most 100002"));
}
END_TEST

static const char *const MAX_TOKENS[] = {
    "{\"name\": \"a\", \"type\": \"text\", \"vocabulary\": \"auto\", \"outputSequenceLength\": 2, \"maxTokens\": 3}",
    "{\"name\": \"a\", \"type\": \"category\", \"vocabulary\": \"auto\", \"encoding\": \"int\", \"numOovIndices\": 1, "
    "\"maxTokens\": 3}",
};

START_TEST(the_most_frequent_of_many_words_are_kept)
{
    AUTO(job) *j = NULL;
    struct err e = { .code = ERR_NONE };
    ck_ok_e(learn_many(MAX_TOKENS[_i], &j, &e));
    const json_t *words = json_object_get(json_array_get(json_at(j->doc, "spec.data.train.columns"), 0), "vocabulary");
    ck_assert_uint_eq(json_array_size(words), (size_t)_i + 1);
    ck_assert_str_eq(json_string_value(json_array_get(words, 0)), "w7");
}
END_TEST

/* A run with as many and as long words as are learned reads its own job. */
START_TEST(a_job_lists_many_long_words)
{
    AUTO_FINI(folder) dir = folder_new();
    AUTO_FINI(buf) text = BUF_INIT;
    AUTO(job) *j = NULL, *again = NULL;
    struct err e;
    ck_ok_e(job_load(CASES "/error-not-a-word/job.yaml", &j, &e));
    json_t *words = json_array(), *columns = json_at(j->doc, "spec.data.train.columns");
    for (int i = 0; i < 100000; i++) {
        char word[100];
        str_fmt(word, sizeof(word), "%099d", i);
        json_array_append_new(words, json_string(word));
    }
    json_object_set_new(json_array_get(columns, 0), "vocabulary", words);
    yaml_emit(j->doc, &text);
    put_file(&dir, "job.yaml", text.data, text.len);
    auto_free char *path = path_join(dir.path, "job.yaml");
    ck_ok_e(job_load(path, &again, &e));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/job_learn");
    TCase *t = tcase_create("job_learn");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, a_job_says_all_itself, 0, case_count(CASES));
    tcase_add_test(t, a_column_has_so_many_words);
    tcase_add_test(t, a_text_has_so_many_words);
    tcase_add_test(t, a_job_lists_many_long_words);
    tcase_add_loop_test(t, the_most_frequent_of_many_words_are_kept, 0, (int)COUNT_OF(MAX_TOKENS));
    return s;
}
