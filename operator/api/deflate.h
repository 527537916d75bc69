/* deflate - compresses JSON text with zlib and a dictionary of the words that jobs consist of.
 *
 * A spec of 1 kB becomes some 300 bytes. Costs about 20 us a kB; the memory that takes (70 kB) is given back at once.
 * No state is kept between calls. The only file that includes zlib.h in the operator.
 */
#ifndef TRAINYARD_API_DEFLATE_H
#define TRAINYARD_API_DEFLATE_H

#include "base/mem.h"

/* xmalloc'ed, as long as needed. Text that does not shrink is kept as it is: then *ret_len is n. */
void *deflate_text(const char *text, size_t n, size_t *ret_len);
/* The n bytes that were deflated, and a closing 0. xmalloc'ed; NULL when `deflated` is not such a text. */
char *inflate_text(const void *deflated, size_t len, size_t n);

#endif
