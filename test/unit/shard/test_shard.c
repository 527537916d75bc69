#include "shard_fixture.h"

#include <stdatomic.h>

#include "base/thread.h"

static const struct shard_part ALL = { 0 };

static struct shard_caller generation(uint64_t g)
{
    return (struct shard_caller){ .job_uid = UID, .sender = "worker-0", .generation = g };
}

/* ---- a shard with all segments of a layout, and short forms of its calls ---- */

/* What a push carries of a vector in the model's layout. */
static size_t pack(const struct layout *l, struct shard_part part, bool constants, const float *vector, float *out)
{
    size_t n = 0, end = part.count == 0 ? l->n : part.first + part.count;
    for (size_t i = part.first; i < end; i++) {
        if (l->segments[i].kind == VAR_CONST && !constants)
            continue;
        memcpy(out + n, vector + l->segments[i].offset, l->segments[i].count * sizeof(float));
        n += l->segments[i].count;
    }
    return n;
}

static int push(struct shard *s, uint64_t g, struct shard_part part, int64_t ordinal, const void *bytes, size_t size,
                bool *duplicate, struct err *e)
{
    struct cut_bytes c;
    struct bytes_in in = cut(&c, bytes, size, NULL, 0);
    struct shard_caller who = generation(g);
    return shard_push(s, &who, part, ordinal, NULL, &in, &(struct shard_out){ 0 }, duplicate, e);
}

enum { PUSHED = 15 + 7 + 4 + 1, PULLED = PUSHED + 2 }; /* floats of small_layout() */

static void pull_all(struct shard *s, float out[PULLED], int64_t versions[5])
{
    struct shard_out room = {
        .values = out, .size = PULLED * sizeof(float), .element = DT_FLOAT, .versions = versions, .nversions = 5
    };
    struct err e;
    struct shard_info info;
    shard_describe(s, &info);
    struct shard_caller who = generation(info.generation);
    shard_info_fini(&info);
    ck_ok_e(shard_pull(s, &who, ALL, &room, &e));
}

static void check_same_values(struct shard *a, struct shard *b)
{
    float x[PULLED], y[PULLED];
    int64_t v[5], w[5];
    pull_all(a, x, v);
    pull_all(b, y, w);
    ck_assert_mem_eq(x, y, sizeof(x));
    ck_assert_mem_eq(v, w, sizeof(v));
}

/* The call fails with this code and message; its last argument is &e of the caller. */
/* ---- states ---- */

START_TEST(a_life)
{
    AUTO(layout) *l = small_layout();
    AUTO(shard) *s = shard_new(11);
    float vector[80] = { 0 }, out[PULLED], grads[PUSHED] = { 0 };
    bool duplicate;
    struct err e;
    fill(l, 1, vector);

    ck_fails(shard_pull(s, &CHIEF, ALL, &(struct shard_out){ 0 }, &e), ERR_NOT_READY, "waits for the chief");
    ck_fails(shard_serve(s, &CHIEF, &e), ERR_NOT_READY, "");
    ck_ok_e(shard_init(s, &CHIEF, SGD, l->segments, l->n, l->hash, &e));
    for (size_t i = 0; i < l->n; i++) {
        ck_fails(push(s, 1, ALL, 0, grads, sizeof(grads), &duplicate, &e), ERR_NOT_READY, "segments are missing");
        ck_fails(shard_serve(s, &CHIEF, &e), ERR_NOT_READY, "of 5 segments are missing");
        restore_from(s, &CHIEF, &l->segments[i], vector);
    }
    ck_ok_e(shard_serve(s, &CHIEF, &e));
    ck_ok_e(shard_serve(s, &CHIEF, &e));
    float want[PULLED];
    pack(l, ALL, true, vector, want);
    pull_all(s, out, (int64_t[5]){ 0 });
    ck_assert_mem_eq(out, want, sizeof(out));

    ck_ok_e(push(s, 1, ALL, 0, grads, sizeof(grads), &duplicate, &e));
    ck_ok_e(shard_finish(s, &CHIEF, &e));
    ck_ok_e(shard_finish(s, &CHIEF, &e));
    ck_fails(push(s, 1, ALL, 1, grads, sizeof(grads), &duplicate, &e), ERR_REFUSED, "the job has finished");
    ck_fails(shard_init(s, &(struct shard_caller){ UID, "chief-0", 9, 0 }, SGD, l->segments, l->n, l->hash, &e),
             ERR_REFUSED, "the job has finished");
    struct shard_info info;
    shard_describe(s, &info);
    ck_assert_int_eq(info.state, SHARD_FINISHED);
    ck_assert_int_eq(info.version_min, 1);
    shard_info_fini(&info);
}
END_TEST

START_TEST(callers_are_checked)
{
    AUTO(layout) *l = small_layout();
    float vector[80] = { 0 }, grads[PUSHED] = { 0 };
    AUTO(shard) *s = serving(l, SGD, vector);
    bool duplicate;
    struct err e;
    struct shard_caller stranger = { .job_uid = "uid-2", .sender = "worker-7", .generation = 1 };

    ck_fails(shard_pull(s, &stranger, ALL, &(struct shard_out){ 0 }, &e), ERR_REFUSED,
             "uid-1, not to uid-2 of worker-7");
    ck_fails(shard_finish(s, &stranger, &e), ERR_REFUSED, "uid-1");
    ck_fails(push(s, 2, ALL, 0, grads, sizeof(grads), &duplicate, &e), ERR_NOT_READY, "announce 2");
    struct shard_caller next = generation(4);
    ck_ok_e(shard_adopt(s, &next, &e));
    ck_fails(push(s, 1, ALL, 0, grads, sizeof(grads), &duplicate, &e), ERR_FENCED, "generation 1 is over, this is 4");
    ck_fails(shard_adopt(s, &CHIEF, &e), ERR_FENCED, "");
    ck_fails(shard_init(s, &CHIEF, SGD, l->segments, l->n, l->hash, &e), ERR_FENCED, "");
    ck_fails(shard_finish(s, &CHIEF, &e), ERR_FENCED, "");
    ck_ok_e(push(s, 4, ALL, 0, grads, sizeof(grads), &duplicate, &e));

    AUTO(shard) *reserved = shard_new(12);
    shard_set_job(reserved, "uid-9");
    ck_fails(shard_init(reserved, &CHIEF, SGD, l->segments, l->n, l->hash, &e), ERR_REFUSED, "uid-9");
}
END_TEST

