/* Counts the words and values of columns in one pass over the rows. Sums are in the order of the rows, so that a mean
 * has the same bits in every process. */
#include "data/csv_learn.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data/bins.h"
#include "data/csv_layout.h"
#include "data/csv_value.h"
#include "data/tokens.h"

struct learner { /* of a column */
    const struct data_column *column;
    struct bins_learner *bins; /* NULL: it learns no boundaries */
    struct map counts;         /* text -> how often; words, and values for the mode */
    struct map documents;      /* tf_idf, text: token -> in how many texts it is, and which was the last one */
    struct map last;
    int64_t ndocuments;
    double sum;
    int64_t n, missing;
};

struct learning {
    const struct csv_layout *layout;
    struct learner *of; /* one for each column; column NULL: nothing is asked */
};

void learned_columns_fini(struct learned_columns *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->c[i].name);
        free(l->c[i].fill);
        strlist_fini(&l->c[i].words);
        free(l->c[i].weights);
        free(l->c[i].bounds);
    }
    free(l->c);
    *l = (struct learned_columns){ .c = NULL };
}

/* ---- the pass ---- */

/* A vocabulary that keeps the most frequent words counts more of them than it keeps. */
static bool keeps_frequent(const struct data_column *c)
{
    return c->type == COLUMN_TEXT || c->max_tokens > 0;
}

static int too_many(const struct learner *l, const struct csv_place *place, struct err *e)
{
    if (keeps_frequent(l->column))
        return csv_error_at(place->file, place->at, e, "column '%s' has more than %d different %s; list the words",
                            l->column->name, TOKENS_COUNTED_MAX, l->column->type == COLUMN_TEXT ? "tokens" : "values");
    if (l->column->hash_bins > 0)
        return csv_error_at(place->file, place->at, e,
                            "column '%s' has more than %d different values, too many to count; set its 'default' "
                            "instead of missing: mode",
                            l->column->name, VOCABULARY_LEARNED_MAX);
    return csv_error_at(place->file, place->at, e,
                        "column '%s' has more than %d different values; is it the name of each example? Leave it out, "
                        "list the words, or set maxTokens",
                        l->column->name, VOCABULARY_LEARNED_MAX);
}

static int count_text(struct learner *l, const struct csv_place *place, const char *text, struct err *e)
{
    intptr_t before = (intptr_t)map_get(&l->counts, text);
    size_t max = keeps_frequent(l->column) ? TOKENS_COUNTED_MAX : VOCABULARY_LEARNED_MAX;
    if (before == 0 && l->counts.n == max)
        return too_many(l, place, e);
    map_put(&l->counts, text, (void *)(before + 1));
    return 0;
}

/* The last text has the token. */
static void count_document(struct learner *l, const char *token)
{
    if (l->column->encoding != COLUMN_TF_IDF || (intptr_t)map_get(&l->last, token) == (intptr_t)l->ndocuments)
        return;
    map_put(&l->last, token, (void *)(intptr_t)l->ndocuments);
    map_put(&l->documents, token, (void *)((intptr_t)map_get(&l->documents, token) + 1));
}

/* The default of a text is a text, too, but its words are not of the data. */
static void take_default(struct learner *l)
{
    const char *text = l->column->fallback_text;
    const unsigned char *p = (const unsigned char *)text;
    if (text == NULL)
        return;
    struct token_reader tokens = token_reader(&(struct text_field){ .p = p, .end = p + strlen(text) }, l->column->text);
    l->ndocuments++;
    while (token_next(&tokens))
        if (tokens.whole)
            count_document(l, tokens.token);
}

static int take_tokens(struct learner *l, const struct csv_place *place, const struct text_field *raw, struct err *e)
{
    struct token_reader tokens = token_reader(raw, l->column->text);
    l->ndocuments++;
    while (token_next(&tokens)) {
        if (!tokens.whole || str_eq(tokens.token, TOKEN_UNKNOWN))
            continue;
        l->n++;
        if (count_text(l, place, tokens.token, e) < 0)
            return -1;
        count_document(l, tokens.token);
    }
    return 0;
}

static int take_number(struct learner *l, const struct csv_place *place, double v, struct err *e)
{
    char text[32];
    l->sum += v;
    l->n++;
    if (l->bins != NULL)
        bins_add(l->bins, v);
    return l->column->missing == MISSING_MODE ? count_text(l, place, str_double(v, text), e) : 0;
}

