/* pack - JSON text kept small: deflate with a dictionary of the words that jobs are made of.
 *
 * A spec of 1 kB becomes some 300 bytes. Costs about 20 us a kB; the memory that takes (70 kB) is given back at once.
 * No state is kept between calls. The only file that includes zlib.h in the operator.
 */
#ifndef TRAINYARD_API_PACK_H
#define TRAINYARD_API_PACK_H

#include "base/mem.h"

/* xmalloc'ed, as long as needed. Text that does not shrink is kept as it is: then *ret_len is n. */
void *pack_text(const char *text, size_t n, size_t *ret_len);
/* The n bytes that were packed, and a closing 0. xmalloc'ed; NULL when `packed` is no such thing. */
char *unpack_text(const void *packed, size_t len, size_t n);

#endif
