/* Checks the picture of a model for what a viewer would see: well-formed XML, boxes with their texts, an edge for each
 * connection, and frames only where they tell the truth. Where things lie is tested in test_graph_layout.c.
 */
#include "check_main.h"
#include "cli/graph_svg.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/graph_frames.h"
#include "svg_checks.h"

#define ARROW "\xE2\x86\x92"

static const size_t AT[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 }; /* AT + i with n: boxes i to i + n - 1 */

/* Draws twice: the same picture has the same bytes. */
static void draw(const struct graph_picture *p, struct buf *ret)
{
    struct err e = { 0 };
    AUTO_FINI(buf) again = BUF_INIT;
    ck_ok_e(graph_svg(p, ret, &e));
    ck_ok_e(graph_svg(p, &again, &e));
    ck_assert_str_eq(ret->data, again.data);
    ck_assert(str_starts(ret->data, "<svg xmlns=\"http://www.w3.org/2000/svg\""));
    ck_assert(str_ends(ret->data, "</svg>\n"));
    svg_check(ret->data);
    ck_assert_uint_eq(svg_occurrences(ret->data, "class=\"card\""), p->nboxes);
}

/* The number after the text of an attribute, from a place on. */
static long number_after(const char *from, const char *attribute)
{
    const char *at = strstr(from, attribute);
    ck_assert_ptr_nonnull(at);
    return strtol(at + strlen(attribute), NULL, 10);
}

/* Where the box of this tooltip begins. */
static const char *card_of(const char *svg, const char *tooltip)
{
    const char *title = strstr(svg, tooltip);
    ck_assert_msg(title != NULL, "no tooltip %s", tooltip);
    return strstr(title, "class=\"card\"");
}

static const struct graph_box CHAIN[] = {
    { .name = "input_1", .class_name = "InputLayer", .out_shape = "(None, 16)" },
    { .name = "dense",
      .class_name = "Dense",
      .in_shape = "(None, 16)",
      .out_shape = "(None, 4)",
      .from = AT,
      .nfrom = 1 },
    { .name = "softmax", .class_name = "Softmax", .in_shape = "(None, 4)", .from = AT + 1, .nfrom = 1 },
    { .name = "last", .class_name = "Activation", .from = AT + 2, .nfrom = 1 },
};

START_TEST(a_box_has_name_class_and_shapes)
{
    AUTO_FINI(buf) out = BUF_INIT;
    const struct graph_picture p = { .title = "mnist <1>", .boxes = CHAIN, .nboxes = COUNT_OF(CHAIN) };
    draw(&p, &out);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"edge\""), 3);
    ck_assert_ptr_nonnull(strstr(out.data, ">mnist &#60;1&#62;</text>"));
    ck_assert_ptr_nonnull(strstr(out.data, ">dense <tspan class=\"class\">(Dense)</tspan></text>"));
    ck_assert_ptr_nonnull(strstr(out.data, ">(None, 16) " ARROW " (None, 4)</text>"));
    ck_assert_ptr_nonnull(strstr(out.data, "<title>dense (Dense)\n(None, 16) " ARROW " (None, 4)</title>"));
    ck_assert_ptr_nonnull(strstr(out.data, ">(None, 16)</text>"));
    ck_assert_ptr_nonnull(strstr(out.data, ">(None, 4)</text>"));
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"shape\""), 3);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"input\""), 1);
    ck_assert_ptr_null(strstr(out.data, "class=\"frame\""));
    ck_assert_int_lt(number_after(card_of(out.data, "<title>last"), "height=\""),
                     number_after(card_of(out.data, "<title>dense"), "height=\""));
}
END_TEST

/* Two inputs share a layer, whose calls are two boxes of one name; two outputs; the second box reads both. */
START_TEST(each_connection_has_a_path)
{
    static const size_t FROM[] = { 2, 3, 0 };
    static const struct graph_box BOXES[] = {
        { .name = "left", .class_name = "InputLayer" },
        { .name = "right", .class_name = "InputLayer" },
        { .name = "shared", .class_name = "Dense", .from = AT, .nfrom = 1 },
        { .name = "shared", .class_name = "Dense", .from = AT + 1, .nfrom = 1 },
        { .name = "add", .class_name = "Add", .from = FROM, .nfrom = 3 },
        { .name = "one", .class_name = "Dense", .from = AT + 4, .nfrom = 1 },
        { .name = "two", .class_name = "Dense", .from = AT + 4, .nfrom = 1 },
    };
    AUTO_FINI(buf) out = BUF_INIT;
    const struct graph_picture p = { .boxes = BOXES, .nboxes = COUNT_OF(BOXES) };
    draw(&p, &out);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"edge\""), 7);
    ck_assert_uint_eq(svg_occurrences(out.data, ">shared <tspan"), 2);
    size_t curves = 0;
    for (const char *d = out.data; (d = strstr(d, "url(#tip)\" d=\"M")) != NULL; d++)
        curves += memchr(d, 'C', strcspn(d, ">")) != NULL;
    ck_assert_uint_ge(curves, 4); /* two of those that end at `add`, and both that leave it */
    ck_assert_ptr_null(strstr(out.data, "class=\"title\""));
}
END_TEST

