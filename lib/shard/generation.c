/* Claims and publishes a generation with the file operations that every volume has: exclusive creation, hard links,
 * renames. Each step reads back what it wrote before it goes on, because another chief may do the same at the moment.
 */
#include "shard/generation.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"

enum { CLAIM_WAIT_MS = 3000, POLL_MS = 10, LINE_MAX_BYTES = 4096, HEX_DIGITS = 16 };
#define NAME "generation"

/* ---- the files ---- */

static char *claim_path(const char *dir, uint64_t number)
{
    return xasprintf("%s/" NAME ".%" PRIu64, dir, number);
}

static int parse_incarnation(const char *text, uint64_t *ret)
{
    size_t n = strlen(text);
    if (n == 0 || n > HEX_DIGITS || strspn(text, "0123456789abcdef") != n)
        return -1;
    *ret = strtoull(text, NULL, 16);
    return 0;
}

static int parse(const char *text, struct generation *ret, struct err *e)
{
    auto_free char *line = xstrndup(text, strcspn(text, "\r\n"));
    AUTO_FINI(strlist) words = { 0 };
    struct generation g = { 0 };
    int64_t number = 0;
    strlist_split(&words, line, ' ');
    if (words.n == 0 || words.n > 2 || (words.n == 2 && parse_incarnation(words.items[1], &g.incarnation) < 0))
        return err_set(e, ERR_INPUT, "'%.60s' is not a generation and an incarnation", line);
    if (str_i64(words.items[0], 0, (int64_t)GENERATION_MAX, &number, e) < 0)
        return -1;
    g.number = (uint64_t)number;
    *ret = g;
    return 0;
}

static int read_file(const char *path, struct generation *ret, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    struct err cause = { 0 };
    if (file_read(path, LINE_MAX_BYTES, &text, &cause) < 0) {
        if (!err_is(&cause, ERR_NOT_FOUND))
            return err_set(e, cause.code, "%s", cause.msg);
        *ret = (struct generation){ 0 };
        return 0;
    }
    return parse(text.data, ret, e) < 0 ? err_wrap(e, "%s", path) : 0;
}

int generation_read(const char *dir, struct generation *ret, struct err *e)
{
    auto_free char *path = path_join(dir, NAME);
    return read_file(path, ret, e);
}

static void line_of(const struct generation *g, char out[64])
{
    str_fmt(out, 64, "%" PRIu64 " %016" PRIx64 "\n", g->number, g->incarnation);
}

/* ---- claims ---- */

/* 1: made (or made by this process before), 0: the number is another's. */
static int make_claim(const char *dir, const struct generation *g, struct err *e)
{
    auto_free char *path = claim_path(dir, g->number);
    struct generation there;
    struct err cause = { 0 };
    char line[64];
    line_of(g, line);
    if (file_write_new(path, line, strlen(line), &cause) == 0)
        return 1;
    if (!err_is(&cause, ERR_REFUSED))
        return err_set(e, cause.code, "%s", cause.msg);
    if (read_file(path, &there, &cause) < 0)
        return 0; /* half made on a volume without links: another's all the same */
    return generation_eq(&there, g);
}

static bool claim_number(const char *name, uint64_t *ret)
{
    int64_t number = 0;
    if (!str_starts(name, NAME ".") || str_i64(name + strlen(NAME "."), 1, (int64_t)GENERATION_MAX, &number, NULL) < 0)
        return false;
    *ret = (uint64_t)number;
    return true;
}

/* The largest claim in (from, to), or 0. */
static int largest_claim(const char *dir, uint64_t from, uint64_t to, uint64_t *ret, struct err *e)
{
    AUTO_FINI(strlist) names = { 0 };
    uint64_t number = 0, largest = 0;
    if (dir_list(dir, &names, e) < 0)
        return -1;
    for (size_t i = 0; i < names.n; i++)
        if (claim_number(names.items[i], &number) && number > from && number < to)
            largest = MAX(largest, number);
    *ret = largest;
    return 0;
}

static void drop_claims_below(const char *dir, uint64_t below)
{
    AUTO_FINI(strlist) names = { 0 };
    uint64_t number = 0;
    if (dir_list(dir, &names, NULL) < 0)
        return; /* the next chief does it */
    for (size_t i = 0; i < names.n; i++) {
        auto_free char *path = path_join(dir, names.items[i]);
        if (claim_number(names.items[i], &number) && number < below)
            (void)!file_remove(path, NULL);
    }
}

void generation_withdraw(const char *dir, const struct generation *claimed)
{
    auto_free char *path = claim_path(dir, claimed->number);
    (void)!file_remove(path, NULL);
}

/* ---- taking one ---- */

static int fenced(const struct generation *by, struct err *e)
{
    return err_set(e, ERR_FENCED, "generation %" PRIu64 " has begun under another chief (incarnation %016" PRIx64 ")",
                   by->number, by->incarnation);
}

static int claimed_by_another(uint64_t number, struct err *e)
{
    return err_set(e, ERR_FENCED, "another chief has claimed generation %" PRIu64, number);
}

