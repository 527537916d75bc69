/* api_case - cases of test/data/api: one folder each, with an object as YAML or JSON and the expected result. With
 * TRAINYARD_SHOW=1 in the environment the tests print their results instead of comparing them. */
#ifndef TRAINYARD_TEST_API_CASE_H
#define TRAINYARD_TEST_API_CASE_H

#include "check_main.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "codec/yaml.h"

#define API_CASES "test/data/api/"
enum { API_CASE_MAX = 1 << 20 };

/* New reference. */
static inline json_t *api_load(const char *path)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) text = BUF_INIT;
    AUTO(source) *src = NULL;
    json_t *v = NULL;

    ck_ok_e(file_read(path, API_CASE_MAX, &text, &e));
    ck_ok_e(yaml_parse(text.data, text.len, path, &v, &src, &e));
    return v;
}

static inline void api_each(const char *folder, void (*check)(const char *path))
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(strlist) names = { .n = 0 };

    ck_ok_e(dir_list(folder, &names, &e));
    ck_assert_uint_gt(names.n, 0);
    for (size_t i = 0; i < names.n; i++) {
        auto_free char *path = path_join(folder, names.items[i]);
        check(path);
    }
}

/* Compares with CASE/expected.json. */
static inline void api_expect(const char *path, const json_t *got)
{
    auto_free char *expected = path_join(path, "expected.json");
    AUTO_FINI(buf) text = BUF_INIT;

    json_emit_pretty(got, &text);
    if (getenv("TRAINYARD_SHOW") != NULL) {
        printf("%s\n%s", expected, text.data);
        return;
    }
    json_auto_t *want = api_load(expected);
    ck_assert_msg(json_equal(got, want), "%s: reads as\n%s", path, text.data);
}

static inline json_t *text_or_null(const char *s)
{
    return s != NULL ? json_string(s) : json_null();
}

/* Bytes of the heap in use, including malloc's overhead; 0 under a sanitizer, which has its own heap. */
static inline size_t heap_used(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static inline double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

#endif
