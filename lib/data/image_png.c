/* PNG images by libpng, with the transformations that TensorFlow asks it for. Errors of libpng leave it by longjmp,
 * and only image_png_guard() returns after one: all that must be released is in struct image_png. Damaged chunks are
 * errors, also those that libpng would leave out. */
#include <png.h>
#include <string.h>

#include "data/image_codec.h"

enum { CHUNKS_MAX = 100, CHUNK_BYTES_MAX = 1 << 20 }; /* that libpng keeps, and unpacks of one (a color profile) */
#define RED_SHARE   0.299                             /* of gray; those of ITU-R BT.601 */
#define GREEN_SHARE 0.587

/* Chunks without influence on the pixels, which may be compressed: their content is skipped. */
static const char SKIPPED[] = "bKGD\0eXIf\0hIST\0iTXt\0oFFs\0pCAL\0pHYs\0sCAL\0sPLT\0tEXt\0tIME\0zTXt";

struct image_png {
    png_struct *png;
    png_info *info;
    const unsigned char *data;
    size_t left;
    int channels; /* wanted */
    const char *cure;
    struct image_pixels *pixels;
    bool no_memory;
    struct err *e;
};

/* ---- what libpng calls ---- */

static __attribute__((noreturn)) void image_png_fail(png_struct *png, const char *why)
{
    const struct image_png *p = png_get_error_ptr(png);
    err_put(p->e, p->no_memory ? ERR_NOMEM : ERR_INPUT, "cannot be decoded as PNG: %s", why);
    png_longjmp(png, 1);
}

/* Such as a color profile that libpng does not like: the pixels do not depend on it. */
static void image_png_ignore(png_struct *png UNUSED, const char *what UNUSED)
{
}

static void image_png_take(png_struct *png, unsigned char *to, size_t n)
{
    struct image_png *p = png_get_io_ptr(png);
    if (n > p->left) {
        err_put(p->e, ERR_INPUT, "cannot be decoded as PNG: it ends too early: %s", p->cure);
        png_longjmp(png, 1);
    }
    memcpy(to, p->data, n);
    p->data += n;
    p->left -= n;
}

static void *image_png_malloc(png_struct *png, size_t n)
{
    void *got = malloc(n);
    if (got == NULL)
        ((struct image_png *)png_get_mem_ptr(png))->no_memory = true;
    return got;
}

static void image_png_free(png_struct *png UNUSED, void *what)
{
    free(what);
}

/* ---- steps ---- */

static void image_png_limit(struct image_png *p)
{
    png_set_user_limits(p->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* image_pixels_alloc() has the limits */
    png_set_chunk_cache_max(p->png, CHUNKS_MAX);
    png_set_chunk_malloc_max(p->png, CHUNK_BYTES_MAX);
    png_set_keep_unknown_chunks(p->png, PNG_HANDLE_CHUNK_NEVER, (const unsigned char *)SKIPPED, sizeof(SKIPPED) / 5);
    png_set_crc_action(p->png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
}

/* It has neither an alpha channel nor a transparent color, but gets one. libpng cannot add it to gray of few bits. */
static bool image_png_gets_alpha(const struct image_png *p)
{
    bool has = (png_get_color_type(p->png, p->info) & PNG_COLOR_MASK_ALPHA) != 0;
    return p->channels == 4 && !has && png_get_valid(p->png, p->info, PNG_INFO_tRNS) == 0;
}

/* Rows of three channels become rows of four. */
static void image_png_add_alpha(const struct image_pixels *pixels)
{
    for (int64_t y = 0; y < pixels->height; y++) {
        unsigned char *row = pixels->data + y * pixels->width * 4;
        for (int64_t x = pixels->width - 1; x >= 0; x--) {
            row[4 * x + 3] = 255;
            memmove(row + 4 * x, row + 3 * x, 3);
        }
    }
}

/* The upper byte of 16 bits, whole bytes for fewer bits, and the wanted channels. Returns the passes to read. */
static int image_png_transform(const struct image_png *p)
{
    int color = png_get_color_type(p->png, p->info), bits = png_get_bit_depth(p->png, p->info);
    bool is_gray = (color & PNG_COLOR_MASK_COLOR) == 0;
    if (p->channels == 4)
        png_set_tRNS_to_alpha(p->png); /* if there is one */
    else
        png_set_strip_alpha(p->png);
    if (bits > 8)
        png_set_strip_16(p->png);
    int passes = png_set_interlace_handling(p->png);
    if (color == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(p->png);
    if (is_gray && bits < 8)
        png_set_expand_gray_1_2_4_to_8(p->png);
    if (is_gray && p->channels != 1)
        png_set_gray_to_rgb(p->png);
    if (!is_gray && p->channels == 1)
        png_set_rgb_to_gray(p->png, PNG_ERROR_ACTION_NONE, RED_SHARE, GREEN_SHARE);
    return passes;
}

static int image_png_steps(struct image_png *p)
{
    image_png_limit(p);
    png_set_read_fn(p->png, p, image_png_take);
    png_read_info(p->png, p->info);
    int64_t height = png_get_image_height(p->png, p->info), width = png_get_image_width(p->png, p->info);
    if (image_pixels_alloc(p->pixels, height, width, p->channels, p->e) < 0)
        return -1;
    bool gets_alpha = image_png_gets_alpha(p);
    int passes = image_png_transform(p);
    png_read_update_info(p->png, p->info);
    size_t stride = (size_t)(width * p->channels);
    if (png_get_rowbytes(p->png, p->info) != (gets_alpha ? (size_t)width * 3 : stride))
        png_error(p->png, "its rows have another size than their header says");
    for (int pass = 0; pass < passes; pass++)
        for (int64_t y = 0; y < height; y++)
            png_read_row(p->png, p->pixels->data + (size_t)y * stride, NULL);
    png_read_end(p->png, NULL);
    if (gets_alpha)
        image_png_add_alpha(p->pixels);
    return 0;
}

/* Nothing of its own lives across the longjmp. */
static int image_png_guard(struct image_png *p)
{
    if (setjmp(png_jmpbuf(p->png)) != 0)
        return -1;
    return image_png_steps(p);
}

int image_png_read(const void *data, size_t n, const struct image_form *form, struct image_pixels *pixels,
                   struct err *e)
{
    struct image_png p = {
        .data = data, .left = n, .channels = form->channels, .cure = form->cure, .pixels = pixels, .e = e
    };
    p.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &p, image_png_fail, image_png_ignore, &p, image_png_malloc,
                                     image_png_free);
    p.info = p.png != NULL ? png_create_info_struct(p.png) : NULL;
    int rc = p.info != NULL ? image_png_guard(&p) : err_set(e, ERR_NOMEM, "out of memory for a PNG image");
    png_destroy_read_struct(&p.png, &p.info, NULL);
    return rc;
}
