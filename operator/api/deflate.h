/* deflate - compresses JSON text with zlib and a dictionary of the words that jobs consist of.
 *
 * A spec of 1 kB becomes some 300 bytes. It costs about 20 us per kB. The 70 kB of memory that it needs are freed at
 * once. No state is kept between calls. In the operator only deflate.c includes zlib.h.
 */
#ifndef TRAINYARD_API_DEFLATE_H
#define TRAINYARD_API_DEFLATE_H

#include "base/mem.h"

/* The result is xmalloc'ed and has the exact length. Text that does not shrink is kept unchanged; then *ret_len is n.
 */
void *deflate_text(const char *text, size_t n, size_t *ret_len);
/* Returns the n original bytes and a terminating 0, xmalloc'ed. NULL when `deflated` is not such a text. */
char *inflate_text(const void *deflated, size_t len, size_t n);

#endif
