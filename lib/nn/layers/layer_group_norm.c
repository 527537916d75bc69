/* LayerNormalization and GroupNormalization. */
#include "base/str.h"
#include "nn/layers/layer_rows.h"

enum { GAMMA, BETA };

static const struct part PARTS[] = {
    [GAMMA] = { "gamma", NULL, "ones", false }, [BETA] = { "beta", NULL, "zeros", false }
};

int group_normalization_read(struct layer *l, const struct node *config, struct err *e)
{
    l->own = xcalloc(1, sizeof(struct parts));
    return parts_read(config, PARTS, COUNT_OF(PARTS), l->own, e);
}

/* groups -1: one for each channel. */
int group_normalization_shape(struct layer *l, const struct node *at, struct err *e)
{
    int64_t channels = layer_channels(l), groups = (int64_t)l->arg[GROUPNORM_GROUPS];
    if (normalized_axis_shape(l, at, e) < 0)
        return -1;
    if (groups != -1 && channels % groups != 0)
        return node_error(at, e,
                          "GroupNormalization '%s' cannot divide %lld channels into %lld groups: set groups to a "
                          "divisor of %lld",
                          l->name, (long long)channels, (long long)groups, (long long)channels);
    return 0;
}

void group_normalization_variables(struct layer *l)
{
    int64_t channels = layer_channels(l);
    if (l->arg[GROUPNORM_SCALE] != 0)
        parts_add(l, l->own, GAMMA, shape_of(1, &channels));
    if (l->arg[GROUPNORM_CENTER] != 0)
        parts_add(l, l->own, BETA, shape_of(1, &channels));
}

void group_normalization_config(const struct layer *l, json_t *config)
{
    json_object_set_new(config, "axis", json_integer(-1));
    parts_config(l->own, config);
}
