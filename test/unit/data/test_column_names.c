/* The names that a checkpoint keeps: written and read again, and compared with those of other data. */
#include "data_help.h"

#include "check_main.h"

static struct column_names names_of(const char *features, const char *classes)
{
    struct column_names c = { .weight = NULL };
    strlist_split(&c.features, features, ',');
    strlist_split(&c.classes, classes, ',');
    return c;
}

static const struct {
    const char *features, *classes; /* of the run */
    const char *now, *now_classes;
    const char *error; /* NULL: they are the same */
} CASES[] = {
    { "a,b", "", "a,b", "", NULL },
    { "a,b", "", "b,a", "",
      "the run was trained with the columns a, b; data.train has b, a: name the run's columns in data.train.columns, "
      "in "
      "that order" },
    { "a,b", "", "", "", NULL },
    { "", "", "a", "b", NULL },
    { "", "cat,dog", "", "cat,dog", NULL },
    { "", "cat,dog", "", "", NULL },
    { "", "cat,dog", "", "cat,cow,dog",
      "the run was trained with the classes cat, dog; data.train has cat, cow, dog: name the run's classes in "
      "data.train.classNames, in that order" },
    { "", "cat,dog", "", "dog,cat",
      "the run was trained with the classes cat, dog; data.train has dog, cat: name the run's classes in "
      "data.train.classNames, in that order" },
};

START_TEST(other_names_are_refused)
{
    AUTO_FINI(column_names) was = names_of(CASES[_i].features, CASES[_i].classes);
    AUTO_FINI(column_names) now = names_of(CASES[_i].now, CASES[_i].now_classes);
    struct err e = { .msg = "" };
    int rc = column_names_same(&was, &now, &e);
    ck_assert_str_eq(e.msg, CASES[_i].error != NULL ? CASES[_i].error : "");
    ck_assert_int_eq(rc, CASES[_i].error != NULL ? -1 : 0);
}
END_TEST

START_TEST(names_are_read_as_they_were_written)
{
    AUTO_FINI(column_names) was = names_of(CASES[_i].features, CASES[_i].classes);
    AUTO_FINI(column_names) again = { .weight = NULL };
    json_auto_t *v = column_names_json(&was);
    struct node n = node_root(v, NULL);
    struct err e;
    ck_ok_e(column_names_read(&n, &again, &e));
    ck_assert(strlist_same(&was.features, &again.features));
    ck_assert(strlist_same(&was.classes, &again.classes));
    ck_assert(column_names_any(&was) == (CASES[_i].features[0] != '\0' || CASES[_i].classes[0] != '\0'));
}
END_TEST

/* A file without header is known by the places of its columns; others are read in their order, whatever their names. */
START_TEST(places_are_not_names)
{
    AUTO_FINI(folder) dir = folder_new();
    AUTO(dataset) *train = NULL, *other = NULL;
    AUTO_FINI(column_names) again = { .weight = NULL };
    struct err e = { .code = ERR_NONE };
    put_file(&dir, "t.csv", "1,2,3\n4,5,6\n", 12);
    put_file(&dir, "u.csv", "c,b,a\n7,8,9\n", 12);
    ck_ok_e(open_yaml("format: csv\nfiles: t.csv\nheader: false\nlabel: 1\n", dir.path, dir.path, &train, &e));
    const struct column_names *names = dataset_columns(train);
    ck_assert(names->by_place);
    ck_assert_uint_eq(names->features.n, 2);
    ck_assert_str_eq(names->features.items[1], "2");

    json_auto_t *v = column_names_json(names);
    struct node n = node_root(v, NULL);
    ck_ok_e(column_names_read(&n, &again, &e));
    ck_assert(again.by_place);
    ck_ok_e(open_like("format: csv\nfiles: u.csv\nlabel: b\n", dir.path, dir.path, &again, &other, &e));
    ck_assert(!dataset_columns(other)->by_place);
    ck_ok_e(column_names_same(&again, dataset_columns(other), &e));
    ck_ok_e(column_names_same(dataset_columns(other), &again, &e));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/column_names");
    TCase *t = tcase_create("column_names");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, other_names_are_refused, 0, COUNT_OF(CASES));
    tcase_add_loop_test(t, names_are_read_as_they_were_written, 0, COUNT_OF(CASES));
    tcase_add_test(t, places_are_not_names);
    return s;
}
