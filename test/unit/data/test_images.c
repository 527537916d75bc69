/* Directories of images: which files are found, their order and identity, and what the user is told. What is read from
 * them, and most messages, are cases of test_cases.c; the pixels are those of test_image.c. */
#include "put_png.h"

#define PLAIN "{format: images, directory: pets"
#define SPEC  PLAIN ", imageSize: [1, 1], colorMode: grayscale"

enum { PETS = 40 };

static int open_mixed(const char *yaml, const struct folder *f, struct dataset **ret, struct err *e)
{
    AUTO_FINI(parsed_spec) p = { .doc = NULL };
    if (parse_spec(yaml, &p, e) < 0)
        return -1;
    p.spec.images.mixed = true;
    return dataset_open(&p.spec, f->path, NULL, NULL, ret, e);
}

static struct dataset *open_pets(const struct folder *f, const char *yaml)
{
    struct dataset *d = NULL;
    struct err e;
    ck_ok_e(open_yaml(yaml, f->path, NULL, &d, &e));
    return d;
}

/* Half of them cats, half dogs; each has its number as its pixel. */
static void put_pets(const struct folder *f)
{
    for (int i = 0; i < PETS; i++) {
        auto_free char *name = xasprintf("pets/%s/%02d.png", i < PETS / 2 ? "cat" : "dog", i);
        put_png(f, name, 1, 1, (uint8_t)i);
    }
}

/* The pixels of all examples, in their order. */
static void pixels_of(const struct dataset *d, int *ret)
{
    AUTO(loader) *l = NULL;
    struct err e;
    struct batch b;
    struct ordinal_space space = space_of(d, dataset_size(d), false);
    ck_ok_e(loader_new(d, &space, NULL, &l, &e));
    ck_ok_e(loader_get(l, 0, &b, &e));
    ck_assert_int_eq(b.x[0].dtype, DT_FLOAT);
    for (size_t i = 0; i < b.n; i++)
        ret[i] = (int)((float *)b.x[0].data)[i];
}

START_TEST(a_split_has_images_of_all_classes)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO(dataset) *d = NULL, *again = NULL, *rest = NULL, *by_name = NULL;
    struct err e;
    int all[PETS], same[PETS], part[PETS], named[PETS], dogs = 0;
    bool seen[PETS] = { false };
    put_pets(&f);
    by_name = open_pets(&f, SPEC "}");
    ck_ok_e(open_mixed(SPEC "}", &f, &d, &e));
    ck_ok_e(open_mixed(SPEC "}", &f, &again, &e));
    ck_assert(dataset_fingerprint(d) != dataset_fingerprint(by_name));
    ck_assert(dataset_fingerprint(d) == dataset_fingerprint(again));
    pixels_of(by_name, named);
    pixels_of(d, all);
    pixels_of(again, same);
    for (int i = 0; i < PETS; i++) {
        ck_assert_int_eq(named[i], i);
        ck_assert_int_eq(same[i], all[i]);
        seen[all[i]] = true;
    }
    for (int i = 0; i < PETS; i++)
        ck_assert(seen[i]);
    ck_ok_e(dataset_split(d, 0.25, &rest, &e));
    ck_assert_int_eq(dataset_size(rest), PETS / 4);
    pixels_of(rest, part);
    for (int i = 0; i < PETS / 4; i++)
        dogs += part[i] >= PETS / 2;
    ck_assert_int_gt(dogs, 1);
    ck_assert_int_lt(dogs, PETS / 4 - 1);
}
END_TEST

static const struct {
    const char *yaml;
    bool other; /* than the identity of SPEC */
} OPTIONS[] = {
    { SPEC "}", false },
    { SPEC ", shuffle: true}", false },
    { SPEC ", classNames: [cat, dog]}", false },
    { SPEC ", classNames: [dog, cat]}", true },
    { SPEC ", interpolation: nearest}", true },
    { SPEC ", cropToAspectRatio: true}", true },
    { SPEC ", label: \"\"}", true },
    { PLAIN ", imageSize: [1, 1]}", true },
    { PLAIN ", imageSize: [1, 2], colorMode: grayscale}", true },
    { PLAIN ", imageSize: [2, 1], colorMode: grayscale}", true },
};

