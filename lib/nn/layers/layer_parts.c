/* Initializers and regularizers of the variables of a layer. */
#include "nn/layers/layer_parts.h"

#include "base/str.h"

enum { KEY_MAX = 64 };

static const char *part_key(const struct part *p, const char *what, char key[KEY_MAX])
{
    str_fmt(key, KEY_MAX, "%s_%s", p->argument != NULL ? p->argument : p->variable, what);
    return key;
}

int parts_read(const struct node *config, const struct part *rows, int n, struct parts *ret, struct err *e)
{
    char key[KEY_MAX];
    ret->rows = rows;
    ret->n = n;
    for (int i = 0; i < n; i++) {
        struct node init = node_get(config, part_key(&rows[i], "initializer", key));
        if (initializer_parse(&init, rows[i].fallback, &ret->init[i], e) < 0)
            return -1;
        struct node regularizer = node_get(config, part_key(&rows[i], "regularizer", key));
        if (!rows[i].state && regularizer_parse(&regularizer, &ret->regularizer[i], e) < 0)
            return -1;
    }
    return 0;
}

void parts_add(struct layer *l, const struct parts *p, int i, struct shape shape)
{
    layer_add_variable(l, p->rows[i].variable, shape, &p->init[i], &p->regularizer[i]);
}

void parts_config(const struct parts *p, json_t *config)
{
    char key[KEY_MAX];
    for (int i = 0; i < p->n; i++) {
        json_object_set_new(config, part_key(&p->rows[i], "initializer", key), initializer_json(&p->init[i]));
        if (!p->rows[i].state)
            json_object_set_new(config, part_key(&p->rows[i], "regularizer", key),
                                regularizer_json(&p->regularizer[i]));
    }
}
