/* Any bytes as an image, decoded and resized to one of several forms. */
#include <stdlib.h>

#include "base/mem.h"
#include "data/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct image_form FORMS[] = {
    { 5, 7, 3, IMAGE_BILINEAR, true, "" },  { 9, 4, 1, IMAGE_NEAREST, false, "" },
    { 3, 3, 4, IMAGE_BILINEAR, false, "" }, { 2, 9, 3, IMAGE_BILINEAR, false, "" },
    { 1, 1, 1, IMAGE_BILINEAR, false, "" }, { 6, 8, 4, IMAGE_NEAREST, true, "" },
    { 8, 6, 3, IMAGE_NEAREST, false, "" },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct image_form *f = &FORMS[size % COUNT_OF(FORMS)];
    size_t n = (size_t)(f->height * f->width * f->channels);
    auto_free float *to = xmalloc(n * sizeof(float));
    struct err e = { .code = ERR_NONE };
    if (image_read(data, size, f, to, &e) < 0) {
        if (e.code != ERR_INPUT || e.msg[0] == '\0')
            abort();
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        if (!(to[i] >= 0 && to[i] <= 255))
            abort();
    return 0;
}
