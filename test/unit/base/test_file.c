#include "base/file.h"
#include "check_main.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *dir; /* a fresh folder for each check */

static void setup(void)
{
    dir = xstrdup("/tmp/trainyard-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_all(const char *path)
{
    AUTO_FINI(strlist) names = { 0 };
    if (file_is_dir(path) && dir_list(path, &names, NULL) == 0)
        for (size_t i = 0; i < names.n; i++) {
            auto_free char *child = path_join(path, names.items[i]);
            remove_all(child);
        }
    remove(path);
}

static void teardown(void)
{
    file_fault(NULL, 0, 0);
    remove_all(dir);
    free(dir);
}

static size_t files_in_dir(void)
{
    AUTO_FINI(strlist) names = { 0 };
    ck_assert_int_eq(dir_list(dir, &names, NULL), 0);
    return names.n;
}

static void assert_content(const char *path, const char *want)
{
    struct err e = { 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    ck_ok_e(file_read(path, 1 << 20, &text, &e));
    ck_assert_str_eq(text.data, want);
}

START_TEST(write_then_read)
{
    struct err e = { 0 };
    auto_free char *path = path_join(dir, "a");
    ck_ok_e(file_write(path, "hello", 5, &e));
    assert_content(path, "hello");
    ck_ok_e(file_write(path, "", 0, &e));
    assert_content(path, "");
    uint64_t size = 1;
    ck_ok_e(file_size(path, &size, &e));
    ck_assert_uint_eq(size, 0);
    ck_assert_uint_eq(files_in_dir(), 1);
}
END_TEST

START_TEST(errors_name_the_path)
{
    struct err e = { 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    auto_free char *path = path_join(dir, "none");
    ck_assert_int_eq(file_read(path, 10, &text, &e), -1);
    ck_assert(err_is(&e, ERR_NOT_FOUND));
    ck_assert(str_starts(e.msg, path) && str_ends(e.msg, ": No such file or directory"));

    ck_assert_int_eq(file_read(dir, 10, &text, &e), -1);
    ck_assert(err_is(&e, ERR_INPUT));
    ck_assert(str_ends(e.msg, "Is a directory"));

    struct file_map *m = NULL;
    ck_assert_int_eq(file_map_open(dir, &m, &e), -1);
    ck_assert(str_ends(e.msg, "not a regular file"));

    auto_free char *below = path_join(path, "x");
    ck_assert_int_eq(file_write(below, "x", 1, &e), -1);
    ck_assert(err_is(&e, ERR_NOT_FOUND));
    ck_assert(str_starts(e.msg, below));
}
END_TEST

START_TEST(a_bound_is_kept)
{
    struct err e = { 0 };
    auto_free char *path = path_join(dir, "a");
    AUTO_FINI(buf) text = BUF_INIT;
    ck_ok_e(file_write(path, "12345678", 8, &e));
    ck_ok_e(file_read(path, 8, &text, &e));
    ck_assert_int_eq(file_read(path, 7, &text, &e), -1);
    ck_assert(err_is(&e, ERR_INPUT));
    ck_assert(str_ends(e.msg, "larger than 7 B"));
    ck_assert_str_eq(text.data, "12345678");
}
END_TEST

/* Disk full, storage errors: when any of these calls fails, the old content stays and no temporary file is left. */
static const struct {
    const char *op;
    int error;
    enum err_code code;
    const char *words;
} FAULTS[] = {
    { "open", EACCES, ERR_INPUT, "Permission denied" },
    { "write", ENOSPC, ERR_NO_SPACE, "No space left on device; free space there, or raise the quota" },
    { "fsync", EIO, ERR_IO, "Input/output error" },
    { "rename", EROFS, ERR_INPUT, "Read-only file system" },
};
START_TEST(a_failed_write_changes_nothing)
{
    struct err e = { 0 };
    auto_free char *path = path_join(dir, "a");
    ck_ok_e(file_write(path, "old", 3, &e));
    file_fault(FAULTS[_i].op, 1, FAULTS[_i].error);
    ck_assert_int_eq(file_write(path, "new content", 11, &e), -1);
    file_fault(NULL, 0, 0);
    ck_assert_int_eq(e.code, FAULTS[_i].code);
    ck_assert_msg(str_starts(e.msg, path) && str_ends(e.msg, FAULTS[_i].words), "%s", e.msg);
    assert_content(path, "old");
    ck_assert_uint_eq(files_in_dir(), 1);
}
END_TEST

START_TEST(a_disk_that_fills_later)
{
    struct err e = { 0 };
    auto_free char *path = path_join(dir, "a");
    file_fault("write", 3, ENOSPC);
    AUTO(file_out) *f = NULL;
    ck_ok_e(file_out_open(path, &f, &e));
    ck_ok_e(file_out_write(f, "1", 1, &e));
    ck_ok_e(file_out_pwrite(f, "2", 1, 100, &e));
    ck_assert_int_eq(file_out_write(f, "3", 1, &e), -1);
    ck_assert_int_eq(file_out_pwrite(f, "3", 1, 0, &e), -1); /* and stays full */
    file_out_free(TAKE(f));
    ck_assert_uint_eq(files_in_dir(), 0);
}
END_TEST

START_TEST(nothing_is_seen_before_commit)
{
    struct err e = { 0 };
    auto_free char *path = path_join(dir, "a");
    AUTO(file_out) *f = NULL;
    ck_ok_e(file_out_open(path, &f, &e));
    ck_ok_e(file_out_write(f, "abcdef", 6, &e));
    ck_ok_e(file_out_pwrite(f, "XY", 2, 2, &e));
    ck_assert(!file_exists(path));
    ck_ok_e(file_out_commit(f, &e));
    assert_content(path, "abXYef");
    file_out_free(TAKE(f));
    assert_content(path, "abXYef");
    file_out_free(NULL);
}
END_TEST

START_TEST(only_files_are_replaced)
{
    struct err e = { 0 };
    auto_free char *path = path_join(dir, "a"), *link = path_join(dir, "link"), *fifo = path_join(dir, "fifo");
    ck_ok_e(file_write(path, "old", 3, &e));
    ck_assert_int_eq(symlink("a", link), 0);
    ck_ok_e(file_write(link, "new", 3, &e)); /* what it points to */
    assert_content(path, "new");
    struct stat st;
    ck_assert(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));

    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    ck_assert_int_eq(file_write(fifo, "x", 1, &e), -1);
    ck_assert(err_is(&e, ERR_INPUT) && str_ends(e.msg, "not a regular file"));
    ck_assert(stat(fifo, &st) == 0 && S_ISFIFO(st.st_mode));
    ck_assert_int_eq(file_write(dir, "x", 1, &e), -1);
    ck_assert(err_is(&e, ERR_INPUT) && str_ends(e.msg, "Is a directory"));
    ck_assert_uint_eq(files_in_dir(), 3);
}
END_TEST

START_TEST(two_writers_do_not_meet)
{
    struct err e = { 0 };
    auto_free char *path = path_join(dir, "a");
    AUTO(file_out) *f = NULL, *g = NULL;
    ck_ok_e(file_out_open(path, &f, &e));
    ck_ok_e(file_out_open(path, &g, &e));
    ck_ok_e(file_out_write(f, "first", 5, &e));
    ck_ok_e(file_out_write(g, "second", 6, &e));
    ck_ok_e(file_out_commit(f, &e));
    assert_content(path, "first");
    ck_ok_e(file_out_commit(g, &e));
    assert_content(path, "second");
}
END_TEST

START_TEST(a_new_file_is_made_by_one_only)
{
    struct err e = { 0 };
    auto_free char *path = path_join(dir, "new");
    ck_ok_e(file_write_new(path, "first", 5, &e));
    ck_assert_int_eq(file_write_new(path, "second", 6, &e), -1);
    ck_assert_int_eq(e.code, ERR_REFUSED);
    file_fault("link", 1, EPERM); /* a volume without hard links */
    ck_assert_int_eq(file_write_new(path, "third", 5, &e), -1);
    ck_assert_int_eq(e.code, ERR_REFUSED);
    auto_free char *other = path_join(dir, "other");
    ck_ok_e(file_write_new(other, "fourth", 6, &e));
    file_fault(NULL, 0, 0);
    assert_content(path, "first");
    assert_content(other, "fourth");
    ck_assert_uint_eq(files_in_dir(), 2); /* no temporary file is left */
}
END_TEST

/* A process that is killed while it writes dir/name. */
static void killed_while_writing(const char *name)
{
    auto_free char *path = path_join(dir, name);
    pid_t child = fork();
    if (child == 0) {
        struct file_out *f = NULL;
        if (file_out_open(path, &f, NULL) == 0 && file_out_write(f, "half", 4, NULL) == 0)
            raise(SIGKILL);
        _exit(1);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static bool is_ours(const char *name)
{
    return str_eq(name, "ours") || str_eq(name, "a.tmp.1.2");
}

START_TEST(leftovers_of_the_dead_go_and_those_of_the_living_stay)
{
    static const char *const stay[] = { "ours.tmp.1",    "ours.tmp.x.0", "ours.tmp.1.",
                                        "ours.tmp.1.0x", ".tmp.1.0",     "theirs.tmp.1.0" };
    struct err e = { 0 };
    AUTO(file_out) *living = NULL;
    AUTO_FINI(strlist) names = { 0 };
    auto_free char *path = path_join(dir, "ours"), *nested = path_join(dir, "a.tmp.1.2.tmp.3.4");
    for (size_t i = 0; i < COUNT_OF(stay); i++) {
        auto_free char *other = path_join(dir, stay[i]);
        ck_ok_e(file_write(other, "x", 1, &e));
    }
    ck_ok_e(file_write(nested, "x", 1, &e));
    killed_while_writing("ours");
    killed_while_writing("ours");
    ck_ok_e(file_out_open(path, &living, &e));
    ck_assert_uint_eq(file_remove_leftovers(dir, is_ours), 3);
    ck_ok_e(dir_list(dir, &names, &e));
    ck_assert_uint_eq(names.n, COUNT_OF(stay) + 1);
    for (size_t i = 0; i < COUNT_OF(stay); i++)
        ck_assert_msg(strlist_has(&names, stay[i]), "%s", stay[i]);
    ck_ok_e(file_out_write(living, "whole", 5, &e));
    ck_ok_e(file_out_commit(living, &e));
    ck_assert_uint_eq(file_remove_leftovers(dir, is_ours), 0);
    assert_content(path, "whole");
}
END_TEST

START_TEST(maps)
{
    struct err e = { 0 };
    auto_free char *path = path_join(dir, "a");
    ck_ok_e(file_write(path, "mapped", 6, &e));
    AUTO(file_map) *m = NULL;
    ck_ok_e(file_map_open(path, &m, &e));
    ck_assert_uint_eq(m->size, 6);
    ck_assert_mem_eq(m->data, "mapped", 6);
    ck_assert_str_eq(m->path, path);
    file_map_random(m);

    ck_ok_e(file_write(path, "", 0, &e));
    AUTO(file_map) *empty = NULL;
    ck_ok_e(file_map_open(path, &empty, &e));
    ck_assert_uint_eq(empty->size, 0);
    ck_assert_ptr_nonnull(empty->data);
    file_map_random(empty);
    ck_assert_mem_eq(m->data, "mapped", 6); /* the old file lives while it is mapped */
}
END_TEST

/* A store to a block that a file does not have yet would end the process when the disk is full. */
START_TEST(a_shared_map_has_all_its_blocks)
{
    enum { SIZE = 1 << 20 };
    auto_free char *path = path_join(dir, "f");
    AUTO(file_map) *m = NULL;
    AUTO(file_map) *reader = NULL;
    struct err e = { 0 };
    struct stat st;
    ck_ok_e(file_write(path, "x", 1, &e));
    ck_assert_int_eq(truncate(path, SIZE), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_lt(st.st_blocks * 512, SIZE);
    ck_ok_e(file_map_open_shared(path, &m, &e));
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_ge(st.st_blocks * 512, SIZE);
    ck_assert_int_eq(st.st_size, SIZE);

    ck_ok_e(file_map_open(path, &reader, &e));
    m->shared[SIZE - 1] = 'y';
    ck_assert_int_eq(reader->data[SIZE - 1], 'y');
    ck_assert_ptr_null(reader->shared);
}
END_TEST

START_TEST(only_files_with_content_are_mapped_shared)
{
    auto_free char *path = path_join(dir, "f");
    auto_free char *link = path_join(dir, "link");
    struct file_map *m = NULL;
    struct err e = { 0 };
    ck_assert_int_eq(file_map_open_shared(path, &m, &e), -1);
    ck_assert_int_eq(e.code, ERR_NOT_FOUND);
    ck_ok_e(file_write(path, "", 0, &e));
    ck_assert_int_eq(file_map_open_shared(path, &m, &e), -1);
    ck_assert_int_eq(file_map_open_shared(dir, &m, &e), -1);
    ck_ok_e(file_write(path, "x", 1, &e));
    ck_assert_int_eq(symlink(path, link), 0);
    ck_assert_int_eq(file_map_open_shared(link, &m, &e), -1);
    file_fault("fallocate", 1, ENOSPC);
    ck_assert_int_eq(file_map_open_shared(path, &m, &e), -1);
    ck_assert_int_eq(e.code, ERR_NO_SPACE);
    ck_assert_ptr_null(m);
}
END_TEST

START_TEST(the_space_of_a_folder)
{
    struct err e = { 0 };
    uint64_t space = 0;
    bool memory = false;
    ck_ok_e(dir_space(dir, &space, &memory, &e));
    ck_assert_uint_gt(space, 0);
    ck_ok_e(dir_space("/dev/shm", &space, &memory, &e));
    ck_assert(memory);
    ck_assert_int_eq(dir_space("/no/such/folder", &space, &memory, &e), -1);
    ck_assert_int_eq(e.code, ERR_NOT_FOUND);
}
END_TEST

START_TEST(folders)
{
    struct err e = { 0 };
    auto_free char *deep = path_join(dir, "b/c/d");
    ck_ok_e(dir_make(deep, &e));
    ck_ok_e(dir_make(deep, &e));
    ck_assert(file_is_dir(deep));
    ck_ok_e(dir_sync(deep, &e));

    auto_free char *file = path_join(dir, "a");
    ck_ok_e(file_write(file, "", 0, &e));
    auto_free char *under = path_join(file, "x");
    ck_assert_int_eq(dir_make(under, &e), -1);
    ck_assert(err_is(&e, ERR_INPUT));
    ck_assert_int_eq(dir_make(file, &e), -1);
    ck_assert(str_ends(e.msg, "Not a directory"));

    AUTO_FINI(strlist) names = { 0 };
    ck_ok_e(dir_list(dir, &names, &e));
    ck_assert_uint_eq(names.n, 2);
    ck_assert_str_eq(names.items[0], "a");
    ck_assert_str_eq(names.items[1], "b");
    ck_ok_e(file_remove(file, &e));
    ck_ok_e(file_remove(file, &e)); /* absent is success */
    ck_assert_int_eq(file_remove(deep, &e), -1);
    ck_assert_int_eq(dir_list(file, &names, &e), -1);
    ck_ok_e(dir_check(dir, &e));
    ck_assert_int_eq(dir_check(file, &e), -1);
    ck_assert(strstr(e.msg, "No such file") != NULL);
    ck_assert_int_eq(dir_check("/dev/null", &e), -1);
    ck_assert(strstr(e.msg, "Not a directory") != NULL);
    ck_assert_uint_eq(names.n, 2);
}
END_TEST

static const struct {
    const char *dir, *name, *want;
} JOINS[] = { { "a", "b", "a/b" }, { "a/", "b", "a/b" }, { "a", "/b", "/b" }, { "", "b", "b" }, { "/", "b", "/b" } };
START_TEST(paths)
{
    auto_free char *joined = path_join(JOINS[_i].dir, JOINS[_i].name);
    ck_assert_str_eq(joined, JOINS[_i].want);
    auto_free char *a = path_dir("x/y/z"), *b = path_dir("z"), *c = path_dir("/z");
    ck_assert_str_eq(a, "x/y");
    ck_assert_str_eq(b, ".");
    ck_assert_str_eq(c, "/");
}
END_TEST

START_TEST(a_limit_that_is_too_low_is_named)
{
    struct err e = { 0 };
    struct rlimit was, low = { .rlim_cur = 40, .rlim_max = 40 };
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (int i = 0; i < 10; i++) /* what it tries is closed again */
        ck_ok_e(file_check_limit(10, &e));
    ck_assert_int_eq(file_check_limit(40, &e), -1);
    ck_assert(err_is(&e, ERR_LIMIT));
    ck_assert_str_eq(e.msg,
                     "40 more open files are needed: too many open files: the limit is 40 (ulimit -n); raise it");
    ck_ok_e(file_check_limit(10, &e));
    (void)!setrlimit(RLIMIT_NOFILE, &was); /* needs root; each test has its own process */
}
END_TEST

START_TEST(folders_are_marked_and_links_are_not)
{
    struct err e = { 0 };
    AUTO_FINI(strlist) names = { 0 };
    auto_free char *file = path_join(dir, "b.txt");
    auto_free char *folder = path_join(dir, "b");
    auto_free char *link = path_join(dir, "c");
    ck_ok_e(file_write(file, "", 0, &e));
    ck_ok_e(dir_make(folder, &e));
    ck_assert_int_eq(symlink("b", link), 0);
    ck_ok_e(dir_list_marked(dir, &names, &e));
    ck_assert_uint_eq(names.n, 3);
    ck_assert_str_eq(names.items[0], "b.txt");
    ck_assert_str_eq(names.items[1], "b/");
    ck_assert_str_eq(names.items[2], "c");
    ck_assert_int_eq(dir_list_marked(file, &names, &e), -1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("file");
    TCase *t = tcase_create("file");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, write_then_read);
    tcase_add_test(t, errors_name_the_path);
    tcase_add_test(t, a_bound_is_kept);
    tcase_add_loop_test(t, a_failed_write_changes_nothing, 0, COUNT_OF(FAULTS));
    tcase_add_test(t, a_disk_that_fills_later);
    tcase_add_test(t, nothing_is_seen_before_commit);
    tcase_add_test(t, only_files_are_replaced);
    tcase_add_test(t, two_writers_do_not_meet);
    tcase_add_test(t, a_new_file_is_made_by_one_only);
    tcase_add_test(t, leftovers_of_the_dead_go_and_those_of_the_living_stay);
    tcase_add_test(t, maps);
    tcase_add_test(t, a_shared_map_has_all_its_blocks);
    tcase_add_test(t, only_files_with_content_are_mapped_shared);
    tcase_add_test(t, the_space_of_a_folder);
    tcase_add_test(t, folders);
    tcase_add_loop_test(t, paths, 0, COUNT_OF(JOINS));
    suite_add_tcase(s, t);
    tcase_add_test(t, a_limit_that_is_too_low_is_named);
    tcase_add_test(t, folders_are_marked_and_links_are_not);
    return s;
}
