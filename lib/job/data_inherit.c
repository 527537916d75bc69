/* The table of the fields of a data set that its validation data share. */
#include "job/data_inherit.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

static const struct {
    const char *key;
    const char *unless; /* with this one the data set says itself what `key` says */
    bool of_fields;     /* csv and jsonl share it */
    bool named;         /* it names columns */
} FIELDS[] = {
    { "columns", "dropColumns", true, true }, { "dropColumns", "columns", true, true },
    { "inputs", NULL, true, true },           { "label", NULL, true, true },
    { "missing", NULL, true, false },         { "encoding", NULL, false, false },
    { "header", NULL, false, false },         { "skipRows", NULL, false, false },
    { "delimiter", NULL, false, false },      { "decimal", NULL, false, false },
    { "thousands", NULL, false, false },      { "naValues", NULL, false, false },
    { "imageSize", NULL, false, false },      { "colorMode", NULL, false, false },
    { "interpolation", NULL, false, false },  { "cropToAspectRatio", NULL, false, false },
};

static const char *format_of(const json_t *data)
{
    return json_string_value(json_object_get(data, "format"));
}

static bool has_fields(const char *format)
{
    return str_eq(format, "csv") || str_eq(format, "jsonl");
}

/* Only one of them has names of columns: a csv without header has numbers instead. */
static bool names_differ(const json_t *from, const json_t *to)
{
    const json_t *header = json_object_get(to, "header");
    return header != NULL && json_is_false(header) != json_is_false(json_object_get(from, "header"));
}

void data_inherit(const json_t *from, json_t *to)
{
    const char *theirs = format_of(from), *ours = format_of(to);
    if (theirs == NULL || ours == NULL)
        return;
    bool same = str_eq(theirs, ours), unnamed = names_differ(from, to), given[COUNT_OF(FIELDS)];
    for (size_t i = 0; i < COUNT_OF(FIELDS); i++)
        given[i] = json_object_get(to, FIELDS[i].key) != NULL ||
                   (FIELDS[i].unless != NULL && json_object_get(to, FIELDS[i].unless) != NULL);
    for (size_t i = 0; i < COUNT_OF(FIELDS); i++) {
        const json_t *value = json_object_get(from, FIELDS[i].key);
        bool shared = same || (FIELDS[i].of_fields && has_fields(theirs) && has_fields(ours));
        if (value != NULL && !given[i] && shared && !(unnamed && FIELDS[i].named))
            json_object_set_new(to, FIELDS[i].key, json_deep_copy(value));
    }
}
