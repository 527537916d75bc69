/* Which member owns which part of the vector. */
#include "check_main.h"

#include "collective/view.h"

static void check_cover(size_t floats, size_t members)
{
    struct chunk_range *chunks;
    size_t n = view_chunks(floats, members, 4, &chunks), at = 0, owned[8] = { 0 };
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_eq(chunks[i].from, at);
        ck_assert_uint_le(chunks[i].from, chunks[i].to);
        ck_assert_uint_le(chunks[i].to - chunks[i].from, CHUNK_FLOATS);
        ck_assert_uint_lt(chunks[i].owner, members);
        ck_assert(i == 0 || chunks[i].owner >= chunks[i - 1].owner);
        at = chunks[i].to;
        owned[chunks[i].owner]++;
    }
    ck_assert_uint_eq(at, floats);
    for (size_t i = 0; i < members; i++)
        ck_assert_uint_ge(owned[i], 1);
    free(chunks);
}

START_TEST(chunks_cover_the_vector_and_every_member_owns_one)
{
    static const size_t FLOATS[] = {
        0, 1, 15, 16, 17, 80, 101770, CHUNK_FLOATS, CHUNK_FLOATS + 1, 5 * CHUNK_FLOATS + 7
    };
    for (size_t i = 0; i < COUNT_OF(FLOATS); i++)
        for (size_t members = 1; members <= 7; members++)
            check_cover(FLOATS[i], members);
}
END_TEST

START_TEST(shares_differ_by_one_block_at_most)
{
    struct chunk_range *chunks;
    size_t n = view_chunks(101770, 4, 4, &chunks);
    ck_assert_uint_eq(n, 4);
    for (size_t i = 0; i + 1 < n; i++)
        ck_assert(chunks[i].to - chunks[i].from == 25440 || chunks[i].to - chunks[i].from == 25456);
    free(chunks);
}
END_TEST

START_TEST(two_members_that_compute_one_gradient_each_own_all)
{
    struct chunk_range *chunks;
    size_t n = view_chunks(CHUNK_FLOATS + 1, 2, 2, &chunks);
    ck_assert_uint_eq(n, 2);
    ck_assert(chunks[0].owner == CHUNK_OF_ALL && chunks[1].owner == CHUNK_OF_ALL);
    ck_assert(chunks[0].from == 0 && chunks[0].to == CHUNK_FLOATS && chunks[1].to == CHUNK_FLOATS + 1);
    free(chunks);
    n = view_chunks(101770, 2, 3, &chunks); /* fewer bytes with sums */
    ck_assert(n == 2 && chunks[0].owner == 0 && chunks[1].owner == 1);
    free(chunks);
}
END_TEST

START_TEST(pieces_cover_the_vector)
{
    const size_t floats = 2 * CHUNK_FLOATS + 5;
    ck_assert_uint_eq(view_pieces(floats), 3);
    ck_assert_uint_eq(view_piece(floats, 0).from, 0);
    ck_assert_uint_eq(view_piece(floats, 1).from, view_piece(floats, 0).to);
    ck_assert_uint_eq(view_piece(floats, 2).to, floats);
    ck_assert_uint_eq(view_pieces(0), 1);
}
END_TEST

START_TEST(a_member_is_found_by_name_and_process)
{
    struct view_member members[] = { { .name = "worker-0", .incarnation = 5 },
                                     { .name = "worker-1", .incarnation = 6 } };
    const struct view v = { .number = 1, .members = members, .n = 2 };
    AUTO_FINI(view) copy = { 0 };
    ck_assert_int_eq(view_find(&v, "worker-1", 6), 1);
    ck_assert_int_eq(view_find(&v, "worker-1", 7), -1);
    ck_assert_int_eq(view_find(&v, "worker-1", 0), 1);
    ck_assert_int_eq(view_find(&v, "worker-2", 0), -1);
    view_copy(&copy, &v);
    view_copy(&copy, &v);
    ck_assert_uint_eq(copy.n, 2);
    ck_assert(copy.members != members);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("view");
    TCase *t = tcase_create("view");
    tcase_add_test(t, chunks_cover_the_vector_and_every_member_owns_one);
    tcase_add_test(t, shares_differ_by_one_block_at_most);
    tcase_add_test(t, two_members_that_compute_one_gradient_each_own_all);
    tcase_add_test(t, pieces_cover_the_vector);
    tcase_add_test(t, a_member_is_found_by_name_and_process);
    suite_add_tcase(s, t);
    return s;
}
