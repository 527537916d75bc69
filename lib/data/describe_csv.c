/* One pass over the rows of csv files, for data/describe.h: which values a column has, how many are missing, and the
 * most frequent texts. Columns that the job does not use are described, too: as numbers if all their values are. */
#include <string.h>

#include "data/csv_layout.h"
#include "data/csv_value.h"
#include "data/dataset_internal.h"
#include "data/describe_internal.h"
#include "data/jsonl.h"
#include "data/tokens.h"

struct csv_counter { /* of a column */
    const struct data_column *column;
    struct described_column *to;
    struct map texts; /* text -> how often */
    bool counts_texts;
};
struct csv_counting {
    const struct csv_layout *layout;
    struct csv_counter *of;
    int64_t limit;
    struct data_description *ret;
};

/* ---- a value ---- */

static void count_word(struct csv_counter *c, const char *text)
{
    intptr_t before = (intptr_t)map_get(&c->texts, text);
    if (before == 0 && c->texts.n == DESCRIBE_WORDS_MAX)
        c->to->more_words = true;
    else
        map_put(&c->texts, text, (void *)(before + 1));
}

/* Long texts are counted by their first bytes. */
static void count_text(struct csv_counter *c, const struct text_field *field)
{
    char text[VOCABULARY_WORD_MAX + 1];
    text_copy(field, text, sizeof(text));
    count_word(c, text);
}

/* Of a column of type text the words, and how many of them a text has. */
static void count_tokens(struct csv_counter *c, const struct text_field *raw)
{
    struct token_reader tokens = token_reader(raw, c->column->text);
    int64_t n = 0;
    for (; token_next(&tokens); n++)
        count_word(c, tokens.token);
    c->to->count++;
    moments_add(&c->to->numbers, (double)n);
}

static void count_value(struct csv_counter *c, const struct text_field *field, bool is_number, double v)
{
    c->to->count++;
    if (c->counts_texts)
        count_text(c, field);
    if (is_number && c->to->has_numbers)
        moments_add(&c->to->numbers, v);
    else
        c->to->has_numbers = false;
}

/* A list of numbers (JSON Lines): all of them. */
static int take_list(struct csv_counter *c, const struct csv_place *place, const struct text_field *field,
                     struct err *e)
{
    auto_free double *v = xcalloc(jsonl_numbers_max(c->column, field), sizeof(*v));
    size_t n;
    if (place->missing) {
        c->to->missing++;
        return 0;
    }
    if (jsonl_numbers(place, field, v, &n, e) < 0)
        return -1;
    c->to->count++;
    for (size_t i = 0; i < n; i++)
        moments_add(&c->to->numbers, v[i]);
    return 0;
}

/* The texts of a column that is not used may be anything. */
static int take_value(void *user, const struct csv_place *place, const struct text_field *raw, struct err *e)
{
    const struct csv_counting *counting = user;
    const struct data_column *column = place->column;
    struct csv_counter *c = &counting->of[column - counting->layout->columns.c];
    struct text_field field = text_trim(*raw);
    double v = 0;
    if (column->shape.rank > 0)
        return take_list(c, place, raw, e);
    enum csv_found found = csv_value(&counting->layout->dialect, place, &field, &v);
    if (found == CSV_NO_VALUE && column->used)
        return csv_bad_value(&counting->layout->dialect, place, &field, e);
    if (found == CSV_MISSING)
        c->to->missing++;
    else if (column->type == COLUMN_TEXT)
        count_tokens(c, raw);
    else
        count_value(c, &field, found == CSV_VALUE && column->type != COLUMN_CATEGORY, v);
    return 0;
}

/* ---- the pass ---- */

static int take_file(struct csv_counting *counting, const struct data_file *f, struct err *e)
{
    const struct csv_visit visit = { .all = true, .value = take_value, .user = counting };
    const struct csv_layout *layout = counting->layout;
    struct data_description *ret = counting->ret;
    const unsigned char *p;
    const int64_t before = ret->rows;
    if (csv_layout_begin(layout, f, &p, e) < 0)
        return -1;
    while ((counting->limit == 0 || ret->rows < counting->limit) &&
           (p = csv_layout_next(layout, f, p)) < csv_end_of(f)) {
        if (csv_layout_record(layout, f, &p, &visit, e) < 0)
            return -1;
        ret->rows++;
    }
    for (size_t i = 0; !layout->json && i < layout->columns.n; i++)
        if (csv_layout_field(layout, f, i) < 0) /* a column that is not used, and that this file does not have */
            counting->of[i].to->missing += ret->rows - before;
    return 0;
}

