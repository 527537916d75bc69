/* The sums of a step: in the order of the ordinals, whenever gradients come, and wherever the vector is cut. */
#include "shard/sync_fixture.h"

#include "collective/reduction.h"

static float values[FLOATS];

/* What a parameter server adds up: the weighted sum of trainable variables, the next values of moving ones. */
static void expect(const struct layout *l, int64_t at, float want[FLOATS])
{
    memset(want, 0, FLOATS * sizeof(*want));
    for (int64_t o = at; o < groups_end(&G, at); o++) {
        float g[FLOATS] = { 0 };
        fill(l, (uint64_t)o + 1, g);
        for (size_t s = 0; s < l->n; s++)
            for (size_t k = 0; k < l->segments[s].count; k++) {
                size_t i = l->segments[s].offset + k;
                float m = l->segments[s].momentum, before = o == at ? values[i] : want[i];
                if (l->segments[s].kind == VAR_MOVING)
                    want[i] = before * m + g[i] * (1 - m);
                else if (l->segments[s].kind == VAR_TRAINABLE)
                    want[i] = o == at ? groups_weight(&G, o) * g[i] : want[i] + groups_weight(&G, o) * g[i];
            }
    }
}

static bool lend(struct reduction *r, const struct layout *l, size_t chunk, int64_t ordinal, float *g)
{
    struct err e = { 0 };
    bool complete;
    const struct chunk_range *range = &reduction_frame(r)->chunks[chunk];
    memset(g, 0, FLOATS * sizeof(*g));
    fill(l, (uint64_t)ordinal + 1, g);
    ck_ok_e(reduction_lend(
        r, chunk, ordinal,
        (struct one_range){ .data = g + range->from, .size = (range->to - range->from) * sizeof(*g) }, &complete, &e));
    return complete;
}

static bool add(struct reduction *r, const struct layout *l, size_t chunk, int64_t ordinal)
{
    float g[FLOATS] = { 0 };
    static const size_t CUTS[] = { 3, 8, 21 };
    struct cut_bytes c;
    struct err e = { 0 };
    bool complete;
    const struct chunk_range *range = &reduction_frame(r)->chunks[chunk];
    size_t size = (range->to - range->from) * sizeof(float);
    fill(l, (uint64_t)ordinal + 1, g);
    struct bytes_in in = cut(&c, g + range->from, size, CUTS, size > 21 ? COUNT_OF(CUTS) : 0);
    ck_ok_e(reduction_add(r, chunk, ordinal, &in, &complete, &e));
    return complete;
}

struct party {
    struct layout *l;
    struct reduction_frame *frame;
    struct reduction *r;
};

static void open_party(struct party *p, size_t members, size_t self, int64_t at)
{
    struct err e = { 0 };
    p->l = small_layout();
    fill(p->l, 7, values);
    p->frame = reduction_frame_new(p->l, values, &G, members, self);
    ck_ok_e(reduction_new(p->frame, at, &p->r, &e));
}

static void close_party(struct party *p)
{
    reduction_unref(p->r);
    reduction_frame_unref(p->frame);
    layout_free(p->l);
}

static void check_chunk(const struct party *p, size_t chunk, int64_t at)
{
    float want[FLOATS];
    const struct chunk_range *range = &p->frame->chunks[chunk];
    expect(p->l, at, want);
    ck_assert_mem_eq(reduction_sums(p->r) + range->from, want + range->from, (range->to - range->from) * sizeof(float));
}

START_TEST(gradients_are_added_in_the_order_of_their_ordinals)
{
    static const int64_t ORDERS[][4] = { { 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 1, 3, 0, 2 }, { 2, 0, 3, 1 } };
    for (size_t k = 0; k < COUNT_OF(ORDERS); k++)
        for (size_t members = 1; members <= 5; members++)
            for (size_t self = 0; self < members; self++) {
                struct party p;
                open_party(&p, members, self, 4);
                if (k % 2 == 0)
                    reduction_open(p.r);
                for (size_t i = 0; i < 4; i++) {
                    bool complete = add(p.r, p.l, p.frame->own_first, 4 + ORDERS[k][i]);
                    ck_assert_int_eq(complete, i == 3 && k % 2 == 0);
                }
                reduction_open(p.r);
                ck_assert(reduction_has_sum(p.r, p.frame->own_first));
                ck_assert_int_eq(reduction_complete(p.r), members == 1);
                check_chunk(&p, p.frame->own_first, 4);
                close_party(&p);
            }
}
END_TEST

