/* Reads a text byte by byte: what is not stripped is added to the token, which ends at white space, or after each
 * character. Texts of n-grams are read once for each length, and each n-gram from its first token on. */
#include "data/tokens.h"

struct token_reader token_reader(const struct text_field *text, struct text_form form)
{
    return (struct token_reader){
        .p = text->p, .end = text->end, .first = text->p, .doubled = text->doubled, .form = form
    };
}

static bool token_is_space(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* !"#$%&'()*+,-./ :;<=>?@ [\]^_` {|}~ */
static bool token_is_punctuation(unsigned char c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/* The next byte that is not stripped, as the form writes it; -1: there is none. */
static int token_byte(struct token_reader *r)
{
    enum text_standardize how = r->form.standardize;
    bool strips = how == STANDARDIZE_LOWER_AND_STRIP_PUNCTUATION || how == STANDARDIZE_STRIP_PUNCTUATION;
    bool lowers = how == STANDARDIZE_LOWER_AND_STRIP_PUNCTUATION || how == STANDARDIZE_LOWER;
    while (r->p < r->end) {
        unsigned char c = *r->p++;
        if (c == '"' && r->doubled && r->p < r->end)
            r->p++;
        if (strips && token_is_punctuation(c))
            continue;
        return lowers && c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
    }
    return -1;
}

/* No vocabulary can have NUL. */
static void token_add(struct token_reader *r, size_t *n, int byte)
{
    if (*n < TOKEN_MAX && byte != '\0')
        r->token[(*n)++] = (char)byte;
    else
        r->whole = false;
}

/* The rest of a character of several bytes. */
static void token_add_rest(struct token_reader *r, size_t *n)
{
    while (r->p < r->end && (*r->p & 0xC0) == 0x80)
        token_add(r, n, *r->p++);
}

/* Adds a token behind the first n bytes. false: there is none. */
static bool token_read(struct token_reader *r, size_t *n)
{
    int c = token_byte(r);
    if (r->form.split == SPLIT_CHARACTER) {
        if (c < 0)
            return false;
        token_add(r, n, c);
        if (c >= 0xC0)
            token_add_rest(r, n);
        return true;
    }
    while (c >= 0 && token_is_space((unsigned char)c))
        c = token_byte(r);
    if (c < 0)
        return false;
    for (; c >= 0 && !token_is_space((unsigned char)c); c = token_byte(r))
        token_add(r, n, c);
    return true;
}

/* So many tokens, joined by a space; r->p is then behind the first of them. false: there are not as many. */
static bool token_join(struct token_reader *r, size_t tokens)
{
    const unsigned char *second = NULL;
    size_t n = 0;
    r->whole = true;
    for (size_t i = 0; i < tokens; i++) {
        if (i > 0)
            token_add(r, &n, ' ');
        if (!token_read(r, &n))
            return false;
        second = i == 0 ? r->p : second;
    }
    r->p = second;
    r->token[n] = '\0';
    return true;
}

bool token_next(struct token_reader *r)
{
    if (r->form.n_ngrams == 0)
        return token_join(r, 1);
    for (; r->which < r->form.n_ngrams; r->which++, r->p = r->first)
        if (token_join(r, r->form.ngrams[r->which]))
            return true;
    return false;
}
