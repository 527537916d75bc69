/* jsonl_scan - steps over a JSON value (RFC 8259) in the bytes of a file, and checks all of it. Inside of lib/data. The
 * value stays where it is, so that each message has its place, and a record needs no memory of its own.
 *
 * A value ends on its line, because in JSON Lines a line is a record. NUL is not allowed in strings.
 */
#ifndef TRAINYARD_DATA_JSONL_SCAN_H
#define TRAINYARD_DATA_JSONL_SCAN_H

#include "base/map.h"
#include "data/files.h"
#include "data/text.h"

enum { JSONL_RECORD_MAX = 64 << 20 }; /* bytes */

struct jsonl_found {              /* the value of a key */
    const unsigned char *p, *end; /* NULL: the record does not have it */
    int depth;                    /* of the objects around it */
};
struct jsonl_scan {
    const struct data_file *file;
    const unsigned char *p, *end; /* what is left of the line */
    const struct map *wanted;     /* key, or keys with dots between them -> its place in `found` + 1 */
    size_t longest;               /* bytes of the longest of them: what is in a longer path is not looked up */
    struct jsonl_found *found;    /* NULL: nothing is kept */
    struct strlist *keys;         /* gets the keys of the outer object; NULL: they are not asked for */
    struct buf path;              /* of the object that is read */
    int depth;
};
/* The record at p, which is not blank. The scan has ended at `end`. A key of the object wins over a path of several
 * keys. ERR_INPUT with the place. */
MUST_USE int jsonl_scan_record(struct jsonl_scan *s, struct err *e);
void jsonl_scan_fini(struct jsonl_scan *s);
DEFINE_AUTO_FINI(jsonl_scan, jsonl_scan_fini);
/* The characters of a string that the scan has checked, without its quotes. */
void jsonl_unescape(const struct text_field *string, struct buf *ret);
/* Spaces and tabs. */
const unsigned char *jsonl_space(const unsigned char *p, const unsigned char *end);

#endif
