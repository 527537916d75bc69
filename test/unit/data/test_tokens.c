#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "check_main.h"
#include "data/tokens.h"

static struct text_field field_of(const char *s, size_t n, bool doubled)
{
    const unsigned char *p = (const unsigned char *)s;
    return (struct text_field){ .p = p, .end = p + n, .doubled = doubled };
}

static const struct {
    enum text_standardize standardize;
    enum text_split split;
    bool doubled;
    const char *text, *tokens; /* tokens: separated by bars */
} CASES[] = {
    { STANDARDIZE_LOWER_AND_STRIP_PUNCTUATION, SPLIT_WHITESPACE, false, "Don't panic!", "dont|panic|" },
    { STANDARDIZE_LOWER_AND_STRIP_PUNCTUATION, SPLIT_WHITESPACE, false, "", "" },
    { STANDARDIZE_LOWER_AND_STRIP_PUNCTUATION, SPLIT_WHITESPACE, false, " \t\n\v\f\r ?! ", "" },
    { STANDARDIZE_LOWER_AND_STRIP_PUNCTUATION, SPLIT_WHITESPACE, false, "a -- b", "a|b|" },
    { STANDARDIZE_LOWER_AND_STRIP_PUNCTUATION, SPLIT_WHITESPACE, false, "@A[Z`a{z", "azaz|" },
    { STANDARDIZE_LOWER, SPLIT_WHITESPACE, false, "It's \303\200", "it's|\303\200|" },
    { STANDARDIZE_STRIP_PUNCTUATION, SPLIT_WHITESPACE, false, "It's OK.", "Its|OK|" },
    { STANDARDIZE_NONE, SPLIT_WHITESPACE, true, "say \"\"hi\"\"", "say|\"hi\"|" },
    { STANDARDIZE_NONE, SPLIT_WHITESPACE, false, "say \"\"hi", "say|\"\"hi|" },
    { STANDARDIZE_STRIP_PUNCTUATION, SPLIT_WHITESPACE, true, "a\"\"\"\"b", "ab|" },
    { STANDARDIZE_LOWER_AND_STRIP_PUNCTUATION, SPLIT_CHARACTER, false, "A b!", "a| |b|" },
    { STANDARDIZE_NONE, SPLIT_CHARACTER, false, "\303\200\344\272\254\360\237\230\200x",
      "\303\200|\344\272\254|\360\237\230\200|x|" },
    { STANDARDIZE_NONE, SPLIT_CHARACTER, false, "x\344\272", "x|\344\272|" }, /* a character that is cut off */
};

START_TEST(a_text_has_these_tokens)
{
    AUTO_FINI(buf) got = BUF_INIT;
    struct text_field field = field_of(CASES[_i].text, strlen(CASES[_i].text), CASES[_i].doubled);
    struct token_reader r =
        token_reader(&field, (struct text_form){ .standardize = CASES[_i].standardize, .split = CASES[_i].split });
    while (token_next(&r)) {
        ck_assert(r.whole);
        buf_printf(&got, "%s|", r.token);
    }
    ck_assert_str_eq(got.data, CASES[_i].tokens);
    ck_assert(!token_next(&r));
}
END_TEST

static const struct {
    struct text_form form;
    const char *text, *ngrams;
} NGRAMS[] = {
    { { .n_ngrams = 2, .ngrams = { 1, 2 } }, "A b, c!", "a|b|c|a b|b c|" },
    { { .n_ngrams = 2, .ngrams = { 2, 1 } }, "A b, c!", "a b|b c|a|b|c|" },
    { { .n_ngrams = 1, .ngrams = { 3 } }, "a b c d", "a b c|b c d|" },
    { { .n_ngrams = 2, .ngrams = { 3, 2 } }, "a b", "a b|" },
    { { .n_ngrams = 2, .ngrams = { 3, 2 } }, "a", "" },
    { { .n_ngrams = 2, .ngrams = { 1, 2 } }, " ,  ", "" },
    { { .n_ngrams = 1, .ngrams = { 2 }, .split = SPLIT_CHARACTER }, "\303\200 x", "\303\200  |  x|" },
};

START_TEST(tokens_are_joined_to_ngrams)
{
    AUTO_FINI(buf) got = BUF_INIT;
    struct text_field field = field_of(NGRAMS[_i].text, strlen(NGRAMS[_i].text), false);
    struct token_reader r = token_reader(&field, NGRAMS[_i].form);
    while (token_next(&r)) {
        ck_assert(r.whole);
        buf_printf(&got, "%s|", r.token);
    }
    ck_assert_str_eq(got.data, NGRAMS[_i].ngrams);
    ck_assert(!token_next(&r));
}
END_TEST

/* Two tokens, the space between them included. */
START_TEST(a_long_ngram_is_cut)
{
    char text[TOKEN_MAX + 3];
    memset(text, 'w', sizeof(text));
    text[100] = text[TOKEN_MAX] = ' ';
    struct text_field field = field_of(text, sizeof(text), false);
    struct token_reader r = token_reader(&field, (struct text_form){ .n_ngrams = 1, .ngrams = { 2 } });
    ck_assert(token_next(&r) && r.whole);
    ck_assert_uint_eq(strlen(r.token), TOKEN_MAX);
    ck_assert(token_next(&r) && r.whole);
    ck_assert_uint_eq(strlen(r.token), TOKEN_MAX - 100 - 1 + 1 + 2);
    ck_assert(!token_next(&r));
    text[TOKEN_MAX] = 'w'; /* now the second token is longer */
    r = token_reader(&field, (struct text_form){ .n_ngrams = 1, .ngrams = { 2 } });
    ck_assert(token_next(&r) && !r.whole);
    ck_assert(!token_next(&r));
}
END_TEST

/* A token that does not fit is not a word, even if its beginning is one. The tokens behind it are read. */
START_TEST(a_long_token_is_cut)
{
    char text[2 * TOKEN_MAX + 8];
    memset(text, 'w', sizeof(text));
    text[TOKEN_MAX] = text[2 * TOKEN_MAX + 2] = ' ';
    struct text_field field = field_of(text, sizeof(text), false);
    struct token_reader r = token_reader(&field, (struct text_form){ .split = SPLIT_WHITESPACE });
    ck_assert(token_next(&r) && r.whole);
    ck_assert_uint_eq(strlen(r.token), TOKEN_MAX);
    ck_assert(token_next(&r) && !r.whole);
    ck_assert_uint_eq(strlen(r.token), TOKEN_MAX);
    ck_assert(token_next(&r) && r.whole);
    ck_assert_str_eq(r.token, "wwwww");
    ck_assert(!token_next(&r));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/tokens");
    TCase *t = tcase_create("tokens");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, a_text_has_these_tokens, 0, (int)COUNT_OF(CASES));
    tcase_add_loop_test(t, tokens_are_joined_to_ngrams, 0, (int)COUNT_OF(NGRAMS));
    tcase_add_test(t, a_long_ngram_is_cut);
    tcase_add_test(t, a_long_token_is_cut);
    return s;
}