START_TEST(an_empty_model_is_a_message)
{
    AUTO_FINI(buf) out = BUF_INIT;
    const struct graph_picture p = { .title = "nothing" };
    draw(&p, &out);
    ck_assert_ptr_nonnull(strstr(out.data, ">no layers</text>"));
}
END_TEST

START_TEST(hostile_names_are_escaped_and_cut)
{
    char letters[201];
    memset(letters, 'n', sizeof(letters) - 1);
    letters[sizeof(letters) - 1] = '\0';
    const struct graph_group groups[] = { { .name = "</g>", .class_name = letters } };
    const struct graph_box boxes[] = {
        { .name = "<script>&\"'", .class_name = "\x01\x1b\n", .out_shape = "]]>" },
        { .name = "\xff\xc3\xed\xa0\x80", .class_name = "\xef\xbf\xbf", .from = AT, .nfrom = 1, .group = 1 },
        { .name = letters, .class_name = letters, .in_shape = letters, .out_shape = letters, .from = AT, .nfrom = 2 },
        { .name = "", .class_name = "", .in_shape = "", .from = AT, .nfrom = 3 },
    };
    AUTO_FINI(buf) out = BUF_INIT;
    struct graph_picture p = { .boxes = boxes, .nboxes = COUNT_OF(boxes), .groups = groups, .ngroups = 1 };
    p.title = letters;
    draw(&p, &out);
    ck_assert_ptr_null(strstr(out.data, "<script"));
    ck_assert_ptr_nonnull(strstr(out.data, ">&#60;script&#62;&#38;&#34;' <tspan"));
    const char *card = card_of(out.data, letters);
    ck_assert_int_lt(number_after(card, "width=\""), 900);
    ck_assert_ptr_nonnull(strstr(out.data, "n\xE2\x80\xA6n"));
}
END_TEST

static const struct graph_group MODELS[] = { { .name = "encoder", .class_name = "Functional" },
                                             { .name = "inner", .class_name = "Sequential", .parent = 1 } };

/* The four numbers of the frame of number i. */
static struct graph_rect frame(const char *svg, int i)
{
    for (; i >= 0; i--) {
        svg = strstr(svg, "class=\"frame\"");
        ck_assert_ptr_nonnull(svg);
        svg++;
    }
    int x = (int)number_after(svg, " x=\""), y = (int)number_after(svg, " y=\"");
    return (struct graph_rect){ x, y, x + (int)number_after(svg, "width=\""), y + (int)number_after(svg, "height=\"") };
}

static bool encloses(const struct graph_rect *frame, const char *svg, const char *tooltip)
{
    const char *card = card_of(svg, tooltip);
    long x = number_after(card, " x=\""), y = number_after(card, " y=\"");
    return x >= frame->left && y >= frame->top && x + number_after(card, "width=\"") <= frame->right &&
           y + number_after(card, "height=\"") <= frame->bottom;
}

START_TEST(nested_models_are_frames)
{
    static const struct graph_box BOXES[] = {
        { .name = "input", .class_name = "InputLayer" },
        { .name = "outer", .class_name = "Dense", .from = AT, .nfrom = 1, .group = 1 },
        { .name = "deep_1", .class_name = "Dense", .from = AT + 1, .nfrom = 1, .group = 2 },
        { .name = "deep_2", .class_name = "Dense", .from = AT + 2, .nfrom = 1, .group = 2 },
        { .name = "head", .class_name = "Dense", .from = AT + 3, .nfrom = 1 },
        { .name = "beside", .class_name = "Dense", .from = AT, .nfrom = 1 },
    };
    AUTO_FINI(buf) out = BUF_INIT;
    const struct graph_picture p = { .boxes = BOXES, .nboxes = COUNT_OF(BOXES), .groups = MODELS, .ngroups = 2 };
    draw(&p, &out);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"frame\""), 2);
    ck_assert_ptr_nonnull(strstr(out.data, "<title>inner (Sequential)</title>"));
    ck_assert_ptr_null(strstr(out.data, "class=\"model\""));
    struct graph_rect outer = frame(out.data, 0), inner = frame(out.data, 1);
    ck_assert(outer.left < inner.left && inner.right < outer.right && outer.bottom > inner.bottom);
    static const char *const NAMES[] = { "<title>input", "<title>head",   "<title>beside",
                                         "<title>outer", "<title>deep_1", "<title>deep_2" };
    for (size_t i = 0; i < COUNT_OF(NAMES); i++) {
        ck_assert_int_eq(encloses(&outer, out.data, NAMES[i]), i >= 3);
        ck_assert_int_eq(encloses(&inner, out.data, NAMES[i]), i >= 4);
    }
    ck_assert(outer.left >= 0 && outer.top >= 0);
}
END_TEST

