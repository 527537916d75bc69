/* JPEG images by libjpeg-turbo, with TensorFlow's settings: the fast DCT and fancy upsampling, and its conversion of
 * CMYK. Errors of libjpeg leave it by longjmp, and only image_jpeg_guard() returns after one: all that must be released
 * is in struct image_jpeg. Warnings that mean made-up pixels are errors. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "data/image_codec.h"

enum { SCANS_MAX = 100 }; /* of a progressive image, each of which costs a pass over it; encoders write about ten */

struct image_jpeg {
    struct jpeg_decompress_struct c; /* first: libjpeg gives it back */
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf back;
    int channels; /* wanted */
    const char *cure;
    struct image_pixels *pixels;
    unsigned char *row; /* of CMYK */
    struct err *e;
};

/* ---- what libjpeg calls ---- */

static __attribute__((noreturn)) void image_jpeg_fail(j_common_ptr c)
{
    struct image_jpeg *j = (struct image_jpeg *)c;
    char why[JMSG_LENGTH_MAX];
    c->err->format_message(c, why);
    bool no_memory = c->err->msg_code == JERR_OUT_OF_MEMORY;
    err_put(j->e, no_memory ? ERR_NOMEM : ERR_INPUT, "cannot be decoded as JPEG: %s", why);
    longjmp(j->back, 1);
}

/* Warnings that have no influence on the pixels, which cameras and old programs cause. */
static const int HARMLESS[] = { JWRN_EXTRANEOUS_DATA, JWRN_JFIF_MAJOR, JWRN_ADOBE_XFORM, JWRN_NOT_SEQUENTIAL };

static void image_jpeg_message(j_common_ptr c, int level)
{
    if (level >= 0)
        return;
    for (size_t i = 0; i < COUNT_OF(HARMLESS); i++)
        if (c->err->msg_code == HARMLESS[i])
            return;
    image_jpeg_fail(c);
}

static void image_jpeg_nothing(j_decompress_ptr c UNUSED)
{
}

/* All bytes were there from the start. */
static boolean image_jpeg_end(j_decompress_ptr c)
{
    struct image_jpeg *j = (struct image_jpeg *)c;
    err_put(j->e, ERR_INPUT, "cannot be decoded as JPEG: it ends too early: %s", j->cure);
    longjmp(j->back, 1);
}

static void image_jpeg_skip(j_decompress_ptr c, long n)
{
    if (n > 0 && (size_t)n > c->src->bytes_in_buffer)
        image_jpeg_end(c);
    if (n > 0) {
        c->src->next_input_byte += n;
        c->src->bytes_in_buffer -= (size_t)n;
    }
}

static void image_jpeg_progress(j_common_ptr c)
{
    struct image_jpeg *j = (struct image_jpeg *)c;
    if (j->c.input_scan_number <= SCANS_MAX)
        return;
    err_put(j->e, ERR_INPUT, "is a JPEG image with more than %d scans: save it again", SCANS_MAX);
    longjmp(j->back, 1);
}

/* ---- steps ---- */

static void image_jpeg_connect(struct image_jpeg *j, const void *data, size_t n)
{
    j->c.err = jpeg_std_error(&j->errors);
    j->errors.error_exit = image_jpeg_fail;
    j->errors.emit_message = image_jpeg_message;
    j->source = (struct jpeg_source_mgr){ .next_input_byte = data,
                                          .bytes_in_buffer = n,
                                          .init_source = image_jpeg_nothing,
                                          .fill_input_buffer = image_jpeg_end,
                                          .skip_input_data = image_jpeg_skip,
                                          .resync_to_restart = jpeg_resync_to_restart,
                                          .term_source = image_jpeg_nothing };
    j->progress.progress_monitor = image_jpeg_progress;
}

static bool image_jpeg_is_cmyk(const struct image_jpeg *j)
{
    return j->c.jpeg_color_space == JCS_CMYK || j->c.jpeg_color_space == JCS_YCCK;
}

static int image_jpeg_settings(struct image_jpeg *j)
{
    static const J_COLOR_SPACE SPACES[] = { [1] = JCS_GRAYSCALE, [3] = JCS_RGB, [4] = JCS_EXT_RGBA };
    bool cmyk = image_jpeg_is_cmyk(j);
    if (cmyk && j->channels == 1)
        return err_set(j->e, ERR_INPUT, "is a CMYK image, which is not read as gray: convert it to RGB or gray");
    j->c.out_color_space = cmyk ? JCS_CMYK : SPACES[j->channels];
    j->c.dct_method = JDCT_IFAST;
    j->c.do_fancy_upsampling = TRUE;
    return 0;
}

/* Adobe writes CMYK inverted. */
static void image_jpeg_convert(const struct image_jpeg *j, unsigned char *to)
{
    int invert = j->c.saw_Adobe_marker ? 0 : 255;
    for (int64_t x = 0; x < j->pixels->width; x++, to += j->channels) {
        const unsigned char *cmyk = j->row + 4 * x;
        for (int k = 0; k < 3; k++)
            to[k] = (unsigned char)((cmyk[k] ^ invert) * (cmyk[3] ^ invert) / 255);
        if (j->channels == 4)
            to[3] = 255;
    }
}

static void image_jpeg_rows(struct image_jpeg *j)
{
    size_t stride = (size_t)(j->pixels->width * j->channels);
    bool cmyk = j->c.out_color_space == JCS_CMYK;
    while (j->c.output_scanline < j->c.output_height) {
        unsigned char *to = j->pixels->data + j->c.output_scanline * stride, *row = cmyk ? j->row : to;
        jpeg_read_scanlines(&j->c, &row, 1);
        if (cmyk)
            image_jpeg_convert(j, to);
    }
}

static int image_jpeg_steps(struct image_jpeg *j)
{
    jpeg_create_decompress(&j->c);
    j->c.src = &j->source;
    j->c.progress = &j->progress;
    jpeg_read_header(&j->c, TRUE);
    if (image_jpeg_settings(j) < 0 ||
        image_pixels_alloc(j->pixels, j->c.image_height, j->c.image_width, j->channels, j->e) < 0)
        return -1;
    void *row = NULL;
    if (image_jpeg_is_cmyk(j) && mem_alloc((size_t)j->c.image_width * 4, "a row of an image", &row, j->e) < 0)
        return -1;
    j->row = row;
    jpeg_start_decompress(&j->c);
    image_jpeg_rows(j);
    jpeg_finish_decompress(&j->c);
    return 0;
}

/* Nothing of its own lives across the longjmp. */
static int image_jpeg_guard(struct image_jpeg *j)
{
    if (setjmp(j->back) != 0)
        return -1;
    return image_jpeg_steps(j);
}

int image_jpeg_read(const void *data, size_t n, const struct image_form *form, struct image_pixels *pixels,
                    struct err *e)
{
    struct image_jpeg j = { .channels = form->channels, .cure = form->cure, .pixels = pixels, .e = e };
    image_jpeg_connect(&j, data, n);
    int rc = image_jpeg_guard(&j);
    jpeg_destroy_decompress(&j.c);
    free(j.row);
    return rc;
}
