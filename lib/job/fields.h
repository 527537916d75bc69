/* fields - the manifest as tables: one row per field. The same rows parse the manifest (types, ranges, defaults,
 * unknown and missing keys, choices of later releases) and write its reference (job/manifest_reference.h), so the two
 * cannot differ.
 *
 * A table describes one map of the manifest. Its rows fill one structure, the `base` of fields_read(); a row that is
 * itself a table fills the part of it that begins at `offset`.
 */
#ifndef TRAINYARD_JOB_FIELDS_H
#define TRAINYARD_JOB_FIELDS_H

#include "job/job.h"
#include "job/rerun.h"

enum field_kind {
    FIELD_INT,    /* int64_t, uint64_t or int */
    FIELD_NUMBER, /* double */
    FIELD_BOOL,   /* bool */
    FIELD_STRING, /* const char *, borrowed from the document */
    FIELD_CHOICE, /* an enum whose values are the places in names[] */
    FIELD_MAP,    /* any map: struct node, or only checked */
    FIELD_LIST,   /* any list: struct node, or only checked */
    FIELD_ANY,    /* any value: struct node, or ignored */
    FIELD_TABLE,  /* a map with its own table */
    FIELD_OWN     /* the table's check() reads it; here only for the list of keys and the reference */
};

struct field_table;
struct field {
    const char *key;
    enum field_kind kind;
    bool required;  /* when its map is given */
    bool above_min; /* FIELD_NUMBER: min itself is out of range */
    bool below_max; /* FIELD_NUMBER: so is max */
    bool alias;     /* FIELD_TABLE: fills the same part as another row; when absent, it leaves that part unchanged */
    size_t offset, size;  /* of the member that it fills; size 0: none */
    int64_t min, max;     /* FIELD_INT, FIELD_NUMBER; max INT64_MAX: no limit. FIELD_LIST: max items, 0: no limit */
    const char *fallback; /* value when absent, as in a manifest; NULL: zero, NULL, false */
    const char *fallback_text; /* for the reference, when the default is not a constant */
    const char *type_text;     /* for the reference, instead of the kind's name */
    const char *const *names;  /* FIELD_CHOICE */
    size_t nnames, nworking;   /* names from nworking on come with a later release */
    const struct field_table *table;
    const char *help; /* one line */
    enum rerun rerun; /* when an earlier run in the output folder has another value; each field of spec needs one,
                       * its own or that of a row above */
};

struct field_table {
    const char *title; /* "spec.fit" */
    const char *about; /* for the reference: Markdown */
    const struct field *rows;
    size_t nrows;
    /* Called after the rows when the map is given: checks that need more than one field, or more than a row can
     * express. */
    int (*check)(void *base, const struct node *n, struct err *e);
};

/* Fills base from the map n; n->v NULL: all defaults, nothing is required. */
MUST_USE int fields_read(const struct field_table *t, const struct node *n, void *base, struct err *e);

extern const struct field_table JOB_FIELDS;  /* base: struct job */
extern const struct field_table DATA_FIELDS; /* base: struct data_spec */

/* data_spec.c: the check of DATA_FIELDS, and the release of what it allocated. */
int data_spec_check(void *base, const struct node *n, struct err *e);
void data_spec_fini(struct data_spec *d);
bool data_spec_has_label(const struct data_spec *d, const char *name); /* name NULL: it has not */

/* job_check.c: rules over several fields, once all are read. */
MUST_USE int job_check(struct job *j, struct err *e);
/* Of a job with faults: what can be looked at is still there, its model and the data sets that have none. */
void job_keep_sound(struct job *j);

/* The node at a path of keys below the top, "spec.fit.seed"; v NULL when absent. */
struct node job_at(const struct job *j, const char *path);
/* strategy_check.c: what a strategy needs, and what it cannot have. The counts of the replicas are known. */
MUST_USE int strategy_check(struct job *j, struct err *e);

/* overrides.c: one "--set path=value" applied to the document. */
MUST_USE int override_apply(json_t *doc, struct source *src, const char *set, struct err *e);

#endif
