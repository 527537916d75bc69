/* Tells the kind of an image by its first bytes and has it decoded and resized. Checks the limits of sizes before
 * memory is allocated, and names other kinds of images. */
#include "data/image.h"

#include <string.h>

#include "data/image_codec.h"

#define MAGIC(text) .magic = (text), .size = sizeof(text) - 1

/* The kinds that are read, and others that people have. */
static const struct image_kind {
    const char *name;
    image_decoder *read; /* NULL: not read */
    const char *magic;
    size_t size, at;
} IMAGE_KINDS[] = {
    { "a PNG", image_png_read, MAGIC("\x89PNG\r\n\x1a\n") },
    { "a JPEG", image_jpeg_read, MAGIC("\xff\xd8\xff") },
    { "a GIF", NULL, MAGIC("GIF8") },
    { "a BMP", NULL, MAGIC("BM") },
    { "a WebP", NULL, MAGIC("WEBP"), .at = 8 },
    { "a TIFF", NULL, MAGIC("II*\0") },
    { "a TIFF", NULL, MAGIC("MM\0*") },
    { "an AVIF", NULL, MAGIC("ftypavif"), .at = 4 },
    { "a HEIC", NULL, MAGIC("ftyphei"), .at = 4 },
    { "a JPEG XL", NULL, MAGIC("\xff\x0a") },
    { "a JPEG XL", NULL, MAGIC("JXL \r\n\x87\n"), .at = 4 },
    { "a JPEG 2000", NULL, MAGIC("jP  \r\n\x87\n"), .at = 4 },
};

/* NULL: unknown */
static const struct image_kind *image_kind_of(const void *data, size_t n)
{
    for (size_t i = 0; i < COUNT_OF(IMAGE_KINDS); i++) {
        const struct image_kind *k = &IMAGE_KINDS[i];
        if (n >= k->at + k->size && memcmp((const char *)data + k->at, k->magic, k->size) == 0)
            return k;
    }
    return NULL;
}

int image_pixels_alloc(struct image_pixels *p, int64_t height, int64_t width, int channels, struct err *e)
{
    if (MAX(height, width) > IMAGE_SIDE_MAX)
        return err_set(e, ERR_INPUT, "is %lld pixels wide and %lld high; at most %d are allowed for each",
                       (long long)width, (long long)height, IMAGE_SIDE_MAX);
    if (height * width > IMAGE_PIXELS_MAX)
        return err_set(e, ERR_INPUT,
                       "has %lld x %lld pixels, which is more than the %d that are allowed: make it smaller",
                       (long long)width, (long long)height, IMAGE_PIXELS_MAX);
    void *data;
    if (mem_alloc_plain((size_t)(height * width * channels), "an image", &data, e) < 0)
        return -1;
    *p = (struct image_pixels){ .data = data, .height = height, .width = width, .channels = channels };
    return 0;
}

int image_read(const void *data, size_t n, const struct image_form *form, float *to, struct err *e)
{
    const struct image_kind *k = image_kind_of(data, n);
    if (n == 0)
        return err_set(e, ERR_INPUT, "is empty");
    if (k == NULL)
        return err_set(e, ERR_INPUT, "is neither a PNG nor a JPEG image");
    if (k->read == NULL)
        return err_set(e, ERR_INPUT, "is %s image; only PNG and JPEG are read: convert it", k->name);
    AUTO_FINI(image_pixels) pixels = IMAGE_PIXELS_INIT;
    if (k->read(data, n, form, &pixels, e) < 0)
        return -1;
    return image_resize(&pixels, form, to, e);
}