START_TEST(init_again)
{
    AUTO(layout) *l = small_layout();
    float vector[80] = { 0 }, grads[PUSHED] = { 1 };
    fill(l, 1, vector);
    AUTO(shard) *s = serving(l, SGD, vector);
    AUTO(shard) *twin = serving(l, SGD, vector);
    bool duplicate;
    struct err e;
    ck_ok_e(push(s, 1, ALL, 0, grads, sizeof(grads), &duplicate, &e));
    ck_ok_e(push(twin, 1, ALL, 0, grads, sizeof(grads), &duplicate, &e));

    ck_ok_e(shard_init(s, &CHIEF, SGD, l->segments, l->n, l->hash, &e)); /* a repeated call */
    check_same_values(s, twin);
    ck_fails(shard_init(s, &CHIEF, ADAM, l->segments, l->n, l->hash, &e), ERR_REFUSED, "other segments");
    ck_fails(shard_init(s, &CHIEF, SGD, l->segments, l->n - 1, l->hash, &e), ERR_REFUSED, "other segments");
    ck_fails(shard_init(s, &CHIEF, SGD, l->segments, l->n, l->hash + 1, &e), ERR_REFUSED, "other segments");

    struct shard_caller next = generation(2); /* a new timeline: everything is missing again */
    ck_ok_e(shard_init(s, &next, ADAM, l->segments, l->n, l->hash, &e));
    ck_fails(shard_adopt(s, &next, &e), ERR_NOT_READY, "no values");
    ck_fails(shard_serve(s, &next, &e), ERR_NOT_READY, "5 of 5");
    struct shard_info info;
    shard_describe(s, &info);
    ck_assert_int_eq(info.state, SHARD_LOADING);
    ck_assert_int_eq(info.version_max, 0);
    ck_assert_int_eq(ordinal_set_count(&info.applied), 0);
    shard_info_fini(&info);
}
END_TEST

START_TEST(bad_init_is_refused)
{
    struct err e;
    AUTO(layout) *l = small_layout();
    AUTO(shard) *s = shard_new(11);
    for (int change = 0; change < 6; change++) {
        struct segment_spec list[2] = { l->segments[0], l->segments[2] };
        if (change == 0)
            list[1].count = 0;
        else if (change == 1)
            list[1].count = SEGMENT_MAX / 4 + 1;
        else if (change == 2)
            list[1].id = list[0].id;
        else if (change == 3)
            list[1].momentum = 1.5f;
        else if (change == 4)
            list[1].momentum = __builtin_nanf("");
        else
            list[1].count = SIZE_MAX / 2;
        ck_fails(shard_init(s, &CHIEF, SGD, list, 2, 1, &e), ERR_INPUT, "segment");
    }
    ck_fails(shard_init(s, &CHIEF, "{\"Adamm\":{}}", l->segments, 1, 1, &e), ERR_INPUT, "Adamm");
    ck_fails(shard_init(s, &CHIEF, "[", l->segments, 1, 1, &e), ERR_INPUT, "");
    struct shard_caller none = generation(0), anonymous = { .job_uid = "", .sender = "", .generation = 1 };
    ck_fails(shard_init(s, &none, SGD, l->segments, 1, 1, &e), ERR_INPUT, "generation");
    ck_fails(shard_init(s, &anonymous, SGD, l->segments, 1, 1, &e), ERR_INPUT, "uid");
    struct shard_info info;
    shard_describe(s, &info);
    ck_assert_int_eq(info.state, SHARD_UNINITIALISED);
    shard_info_fini(&info);
}
END_TEST

START_TEST(a_shard_without_segments_serves)
{
    AUTO(shard) *s = shard_new(11);
    bool duplicate;
    struct err e;
    ck_ok_e(shard_init(s, &CHIEF, SGD, NULL, 0, 5, &e));
    ck_ok_e(shard_serve(s, &CHIEF, &e));
    ck_ok_e(shard_pull(s, &CHIEF, ALL, &(struct shard_out){ 0 }, &e));
    ck_ok_e(push(s, 1, ALL, 0, "", 0, &duplicate, &e));
}
END_TEST

/* ---- push ---- */

/* Every pair of cuts, also within floats and across segments, must give the values of the uncut push. */
static void every_cut(const char *optimizer)
{
    AUTO(layout) *l = small_layout();
    float vector[80] = { 0 }, grads[80] = { 0 }, packed[PUSHED];
    fill(l, 1, vector);
    AUTO(shard) *whole = serving(l, optimizer, vector);
    AUTO(shard) *sliced = serving(l, optimizer, vector);
    int64_t ordinal = 0;
    bool duplicate;
    struct err e;

    for (size_t a = 0; a <= sizeof(packed); a++) {
        for (size_t b = a; b <= sizeof(packed); b += a > 9 ? 14u : 1u) {
            size_t cuts[2] = { a, b };
            struct cut_bytes c;
            fill(l, (uint64_t)ordinal, grads);
            pack(l, ALL, false, grads, packed);
            struct bytes_in in = cut(&c, packed, sizeof(packed), cuts, 2);
            ck_ok_e(push(whole, 1, ALL, ordinal, packed, sizeof(packed), &duplicate, &e));
            float out[PUSHED], all[PULLED];
            int64_t versions[5];
            struct shard_out room = {
                .values = out, .size = sizeof(out), .element = DT_FLOAT, .versions = versions, .nversions = 5
            };
            ck_ok_e(shard_push(sliced, &CHIEF, ALL, ordinal, NULL, &in, &room, &duplicate, &e));
            pull_all(sliced, all, versions);
            ck_assert_mem_eq(out, all, (15 + 7 + 4) * sizeof(float));
            ck_assert_mem_eq(out + 26, all + 28, sizeof(float));
            ordinal++;
        }
    }
    check_same_values(whole, sliced);
}

