#include "check_main.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "params/shm_region.h"

START_TEST(two_processes_see_one_memory)
{
    AUTO(shm_region) *mine = NULL;
    struct err e;
    ck_ok_e(shm_region_make(100, &mine, &e));
    memcpy(shm_region_at(mine, SHM_REGION_START, 5), "hello", 5);
    pid_t pid = fork();
    if (pid == 0) {
        struct shm_region *its = NULL;
        if (shm_region_open(getppid(), mine->fd, mine->size, mine->data, SHM_REGION_NONCE, &its, &e) < 0 ||
            memcmp(shm_region_at(its, SHM_REGION_START, 5), "hello", 5) != 0)
            _exit(1);
        memcpy(shm_region_at(its, SHM_REGION_START, 5), "HELLO", 5);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_mem_eq(shm_region_at(mine, SHM_REGION_START, 5), "HELLO", 5);
}
END_TEST

static void check_refused(int pid, int fd, size_t size, const void *nonce, size_t nonce_size)
{
    struct shm_region *r = NULL;
    struct err e;
    ck_assert_int_eq(shm_region_open(pid, fd, size, nonce, nonce_size, &r, &e), -1);
    ck_assert_int_eq(e.code, ERR_REFUSED);
    ck_assert_ptr_null(r);
}

START_TEST(only_a_region_is_opened)
{
    AUTO(shm_region) *r = NULL;
    struct err e;
    unsigned char nonce[SHM_REGION_NONCE], zeros[SHM_REGION_NONCE] = { 0 };
    int self = getpid(), pipes[2];
    ck_ok_e(shm_region_make(100, &r, &e));
    memcpy(nonce, r->data, sizeof(nonce));

    check_refused(self, r->fd, r->size, zeros, sizeof(zeros));
    check_refused(self, r->fd, r->size, nonce, 0);
    check_refused(self, r->fd, r->size + 1, nonce, sizeof(nonce));
    check_refused(self, r->fd, r->size - 1, nonce, sizeof(nonce));
    check_refused(self, r->fd, 0, nonce, sizeof(nonce));
    check_refused(self, -1, r->size, nonce, sizeof(nonce));
    check_refused(self, 9999, r->size, nonce, sizeof(nonce));
    check_refused(0, r->fd, r->size, nonce, sizeof(nonce));
    check_refused(-1, r->fd, r->size, nonce, sizeof(nonce));
    ck_assert_int_eq(pipe(pipes), 0);
    check_refused(self, pipes[0], r->size, nonce, sizeof(nonce));

    auto_close int unsealed = memfd_create("trainyard", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(unsealed, (off_t)r->size), 0);
    check_refused(self, unsealed, r->size, zeros, sizeof(zeros)); /* its owner could shrink it while it is mapped */
    ck_assert_int_eq(ftruncate(r->fd, 10), -1);
}
END_TEST

START_TEST(places_within)
{
    AUTO(shm_region) *r = NULL;
    struct err e;
    ck_ok_e(shm_region_make(100, &r, &e));
    ck_assert_ptr_eq(shm_region_at(r, SHM_REGION_START, 100), r->data + SHM_REGION_START);
    ck_assert_ptr_nonnull(shm_region_at(r, SHM_REGION_START + 96, 4));
    ck_assert_ptr_null(shm_region_at(r, SHM_REGION_START, 101));
    ck_assert_ptr_null(shm_region_at(r, SHM_REGION_START - 4, 4)); /* the nonce's page */
    ck_assert_ptr_null(shm_region_at(r, SHM_REGION_START + 2, 4));
    ck_assert_ptr_null(shm_region_at(r, SHM_REGION_START + 104, 0));
    ck_assert_ptr_null(shm_region_at(r, UINT64_MAX - 3, 8));
    ck_assert_ptr_null(shm_region_at(r, SHM_REGION_START, SIZE_MAX));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("shm_region");
    TCase *c = tcase_create("all");
    tcase_add_test(c, two_processes_see_one_memory);
    tcase_add_test(c, only_a_region_is_opened);
    tcase_add_test(c, places_within);
    suite_add_tcase(s, c);
    return s;
}