/* ---- the result ---- */

static void keep_top(struct described_column *to, const struct map_slot *word)
{
    const struct described_word one = { .text = word->key, .n = (int64_t)(intptr_t)word->value };
    size_t at = to->ntop;
    while (at > 0 &&
           (to->top[at - 1].n < one.n || (to->top[at - 1].n == one.n && strcmp(to->top[at - 1].text, one.text) > 0)))
        at--;
    if (at == DESCRIBE_TOP)
        return;
    to->ntop = MIN(to->ntop + 1, (size_t)DESCRIBE_TOP);
    memmove(&to->top[at + 1], &to->top[at], (to->ntop - at - 1) * sizeof(one));
    to->top[at] = one;
}

static const char *type_of(const struct data_column *c, const struct described_column *to)
{
    if (!c->used && !c->described)
        return to->count == 0 ? "empty" : to->has_numbers ? "number" : "text";
    return column_type_name(c->type);
}

static void finish_column(struct csv_counter *c)
{
    const struct map_slot *word;
    struct described_column *to = c->to;
    to->has_numbers = to->has_numbers && to->numbers.n > 0;
    to->type = type_of(c->column, to);
    to->has_words = (c->column->type == COLUMN_TEXT || !to->has_numbers) && c->texts.n > 0;
    to->words = (int64_t)c->texts.n;
    for (size_t i = 0; to->has_words && (word = map_next(&c->texts, &i)) != NULL;)
        keep_top(to, word);
    for (size_t i = 0; i < to->ntop; i++)
        to->top[i].text = xstrdup(to->top[i].text);
}

static void begin_columns(const struct csv_counting *counting)
{
    const struct data_columns *columns = &counting->layout->columns;
    struct data_description *ret = counting->ret;
    ret->columns = xcalloc(columns->n, sizeof(*ret->columns));
    for (size_t i = 0; i < columns->n; i++) {
        const struct data_column *c = &columns->c[i];
        if (!c->used && counting->layout->json) /* its values are not visited */
            continue;
        struct described_column *to = &ret->columns[ret->n++];
        to->name = xstrdup(c->name);
        to->role = c->is_label ? "label" : c->is_weight ? "weight" : c->used ? "feature" : "unused";
        to->is_date = c->type == COLUMN_DATE;
        to->has_numbers = c->type != COLUMN_CATEGORY;
        counting->of[i] = (struct csv_counter){
            .column = c, .to = to, .counts_texts = c->type == COLUMN_CATEGORY || (!c->used && !to->is_date)
        };
    }
}

/* The words of the only label stand for the classes. */
static void name_classes(const struct csv_layout *layout, struct data_description *ret)
{
    const struct data_columns *columns = &layout->columns;
    const struct map_slot *word;
    if (columns->n_labels != 1 || columns->c[columns->label].type != COLUMN_CATEGORY)
        return;
    for (size_t i = 0; (word = map_next(&columns->c[columns->label].vocabulary, &i)) != NULL;)
        strlist_add(&ret->class_names, word->key);
}

static int count_files(const struct data_files *files, struct csv_counting *counting, struct err *e)
{
    begin_columns(counting);
    for (size_t i = 0; i < files->n; i++)
        if (take_file(counting, &files->file[i], e) < 0)
            return -1;
    for (size_t i = 0; i < counting->layout->columns.n; i++)
        if (counting->of[i].to != NULL)
            finish_column(&counting->of[i]);
    name_classes(counting->layout, counting->ret);
    return 0;
}

static int describe_files(const struct data_place *at, const struct data_files *files, int64_t limit,
                          struct data_description *ret, struct err *e)
{
    AUTO_FINI(csv_layout) layout = { .header = false };
    if (csv_layout_open(at, files, &layout, e) < 0)
        return -1;
    auto_free struct csv_counter *of = xcalloc(layout.columns.n, sizeof(*of));
    struct csv_counting counting = { .layout = &layout, .of = of, .limit = limit, .ret = ret };
    int rc = count_files(files, &counting, e);
    for (size_t i = 0; i < layout.columns.n; i++)
        map_fini(&of[i].texts);
    return rc;
}

int describe_csv(const struct describe_options *o, int64_t limit, struct data_description *ret, struct err *e)
{
    const struct data_place at = {
        .spec = o->spec, .base_dir = o->base_dir, .cache_dir = o->cache_dir, .like = dataset_like(o->spec, o->like)
    };
    struct data_files files;
    if (data_files_open(&at, &files, e) < 0)
        return -1;
    int rc = describe_files(&at, &files, limit, ret, e);
    data_files_fini(&files);
    return rc;
}
