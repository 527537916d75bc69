/* Frames of clients, as bytes: how many of a kind are accepted within a second. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/rng.h"
#include "check_main.h"
#include "rpc/frame_meter.h"

static const char PREFACE[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
enum { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION, NEWER };

static void put_frame(struct buf *b, uint8_t kind, uint8_t flags, const void *payload, uint32_t n)
{
    const uint8_t header[9] = { (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n, kind, flags, 0, 0, 0, 1 };
    buf_add(b, header, sizeof(header));
    for (uint32_t i = 0; i < n; i++)
        buf_char(b, payload != NULL ? ((const char *)payload)[i] : '\0');
}

/* What a client sends that sends `n` frames at once. */
struct flood {
    uint8_t kind, flags;
    uint32_t size;
    int n;
    const char *excess; /* NULL: it is accepted */
};
static const struct flood FLOODS[] = {
    { RST_STREAM, 0, 4, 200, NULL },
    { RST_STREAM, 0, 4, 201, "more than 200 RST_STREAM frames within a second" },
    { HEADERS, 5, 100, 5000, NULL }, /* calls */
    { HEADERS, 5, 64 << 10, 2, NULL },
    { HEADERS, 5, (64 << 10) + 1, 1, "a header block of more than 64 KiB" },
    { CONTINUATION, 0, 1 << 10, 64, NULL },
    { CONTINUATION, 0, 1 << 10, 65, "a header block of more than 64 KiB" },
    { CONTINUATION, 0, 0, 201, "more than 200 CONTINUATION frames within a second" },
    { DATA, 0, 1000, 5000, NULL },
    { DATA, 1, 0, 5000, NULL }, /* the end of a request */
    { DATA, 0, 0, 1001, "more than 1000 empty DATA frames within a second" },
    { PING, 0, 8, 1000, NULL },
    { PING, 0, 8, 1001, "more than 1000 PING frames within a second" },
    { GOAWAY, 0, 8, 11, "more than 10 GOAWAY frames within a second" },
    { SETTINGS, 0, 6, 201, "more than 200 SETTINGS frames within a second" },
    { PRIORITY, 0, 5, 201, "more than 200 PRIORITY frames within a second" },
    { PUSH_PROMISE, 0, 5, 2, "PUSH_PROMISE frames, which only a server may send" },
    { WINDOW_UPDATE, 0, 4, 201, "more than 200 empty WINDOW_UPDATE frames within a second" },
    { NEWER, 0, 10, 5000, NULL },
};

static void flood_bytes(const struct flood *f, struct buf *ret)
{
    buf_str(ret, PREFACE);
    put_frame(ret, SETTINGS, 0, NULL, 6);
    for (int i = 0; i < f->n; i++)
        put_frame(ret, f->kind, f->flags, NULL, f->size);
}

static const char *feed(struct frame_meter *m, const struct buf *b, size_t piece, int64_t now_ms)
{
    const char *excess = NULL;
    for (size_t at = 0; at < b->len && excess == NULL; at += piece)
        excess = frame_meter_add(m, b->data + at, MIN(piece, b->len - at), now_ms);
    return excess;
}

START_TEST(a_flood_is_named)
{
    static const size_t PIECES[] = { 1, 7, 4096, SIZE_MAX / 2 };
    struct flood f = FLOODS[_i];
    if (f.kind == SETTINGS)
        f.n--; /* one is there */
    for (size_t p = 0; p < COUNT_OF(PIECES); p++) {
        AUTO_FINI(buf) b = BUF_INIT;
        struct frame_meter m;
        frame_meter_init(&m);
        flood_bytes(&f, &b);
        const char *excess = feed(&m, &b, PIECES[p], 5);
        ck_assert_msg(f.excess == NULL ? excess == NULL : excess != NULL && strcmp(excess, f.excess) == 0,
                      "%d frames of kind %d: %s", f.n, f.kind, excess != NULL ? excess : "accepted");
    }
}
END_TEST

START_TEST(what_comes_slowly_is_accepted)
{
    struct frame_meter m;
    frame_meter_init(&m);
    for (int64_t second = 0; second < 100; second++) {
        AUTO_FINI(buf) b = BUF_INIT;
        if (second == 0)
            buf_str(&b, PREFACE);
        for (int i = 0; i < 200; i++)
            put_frame(&b, RST_STREAM, 0, NULL, 4);
        ck_assert_ptr_null(feed(&m, &b, b.len, second * FRAME_WINDOW_MS));
    }
}
END_TEST

START_TEST(updates_of_a_window_are_accepted)
{
    static const char STEPS[][4] = { { 0, 0, 0, 1 }, { 1, 0, 0, 0 }, { 0, 0, 16, 0 } };
    AUTO_FINI(buf) b = BUF_INIT;
    struct frame_meter m;
    frame_meter_init(&m);
    buf_str(&b, PREFACE);
    for (int i = 0; i < 3000; i++)
        put_frame(&b, WINDOW_UPDATE, 0, STEPS[i % 3], 4);
    ck_assert_ptr_null(feed(&m, &b, 5, 0));
}
END_TEST

START_TEST(another_protocol_is_not_metered)
{
    static const char *const FIRST[] = { "\x16\x03\x01", "GET / HTTP/1.1\r\n", "PRI * HTTP/2.1" };
    AUTO_FINI(buf) b = BUF_INIT;
    struct frame_meter m;
    frame_meter_init(&m);
    buf_str(&b, FIRST[_i]);
    for (int i = 0; i < 1000; i++)
        put_frame(&b, RST_STREAM, 0, NULL, 4);
    ck_assert_ptr_null(feed(&m, &b, 3, 0));
}
END_TEST

START_TEST(any_bytes_do_no_harm)
{
    uint64_t random = 1;
    for (int i = 0; i < 200; i++) {
        AUTO_FINI(buf) b = BUF_INIT;
        struct frame_meter m;
        frame_meter_init(&m);
        buf_str(&b, PREFACE);
        for (int k = 0; k < 5000; k++) {
            random = random * 6364136223846793005U + 1442695040888963407U;
            buf_char(&b, (char)(k % 9 < 2 ? 0 : random >> 56));
        }
        (void)!feed(&m, &b, (size_t)(1 + i % 50), i);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("frame_meter");
    TCase *t = tcase_create("all");
    tcase_add_loop_test(t, a_flood_is_named, 0, COUNT_OF(FLOODS));
    tcase_add_test(t, what_comes_slowly_is_accepted);
    tcase_add_test(t, updates_of_a_window_are_accepted);
    tcase_add_loop_test(t, another_protocol_is_not_metered, 0, 3);
    tcase_add_test(t, any_bytes_do_no_harm);
    suite_add_tcase(s, t);
    return s;
}