/* A word or a date. Those outside a vocabulary cannot stand for a missing value. */
static int take_text(struct learner *l, const struct csv_place *place, const struct text_field *field, struct err *e)
{
    const struct data_column *c = l->column;
    char text[VOCABULARY_WORD_MAX + 1];
    bool whole = text_copy(field, text, sizeof(text)), given = c->vocabulary.n > 0;
    if (given && (!whole || column_word(c, text) < 0))
        return 0;
    if (!whole && memchr(field->p, '\0', (size_t)(field->end - field->p)) != NULL)
        return csv_error_at(place->file, place->at, e,
                            "column '%s': this word has a NUL, which no word of a vocabulary has; remove it", c->name);
    if (!whole)
        return csv_error_at(place->file, place->at, e, "column '%s': a word has at most %d bytes", c->name,
                            VOCABULARY_WORD_MAX);
    l->n++;
    return count_text(l, place, text, e);
}

static int take_field(struct learner *l, const struct csv_dialect *d, const struct csv_place *place,
                      const struct text_field *raw, struct err *e)
{
    struct text_field field = text_trim(*raw);
    double v;
    enum csv_found found = csv_value(d, place, &field, &v);
    if (found == CSV_MISSING) {
        l->missing++;
        take_default(l);
        return 0;
    }
    if (found == CSV_NO_VALUE && !l->column->learns_words)
        return csv_bad_value(d, place, &field, e);
    if (l->column->type == COLUMN_TEXT)
        return take_tokens(l, place, raw, e);
    return column_is_number(l->column) ? take_number(l, place, v, e) : take_text(l, place, &field, e);
}

static int take_value(void *user, const struct csv_place *place, const struct text_field *field, struct err *e)
{
    const struct learning *learning = user;
    struct learner *l = &learning->of[place->column - learning->layout->columns.c];
    return l->column != NULL ? take_field(l, &learning->layout->dialect, place, field, e) : 0;
}

static int take_file(struct learning *learning, const struct data_file *f, struct err *e)
{
    const unsigned char *p;
    const struct csv_visit visit = { .value = take_value, .user = learning };
    if (csv_layout_begin(learning->layout, f, &p, e) < 0)
        return -1;
    while ((p = csv_layout_next(learning->layout, f, p)) < csv_end_of(f))
        if (csv_layout_record(learning->layout, f, &p, &visit, e) < 0)
            return -1;
    return 0;
}

/* ---- the result ---- */

/* The most frequent first; of several as Keras's layers order them: the greatest first. */
static int by_frequency(const void *a, const void *b)
{
    const struct map_slot *x = *(struct map_slot *const *)a, *y = *(struct map_slot *const *)b;
    intptr_t more = (intptr_t)y->value - (intptr_t)x->value;
    return more != 0 ? (more > 0 ? 1 : -1) : strcmp(y->key, x->key);
}

static void frequent_words(const struct learner *l, size_t max, struct strlist *ret)
{
    auto_free struct map_slot **words = xcalloc(l->counts.n, sizeof(*words));
    struct map_slot *slot;
    size_t n = 0;
    for (size_t i = 0; (slot = map_next(&l->counts, &i)) != NULL;)
        words[n++] = slot;
    qsort(words, n, sizeof(*words), by_frequency);
    for (size_t i = 0; i < n && i < max; i++)
        strlist_add(ret, words[i]->key);
}

static void learn_words(const struct learner *l, struct strlist *ret)
{
    const struct data_column *c = l->column;
    frequent_words(l, c->max_tokens > 0 ? c->max_tokens - c->mask - c->oov : l->counts.n, ret);
    if (c->type == COLUMN_CATEGORY)
        strlist_sort(ret);
}

/* The most frequent value; of several the least, as pandas' Series.mode()[0]. */
static const char *mode_of(const struct learner *l)
{
    const struct map_slot *slot, *best = NULL;
    for (size_t i = 0; (slot = map_next(&l->counts, &i)) != NULL;) {
        intptr_t more = best == NULL ? 1 : (intptr_t)slot->value - (intptr_t)best->value;
        bool less = best != NULL && (column_is_number(l->column) ? strtod(slot->key, NULL) < strtod(best->key, NULL)
                                                                 : strcmp(slot->key, best->key) < 0);
        if (more > 0 || (more == 0 && less))
            best = slot;
    }
    return best->key;
}

static void learn_fill(const struct learner *l, struct learned_column *ret)
{
    const struct data_column *c = l->column;
    char number[32];
    if (!data_missing_is_learned(c->missing) || c->has_default)
        return;
    ret->fill_is_number = column_is_number(c);
    ret->fill = xstrdup(c->missing == MISSING_MODE ? mode_of(l) : str_double(l->sum / (double)l->n, number));
    ret->fill_number = ret->fill_is_number ? strtod(ret->fill, NULL) : 0;
}

