/* image_codec - what the parts of data/image share: a decoded image, the decoder of each kind, and resizing. */
#ifndef TRAINYARD_DATA_IMAGE_CODEC_H
#define TRAINYARD_DATA_IMAGE_CODEC_H

#include "base/mem.h"
#include "data/image.h"

/* Rows from top to bottom without padding, channels last. */
struct image_pixels {
    unsigned char *data;
    int64_t height, width;
    int channels;
};
#define IMAGE_PIXELS_INIT                                                                                              \
    (struct image_pixels)                                                                                              \
    {                                                                                                                  \
        .data = NULL                                                                                                   \
    }

static inline void image_pixels_fini(struct image_pixels *p)
{
    free(p->data);
}
DEFINE_AUTO_FINI(image_pixels, image_pixels_fini);

/* Checks the limits of data/image.h, then allocates. `p` may be released in any case. */
MUST_USE int image_pixels_alloc(struct image_pixels *p, int64_t height, int64_t width, int channels, struct err *e);

/* A decoder fills `p`, which is empty, with the channels of `form`, and which the caller releases in any case. */
typedef int image_decoder(const void *data, size_t n, const struct image_form *form, struct image_pixels *p,
                          struct err *e);
MUST_USE int image_png_read(const void *data, size_t n, const struct image_form *form, struct image_pixels *p,
                            struct err *e);
MUST_USE int image_jpeg_read(const void *data, size_t n, const struct image_form *form, struct image_pixels *p,
                             struct err *e);

/* Crops and resizes. */
MUST_USE int image_resize(const struct image_pixels *from, const struct image_form *form, float *to, struct err *e);

#endif