START_TEST(a_push_may_be_cut_anywhere)
{
    every_cut(SGD);
    every_cut(ADAM);
}
END_TEST

START_TEST(a_push_of_single_bytes)
{
    AUTO(layout) *l = small_layout();
    float vector[80] = { 0 }, grads[80] = { 0 }, packed[PUSHED];
    size_t cuts[sizeof(packed)];
    fill(l, 1, vector);
    fill(l, 2, grads);
    AUTO(shard) *whole = serving(l, ADAM, vector);
    AUTO(shard) *sliced = serving(l, ADAM, vector);
    bool duplicate;
    struct err e;
    pack(l, ALL, false, grads, packed);
    for (size_t i = 0; i < COUNT_OF(cuts); i++)
        cuts[i] = i; /* the first range is empty */
    struct cut_bytes c;
    struct bytes_in in = cut(&c, packed, sizeof(packed), cuts, COUNT_OF(cuts));
    ck_ok_e(push(whole, 1, ALL, 3, packed, sizeof(packed), &duplicate, &e));
    ck_ok_e(shard_push(sliced, &CHIEF, ALL, 3, NULL, &in, &(struct shard_out){ 0 }, &duplicate, &e));
    check_same_values(whole, sliced);
}
END_TEST

/* Wherever the value is, and however the message is cut: the segments before it are not updated either. */
START_TEST(a_gradient_that_is_not_finite_changes_nothing)
{
    static const float strange[] = { INFINITY, -INFINITY, NAN };
    AUTO(layout) *l = small_layout();
    float vector[80] = { 0 }, grads[80] = { 0 }, packed[PUSHED];
    const size_t cuts[] = { 13, 62 };
    fill(l, 1, vector);
    fill(l, 2, grads);
    AUTO(shard) *s = serving(l, ADAM, vector), *untouched = serving(l, ADAM, vector);
    bool duplicate;
    struct err e;
    for (size_t at = 0; at < COUNT_OF(packed); at++) {
        pack(l, ALL, false, grads, packed);
        packed[at] = strange[at % COUNT_OF(strange)];
        struct cut_bytes c;
        struct bytes_in in = cut(&c, packed, sizeof(packed), cuts, COUNT_OF(cuts));
        ck_assert_int_eq(shard_push(s, &CHIEF, ALL, 3, NULL, &in, &(struct shard_out){ 0 }, &duplicate, &e), -1);
        ck_assert_msg(e.code == ERR_DIVERGED && strstr(e.msg, "batch 3 is not finite") != NULL, "%s", e.msg);
    }
    check_same_values(s, untouched);
    pack(l, ALL, false, grads, packed);
    ck_ok_e(push(s, 1, ALL, 3, packed, sizeof(packed), &duplicate, &e)); /* the ordinal is still free */
    ck_assert(!duplicate);
}
END_TEST

/* The square of 3e38 is not finite: no gradient, but the variance of a batch may be as large. */
START_TEST(a_gradient_whose_square_is_not_finite_changes_nothing)
{
    enum { MOVING = 15 + 7, MOVING_END = MOVING + 4 };
    AUTO(layout) *l = small_layout();
    float vector[80] = { 0 }, grads[80] = { 0 }, packed[PUSHED];
    fill(l, 1, vector);
    fill(l, 2, grads);
    for (size_t at = 0; at < COUNT_OF(packed); at++) {
        AUTO(shard) *s = serving(l, ADAM, vector), *untouched = serving(l, ADAM, vector);
        bool duplicate, moving = at >= MOVING && at < MOVING_END;
        struct err e;
        pack(l, ALL, false, grads, packed);
        packed[at] = at % 2 == 0 ? 3e38F : -3e38F;
        int rc = push(s, 1, ALL, 3, packed, sizeof(packed), &duplicate, &e);
        ck_assert_int_eq(rc, moving ? 0 : -1);
        if (!moving)
            check_same_values(s, untouched);
    }
}
END_TEST

START_TEST(a_generation_has_a_limit)
{
    AUTO(layout) *l = small_layout();
    float vector[80] = { 0 };
    AUTO(shard) *s = serving(l, ADAM, vector);
    struct shard_caller chief = CHIEF;
    struct shard_info info;
    struct err e;
    chief.generation = UINT64_MAX;
    ck_assert(shard_adopt(s, &chief, &e) == -1 && e.code == ERR_INPUT);
    ck_assert(shard_init(s, &chief, ADAM, l->segments, l->n, l->hash, &e) == -1 && e.code == ERR_INPUT);
    shard_brief(s, &info);
    ck_assert_uint_eq(info.generation, 1);
    chief.generation = GENERATION_MAX;
    ck_ok_e(shard_adopt(s, &chief, &e));
}
END_TEST

