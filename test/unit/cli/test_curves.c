/* Checks the picture for what a viewer would see: well-formed XML, its panels, colours, lines and labels. */
#include "check_main.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "cli/curves.h"
#include "svg_checks.h"
#include "temp_folder.h"
#include "tfio/event_writer.h"

static void draw(const struct series_set *s, const struct svg_options *look, struct buf *ret)
{
    curves_svg(s, look, ret);
    ck_assert(str_starts(ret->data, "<svg xmlns=\"http://www.w3.org/2000/svg\""));
    ck_assert(str_ends(ret->data, "</svg>\n"));
    svg_check(ret->data);
    ck_assert_ptr_null(strstr(ret->data, "nan"));
    ck_assert_ptr_null(strstr(ret->data, "inf"));
}

START_TEST(a_panel_a_tag_and_a_colour_a_run)
{
    AUTO_FINI(series_set) s = SERIES_SET_INIT;
    AUTO_FINI(buf) out = BUF_INIT;
    struct svg_options look = svg_options_default();

    for (int i = 0; i < 100; i++) {
        series_add(&s, "train", "loss", i * 10, 2.0 / (1 + i));
        series_add(&s, "train", "accuracy", i * 10, 1 - 1.0 / (1 + i));
        series_add(&s, "validation", "loss", i * 10, 3.0 / (1 + i));
    }
    look.title = "mnist";
    draw(&s, &look, &out);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"panel\""), 2);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"line\""), 3);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"raw\""), 3);
    ck_assert_uint_eq(svg_occurrences(out.data, ">mnist</text>"), 1);
    ck_assert_uint_eq(svg_occurrences(out.data, ">train</text>"), 1);
    ck_assert_uint_eq(svg_occurrences(out.data, ">validation</text>"), 1);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"line\" stroke=\"#ff7043\" d="), 2);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"line\" stroke=\"#ff7043\" stroke-dasharray=\"6 4\" d="), 1);
    ck_assert_ptr_nonnull(strstr(out.data, ">800</text>")); /* a tick of the steps */
    ck_assert_ptr_nonnull(strstr(out.data, ">0.5</text>"));

    buf_clear(&out);
    look.tag = "acc";
    look.smoothing = 0;
    draw(&s, &look, &out);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"panel\""), 1);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"raw\""), 0);
}
END_TEST

/* y of the last point of the line of that class. */
static double last_y(const char *svg, const char *class)
{
    const char *line = strstr(svg, class), *d = strstr(line, " d=\""), *end = strchr(d + 4, '"');
    while (*end != ' ')
        end--;
    return strtod(end, NULL);
}

/* Weight 0.5 over 0 then 1: (0.5 * 1) / (1 - 0.25) = 2/3. The plot of [0, 1] with a twentieth of margin is 232 high. */
START_TEST(smoothing_is_tensorboards)
{
    AUTO_FINI(series_set) s = SERIES_SET_INIT;
    AUTO_FINI(buf) out = BUF_INIT;
    struct svg_options look = svg_options_default();

    look.smoothing = 0.5;
    series_add(&s, "r", "t", 0, 0);
    series_add(&s, "r", "t", 1, 1);
    draw(&s, &look, &out);
    double raw = last_y(out.data, "class=\"raw\""), smoothed = last_y(out.data, "class=\"line\"");
    ck_assert_double_eq_tol((smoothed - raw) / (232 / 1.1), 1.0 / 3, 1e-3);
}
END_TEST

/* By default a line with enough points is smoothed; the faint raw line is drawn below it. */
START_TEST(short_lines_are_drawn_as_they_are)
{
    AUTO_FINI(series_set) s = SERIES_SET_INIT;
    AUTO_FINI(buf) out = BUF_INIT;
    struct svg_options look = svg_options_default();
    for (int i = 0; i < 20; i++) {
        series_add(&s, "long", "loss", i, i % 3);
        if (i < 19)
            series_add(&s, "short", "loss", i, i % 4);
    }
    draw(&s, &look, &out);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"raw\""), 1);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"line\""), 2);
}
END_TEST

START_TEST(axes_have_titles_and_epochs_whole_ticks)
{
    AUTO_FINI(series_set) s = SERIES_SET_INIT;
    AUTO_FINI(buf) out = BUF_INIT;
    struct svg_options look = svg_options_default();
    for (int i = 0; i < 3; i++)
        series_add(&s, "train", "epoch_accuracy", i, 0.5 + 0.1 * i);
    series_add(&s, "train", "global_step/sec", 100, 3);
    draw(&s, &look, &out);
    ck_assert_uint_eq(svg_occurrences(out.data, ">epoch</text>"), 1);
    ck_assert_uint_eq(svg_occurrences(out.data, ">accuracy</text>"), 1);
    ck_assert_uint_eq(svg_occurrences(out.data, ">step</text>"), 1);
    ck_assert_uint_eq(svg_occurrences(out.data, ">global_step/sec</text>"), 2); /* panel and axis */
    const char *panel = strstr(out.data, "epoch_accuracy");
    ck_assert_ptr_nonnull(strstr(panel, "text-anchor=\"middle\">1</text>"));
    ck_assert_uint_eq(svg_occurrences(panel, "text-anchor=\"middle\">0.5</text>"), 0);
    ck_assert_uint_eq(svg_occurrences(panel, "text-anchor=\"middle\">1.5</text>"), 0);
}
END_TEST

