/* model_outline - the calls of a model's layers as boxes and arrows, with nested models as groups of boxes: what a
 * picture of the model shows. Borrows from the model.
 */
#ifndef TRAINYARD_NN_MODEL_OUTLINE_H
#define TRAINYARD_NN_MODEL_OUTLINE_H

#include "nn/model.h"

struct outline_box { /* an input, or one call of a layer */
    char *name;      /* "dense"; of a layer that is called several times "dense [1]": its second call */
    const char *class_name;
    char *in, *out;      /* "(None, 16)", of several tensors "(None, 16), (None, 4)"; in NULL: an input */
    size_t *from, nfrom; /* boxes before this one */
    size_t group;        /* 0: of the model itself; else 1 + index in groups */
};
struct outline_group { /* one call of a nested model */
    char *name;
    const char *class_name;
    size_t parent; /* 0, or 1 + index of an earlier group */
};
struct model_outline {
    struct outline_box *boxes;
    size_t nboxes;
    struct outline_group *groups;
    size_t ngroups;
};

struct model_outline model_outline_of(const struct model *m);
void model_outline_fini(struct model_outline *o);
DEFINE_AUTO_FINI(model_outline, model_outline_fini);

#endif
