#include "check_main.h"

#include <string.h>

#include "base/buf.h"
#include "codec/json.h"
#include "job/data_inherit.h"

static const struct {
    const char *train, *validation, *want;
} CASES[] = {
    { "{'format':'csv','files':'a','label':'y','delimiter':';','sampleWeight':'w','shuffle':false,'columns':[{'name':'"
      "x'}]}",
      "{'format':'csv','files':'b'}",
      "{'format':'csv','files':'b','label':'y','delimiter':';','columns':[{'name':'x'}]}" },
    { "{'format':'csv','label':'y','columns':[{'name':'x'}]}", "{'format':'csv','label':'z','columns':[]}",
      "{'format':'csv','label':'z','columns':[]}" },
    /* the two say the same: one of them is enough */
    { "{'format':'csv','dropColumns':['id'],'columns':[{'name':'x'}]}", "{'format':'csv'}",
      "{'format':'csv','dropColumns':['id'],'columns':[{'name':'x'}]}" },
    { "{'format':'csv','dropColumns':['id']}", "{'format':'csv','columns':[{'name':'x'}]}",
      "{'format':'csv','columns':[{'name':'x'}]}" },
    { "{'format':'csv','columns':[{'name':'x'}]}", "{'format':'csv','dropColumns':['id']}",
      "{'format':'csv','dropColumns':['id']}" },
    /* a file without header has no such names */
    { "{'format':'csv','label':'y','delimiter':';','columns':[{'name':'x'}]}", "{'format':'csv','header':false}",
      "{'format':'csv','header':false,'delimiter':';'}" },
    { "{'format':'csv','header':false,'label':0,'delimiter':';'}", "{'format':'csv','header':true}",
      "{'format':'csv','header':true,'delimiter':';'}" },
    { "{'format':'csv','header':false,'label':0}", "{'format':'csv'}", "{'format':'csv','header':false,'label':0}" },
    /* csv and jsonl */
    { "{'format':'jsonl','label':'y','missing':'drop','naValues':['-'],'inputs':{'a':['x']},'columns':[{'name':'x'}]}",
      "{'format':'csv'}",
      "{'format':'csv','label':'y','missing':'drop','inputs':{'a':['x']},'columns':[{'name':'x'}]}" },
    { "{'format':'tfrecord','label':'y','columns':[{'name':'x'}]}", "{'format':'csv'}", "{'format':'csv'}" },
    { "{'format':'tfrecord','columns':[{'name':'x','shape':[2]}]}", "{'format':'tfrecord','files':'b'}",
      "{'format':'tfrecord','files':'b','columns':[{'name':'x','shape':[2]}]}" },
    { "{'format':'images','directory':'a','imageSize':[8,8],'colorMode':'grayscale','classNames':['p']}",
      "{'format':'images','directory':'b','imageSize':[9,9]}",
      "{'format':'images','directory':'b','imageSize':[9,9],'colorMode':'grayscale'}" },
    { "{'format':'npy','features':'a','labels':'b'}", "{'format':'npy','features':'c'}",
      "{'format':'npy','features':'c'}" },
    /* what is wrong is reported later */
    { "{'format':3,'label':'y'}", "{'format':'csv'}", "{'format':'csv'}" },
    { "[]", "{'format':'csv'}", "{'format':'csv'}" },
    { "{'format':'csv','label':'y'}", "{}", "{}" },
    { "{'format':'csv','label':'y'}", "[1]", "[1]" },
};

static json_t *parsed(const char *text)
{
    auto_free char *quoted = xstrdup(text);
    struct err e = { 0 };
    json_t *v = NULL;
    for (char *p = quoted; *p != '\0'; p++)
        if (*p == '\'')
            *p = '"';
    ck_ok_e(json_parse(quoted, strlen(quoted), "case", &v, &e));
    return v;
}

START_TEST(validation_data_are_described_as_those_of_training)
{
    AUTO_FINI(buf) got = BUF_INIT;
    json_auto_t *train = parsed(CASES[_i].train), *validation = parsed(CASES[_i].validation),
                *want = parsed(CASES[_i].want);
    json_auto_t *before = json_deep_copy(train);
    data_inherit(train, validation);
    json_emit(validation, &got);
    ck_assert_msg(json_equal(validation, want), "%s", got.data);
    ck_assert(json_equal(train, before));
}
END_TEST

START_TEST(without_validation_data_nothing_happens)
{
    json_auto_t *train = parsed("{'format':'csv','label':'y'}");
    data_inherit(train, NULL);
    data_inherit(NULL, train);
    ck_assert_uint_eq(json_object_size(train), 2);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data_inherit");
    TCase *t = tcase_create("data_inherit");
    tcase_add_loop_test(t, validation_data_are_described_as_those_of_training, 0, COUNT_OF(CASES));
    tcase_add_test(t, without_validation_data_nothing_happens);
    suite_add_tcase(s, t);
    return s;
}