START_TEST(the_identity_has_what_changes_examples)
{
    AUTO_FINI(folder) f = folder_new();
    put_pets(&f);
    AUTO(dataset) *d = open_pets(&f, SPEC "}"), *other = open_pets(&f, OPTIONS[_i].yaml);
    ck_assert_int_eq(dataset_fingerprint(d) != dataset_fingerprint(other), OPTIONS[_i].other);
}
END_TEST

START_TEST(the_identity_has_names_and_contents)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO_FINI(folder) g = folder_new();
    struct err e;
    put_pets(&f);
    put_pets(&g);
    AUTO(dataset) *here = open_pets(&f, SPEC "}"), *there = open_pets(&g, SPEC "}");
    ck_assert(dataset_fingerprint(here) == dataset_fingerprint(there));
    put_png(&g, "pets/cat/00.png", 1, 1, 99);
    AUTO(dataset) *changed = open_pets(&g, SPEC "}");
    ck_assert(dataset_fingerprint(here) != dataset_fingerprint(changed));
    put_png(&g, "pets/cat/00.png", 1, 1, 0);
    auto_free char *from = path_join(g.path, "pets/cat/00.png");
    auto_free char *to = path_join(g.path, "pets/cat/000.png");
    ck_ok_e(file_rename(from, to, &e));
    AUTO(dataset) *renamed = open_pets(&g, SPEC "}");
    ck_assert(dataset_fingerprint(here) != dataset_fingerprint(renamed));
}
END_TEST

START_TEST(an_example_is_as_in_keras_where_nothing_is_said)
{
    AUTO_FINI(folder) f = folder_new();
    put_pets(&f);
    AUTO(dataset) *d = open_pets(&f, PLAIN "}");
    ck_assert(shape_eq(dataset_example(d), &(struct shape){ 3, { 256, 256, 3 } }));
    ck_assert(dataset_records(d)->random_access);
    ck_assert_int_eq(dataset_records(d)->cost, READ_DECODES);
    ck_assert_ptr_nonnull(dataset_team(d));
}
END_TEST

static void put_link(const struct folder *f, const char *target, const char *name)
{
    auto_free char *path = path_join(f->path, name);
    ck_assert_int_eq(symlink(target, path), 0);
}

/* A link below a class may lead back to it. */
START_TEST(a_class_and_a_file_may_be_links)
{
    AUTO_FINI(folder) f = folder_new();
    static const int PIXELS[] = { 1, 2, 3, 3 };
    int pixels[COUNT_OF(PIXELS)];
    put_png(&f, "kept/cats/1.png", 1, 1, 1);
    put_png(&f, "kept/cats/more/2.png", 1, 1, 2);
    put_png(&f, "pets/dog/3.png", 1, 1, 3);
    put_link(&f, "../kept/cats", "pets/cat");
    put_link(&f, "..", "kept/cats/more/loop");
    put_link(&f, "3.png", "pets/dog/4.png");
    put_link(&f, "nowhere", "pets/lost");
    AUTO(dataset) *d = open_pets(&f, SPEC "}"), *unlabeled = open_pets(&f, SPEC ", label: \"\"}");
    ck_assert_int_eq(dataset_size(d), 4);
    ck_assert_int_eq((int)dataset_columns(d)->classes.n, 2);
    pixels_of(d, pixels);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pixels[i], PIXELS[i]);
    ck_assert_int_eq(dataset_size(unlabeled), 4);
}
END_TEST

