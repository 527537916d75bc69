/* Reads the maps of a data set: what each input or output of a model is made of. */
#include "job/data_parts.h"

#include <inttypes.h>

#include "base/map.h"
#include "base/str.h"

int data_parts_column(const struct node *n, char text[COLUMN_NUMBER_MAX], const char **ret, struct err *e)
{
    if (!json_is_integer(n->v))
        return node_str(n, ret, e);
    str_fmt(text, COLUMN_NUMBER_MAX, "%" PRId64, (int64_t)json_integer_value(n->v));
    *ret = text;
    return 0;
}

/* seen: the columns of the part so far. */
static int add_from(struct data_part *p, struct map *seen, const struct node *n, struct err *e)
{
    char text[COLUMN_NUMBER_MAX];
    const char *name;
    if (data_parts_column(n, text, &name, e) < 0)
        return -1;
    if (name[0] == '\0')
        return node_error(n, e, "is empty");
    if (map_get(seen, name) != NULL)
        return node_error(n, e, "'%.60s' is named twice", name);
    map_put(seen, name, p);
    strlist_add(&p->from, name);
    return 0;
}

static int read_part(struct data_part *p, const struct node *n, bool lists, struct err *e)
{
    AUTO_FINI(map) seen = { 0 };
    if (!lists || !json_is_array(n->v))
        return add_from(p, &seen, n, e);
    for (size_t i = 0; i < node_size(n); i++) {
        struct node one = node_item(n, i);
        if (add_from(p, &seen, &one, e) < 0)
            return -1;
    }
    return p->from.n > 0 ? 0 : node_error(n, e, "names no column");
}

int data_parts_read(struct data_parts *ret, const struct node *map, bool lists, struct err *e)
{
    const char *key;
    json_t *value;
    if (node_object(map, e) < 0)
        return -1;
    if (node_size(map) == 0)
        return node_error(map, e, "is empty");
    ret->v = xcalloc(node_size(map), sizeof(ret->v[0]));
    json_object_foreach((json_t *)(uintptr_t)map->v, key, value)
    {
        struct node item = node_get(map, key);
        ret->v[ret->n].name = key;
        if (read_part(&ret->v[ret->n++], &item, lists, e) < 0)
            return -1;
    }
    return 0;
}

void data_parts_fini(struct data_parts *p)
{
    for (size_t i = 0; i < p->n; i++)
        strlist_fini(&p->v[i].from);
    free(p->v);
}