START_TEST(runs_of_several_folders_share_a_panel)
{
    AUTO_FINI(series_set) a = SERIES_SET_INIT, b = SERIES_SET_INIT, both = SERIES_SET_INIT;
    AUTO_FINI(buf) out = BUF_INIT;
    struct svg_options look = svg_options_default();
    series_add(&a, "train", "loss", 1, 2);
    series_add(&b, "train", "loss", 1, 3);
    series_add(&b, ".", "loss", 1, 4);
    series_merge(&both, "runs/a", &a);
    series_merge(&both, "runs/b", &b);
    draw(&both, &look, &out);
    ck_assert_uint_eq(both.n, 3);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"panel\""), 1);
    ck_assert_uint_eq(svg_occurrences(out.data, ">a</text>"), 1); /* the legend has a line for each run, */
    ck_assert_uint_eq(svg_occurrences(out.data, ">b</text>"), 1); /* without what the names share */
    ck_assert_uint_eq(svg_occurrences(out.data, ">validation</text>"), 0);
    ck_assert_uint_eq(svg_occurrences(out.data, "fill=\"#ff7043\""), 1);
    ck_assert_uint_eq(svg_occurrences(out.data, "fill=\"#0077bb\""), 2);
}
END_TEST

START_TEST(many_runs_are_named_and_the_first_ones_drawn)
{
    AUTO_FINI(series_set) s = SERIES_SET_INIT;
    AUTO_FINI(buf) out = BUF_INIT;
    struct svg_options look = svg_options_default();
    for (int i = 0; i < 100; i++) {
        auto_free char *train = xasprintf("runs/lr%02d/train", i), *validation = xasprintf("runs/lr%02d/validation", i);
        for (int step = 0; step < 3; step++) {
            series_add(&s, train, "loss", step, i + step);
            series_add(&s, validation, "loss", step, i == 99 ? 1e9 : i + step); /* it does not widen the axis */
        }
    }
    draw(&s, &look, &out);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"line\""), 24);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"key\""), 13); /* 12 runs, and what dashes mean */
    ck_assert_uint_eq(svg_occurrences(out.data, ">lr11</text>"), 1);
    ck_assert_ptr_nonnull(strstr(out.data, ">not drawn: lr12, lr13, "));
    const char *more = strstr(out.data, " and ");
    ck_assert_ptr_nonnull(more);
    ck_assert_ptr_nonnull(strstr(more, " more</text>"));
    ck_assert_ptr_null(strstr(out.data, ">1G</text>"));
}
END_TEST

START_TEST(losses_that_differ_much_have_a_logarithmic_axis)
{
    static const struct {
        const char *tag;
        double first;
        bool log;
    } CASES[] = {
        { "epoch_loss", 100, true },   { "epoch_loss", 99, false },      { "epoch_mean_squared_error", 1e6, true },
        { "epoch_loss", -100, false }, { "epoch_accuracy", 100, false }, { "epoch_loss", 0, false },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        AUTO_FINI(series_set) s = SERIES_SET_INIT;
        AUTO_FINI(buf) out = BUF_INIT;
        struct svg_options look = svg_options_default();
        series_add(&s, "train", CASES[i].tag, 0, CASES[i].first);
        series_add(&s, "train", CASES[i].tag, 1, 1);
        draw(&s, &look, &out);
        ck_assert_uint_eq(svg_occurrences(out.data, " (log)</text>"), CASES[i].log);
    }
}
END_TEST

START_TEST(a_learning_rate_is_not_smoothed)
{
    AUTO_FINI(series_set) s = SERIES_SET_INIT;
    AUTO_FINI(buf) out = BUF_INIT;
    struct svg_options look = svg_options_default();
    look.smoothing = 0.9;
    for (int i = 0; i < 50; i++)
        series_add(&s, "train", "epoch_learning_rate", i, i < 25 ? 0.1 : 0.01);
    draw(&s, &look, &out);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"raw\""), 0);
    ck_assert_uint_eq(svg_occurrences(out.data, "class=\"line\""), 1);
}
END_TEST