/* A box of the model itself lies between two of the encoder: a frame would claim it. */
START_TEST(without_room_for_a_frame_boxes_are_tinted)
{
    static const struct graph_box BOXES[] = {
        { .name = "input", .class_name = "InputLayer", .group = 1 },
        { .name = "foreign", .class_name = "Dense", .from = AT, .nfrom = 1 },
        { .name = "deep", .class_name = "Dense", .from = AT + 1, .nfrom = 1, .group = 2 },
        { .name = "outer", .class_name = "Dense", .from = AT + 2, .nfrom = 1, .group = 1 },
    };
    AUTO_FINI(buf) out = BUF_INIT;
    const struct graph_picture p = { .boxes = BOXES, .nboxes = COUNT_OF(BOXES), .groups = MODELS, .ngroups = 2 };
    draw(&p, &out);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"frame\""), 1); /* of the inner model */
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"model\""), 3);
    ck_assert_uint_eq(svg_occurrences(out.data, ">encoder</text>"), 3);
    struct graph_rect inner = frame(out.data, 0);
    ck_assert(encloses(&inner, out.data, "<title>encoder\ndeep"));
    ck_assert(!encloses(&inner, out.data, "<title>foreign"));
}
END_TEST

START_TEST(a_model_without_boxes_has_no_frame)
{
    AUTO_FINI(buf) out = BUF_INIT;
    const struct graph_picture p = { .boxes = CHAIN, .nboxes = COUNT_OF(CHAIN), .groups = MODELS, .ngroups = 2 };
    draw(&p, &out);
    ck_assert_ptr_null(strstr(out.data, "class=\"frame\""));
}
END_TEST

/* Each of n boxes reads up to `before` of those before it; each tenth box is in a nested model. */
static void draw_many(size_t n, size_t before, size_t ngroups)
{
    AUTO_FINI(buf) out = BUF_INIT;
    auto_free struct graph_box *boxes = xcalloc(n, sizeof(*boxes));
    auto_free size_t *indices = xcalloc(n, sizeof(*indices));
    auto_free struct graph_group *groups = xcalloc(ngroups + 1, sizeof(*groups));
    size_t edges = 0;
    for (size_t i = 0; i < ngroups; i++)
        groups[i] = (struct graph_group){ .name = "block", .class_name = "Sequential" };
    for (size_t i = 0; i < n; i++) {
        size_t first = i > before ? i - before : 0;
        indices[i] = i;
        edges += i - first;
        boxes[i] = (struct graph_box){ "dense", "Dense", "(None, 4)", "(None, 4)", indices + first, i - first, 0 };
        boxes[i].group = ngroups > 0 ? 1 + i * ngroups / n : 0;
    }
    const struct graph_picture p = { .boxes = boxes, .nboxes = n, .groups = groups, .ngroups = ngroups };
    struct err e = { 0 };
    ck_ok_e(graph_svg(&p, &out, &e));
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"card\""), n);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"edge\""), edges);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"frame\""), ngroups);
}

START_TEST(large_models)
{
    draw_many(5000, 1, 0);
    draw_many(300, 16, 0);
    draw_many(1000, 1, 250);
}
END_TEST

START_TEST(what_is_refused)
{
    AUTO_FINI(buf) out = BUF_INIT;
    struct err e;
    struct graph_group groups[GRAPH_GROUPS_DEEP + 1];
    struct graph_box box = { .name = "a", .class_name = "b", .group = 3 };
    struct graph_picture p = { .boxes = &box, .nboxes = 1, .groups = MODELS, .ngroups = 2 };
    ck_fails(graph_svg(&p, &out, &e), ERR_INTERNAL, "box 0 of a graph has the group 3");
    box.group = 0;
    box.from = AT;
    box.nfrom = 1;
    ck_fails(graph_svg(&p, &out, &e), ERR_INTERNAL, "box 0 of a graph reads box 0");
    for (size_t i = 0; i < COUNT_OF(groups); i++)
        groups[i] = (struct graph_group){ .name = "n", .class_name = "c", .parent = i };
    p.groups = groups;
    p.ngroups = COUNT_OF(groups);
    ck_fails(graph_svg(&p, &out, &e), ERR_INPUT, "nested deeper than 100");
    groups[0].parent = 1;
    ck_fails(graph_svg(&p, &out, &e), ERR_INTERNAL, "group 1 of a graph has the parent 1");
    ck_assert_uint_eq(out.len, 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cli/graph_svg");
    TCase *t = tcase_create("graph_svg");
    suite_add_tcase(s, t);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_box_has_name_class_and_shapes);
    tcase_add_test(t, each_connection_has_a_path);
    tcase_add_test(t, an_empty_model_is_a_message);
    tcase_add_test(t, hostile_names_are_escaped_and_cut);
    tcase_add_test(t, nested_models_are_frames);
    tcase_add_test(t, without_room_for_a_frame_boxes_are_tinted);
    tcase_add_test(t, a_model_without_boxes_has_no_frame);
    tcase_add_test(t, large_models);
    tcase_add_test(t, what_is_refused);
    return s;
}
