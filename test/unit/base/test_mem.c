#include "base/mem.h"
#include "check_main.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

START_TEST(size_arithmetic_is_checked)
{
    struct err e = { 0 };
    size_t n = 42;
    ck_assert_int_eq(size_mul(6, 7, &n, &e), 0);
    ck_assert_uint_eq(n, 42);
    ck_assert_int_eq(size_mul(SIZE_MAX / 2, 3, &n, &e), -1);
    ck_assert_uint_eq(n, 42);
    ck_assert(err_is(&e, ERR_INPUT));
    ck_assert_ptr_nonnull(strstr(e.msg, "size overflows"));
    ck_assert_int_eq(size_add(SIZE_MAX, 1, &n, NULL), -1);
    ck_assert_int_eq(size_add(SIZE_MAX, 0, &n, NULL), 0);
    ck_assert_uint_eq(n, SIZE_MAX);
}
END_TEST

START_TEST(outside_sizes_give_aligned_zeroed_memory)
{
    static const size_t SIZES[] = { 0, 1, 63, 64, 65, 100000 };
    for (size_t i = 0; i < COUNT_OF(SIZES); i++) {
        struct err e = { 0 };
        void *p = NULL;
        ck_assert_int_eq(mem_alloc(SIZES[i], "tensor", &p, &e), 0);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq((uintptr_t)p % 64, 0);
        const unsigned char *bytes = p;
        for (size_t k = 0; k < SIZES[i]; k++)
            ck_assert_uint_eq(bytes[k], 0);
        free(p);
    }
}
END_TEST

START_TEST(too_much_memory_is_an_error)
{
    static const size_t SIZES[] = { (size_t)1 << 62, SIZE_MAX, SIZE_MAX - 63 };
    for (size_t i = 0; i < COUNT_OF(SIZES); i++) {
        struct err e = { 0 };
        int marker;
        void *p = &marker;
        ck_assert_int_eq(mem_alloc(SIZES[i], "the tensor", &p, &e), -1);
        ck_assert_ptr_eq(p, &marker);
        ck_assert(err_is(&e, ERR_NOMEM));
        ck_assert_ptr_nonnull(strstr(e.msg, "the tensor"));
    }
}
END_TEST

START_TEST(copies_are_owned)
{
    auto_free char *a = xstrdup("hello");
    auto_free char *b = xstrndup("hello", 2);
    auto_free char *c = xasprintf("%s-%d", "worker", 3);
    auto_free int *d = xcalloc(4, sizeof(int));
    auto_free void *none = xmemdup("", 0);
    ck_assert_str_eq(a, "hello");
    ck_assert_str_eq(b, "he");
    ck_assert_str_eq(c, "worker-3");
    ck_assert_int_eq(d[3], 0);
    ck_assert_ptr_nonnull(none);
    char *taken = TAKE(a);
    ck_assert_ptr_null(a);
    free(taken);
}
END_TEST

START_TEST(descriptors_close_at_the_end_of_the_scope)
{
    int seen;
    {
        auto_close int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        ck_assert_int_ge(fd, 0);
        seen = fd;
        errno = EXDEV;
    }
    ck_assert_int_eq(errno, EXDEV);
    ck_assert_int_eq(fcntl(seen, F_GETFD), -1);
}
END_TEST

START_TEST(knows_its_own_size)
{
    mem_keep_pages();
    ck_assert_uint_gt(mem_resident(), 100000);
}
END_TEST

START_TEST(plain_memory_has_the_same_limits)
{
    struct err e = { .code = ERR_NONE };
    void *p = NULL;
    ck_ok_e(mem_alloc_plain(100000, "an image", &p, &e));
    memset(p, 1, 100000);
    free(p);
    ck_ok_e(mem_alloc_plain(0, "nothing", &p, &e));
    ck_assert_ptr_nonnull(p);
    free(p);
    ck_assert_int_eq(mem_alloc_plain(SIZE_MAX, "an image", &p, &e), -1);
    ck_assert_int_eq(e.code, ERR_NOMEM);
    ck_assert_ptr_nonnull(strstr(e.msg, "no memory for an image ("));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("mem");
    TCase *t = tcase_create("mem");
    tcase_add_test(t, size_arithmetic_is_checked);
    tcase_add_test(t, outside_sizes_give_aligned_zeroed_memory);
    tcase_add_test(t, too_much_memory_is_an_error);
    tcase_add_test(t, copies_are_owned);
    tcase_add_test(t, descriptors_close_at_the_end_of_the_scope);
    tcase_add_test(t, knows_its_own_size);
    tcase_add_test(t, plain_memory_has_the_same_limits);
    suite_add_tcase(s, t);
    return s;
}
