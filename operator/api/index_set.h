/* index_set - sets of replica indexes, and counts by index, as short texts in the status. */
#ifndef TRAINYARD_API_INDEX_SET_H
#define TRAINYARD_API_INDEX_SET_H

#include "base/buf.h"

/* Sorted disjoint ranges of indexes, "0-2,5" as batch/v1 Job writes completedIndexes. */
struct index_set {
    struct {
        int first, last;
    } * ranges;
    size_t n;
};
void index_set_fini(struct index_set *s);
DEFINE_AUTO_FINI(index_set, index_set_fini);
bool index_set_has(const struct index_set *s, int index);
bool index_set_add(struct index_set *s, int index);    /* true: it was not there */
bool index_set_remove(struct index_set *s, int index); /* true: it was there */
int index_set_count(const struct index_set *s);
void index_set_emit(const struct index_set *s, struct buf *out);
MUST_USE int index_set_parse(const char *text, struct index_set *ret, struct err *e);

/* How often each index was re-created, sorted by index: "0:1,5:3". An index without an entry was never re-created. */
struct index_counts {
    struct {
        int index, count;
    } * items;
    size_t n;
};
int index_counts_get(const struct index_counts *c, int index); /* 0: not there */
void index_counts_set(struct index_counts *c, int index, int count);
/* "0:1,5:3". Parsing is lenient: everything after a syntax error is ignored. */
void index_counts_emit(const struct index_counts *c, struct buf *out);
void index_counts_parse(const char *text, struct index_counts *ret);

#endif
