/* thumbnail - the numbers of an example as a small picture: for a terminal, and as a PNG file. Pure. */
#ifndef TRAINYARD_CLI_THUMBNAIL_H
#define TRAINYARD_CLI_THUMBNAIL_H

#include "base/buf.h"
#include "tensor/tensor.h"

struct thumbnail {
    size_t width, height;
    unsigned char *rgb; /* owned */
};
void thumbnail_fini(struct thumbnail *p);

/* An example of this shape can be seen: (height, width), or (height, width, channels) with 1, 3 or 4 channels. */
bool thumbnail_fits(const struct shape *s);
/* low and high become black and white. Both sides are at most max_side: a larger image is made smaller. An alpha
 * channel is ignored. */
struct thumbnail thumbnail_of(const float *x, const struct shape *s, float low, float high, size_t max_side);
/* Side by side, as many as `columns` of a terminal hold: two pixels above each other are one character, in 24-bit ANSI
 * colors. All have the same size. */
void thumbnail_ansi(const struct thumbnail *p, size_t n, size_t columns, struct buf *out);
/* The bytes of a PNG file. */
void thumbnail_png(const struct thumbnail *p, struct buf *out);

#endif