static void want_error(const struct folder *f, const char *yaml, const char *part)
{
    AUTO(dataset) *d = NULL;
    struct err e = { .code = ERR_NONE };
    ck_assert_int_eq(open_yaml(yaml, f->path, NULL, &d, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_msg(strstr(e.msg, part) != NULL, "%s", e.msg);
}

START_TEST(too_many_directories_below_each_other)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO_FINI(buf) name = BUF_INIT;
    buf_str(&name, "pets/cat");
    for (int i = 0; i < 31; i++)
        buf_str(&name, "/d");
    auto_free char *deepest = xasprintf("%s/1.png", name.data);
    put_png(&f, deepest, 1, 1, 1);
    AUTO(dataset) *d = open_pets(&f, SPEC "}");
    ck_assert_int_eq(dataset_size(d), 1);
    auto_free char *deeper = xasprintf("%s/d/1.png", name.data);
    put_png(&f, deeper, 1, 1, 1);
    want_error(&f, SPEC "}", "d/: is more than 32 directories deep");
}
END_TEST

START_TEST(the_name_of_a_class_is_text)
{
    AUTO_FINI(folder) f = folder_new();
    put_png(&f, "pets/caf\xe9/1.png", 1, 1, 1);
    want_error(&f, SPEC "}", "the name of a class must be UTF-8; rename the directory");
}
END_TEST

START_TEST(a_damaged_image_is_named_when_it_is_read)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO(loader) *l = NULL;
    struct err e = { .code = ERR_NONE };
    struct batch b;
    put_pets(&f);
    put_file(&f, "pets/dog/30.png", "\x89PNG\r\n\x1a\n", 8);
    put_file(&f, "pets/dog/35.png", "", 0);
    AUTO(dataset) *d = open_pets(&f, SPEC "}");
    struct ordinal_space space = space_of(d, 5, false);
    ck_ok_e(loader_new(d, &space, NULL, &l, &e));
    for (int64_t i = 0; i < PETS / 5; i++) {
        int rc = loader_get(l, i, &b, &e);
        ck_assert_int_eq(rc, i == 6 || i == 7 ? -1 : 0);
        if (rc < 0)
            ck_assert_msg(strstr(e.msg, i == 6 ? "/pets/dog/30.png: " : "/pets/dog/35.png: ") != NULL, "%s", e.msg);
    }
}
END_TEST

START_TEST(a_first_image_is_tried_when_the_data_are_opened)
{
    AUTO_FINI(folder) f = folder_new();
    put_pets(&f);
    put_file(&f, "pets/cat/00.png", "\x89PNG\r\n\x1a\n", 8);
    want_error(&f, SPEC "}", "/pets/cat/00.png: cannot be decoded as PNG");
}
END_TEST

/* Names are as in the manifest, whatever the data folder is called. */
START_TEST(files_of_other_folders)
{
    AUTO_FINI(folder) f = folder_new();
    put_png(&f, "a/pets/1.png", 1, 1, 1);
    put_png(&f, "ab/2.png", 1, 1, 2);
    auto_free char *base = path_join(f.path, "a");
    auto_free char *other = path_join(f.path, "ab/2.png");
    auto_free char *yaml =
        xasprintf("{format: images, files: [pets, '%s', ../ab/2.png], imageSize: [1, 1], colorMode: grayscale}", other);
    for (int slashes = 0; slashes < 3; slashes++) {
        AUTO_FINI(strlist) names = { .n = 0 };
        AUTO(dataset) *d = NULL;
        struct err e;
        int pixels[3];
        auto_free char *folder = xasprintf("%s%.*s", base, slashes, "//");
        ck_ok_e(open_yaml(yaml, folder, NULL, &d, &e));
        pixels_of(d, pixels);
        ck_assert_int_eq(pixels[0], 1);
        ck_assert_int_eq(pixels[1], 2);
        ck_assert_int_eq(pixels[2], 2);
        ck_ok_e(dataset_texts(d, "path", 0, 3, &names, &e));
        ck_assert_str_eq(names.items[0], "pets/1.png");
        ck_assert_str_eq(names.items[1], other);
        ck_assert_str_eq(names.items[2], "../ab/2.png");
    }
}
END_TEST

