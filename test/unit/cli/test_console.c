#include "check_main.h"
#include "cli/console.h"

#include <string.h>

#include "cli/progress_bar.h"

/* terminal, NO_COLOR, TERM, columns, json -> bar and colours, columns */
static const struct {
    bool is_terminal;
    const char *no_color, *term;
    size_t columns;
    bool json, want;
    size_t width;
} TERMINALS[] = {
    { true, NULL, "xterm", 120, false, true, 120 }, { true, "", "xterm", 120, false, true, 120 },
    { false, NULL, "xterm", 0, false, false, 80 },  { true, "1", "xterm", 120, false, false, 120 },
    { true, NULL, "dumb", 120, false, false, 120 }, { true, NULL, "xterm", 120, true, false, 120 },
    { true, NULL, NULL, 3, false, true, 80 },
};
START_TEST(colours_are_for_terminals)
{
    struct console c = console_for(TERMINALS[_i].is_terminal, TERMINALS[_i].no_color, TERMINALS[_i].term,
                                   TERMINALS[_i].columns, TERMINALS[_i].json);
    ck_assert_int_eq(c.terminal, TERMINALS[_i].want);
    ck_assert_uint_eq(c.width, TERMINALS[_i].width);
}
END_TEST

static const struct {
    bool terminal, json;
    const char *text, *want;
} LINES[] = {
    { false, false, "step 1", "[worker-1] step 1" },
    { false, false, "[worker-1] step 1", "[worker-1] step 1" },
    { false, false, "[worker-10] step 1", "[worker-1] [worker-10] step 1" },
    { false, false, "error: \x1b[2Jbad", "[worker-1] error:  [2Jbad" },
    { true, false, "step 1", "\033[32m[worker-1]\033[0m step 1" },
    { true, false, "error: bad", "\033[32m[worker-1]\033[0m \033[31merror: bad\033[0m" },
    { true, false, "[worker-1] warning: hm", "\033[32m[worker-1]\033[0m \033[33mwarning: hm\033[0m" },
    { false, true, "{\"msg\":\"x\"}", "{\"msg\":\"x\"}" },
};
START_TEST(a_line_says_whose_it_is)
{
    struct console c = console_for(LINES[_i].terminal, NULL, "xterm", 80, LINES[_i].json);
    AUTO_FINI(buf) out = BUF_INIT;
    console_format(&c, 1, "worker-1", LINES[_i].text, &out);
    ck_assert_str_eq(out.data, LINES[_i].want);
}
END_TEST

START_TEST(the_chiefs_routine_lines_become_bars)
{
    AUTO_FINI(buf) out = BUF_INIT;
    ck_assert_int_eq(progress_line_kind("step 1400 epoch 2/5 loss 0.1"), LINE_STEP);
    ck_assert_int_eq(progress_line_kind("epoch 2/5 done loss 0.1"), LINE_EPOCH);
    ck_assert_int_eq(progress_line_kind("epoch 2/5 is late"), LINE_SHOW);
    ck_assert_int_eq(progress_line_kind("saved checkpoint"), LINE_SHOW);
    progress_epoch_line("epoch 2/5 done loss 0.1 val_loss 0.2", 80, &out);
    ck_assert_str_eq(out.data, "Epoch 2/5 [====================] 100%  loss 0.1 val_loss 0.2");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("console");
    TCase *t = tcase_create("console");
    tcase_add_loop_test(t, colours_are_for_terminals, 0, COUNT_OF(TERMINALS));
    tcase_add_loop_test(t, a_line_says_whose_it_is, 0, COUNT_OF(LINES));
    tcase_add_test(t, the_chiefs_routine_lines_become_bars);
    suite_add_tcase(s, t);
    return s;
}
