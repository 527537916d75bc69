/* The names of the columns that a run was trained with, as JSON and in messages. */
#include "data/column_names.h"

#include <string.h>

enum { LIST_TEXT = 400 };

void column_names_fini(struct column_names *c)
{
    strlist_fini(&c->features);
    strlist_fini(&c->labels);
    strlist_fini(&c->classes);
    free(c->weight);
    *c = (struct column_names){ .weight = NULL };
}

bool column_names_any(const struct column_names *c)
{
    return c->features.n > 0 || c->classes.n > 0;
}

const char *column_names_text(const struct strlist *names, char *out, size_t out_size)
{
    static const char MORE[] = ", ...";
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < names->n; i++) {
        size_t n = strlen(names->items[i]) + (i > 0 ? 2 : 0);
        if (used + n + sizeof(MORE) > out_size) {
            str_fmt(out + used, out_size - used, "%s", MORE);
            break;
        }
        str_fmt(out + used, out_size - used, "%s%s", i > 0 ? ", " : "", names->items[i]);
        used += n;
    }
    return out;
}

static json_t *list_json(const struct strlist *names)
{
    json_t *list = json_array();
    for (size_t i = 0; i < names->n; i++)
        json_array_append_new(list, json_string(names->items[i]));
    return list;
}

json_t *column_names_json(const struct column_names *c)
{
    json_t *v = json_object();
    json_object_set_new(v, "features", list_json(&c->features));
    json_object_set_new(v, "labels", list_json(&c->labels));
    if (c->by_place)
        json_object_set_new(v, "byPlace", json_true());
    if (c->weight != NULL)
        json_object_set_new(v, "weight", json_string(c->weight));
    if (c->classes.n > 0)
        json_object_set_new(v, "classes", list_json(&c->classes));
    return v;
}

static int read_list(const struct node *n, const char *key, struct strlist *ret, struct err *e)
{
    struct node list = node_get(n, key);
    for (size_t i = 0; i < node_size(&list); i++) {
        struct node item = node_item(&list, i);
        const char *name;
        if (node_str(&item, &name, e) < 0)
            return -1;
        strlist_add(ret, name);
    }
    return 0;
}

int column_names_read(const struct node *n, struct column_names *ret, struct err *e)
{
    struct node weight = node_get(n, "weight");
    const char *name = NULL;
    if (!node_present(n))
        return 0;
    if (read_list(n, "features", &ret->features, e) < 0 || read_list(n, "labels", &ret->labels, e) < 0 ||
        read_list(n, "classes", &ret->classes, e) < 0 || (node_present(&weight) && node_str(&weight, &name, e) < 0))
        return -1;
    ret->weight = name != NULL ? xstrdup(name) : NULL;
    ret->by_place = json_is_true(json_object_get(n->v, "byPlace"));
    return 0;
}

/* Lists of which one is empty do not differ. */
static bool names_differ(const struct strlist *was, const struct strlist *now)
{
    return was->n > 0 && now->n > 0 && !strlist_same(was, now);
}

int column_names_same(const struct column_names *was, const struct column_names *now, struct err *e)
{
    char before[LIST_TEXT], after[LIST_TEXT];
    if (!was->by_place && !now->by_place && names_differ(&was->features, &now->features))
        return err_set(e, ERR_INPUT,
                       "the run was trained with the columns %s; data.train has %s: name the run's columns in "
                       "data.train.columns, in that order",
                       column_names_text(&was->features, before, sizeof(before)),
                       column_names_text(&now->features, after, sizeof(after)));
    if (names_differ(&was->classes, &now->classes))
        return err_set(e, ERR_INPUT,
                       "the run was trained with the classes %s; data.train has %s: name the run's classes in "
                       "data.train.classNames, in that order",
                       column_names_text(&was->classes, before, sizeof(before)),
                       column_names_text(&now->classes, after, sizeof(after)));
    return 0;
}