START_TEST(names_of_examples_and_places_of_numbers)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO_FINI(strlist) names = { .n = 0 };
    AUTO_FINI(buf) place = BUF_INIT;
    AUTO_FINI(buf) label = BUF_INIT;
    struct err e = { .code = ERR_NONE };
    put_png(&f, "pets/cat/a.png", 1, 1, 1);
    put_png(&f, "pets/dog/b.png", 1, 1, 1);
    AUTO(dataset) *d = open_pets(&f, "{format: images, directory: pets, imageSize: [2, 4]}");
    const struct records *r = dataset_records(d);
    ck_ok_e(dataset_texts(d, "path", 0, 2, &names, &e));
    ck_assert_str_eq(names.items[0], "cat/a.png");
    ck_assert_str_eq(names.items[1], "dog/b.png");
    ck_ok_e(dataset_texts(d, "path", 1, 1, &names, &e));
    ck_assert_str_eq(names.items[2], "dog/b.png");
    ck_assert_int_eq(dataset_texts(d, "name", 0, 0, NULL, &e), -1);
    ck_assert_str_eq(e.msg, "images have no column 'name', only 'path'");
    r->ops->place(r, 1, RECORD_FEATURES, 1 * 4 * 3 + 2 * 3 + 1, &place);
    ck_assert_msg(str_ends(place.data, "/pets/dog/b.png, element (1, 2, 1)"), "%s", place.data);
    r->ops->place(r, 1, RECORD_LABELS, 0, &label);
    ck_assert_msg(str_ends(label.data, "/pets/dog/b.png: class 'dog'"), "%s", label.data);
}
END_TEST

START_TEST(the_user_is_told_what_is_not_read)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO_FINI(strlist) said = { .n = 0 };
    put_png(&f, "pets/cat/a.png", 1, 1, 1);
    put_png(&f, "pets/cat/b.jpeg", 1, 1, 1); /* the first bytes count */
    put_file(&f, "pets/cat/c.GIF", "GIF89a", 6);
    put_file(&f, "pets/cat/d.webp", "RIFF", 4);
    put_file(&f, "pets/cat/png", "", 0);
    AUTO(dataset) *d = open_pets(&f, SPEC "}");
    ck_assert_int_eq(dataset_size(d), 2);
    dataset_warnings(d, &said);
    ck_assert_int_eq((int)said.n, 2);
    ck_assert_msg(str_ends(said.items[0], "the label of all 2 examples is 0, so there is nothing to learn"), "%s",
                  said.items[0]);
    ck_assert_msg(
        str_ends(said.items[1], "/pets: files left out, because they are neither PNG nor JPEG: 2, such as cat/c.GIF"),
        "%s", said.items[1]);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/images");
    TCase *t = tcase_create("images");
    suite_add_tcase(s, t);
    tcase_add_test(t, a_split_has_images_of_all_classes);
    tcase_add_loop_test(t, the_identity_has_what_changes_examples, 0, COUNT_OF(OPTIONS));
    tcase_add_test(t, the_identity_has_names_and_contents);
    tcase_add_test(t, an_example_is_as_in_keras_where_nothing_is_said);
    tcase_add_test(t, a_class_and_a_file_may_be_links);
    tcase_add_test(t, too_many_directories_below_each_other);
    tcase_add_test(t, the_name_of_a_class_is_text);
    tcase_add_test(t, a_damaged_image_is_named_when_it_is_read);
    tcase_add_test(t, a_first_image_is_tried_when_the_data_are_opened);
    tcase_add_test(t, files_of_other_folders);
    tcase_add_test(t, names_of_examples_and_places_of_numbers);
    tcase_add_test(t, the_user_is_told_what_is_not_read);
    return s;
}