START_TEST(duplicates_change_nothing)
{
    AUTO(layout) *l = small_layout();
    float vector[80] = { 0 }, grads[80] = { 0 }, packed[PUSHED], before[PULLED], out[PUSHED];
    fill(l, 1, vector);
    fill(l, 2, grads);
    AUTO(shard) *s = serving(l, ADAM, vector);
    bool duplicate = true;
    struct err e;
    int64_t versions[5];
    pack(l, ALL, false, grads, packed);
    ck_ok_e(push(s, 1, ALL, 7, packed, sizeof(packed), &duplicate, &e));
    ck_assert(!duplicate);
    pull_all(s, before, versions);

    struct cut_bytes c;
    struct bytes_in in = cut(&c, packed, sizeof(packed), (size_t[]){ 13, 62 }, 2);
    struct shard_out room = {
        .values = out, .size = sizeof(out), .element = DT_FLOAT, .versions = versions, .nversions = 5
    };
    ck_ok_e(shard_push(s, &CHIEF, ALL, 7, NULL, &in, &room, &duplicate, &e));
    ck_assert(duplicate);
    ck_assert_mem_eq(out, before, 26 * sizeof(float));
    ck_assert_int_eq(versions[4], 1);
    struct shard_info info;
    shard_describe(s, &info);
    ck_assert_uint_eq(info.pushes, 1);
    ck_assert_uint_eq(info.duplicates, 1);
    ck_assert(ordinal_set_has(&info.applied, 7) && ordinal_set_count(&info.applied) == 1);
    shard_info_fini(&info);
}
END_TEST

START_TEST(kinds_of_segments)
{
    AUTO(layout) *l = small_layout();
    float vector[80] = { 0 }, grads[80], packed[PUSHED], out[PULLED];
    for (size_t i = 0; i < 80; i++)
        vector[i] = 2 * (grads[i] = 4);
    AUTO(shard) *s = serving(l, SGD, vector);
    int64_t versions[5];
    bool duplicate;
    struct err e;
    pack(l, ALL, false, grads, packed);
    ck_ok_e(push(s, 1, ALL, 0, packed, sizeof(packed), &duplicate, &e));
    pull_all(s, out, versions);
    ck_float(out[0], 6); /* 8 - 0.5 * 4 */
    ck_float(out[21], 6);
    ck_float(out[22], 7); /* 0.75 * 8 + 0.25 * 4 */
    ck_float(out[26], 8); /* constant */
    ck_float(out[28], 6);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(versions[i], 1); /* the constant one is marked, too */
}
END_TEST

START_TEST(parts_make_a_whole)
{
    AUTO(layout) *l = small_layout();
    float vector[80] = { 0 }, grads[80] = { 0 }, packed[PUSHED];
    fill(l, 1, vector);
    AUTO(shard) *whole = serving(l, ADAM, vector);
    AUTO(shard) *parts = serving(l, ADAM, vector);
    static const struct shard_part ORDER[] = { { 3, 2 }, { 0, 1 }, { 1, 0 }, { 0, 3 }, { 2, 2 } }; /* and overlapping */
    bool duplicate;
    struct err e;
    for (int64_t ordinal = 0; ordinal < 20; ordinal++) {
        fill(l, (uint64_t)ordinal, grads);
        pack(l, ALL, false, grads, packed);
        ck_ok_e(push(whole, 1, ALL, ordinal, packed, sizeof(packed), &duplicate, &e));
        for (size_t i = 0; i < COUNT_OF(ORDER); i++) {
            struct shard_sizes sizes;
            size_t n = pack(l, ORDER[i], false, grads, packed);
            ck_ok_e(shard_measure(parts, ORDER[i], &sizes, &e));
            ck_assert_uint_eq(sizes.push, n * sizeof(float));
            ck_ok_e(push(parts, 1, ORDER[i], ordinal, packed, n * sizeof(float), &duplicate, &e));
            ck_assert_int_eq(duplicate, i > 2);
        }
    }
    check_same_values(whole, parts);
}
END_TEST

START_TEST(bad_pushes_change_nothing)
{
    AUTO(layout) *l = small_layout();
    float vector[80] = { 0 }, packed[PUSHED + 1] = { 1 };
    fill(l, 1, vector);
    AUTO(shard) *s = serving(l, SGD, vector);
    AUTO(shard) *twin = serving(l, SGD, vector);
    struct err e;
    bool duplicate;
    size_t size = PUSHED * sizeof(float);
    ck_fails(push(s, 1, ALL, 0, packed, size - 1, &duplicate, &e), ERR_INPUT, "107 bytes");
    ck_fails(push(s, 1, ALL, 0, packed, size + 4, &duplicate, &e), ERR_INPUT, "bytes");
    ck_fails(push(s, 1, ALL, 0, packed, 0, &duplicate, &e), ERR_INPUT, "bytes");
    ck_fails(push(s, 1, ALL, -1, packed, size, &duplicate, &e), ERR_INPUT, "negative");
    ck_fails(push(s, 1, ALL, INT64_MAX, packed, size, &duplicate, &e), ERR_INPUT, "too far");
    ck_fails(push(s, 1, (struct shard_part){ 6, 0 }, 0, packed, size, &duplicate, &e), ERR_INPUT, "of 5");
    ck_fails(push(s, 1, (struct shard_part){ 1, SIZE_MAX }, 0, packed, size, &duplicate, &e), ERR_INPUT, "of 5");
    struct shard_out narrow = { .values = packed, .size = 4, .element = DT_FLOAT };
    ck_fails(shard_pull(s, &CHIEF, ALL, &narrow, &e), ERR_NOT_READY, "initialised again");
    struct shard_out doubles = { .values = packed, .size = size, .element = DT_DOUBLE };
    ck_fails(shard_pull(s, &CHIEF, ALL, &doubles, &e), ERR_REFUSED, "value element type float64 (2)");
    struct one_range range = { .data = packed, .size = size };
    struct bytes_in halves = one_range(&range);
    halves.element = DT_HALF;
    ck_fails(shard_push(s, &CHIEF, ALL, 0, NULL, &halves, &narrow, &duplicate, &e), ERR_REFUSED,
             "gradient element type float16 (19)");
    check_same_values(s, twin);
}
END_TEST

