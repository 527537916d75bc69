/* named - nodes from JSON text, and the objects that golden cases describe. A case is {"name", "config": {"class",
 * arguments...}, ...}. For tests of what is read from a catalog. */
#ifndef TRAINYARD_TEST_NAMED_H
#define TRAINYARD_TEST_NAMED_H

#include <string.h>

#include "codec/node.h"
#include "nn/golden.h"

static inline json_t *named_json(const char *text)
{
    struct err e = { 0 };
    json_t *v = NULL;
    ck_ok_e(json_parse(text, strlen(text), "test.json", &v, &e));
    return v;
}

static inline const char *named_case(const json_t *c)
{
    return json_string_value(json_object_get(c, "name"));
}

static inline int32_t *named_ints(const json_t *tensor) /* free() */
{
    int32_t *v = xcalloc(golden_count(tensor) + 1, sizeof(*v));
    for (size_t i = 0; i < golden_count(tensor); i++)
        v[i] = (int32_t)golden_at(tensor, i);
    return v;
}

/* {"class_name": class, "config": arguments}, as Keras serializes objects; new reference. */
static inline json_t *named_object(const json_t *config)
{
    json_t *args = json_deep_copy(config), *class_name = json_incref(json_object_get(config, "class"));
    json_object_del(args, "class");
    json_object_del(args, "full");
    json_object_del(args, "note");
    return json_pack("{s:o, s:o}", "class_name", class_name, "config", args);
}

/* A node without a document: its messages name "test" and the path. The source stays allocated until the program
 * ends. */
static inline struct node named_node(const json_t *v)
{
    static struct source *source;
    if (source == NULL)
        source = source_new("test");
    return node_root(v, source);
}

#define ck_message_has(e, text) ck_assert_msg(strstr((e).msg, (text)) != NULL, "'%s' lacks '%s'", (e).msg, (text))
#define ck_near(got, want, allowed)                                                                                    \
    ck_assert_msg(fabs((double)(got) - (double)(want)) <= (allowed), "%s is %.9g, not %.9g", #got, (double)(got),      \
                  (double)(want))

#endif