START_TEST(odd_series_are_drawn)
{
    static const double ODD[] = { 0, 1e-310, 1e308, -1e308, 5, 5, 1e-300 };
    struct svg_options look = svg_options_default();

    for (size_t i = 0; i < COUNT_OF(ODD); i++) {
        AUTO_FINI(series_set) s = SERIES_SET_INIT;
        AUTO_FINI(buf) out = BUF_INIT;
        series_add(&s, ".", "one", 3, ODD[i]);
        for (size_t k = 0; k <= i; k++)
            series_add(&s, ".", "many", (double)k, ODD[k]);
        series_add(&s, ".", "nothing", 1, (double)NAN);
        series_add(&s, ".", "gaps", 1, 1);
        series_add(&s, ".", "gaps", 2, (double)INFINITY);
        series_add(&s, ".", "gaps", 1e18, 2);
        series_add(&s, "x<&>\"\x01\xff", "t<&>\"\x01\xff", 1, 2);
        draw(&s, &look, &out);
    }
    AUTO_FINI(series_set) none = SERIES_SET_INIT;
    AUTO_FINI(buf) out = BUF_INIT;
    draw(&none, &look, &out);
    ck_assert_ptr_nonnull(strstr(out.data, "no scalars yet"));
}
END_TEST

START_TEST(a_long_run_makes_a_small_picture_that_keeps_its_spikes)
{
    AUTO_FINI(series_set) s = SERIES_SET_INIT;
    AUTO_FINI(buf) out = BUF_INIT;
    struct svg_options look = svg_options_default();
    struct rng r = rng_at(1, RNG_TEST, 0, 0);

    look.smoothing = 0;
    for (int i = 0; i < 200000; i++)
        series_add(&s, ".", "loss", i, i == 123456 ? 100 : (double)rng_uniform(&r));
    draw(&s, &look, &out);
    ck_assert_uint_lt(out.len, 100000);
    /* The spike reaches the height of its value: 38 + 232 * 0.05 / 1.1 from the panel's top. */
    ck_assert_ptr_nonnull(strstr(out.data, " 90.5"));
}
END_TEST

START_TEST(a_step_that_goes_back_takes_points_back)
{
    AUTO_FINI(series_set) s = SERIES_SET_INIT;

    for (int i = 0; i < 10; i++)
        series_add(&s, "r", "t", i, i);
    series_add(&s, "r", "t", 4, 40);
    ck_assert_uint_eq(s.items[0].n, 5);
    ck_assert(s.items[0].values[4] == 40);
    series_purge(&s, "r", 2);
    ck_assert_uint_eq(s.items[0].n, 2);
    series_purge(&s, "other", 0);
    ck_assert_uint_eq(s.items[0].n, 2);
}
END_TEST

/* ---- from event files ---- */

START_TEST(a_resumed_run_continues_its_curve)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(series_set) s = SERIES_SET_INIT;
    char folder[] = "/tmp/trainyard-curves-XXXXXX";

    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (int life = 0; life < 2; life++) {
        AUTO(event_writer) *w = NULL;
        auto_free char *dir = path_join(folder, "train");
        ck_ok_e(event_writer_open(dir, 1599759586.0, "host", &w, &e));
        if (life == 1)
            ck_ok_e(event_writer_session(w, 1, SESSION_START, 30, NULL, NULL, &e));
        for (int step = life * 30; step < 50; step += 10)
            ck_ok_e(event_writer_scalar(w, 1, step, "loss", (float)(step + life), &e));
    }
    ck_ok_e(series_load(folder, &s, NULL, &e));
    ck_assert_uint_eq(s.n, 1);
    ck_assert_str_eq(s.items[0].run, "train");
    ck_assert_uint_eq(s.items[0].n, 5);
    for (size_t i = 0; i < 5; i++) {
        ck_assert(s.items[0].steps[i] == 10.0 * (double)i);
        ck_assert(s.items[0].values[i] == 10.0 * (double)i + (i >= 3));
    }
    remove_tree(folder);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("curves");
    TCase *c = tcase_create("curves");
    tcase_add_test(c, a_panel_a_tag_and_a_colour_a_run);
    tcase_add_test(c, smoothing_is_tensorboards);
    tcase_add_test(c, short_lines_are_drawn_as_they_are);
    tcase_add_test(c, axes_have_titles_and_epochs_whole_ticks);
    tcase_add_test(c, runs_of_several_folders_share_a_panel);
    tcase_add_test(c, many_runs_are_named_and_the_first_ones_drawn);
    tcase_add_test(c, losses_that_differ_much_have_a_logarithmic_axis);
    tcase_add_test(c, a_learning_rate_is_not_smoothed);
    tcase_add_test(c, odd_series_are_drawn);
    tcase_add_test(c, a_long_run_makes_a_small_picture_that_keeps_its_spikes);
    tcase_add_test(c, a_step_that_goes_back_takes_points_back);
    tcase_add_test(c, a_resumed_run_continues_its_curve);
    suite_add_tcase(s, c);
    return s;
}