START_TEST(staleness_is_counted)
{
    AUTO(layout) *l = small_layout();
    float vector[80] = { 0 }, packed[PUSHED] = { 0 };
    AUTO(shard) *s = serving(l, SGD, vector);
    struct err e;
    bool duplicate;
    for (int64_t ordinal = 0; ordinal < 4; ordinal++) {
        int64_t seen[5] = { 0 }; /* all from the first values: 0, 1, 2, 3 updates late */
        struct cut_bytes c;
        struct bytes_in in = cut(&c, packed, sizeof(packed), NULL, 0);
        ck_ok_e(shard_push(s, &CHIEF, ALL, ordinal, seen, &in, &(struct shard_out){ 0 }, &duplicate, &e));
    }
    struct shard_info info;
    shard_describe(s, &info);
    ck_assert_uint_eq(info.staleness_sum, 6);
    ck_assert_uint_eq(info.staleness_max, 3);
    shard_info_fini(&info);
}
END_TEST

/* ---- snapshot, restore ---- */

START_TEST(bad_restores)
{
    AUTO(layout) *l = small_layout();
    AUTO(shard) *s = shard_new(11);
    float data[64] = { 0 };
    AUTO_FINI(ordinal_set) none = ORDINAL_SET_INIT;
    struct cut_bytes c;
    struct bytes_in in;
    struct err e;
    ck_ok_e(shard_init(s, &CHIEF, ADAM, l->segments, l->n, l->hash, &e));
    in = cut(&c, data, 59, NULL, 0);
    ck_fails(shard_restore(s, &CHIEF, 0, false, 0, &none, &in, &e), ERR_INPUT, "segment 0: 59 bytes");
    in = cut(&c, data, 60, NULL, 0);
    ck_fails(shard_restore(s, &CHIEF, 0, true, 0, &none, &in, &e), ERR_INPUT, "3 x 60");
    ck_fails(shard_restore(s, &CHIEF, 5, false, 0, &none, &in, &e), ERR_INPUT, "segment 5 is not held");
    ck_fails(shard_restore(s, &CHIEF, 0, false, -1, &none, &in, &e), ERR_INPUT, "out of range");
    ck_fails(shard_restore(s, &CHIEF, 0, false, INT64_MAX, &none, &in, &e), ERR_INPUT, "out of range");
    AUTO(shard) *ready = serving(l, ADAM, (float[80]){ 0 });
    ck_fails(shard_restore(ready, &CHIEF, 0, false, 0, &none, &in, &e), ERR_REFUSED, "serves already");
    ck_fails(shard_snapshot(s, &CHIEF, 0, &(struct shard_snapshot){ 0 }, &e), ERR_NOT_READY, "");
}
END_TEST

static void move_segment(struct shard *from, struct shard *to, uint32_t id)
{
    AUTO_FINI(shard_snapshot) snapshot = { 0 };
    struct shard_caller next = generation(2);
    struct cut_bytes c;
    struct err e;
    ck_ok_e(shard_snapshot(from, &CHIEF, id, &snapshot, &e));
    struct bytes_in in =
        cut(&c, snapshot.data, (size_t)(1 + snapshot.slots) * snapshot.count * sizeof(float), (size_t[]){ 3 }, 1);
    ck_ok_e(shard_restore(to, &next, id, true, snapshot.version, &snapshot.applied, &in, &e));
}

/* The segments of one ps of another placement, from the snapshots of a shard that has all segments. */
static struct shard *moved(struct shard *from, const struct layout *l, const struct placement *p, size_t ps,
                           const char *optimizer)
{
    struct shard *s = shard_new(20 + ps);
    struct shard_caller next = generation(2);
    struct segment_spec held[8];
    struct err e;
    for (size_t k = 0; k < p->n[ps]; k++)
        held[k] = l->segments[p->ids[ps][k]];
    ck_ok_e(shard_init(s, &next, optimizer, held, p->n[ps], l->hash, &e));
    for (size_t k = 0; k < p->n[ps]; k++)
        move_segment(from, s, held[k].id);
    ck_ok_e(shard_serve(s, &next, &e));
    return s;
}

static void push_held(struct shard *s, const struct layout *l, const struct placement *p, size_t ps, int64_t ordinal,
                      const float *grads, bool known)
{
    float packed[PUSHED];
    size_t n = 0;
    bool duplicate;
    struct err e;
    for (size_t k = 0; k < p->n[ps]; k++)
        n += pack(l, (struct shard_part){ p->ids[ps][k], 1 }, false, grads, packed + n);
    ck_ok_e(push(s, 2, ALL, ordinal, packed, n * sizeof(float), &duplicate, &e));
    ck_assert(p->n[ps] == 0 || duplicate == known);
}

static void check_same_segment(struct shard *a, struct shard *b, uint32_t id)
{
    AUTO_FINI(shard_snapshot) x = { 0 };
    AUTO_FINI(shard_snapshot) y = { 0 };
    struct shard_caller next = generation(2);
    struct err e;
    ck_ok_e(shard_snapshot(a, &CHIEF, id, &x, &e));
    ck_ok_e(shard_snapshot(b, &next, id, &y, &e));
    ck_assert_int_eq(x.version, y.version);
    ck_assert(ordinal_set_equal(&x.applied, &y.applied));
    ck_assert_mem_eq(x.data, y.data, (size_t)(1 + x.slots) * x.count * sizeof(float));
}