/* Memory that is lent is read until it is taken back. Bit o of `kept`: that of ordinal o is taken back at once. */
START_TEST(a_gradient_that_is_lent_is_read_until_it_is_taken_back)
{
    static const int64_t ORDERS[][4] = { { 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 1, 3, 0, 2 }, { 2, 0, 3, 1 } };
    for (size_t k = 0; k < COUNT_OF(ORDERS); k++)
        for (unsigned kept = 0; kept < 16; kept++) {
            struct party p;
            struct err e = { 0 };
            float lent[4][FLOATS];
            open_party(&p, 2, 0, 4);
            if (k % 2 == 0)
                reduction_open(p.r);
            for (size_t i = 0; i < 4; i++) {
                int64_t o = ORDERS[k][i];
                ck_assert_int_eq(lend(p.r, p.l, 0, 4 + o, lent[o]), i == 3 && k % 2 == 0);
                if ((kept >> o & 1) == 0)
                    continue;
                ck_ok_e(reduction_keep(p.r, 0, 4 + o, &e));
                ck_ok_e(reduction_keep(p.r, 0, 4 + o, &e));
                memset(lent[o], 0xff, sizeof(lent[o]));
            }
            reduction_open(p.r);
            memset(lent, 0xff, sizeof(lent));
            for (int64_t o = 4; o < 8; o++)
                ck_ok_e(reduction_keep(p.r, 0, o, &e)); /* nothing is read any more */
            check_chunk(&p, 0, 4);
            close_party(&p);
        }
}
END_TEST

START_TEST(what_another_member_adds_is_not_kept)
{
    struct party p;
    struct err e = { 0 };
    open_party(&p, 2, 0, 4);
    ck_ok_e(reduction_keep(p.r, 1, 4, &e));
    ck_ok_e(reduction_keep(p.r, 7, 4, &e));
    ck_ok_e(reduction_keep(p.r, 0, 3, &e));
    ck_ok_e(reduction_keep(p.r, 0, 8, &e));
    close_party(&p);
}
END_TEST

START_TEST(the_last_group_of_an_epoch_is_short)
{
    struct party p;
    open_party(&p, 2, 1, 8);
    reduction_open(p.r);
    ck_assert_int_eq(reduction_end(p.r), 10);
    ck_assert(!add(p.r, p.l, 1, 9));
    ck_assert(add(p.r, p.l, 1, 8));
    check_chunk(&p, 1, 8);
    close_party(&p);
}
END_TEST

START_TEST(a_gradient_counts_once)
{
    struct party p;
    open_party(&p, 1, 0, 0);
    reduction_open(p.r);
    for (int64_t o = 0; o < 4; o++) {
        ck_assert_int_eq(add(p.r, p.l, 0, o), o == 3);
        ck_assert(!add(p.r, p.l, 0, o));
    }
    check_chunk(&p, 0, 0);
    close_party(&p);
}
END_TEST

START_TEST(it_knows_what_it_has_and_what_is_missing)
{
    struct party p;
    AUTO_FINI(ordinal_set) has = ORDINAL_SET_INIT;
    AUTO_FINI(buf) text = BUF_INIT;
    open_party(&p, 2, 0, 4);
    add(p.r, p.l, 0, 6);
    reduction_received(p.r, &has);
    ck_assert_int_eq(has.low, 4);
    ck_assert(ordinal_set_has(&has, 6) && !ordinal_set_has(&has, 4));
    reduction_missing(p.r, &text);
    ck_assert_str_eq(text.data, "the gradients of batches 4, 5, 7");
    close_party(&p);
}
END_TEST