/* Does the file still say what this process leads in? Of one that does not lead yet, nothing is asked. */
static int still_held(const struct generation *held, const struct generation *now, struct err *e)
{
    return held->number == 0 || generation_eq(held, now) ? 0 : fenced(now, e);
}

/* Waits for a chief that claimed `number` to put it into the file. *ret: what the file says then. */
static int await_file(const char *dir, uint64_t number, const struct report *report, struct generation *ret,
                      struct err *e)
{
    int64_t end = clock_ms() + CLAIM_WAIT_MS;
    report_info(report,
                "waiting for another chief, which has claimed generation %" PRIu64
                " and not begun it; for %d s at most",
                number, CLAIM_WAIT_MS / 1000);
    for (;;) {
        if (generation_read(dir, ret, e) < 0)
            return -1;
        if (ret->number >= number || clock_ms() >= end)
            return 0;
        clock_sleep_ms(POLL_MS);
    }
}

/* Lower claims come first, so that their chiefs do not replace the file after us. */
static int let_lower_pass(const char *dir, const struct generation *mine, const struct report *report,
                          struct generation *now, struct err *e)
{
    uint64_t lower = 0;
    if (largest_claim(dir, now->number, mine->number, &lower, e) < 0)
        return -1;
    return lower != 0 ? await_file(dir, lower, report, now, e) : 0;
}

/* 1: the number is ours; 0: try again above *next. */
static int try_number(const char *dir, const struct generation *held, const struct generation *mine,
                      const struct report *report, uint64_t *next, struct generation *now, struct err *e)
{
    uint64_t higher = 0;
    int made = make_claim(dir, mine, e);
    if (made < 0 || largest_claim(dir, mine->number - (made == 0), UINT64_MAX, &higher, e) < 0)
        return -1;
    if (made == 1 && higher == 0)
        return let_lower_pass(dir, mine, report, now, e) < 0 ? -1 : 1;
    if (made == 1)
        generation_withdraw(dir, mine);
    if (held->number != 0)
        return claimed_by_another(MAX(higher, mine->number), e);
    higher = MAX(higher, mine->number);
    if (await_file(dir, higher, report, now, e) < 0)
        return -1;
    if (now->number >= mine->number)
        return fenced(now, e);
    *next = higher + 1; /* its chief is dead: it would have begun by now */
    return 0;
}

int generation_claim(const char *dir, const struct generation *held, uint64_t incarnation, uint64_t above,
                     const struct report *report, struct generation *ret, struct err *e)
{
    struct generation now;
    if (generation_read(dir, &now, e) < 0 || still_held(held, &now, e) < 0)
        return -1;
    uint64_t next = 1 + MIN(MAX(MAX(now.number, held->number), above), GENERATION_MAX);
    for (;;) {
        if (next > GENERATION_MAX)
            return err_set(e, ERR_INPUT,
                           above > now.number ? "a ps says generation %" PRIu64
                                                ", the last one, which no chief of %s has given: restart the ps"
                                              : "generation %" PRIu64 " is the last one: remove %s/" NAME,
                           next - 1, dir);
        struct generation mine = { .number = next, .incarnation = incarnation };
        int done = try_number(dir, held, &mine, report, &next, &now, e);
        if (done < 0)
            return -1;
        if (done == 1) {
            *ret = mine;
            return 0;
        }
    }
}

/* No number above ours, neither in the file nor among the claims. */
static int check_highest(const char *dir, const struct generation *held, const struct generation *mine, struct err *e)
{
    struct generation now;
    uint64_t higher = 0;
    if (generation_read(dir, &now, e) < 0 || still_held(held, &now, e) < 0)
        return -1;
    if (now.number >= mine->number)
        return fenced(&now, e);
    if (largest_claim(dir, mine->number, UINT64_MAX, &higher, e) < 0)
        return -1;
    return higher != 0 ? claimed_by_another(higher, e) : 0;
}

/* Replaces the file and reads it back, because another process may replace it at the same moment. */
static int replace(const char *dir, const struct generation *mine, struct err *e)
{
    auto_free char *path = path_join(dir, NAME);
    struct generation now;
    uint64_t higher = 0;
    char line[64];
    line_of(mine, line);
    if (file_write(path, line, strlen(line), e) < 0 || generation_read(dir, &now, e) < 0)
        return -1;
    if (!generation_eq(&now, mine))
        return fenced(&now, e);
    if (largest_claim(dir, mine->number, UINT64_MAX, &higher, e) < 0)
        return -1;
    return higher != 0 ? claimed_by_another(higher, e) : 0;
}

int generation_publish(const char *dir, const struct generation *held, const struct generation *claimed, struct err *e)
{
    if (check_highest(dir, held, claimed, e) < 0) {
        generation_withdraw(dir, claimed);
        return -1;
    }
    if (replace(dir, claimed, e) < 0)
        return -1;
    drop_claims_below(dir, claimed->number);
    return 0;
}

int generation_put_back(const char *dir, const struct generation *held, struct err *e)
{
    const struct generation none = { 0 };
    int made = make_claim(dir, held, e);
    if (made < 0)
        return -1;
    return made == 1 ? generation_publish(dir, &none, held, e) : claimed_by_another(held->number, e);
}