/* Ten pushes, snapshots, another number of ps, ten more: the result is the same as without the change. */
static void move_to(size_t nps, const char *optimizer)
{
    AUTO(layout) *l = small_layout();
    AUTO(placement) *p = placement_new(l, PLACEMENT_GREEDY, nps);
    float grads[80] = { 0 }, packed[PUSHED];
    fill(l, 1, grads);
    AUTO(shard) *old = serving(l, optimizer, grads);
    struct shard *ps[8] = { NULL };
    bool duplicate;
    struct err e;
    for (int64_t step = 0; step < 20; step++) {
        for (size_t i = 0; step == 10 && i < nps; i++)
            ps[i] = moved(old, l, p, i, optimizer);
        fill(l, 100 + (uint64_t)step, grads);
        pack(l, ALL, false, grads, packed);
        ck_ok_e(push(old, 1, ALL, step * 3, packed, sizeof(packed), &duplicate, &e));
        for (size_t i = 0; step >= 10 && i < nps; i++) {
            push_held(ps[i], l, p, i, 27, grads, true); /* the last one before the move */
            push_held(ps[i], l, p, i, step * 3, grads, false);
        }
    }
    for (size_t i = 0; i < nps; i++) {
        for (size_t k = 0; k < p->n[i]; k++)
            check_same_segment(old, ps[i], p->ids[i][k]);
        shard_free(ps[i]);
    }
}

START_TEST(snapshots_restore_exactly)
{
    static const char *const OPTIMIZERS[] = { SGD, ADAM, "{\"Nadam\":{}}", "{\"Ftrl\":{}}",
                                              "{\"RMSprop\":{\"momentum\":0.5}}" };
    for (size_t i = 0; i < COUNT_OF(OPTIMIZERS); i++)
        for (size_t nps = 1; nps <= 7; nps++)
            move_to(nps, OPTIMIZERS[i]);
}
END_TEST

START_TEST(slots_begin_with_their_initial_values)
{
    AUTO(layout) *l = small_layout();
    AUTO(shard) *s = serving(l, "{\"Adagrad\":{\"initial_accumulator_value\":0.25}}", (float[80]){ 0 });
    AUTO_FINI(shard_snapshot) snapshot = { 0 };
    struct err e;
    ck_ok_e(shard_snapshot(s, &CHIEF, 0, &snapshot, &e));
    ck_assert_int_eq(snapshot.slots, 1);
    ck_float(snapshot.data[15], 0.25f);
    ck_float(snapshot.data[29], 0.25f);
}
END_TEST

START_TEST(terminating_until_saved)
{
    AUTO(layout) *l = small_layout();
    AUTO(shard) *s = serving(l, SGD, (float[80]){ 0 });
    float packed[PUSHED] = { 0 };
    bool duplicate;
    struct err e;
    ck_ok_e(push(s, 1, ALL, 0, packed, sizeof(packed), &duplicate, &e));
    ck_assert(!shard_saved(s));
    shard_terminating(s);
    for (uint32_t id = 0; id < l->n; id++) {
        ck_assert(!shard_saved(s));
        AUTO_FINI(shard_snapshot) snapshot = { 0 };
        ck_ok_e(shard_snapshot(s, &CHIEF, id, &snapshot, &e));
        ck_ok_e(push(s, 1, ALL, 1 + id, packed, sizeof(packed), &duplicate, &e)); /* it continues to serve */
    }
    ck_assert(!shard_saved(s)); /* the chief may give up the checkpoint still */
    ck_ok_e(shard_confirm_snapshots(s, &CHIEF, &e));
    ck_assert(shard_saved(s));
    struct shard_info info;
    shard_describe(s, &info);
    ck_assert_int_eq(info.state, SHARD_TERMINATING);
    shard_info_fini(&info);
}
END_TEST

START_TEST(what_a_snapshot_holds_need_not_be_saved_again)
{
    AUTO(layout) *l = small_layout();
    AUTO(shard) *restored = serving(l, SGD, (float[80]){ 0 });
    AUTO(shard) *saved = serving(l, SGD, (float[80]){ 0 });
    AUTO(shard) *empty = shard_new(1);
    float packed[PUSHED] = { 0 };
    bool duplicate;
    struct err e;
    ck_ok_e(push(saved, 1, ALL, 0, packed, sizeof(packed), &duplicate, &e));
    for (uint32_t id = 0; id < l->n; id++) {
        AUTO_FINI(shard_snapshot) snapshot = { 0 };
        ck_ok_e(shard_snapshot(saved, &CHIEF, id, &snapshot, &e));
    }
    ck_ok_e(push(saved, 1, ALL, 0, packed, sizeof(packed), &duplicate, &e)); /* a duplicate changes nothing */
    shard_terminating(restored);
    shard_terminating(saved);
    shard_terminating(empty);
    ck_assert(shard_saved(restored) && !shard_saved(saved) && shard_saved(empty));
    ck_ok_e(shard_confirm_snapshots(saved, &CHIEF, &e));
    ck_assert(shard_saved(saved));
}
END_TEST

/* A chief that is no longer in charge cannot confirm a checkpoint. The next chief confirms its own. */
START_TEST(snapshots_are_confirmed_by_the_chief_in_charge)
{
    AUTO(layout) *l = small_layout();
    AUTO(shard) *s = serving(l, SGD, (float[80]){ 0 });
    AUTO_FINI(shard_snapshot) snapshot = { 0 };
    struct shard_caller next = CHIEF, another = CHIEF;
    struct err e;
    next.generation = 2;
    another.incarnation++;
    ck_ok_e(shard_snapshot(s, &CHIEF, 0, &snapshot, &e));
    shard_terminating(s);
    ck_fails(shard_confirm_snapshots(s, &another, &e), ERR_FENCED, "another chief");
    ck_assert(!shard_saved(s));
    ck_ok_e(shard_adopt(s, &next, &e));
    ck_fails(shard_confirm_snapshots(s, &CHIEF, &e), ERR_FENCED, "generation 1 is over");
    ck_assert(!shard_saved(s));
    ck_ok_e(shard_confirm_snapshots(s, &next, &e));
    ck_assert(shard_saved(s)); /* nothing was applied since the values were restored */
}
END_TEST

