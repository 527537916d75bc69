/* svg_text - text of SVG pictures: escaped, cut to a length, and measured. Pure. */
#ifndef TRAINYARD_CLI_SVG_TEXT_H
#define TRAINYARD_CLI_SVG_TEXT_H

#include "base/buf.h"

/* Appends the text with XML's characters escaped. Each control character, each byte that is not UTF-8 and each
 * character that XML forbids becomes a question mark. */
void svg_text(struct buf *out, const char *s);
/* Appends the text, not escaped. When it has more than `most` characters, an ellipsis replaces its middle. A byte that
 * is not UTF-8 counts as a character, and `most` is at least 3. */
void svg_text_cut(struct buf *out, const char *s, size_t most);
/* About the width in pixels at a font size of 13 pixels: fonts differ, and this is for a wide one. */
int svg_text_width(const char *s);

#endif
