/* Layers that change images: RandomFlip, RandomTranslation, RandomRotation, RandomZoom, RandomContrast,
 * RandomBrightness and RandomCrop while the model trains, CenterCrop and Resizing always. */
#include <float.h>
#include <math.h>

#include "nn/layers/layer_rows.h"

enum { VALUE_MOST = 255 }; /* of a pixel, where value_range is not given */

const char *const FLIP_MODES[] = { "horizontal_and_vertical", "horizontal", "vertical", NULL };
const char *const FILL_MODES[] = { "reflect", "wrap", "constant", "nearest", NULL };
const char *const INTERPOLATIONS[] = { "bilinear", "nearest", NULL };

/* Two numbers from `from` to `to`, or one, which the caller completes: *ret_n says how many. */
static int read_numbers(const struct node *n, double from, double to, double ret[2], size_t *ret_n, struct err *e)
{
    *ret_n = json_is_array(n->v) ? node_size(n) : 1;
    if (json_is_array(n->v) && *ret_n != 2)
        return node_error(n, e, "must be one number, or the least and the greatest one");
    for (size_t i = 0; i < *ret_n; i++) {
        struct node entry = json_is_array(n->v) ? node_item(n, i) : *n;
        if (node_f64(&entry, &ret[i], e) < 0)
            return -1;
        if (!(ret[i] >= from && ret[i] <= to))
            return node_error(&entry, e, "must be between %g and %g, not %.9g", from, to, ret[i]);
    }
    return 0;
}

/* A factor: one number n, which stands for -n to n, or the least and the greatest one. All are between -1 and 1. */
static int read_factor(const struct node *config, const char *name, struct augment_range *ret, struct err *e)
{
    struct node factor = node_get(config, name);
    double v[2] = { 0 };
    size_t n;
    if (read_numbers(&factor, -1, 1, v, &n, e) < 0)
        return -1;
    if (n == 1)
        v[1] = -v[0];
    *ret = (struct augment_range){ .least = fmin(v[0], v[1]), .most = fmax(v[0], v[1]) };
    return 0;
}

static json_t *factor_json(const struct augment_range *r)
{
    return r->least == -r->most ? json_real(r->most) : json_pack("[f, f]", r->least, r->most);
}

/* ---- RandomTranslation and RandomZoom: without width_factor a zoom keeps the aspect ratio ---- */

int random_shift_read(struct layer *l, const struct node *config, struct err *e)
{
    struct augment *own = l->own = xcalloc(1, sizeof(*own));
    struct node width = node_get(config, "width_factor");
    if (channels_last_read(l, config, e) < 0 || read_factor(config, "height_factor", &own->height, e) < 0)
        return -1;
    own->same = !node_present(&width); /* RandomTranslation needs one */
    return own->same ? 0 : read_factor(config, "width_factor", &own->width, e);
}

void random_shift_config(const struct layer *l, json_t *config)
{
    const struct augment *own = l->own;
    channels_last_config(l, config);
    json_object_set_new(config, "height_factor", factor_json(&own->height));
    json_object_set_new(config, "width_factor", own->same ? json_null() : factor_json(&own->width));
}

/* ---- RandomRotation: parts of a turn ---- */

int random_rotation_read(struct layer *l, const struct node *config, struct err *e)
{
    struct augment *own = l->own = xcalloc(1, sizeof(*own));
    return channels_last_read(l, config, e) < 0 ? -1 : read_factor(config, "factor", &own->factor, e);
}

void random_rotation_config(const struct layer *l, json_t *config)
{
    const struct augment *own = l->own;
    channels_last_config(l, config);
    json_object_set_new(config, "factor", factor_json(&own->factor));
}

/* ---- RandomContrast and RandomBrightness ---- */

static int read_value_range(const struct node *config, struct augment_range *ret, struct err *e)
{
    struct node range = node_get(config, "value_range");
    double v[2] = { 0, VALUE_MOST };
    size_t n = 2;
    if (node_present(&range) && read_numbers(&range, -(double)FLT_MAX, (double)FLT_MAX, v, &n, e) < 0)
        return -1;
    if (n != 2)
        return node_error(&range, e, "must be a list of the least and the greatest value");
    *ret = (struct augment_range){ .least = fmin(v[0], v[1]), .most = fmax(v[0], v[1]) };
    return 0;
}

static void value_range_config(const struct layer *l, json_t *config)
{
    const struct augment *own = l->own;
    channels_last_config(l, config);
    json_object_set_new(config, "value_range", json_pack("[f, f]", own->value.least, own->value.most));
}

int random_brightness_read(struct layer *l, const struct node *config, struct err *e)
{
    return random_rotation_read(l, config, e) < 0 ? -1
                                                  : read_value_range(config, &((struct augment *)l->own)->value, e);
}

void random_brightness_config(const struct layer *l, json_t *config)
{
    random_rotation_config(l, config);
    value_range_config(l, config);
}

/* A factor is one number n for the range 1 - n to 1 + n, or [lower, upper] for 1 - lower to 1 + upper. */
int random_contrast_read(struct layer *l, const struct node *config, struct err *e)
{
    struct augment *own = l->own = xcalloc(1, sizeof(*own));
    struct node factor = node_get(config, "factor");
    double v[2] = { 0 };
    size_t n;
    if (channels_last_read(l, config, e) < 0 || read_numbers(&factor, 0, 1, v, &n, e) < 0)
        return -1;
    own->factor = (struct augment_range){ .least = -v[0], .most = n == 1 ? v[0] : v[1] };
    return read_value_range(config, &own->value, e);
}

void random_contrast_config(const struct layer *l, json_t *config)
{
    const struct augment *own = l->own;
    value_range_config(l, config);
    json_object_set_new(config, "factor", json_pack("[f, f]", -own->factor.least, own->factor.most));
}

/* ---- RandomCrop, CenterCrop and Resizing ---- */

int crop_shape(struct layer *l, const struct node *at, struct err *e)
{
    l->out = shape_of(3, (int64_t[]){ (int64_t)l->arg[CROP_HEIGHT], (int64_t)l->arg[CROP_WIDTH], layer_channels(l) });
    return window_check_input(l, 2, at, e);
}