START_TEST(values_in_the_callers_vector)
{
    AUTO(layout) *l = small_layout();
    float vector[80] = { 0 }, init[80], packed[PUSHED];
    for (size_t i = 0; i < 80; i++)
        init[i] = 8;
    AUTO(shard) *s = shard_new(3);
    bool duplicate;
    struct err e;
    shard_use_vector(s, vector);
    ck_ok_e(shard_init(s, &CHIEF, COUNTING, l->segments, l->n, l->hash, &e));
    for (size_t i = 0; i < l->n; i++)
        restore_from(s, &CHIEF, &l->segments[i], init);
    ck_ok_e(shard_serve(s, &CHIEF, &e));
    ck_float(vector[64], 8);
    ck_float(vector[15], 0); /* a gap */
    memset(packed, 0, sizeof(packed));
    ck_ok_e(push(s, 1, ALL, 0, packed, sizeof(packed), &duplicate, &e));
    ck_float(vector[64], 9);
    ck_float(vector[48], 8);
}
END_TEST

/* ---- threads ---- */

enum { THREADS = 8, ORDINALS = 400 };

struct pusher {
    struct shard *shard;
    const struct layout *layout;
    uint64_t seed;
    atomic_int *generation;
    struct thread thread;
};

/* Ordinals in random order, with repetitions, whole or in parts; then all in order so that none is missing. */
static void push_many(void *user)
{
    struct pusher *p = user;
    struct rng r = rng_at(p->seed, RNG_TEST, 0, 0);
    float packed[PUSHED] = { 0 }, out[PUSHED];
    int64_t versions[5];
    for (int i = 0; i < 2 * ORDINALS; i++) {
        int64_t ordinal = i < ORDINALS ? (int64_t)rng_below(&r, ORDINALS) : i - ORDINALS;
        size_t first = i < ORDINALS ? rng_below(&r, 5) : 0;
        struct shard_part part = { first, i < ORDINALS ? 1 + rng_below(&r, 5 - first) : 0 };
        struct shard_sizes sizes;
        struct err e = { 0 };
        bool duplicate;
        struct cut_bytes c;
        size_t cuts[] = { 5 };
        ck_ok_e(shard_measure(p->shard, part, &sizes, &e));
        struct bytes_in in = cut(&c, packed, sizes.push, cuts, sizes.push > 5);
        struct shard_out room = {
            .values = out, .size = sizes.push, .element = DT_FLOAT, .versions = versions, .nversions = sizes.segments
        };
        ck_ok_e(shard_push(p->shard, &CHIEF, part, ordinal, NULL, &in, &room, &duplicate, &e));
    }
}

START_TEST(threads_apply_every_ordinal_once)
{
    AUTO(layout) *l = small_layout();
    AUTO(shard) *s = serving(l, COUNTING, (float[80]){ 0 });
    struct pusher pushers[THREADS];
    struct err e;
    for (uint64_t i = 0; i < THREADS; i++) {
        pushers[i] = (struct pusher){ .shard = s, .layout = l, .seed = i };
        ck_ok_e(thread_start(&pushers[i].thread, "push", push_many, &pushers[i], &e));
    }
    for (int i = 0; i < 50; i++) { /* the chief polls and saves meanwhile */
        struct shard_info info;
        AUTO_FINI(shard_snapshot) snapshot = { 0 };
        shard_describe(s, &info);
        shard_info_fini(&info);
        ck_ok_e(shard_snapshot(s, &CHIEF, 0, &snapshot, &e));
        for (size_t k = 0; k < snapshot.count; k++) /* values, version and applied set belong together */
            ck_float(snapshot.data[k], (float)snapshot.version);
        ck_assert_int_eq(ordinal_set_count(&snapshot.applied), snapshot.version);
    }
    for (int i = 0; i < THREADS; i++)
        thread_join(&pushers[i].thread);

    float out[PULLED];
    int64_t versions[5];
    pull_all(s, out, versions);
    for (int i = 0; i < PULLED; i++) {
        if (i == 26 || i == 27) /* constant */
            ck_float(out[i], 0);
        else if (i < 22 || i > 25) /* the moving average of zeros stays 0 */
            ck_float(out[i], ORDINALS);
    }
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(versions[i], ORDINALS);
}
END_TEST

static void push_until_fenced(void *user)
{
    struct pusher *p = user;
    float packed[PUSHED] = { 0 };
    struct err e = { 0 };
    bool duplicate;
    for (int64_t ordinal = (int64_t)p->seed;; ordinal += THREADS) {
        uint64_t mine = (uint64_t)atomic_load(p->generation);
        if (push(p->shard, mine, ALL, ordinal, packed, sizeof(packed), &duplicate, &e) == 0)
            continue;
        ck_assert_msg(e.code == ERR_FENCED, "%s", e.msg);
        return;
    }
}