/* As Keras's adapt() computes them: a row is a document. One whose value is missing has the mode. */
static void learn_weights(const struct learner *l, struct learned_column *ret)
{
    bool is_text = l->column->type == COLUMN_TEXT;
    int64_t filled = ret->fill != NULL ? l->missing : 0, all = is_text ? l->ndocuments : l->n + filled;
    if (l->column->encoding != COLUMN_TF_IDF || !ret->has_words)
        return;
    ret->weights = xcalloc(ret->words.n, sizeof(*ret->weights));
    for (size_t i = 0; i < ret->words.n; i++) {
        const char *word = ret->words.items[i];
        int64_t with = (intptr_t)map_get(is_text ? &l->documents : &l->counts, word);
        with += str_eq(ret->fill, word) ? filled : 0;
        ret->weights[i] = (float)log(1 + (double)all / (double)(1 + with));
    }
}

static void describe(struct learner *l, struct learned_column *ret)
{
    const struct data_column *c = l->column;
    *ret = (struct learned_column){ .name = xstrdup(c->name),
                                    .has_words = c->learns_words,
                                    .is_text = c->type == COLUMN_TEXT,
                                    .others = c->mask + c->oov,
                                    .how = c->missing,
                                    .missing = l->missing };
    if (c->learns_words)
        learn_words(l, &ret->words);
    ret->found = ret->words.n;
    if (l->bins != NULL)
        ret->n_bounds = bins_finish(l->bins, c->learns_bins, &ret->bounds);
    learn_fill(l, ret);
    learn_weights(l, ret);
}

static int finish(const struct data_place *at, const struct learning *learning, size_t asked,
                  struct learned_columns *ret, struct err *e)
{
    AUTO_FINI(learned_columns) l = { .c = xcalloc(asked, sizeof(*l.c)) };
    for (size_t i = 0; i < learning->layout->columns.n; i++) {
        struct learner *one = &learning->of[i];
        if (one->column == NULL)
            continue;
        if (one->n == 0)
            return data_error(at, "columns", e, "column '%s' has no %s in the data to learn from", one->column->name,
                              one->column->type == COLUMN_TEXT ? "word" : "value");
        if (one->column->type == COLUMN_TEXT && one->column->max_tokens == 0 && one->counts.n > VOCABULARY_LEARNED_MAX)
            return data_error(at, "columns", e, "column '%s' has %zu different tokens; set maxTokens, at most %d",
                              one->column->name, one->counts.n, VOCABULARY_LEARNED_MAX + 2);
        if (one->bins != NULL && one->n == 1)
            return data_error(at, "columns", e,
                              "column '%s' has one value in the data to learn from, and ranges need more",
                              one->column->name);
        describe(one, &l.c[l.n++]);
    }
    *ret = l;
    l = (struct learned_columns){ .c = NULL };
    return 0;
}

static int learn(const struct data_place *at, const struct data_files *files, const struct csv_layout *layout,
                 struct learner *of, struct learned_columns *ret, struct err *e)
{
    struct learning learning = { .layout = layout, .of = of };
    size_t asked = 0;
    for (size_t i = 0; i < layout->columns.n; i++) {
        const struct data_column *c = &layout->columns.c[i];
        of[i].column = column_learns(c) ? c : NULL;
        of[i].bins = c->used && c->learns_bins > 0 ? xcalloc(1, sizeof(*of[i].bins)) : NULL;
        asked += of[i].column != NULL;
    }
    for (size_t i = 0; asked > 0 && i < files->n; i++)
        if (take_file(&learning, &files->file[i], e) < 0)
            return -1;
    return asked > 0 ? finish(at, &learning, asked, ret, e) : 0;
}

static int learn_files(const struct data_place *at, const struct data_files *files, struct learned_columns *ret,
                       struct err *e)
{
    AUTO_FINI(csv_layout) layout = { .header = false };
    if (csv_layout_open(at, files, &layout, e) < 0)
        return -1;
    auto_free struct learner *of = xcalloc(layout.columns.n, sizeof(*of));
    int rc = learn(at, files, &layout, of, ret, e);
    for (size_t i = 0; i < layout.columns.n; i++) {
        map_fini(&of[i].counts);
        map_fini(&of[i].documents);
        map_fini(&of[i].last);
        if (of[i].bins != NULL)
            bins_fini(of[i].bins);
        free(of[i].bins);
    }
    return rc;
}

int csv_learn(const struct data_place *at, struct learned_columns *ret, struct err *e)
{
    struct data_files files;
    if (data_files_open(at, &files, e) < 0)
        return -1;
    int rc = learn_files(at, &files, ret, e);
    data_files_fini(&files);
    return rc;
}
