/* image - the bytes of a PNG or JPEG file as one example of a data set: decoded, with the wanted number of channels,
 * cropped and resized. The pixels are those of tf.io.decode_image(channels=..., expand_animations=False), and the
 * sizes are changed as by Keras's image_dataset_from_directory: tf.image.resize with half-pixel centers and without
 * antialiasing. Orientation tags (EXIF) and color profiles are ignored, as by TensorFlow.
 *
 * There are three differences. JPEG images can get an alpha channel, of 255: TensorFlow refuses them. Where a PNG image
 * of less than 8 bits gets one, it is 255, too: TensorFlow fills in 1, 3 or 15, the largest value before the image
 * became one of 8 bits. And damaged data is an error: TensorFlow makes up pixels for much of it in JPEG images, and
 * leaves out damaged chunks of PNG images that it can do without, such as the transparent colors.
 *
 * All functions are pure and thread-safe. The time and memory of an image are bounded: its sides and its pixels by the
 * limits of job/job.h, before memory is allocated for them, and the scans of a progressive JPEG image.
 */
#ifndef TRAINYARD_DATA_IMAGE_H
#define TRAINYARD_DATA_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "job/job.h"

/* What every example of a data set becomes. */
struct image_form {
    int64_t height, width; /* 1 .. IMAGE_SIDE_MAX */
    int channels;          /* 1 (gray), 3 (RGB) or 4 (RGB and alpha) */
    enum image_interpolation interpolation;
    bool crop; /* Keras's crop_to_aspect_ratio: the largest part of the middle that has the form's aspect ratio */
    const char *cure; /* of bytes that end too early, such as "copy the file again": depends on where they come from */
};

/* Writes height * width * channels floats from 0 to 255 to `to`, rows from top to bottom, channels last. ERR_INPUT says
 * what is wrong with the bytes, without a file's name: the caller adds it. After an error `to` is undefined. */
MUST_USE int image_read(const void *data, size_t n, const struct image_form *form, float *to, struct err *e);

#endif