/* When Adopt has returned, nothing of the older generation is applied any more, however many pushes run. */
START_TEST(a_new_generation_fences_at_once)
{
    AUTO(layout) *l = small_layout();
    AUTO(shard) *s = serving(l, COUNTING, (float[80]){ 0 });
    atomic_int one = 1;
    struct pusher pushers[THREADS];
    struct err e;
    for (uint64_t i = 0; i < THREADS; i++) {
        pushers[i] = (struct pusher){ .shard = s, .seed = i, .generation = &one };
        ck_ok_e(thread_start(&pushers[i].thread, "push", push_until_fenced, &pushers[i], &e));
    }
    struct shard_info info;
    do {
        shard_describe(s, &info);
        shard_info_fini(&info);
    } while (info.pushes < 200);
    struct shard_caller next = generation(2);
    ck_ok_e(shard_adopt(s, &next, &e));
    AUTO_FINI(shard_snapshot) first = { 0 };
    ck_ok_e(shard_snapshot(s, &next, 0, &first, &e));
    for (int i = 0; i < THREADS; i++)
        thread_join(&pushers[i].thread);
    AUTO_FINI(shard_snapshot) second = { 0 };
    ck_ok_e(shard_snapshot(s, &next, 0, &second, &e));
    ck_assert_int_eq(first.version, second.version);
    ck_assert(ordinal_set_equal(&first.applied, &second.applied));
    shard_describe(s, &info);
    ck_assert_int_eq(info.version_min, info.version_max); /* no push was applied in part */
    shard_info_fini(&info);
}
END_TEST

static uint64_t chief_of(struct shard *s)
{
    struct shard_info info;
    shard_brief(s, &info);
    return info.chief;
}

/* Requests that only a chief may send are refused to a second chief of the same generation, in every state. */
static void check_fenced(struct shard *s, const struct layout *l, const struct shard_caller *who)
{
    float vector[80] = { 0 };
    struct cut_bytes c;
    struct bytes_in in = cut(&c, vector, l->segments[0].count * sizeof(float), NULL, 0);
    AUTO_FINI(ordinal_set) none = ORDINAL_SET_INIT;
    struct shard_snapshot snapshot;
    struct err e;
    ck_fails(shard_init(s, who, SGD, l->segments, l->n, l->hash, &e), ERR_FENCED, "belongs to another chief");
    ck_fails(shard_init(s, who, COUNTING, l->segments, 1, 7, &e), ERR_FENCED, "belongs to another chief");
    ck_fails(shard_adopt(s, who, &e), ERR_FENCED, "belongs to another chief");
    ck_fails(shard_restore(s, who, l->segments[0].id, false, 0, &none, &in, &e), ERR_FENCED,
             "belongs to another chief");
    ck_fails(shard_serve(s, who, &e), ERR_FENCED, "belongs to another chief");
    ck_fails(shard_snapshot(s, who, 0, &snapshot, &e), ERR_FENCED, "belongs to another chief");
    ck_fails(shard_finish(s, who, &e), ERR_FENCED, "belongs to another chief");
}

START_TEST(a_generation_belongs_to_the_chief_that_named_it)
{
    AUTO(layout) *l = small_layout();
    AUTO(shard) *s = shard_new(11);
    struct shard_caller first = { .job_uid = UID, .sender = "chief-0", .generation = 1, .incarnation = 5 },
                        second = first;
    float vector[80] = { 0 }, grads[PUSHED] = { 0 };
    bool duplicate;
    struct err e;
    second.incarnation = 6;
    ck_assert_uint_eq(chief_of(s), 0);
    ck_ok_e(shard_init(s, &first, SGD, l->segments, l->n, l->hash, &e));
    check_fenced(s, l, &second); /* while it is loaded */
    for (size_t i = 0; i < l->n; i++)
        restore_from(s, &first, &l->segments[i], vector);
    ck_ok_e(shard_serve(s, &first, &e));
    check_fenced(s, l, &second); /* and while it serves */
    ck_assert_uint_eq(chief_of(s), 5);
    ck_ok_e(push(s, 1, ALL, 0, grads, sizeof(grads), &duplicate, &e)); /* whichever worker pushes */

    second.generation = 2; /* a successor takes its own generation */
    ck_ok_e(shard_adopt(s, &second, &e));
    ck_ok_e(shard_adopt(s, &second, &e));
    ck_assert_uint_eq(chief_of(s), 6);
    first.generation = 2;
    check_fenced(s, l, &first);
    ck_ok_e(shard_finish(s, &second, &e));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("shard");
    TCase *c = tcase_create("all");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, a_life);
    tcase_add_test(c, callers_are_checked);
    tcase_add_test(c, init_again);
    tcase_add_test(c, bad_init_is_refused);
    tcase_add_test(c, a_shard_without_segments_serves);
    tcase_add_test(c, a_push_may_be_cut_anywhere);
    tcase_add_test(c, a_push_of_single_bytes);
    tcase_add_test(c, duplicates_change_nothing);
    tcase_add_test(c, a_gradient_that_is_not_finite_changes_nothing);
    tcase_add_test(c, a_gradient_whose_square_is_not_finite_changes_nothing);
    tcase_add_test(c, a_generation_has_a_limit);
    tcase_add_test(c, kinds_of_segments);
    tcase_add_test(c, parts_make_a_whole);
    tcase_add_test(c, bad_pushes_change_nothing);
    tcase_add_test(c, staleness_is_counted);
    tcase_add_test(c, bad_restores);
    tcase_add_test(c, snapshots_restore_exactly);
    tcase_add_test(c, slots_begin_with_their_initial_values);
    tcase_add_test(c, terminating_until_saved);
    tcase_add_test(c, what_a_snapshot_holds_need_not_be_saved_again);
    tcase_add_test(c, snapshots_are_confirmed_by_the_chief_in_charge);
    tcase_add_test(c, values_in_the_callers_vector);
    tcase_add_test(c, threads_apply_every_ordinal_once);
    tcase_add_test(c, a_new_generation_fences_at_once);
    tcase_add_test(c, a_generation_belongs_to_the_chief_that_named_it);
    suite_add_tcase(s, c);
    return s;
}
