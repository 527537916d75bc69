#include "data/vocabulary.h"

#include "base/str.h"
#include "check_main.h"

static const struct {
    const char *item; /* JSON */
    bool is_token;
    const char *word;
} WORDS[] = {
    { "\"red\"", false, "red" },
    { "\" \\t red coat \\t\"", false, "red coat" },
    { "\" \\t red coat \\t\"", true, " \t red coat \t" },
    { "\"\\nred\\u00a0\"", false, "\nred\302\240" }, /* fields keep these, too */
    { "\" \"", false, "" },
    { "\" \"", true, " " },
    { "30", false, "30" },
    { "1.50", false, "1.5" },
    { "true", true, "true" },
};

START_TEST(an_item_is_this_word)
{
    AUTO_FINI(buf) word = BUF_INIT;
    json_auto_t *item = json_loads(WORDS[_i].item, JSON_DECODE_ANY, NULL);
    buf_str(&word, "before");
    vocabulary_word(item, WORDS[_i].is_token, &word);
    ck_assert_str_eq(word.data, WORDS[_i].word);
}
END_TEST

static const struct {
    const char *words;
    size_t special;
} LISTS[] = {
    { "[\"\", \"[UNK]\", \"a\"]", 2 },
    { "[\"[UNK]\", \"a\"]", 1 },
    { "[\"\", \"a\"]", 1 },
    { "[\"a\", \"\"]", 0 },
    { "[\"[UNK]\", \"\", \"a\"]", 1 },
    { "[\"a\", \"[UNK]\", \"\"]", 0 },
    { "[]", 0 },
};

START_TEST(a_list_begins_with_so_many_special_words)
{
    json_auto_t *words = json_loads(LISTS[_i].words, 0, NULL);
    ck_assert_uint_eq(vocabulary_special(words), LISTS[_i].special);
}
END_TEST

static const struct {
    const char *words, *weights;
    bool is_text, oov;
    size_t n;
    float want[4];
} WEIGHTS[] = {
    { "[\"a\", \"b\"]", "[1, 0.5]", true, true, 3, { 0.75F, 1, 0.5F } },
    { "[\"[UNK]\", \"a\", \"b\"]", "[7, 1, 0.5]", true, true, 3, { 7, 1, 0.5F } },
    { "[\"\", \"[UNK]\", \"a\"]", "[9, 7, 1]", true, true, 2, { 7, 1 } },
    { "[\"\", \"a\", \"b\"]", "[9, 2, 1]", true, true, 3, { 1.5F, 2, 1 } },
    { "[\"[UNK]\", \"a\"]", "[7, 1]", false, true, 3, { 4, 7, 1 } }, /* a word of a category */
    { "[\"a\", \"b\"]", "[1, 0.1]", false, false, 2, { 1, 0.1F } },
};

START_TEST(numbers_have_these_weights)
{
    json_auto_t *words = json_loads(WEIGHTS[_i].words, 0, NULL), *weights = json_loads(WEIGHTS[_i].weights, 0, NULL);
    size_t n = 0;
    auto_free float *got = vocabulary_weights(words, weights, WEIGHTS[_i].is_text, WEIGHTS[_i].oov, &n);
    ck_assert_uint_eq(n, WEIGHTS[_i].n);
    ck_assert_mem_eq(got, WEIGHTS[_i].want, n * sizeof(*got));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/vocabulary");
    TCase *t = tcase_create("vocabulary");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, an_item_is_this_word, 0, (int)COUNT_OF(WORDS));
    tcase_add_loop_test(t, a_list_begins_with_so_many_special_words, 0, (int)COUNT_OF(LISTS));
    tcase_add_loop_test(t, numbers_have_these_weights, 0, (int)COUNT_OF(WEIGHTS));
    return s;
}