/* A large vector: a member owns several chunks. */
START_TEST(a_gradient_is_received_when_all_chunks_have_it)
{
    static const struct variable V = { .name = "v", .shape = { 1, { CHUNK_FLOATS + 16 } }, .count = CHUNK_FLOATS + 16 };
    const struct variable *list[] = { &V };
    AUTO(layout) *l = layout_of(list, 1, CHUNK_FLOATS + 16);
    struct reduction_frame *frame = reduction_frame_new(l, NULL, &G, 1, 0);
    struct reduction *r = NULL;
    struct err e = { 0 };
    auto_free float *gradient = xcalloc(CHUNK_FLOATS, sizeof(float));
    ck_ok_e(reduction_new(frame, 0, &r, &e));
    ck_assert_uint_eq(frame->nchunks, 2);
    for (size_t chunk = 2; chunk-- > 0;) {
        AUTO_FINI(ordinal_set) has = ORDINAL_SET_INIT;
        struct one_range range = { .data = gradient,
                                   .size = (frame->chunks[chunk].to - frame->chunks[chunk].from) * sizeof(float) };
        struct bytes_in in = one_range(&range);
        bool complete;
        ck_ok_e(reduction_add(r, chunk, 2, &in, &complete, &e));
        reduction_received(r, &has);
        ck_assert_int_eq(ordinal_set_has(&has, 2), chunk == 0);
    }
    reduction_unref(r);
    reduction_frame_unref(frame);
}
END_TEST

START_TEST(sums_of_others_make_it_complete)
{
    struct party p;
    open_party(&p, 2, 0, 0);
    reduction_open(p.r);
    for (int64_t o = 0; o < 4; o++)
        add(p.r, p.l, 0, o);
    ck_assert(!reduction_complete(p.r));
    reduction_set_sum(p.r, 1);
    reduction_set_sum(p.r, 1);
    ck_assert(reduction_complete(p.r));
    close_party(&p);
}
END_TEST

static void refused(struct reduction *r, size_t chunk, int64_t ordinal, size_t size, const char *text)
{
    float g[FLOATS] = { 0 };
    struct cut_bytes c;
    struct err e;
    bool complete;
    struct bytes_in in = cut(&c, g, size, NULL, 0);
    ck_fails(reduction_add(r, chunk, ordinal, &in, &complete, &e), ERR_INPUT, text);
}

START_TEST(gradients_that_do_not_fit_are_refused)
{
    struct party p;
    open_party(&p, 2, 0, 4);
    size_t size = p.frame->chunks[0].to * sizeof(float);
    refused(p.r, 1, 4, size, "chunk 1 of 2 belongs to another member");
    refused(p.r, 2, 4, size, "chunk 2 of 2 belongs to another member");
    refused(p.r, 0, 3, size, "batch 3 is not in the group of batches 4 to 7");
    refused(p.r, 0, 8, size, "batch 8 is not in the group");
    refused(p.r, 0, 4, size - 4, "a gradient of 188 bytes for a chunk of 192");
    close_party(&p);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("reduction");
    TCase *t = tcase_create("reduction");
    tcase_add_test(t, gradients_are_added_in_the_order_of_their_ordinals);
    tcase_add_test(t, a_gradient_that_is_lent_is_read_until_it_is_taken_back);
    tcase_add_test(t, what_another_member_adds_is_not_kept);
    tcase_add_test(t, the_last_group_of_an_epoch_is_short);
    tcase_add_test(t, a_gradient_counts_once);
    tcase_add_test(t, it_knows_what_it_has_and_what_is_missing);
    tcase_add_test(t, a_gradient_is_received_when_all_chunks_have_it);
    tcase_add_test(t, sums_of_others_make_it_complete);
    tcase_add_test(t, gradients_that_do_not_fit_are_refused);
    suite_add_tcase(s, t);
    return s;
}
