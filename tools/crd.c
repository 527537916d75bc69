/* Writes CRDs to standard output; `make docs` runs it (docs.sh).
 *
 *     crd spec FRAGMENT           FRAGMENT with the fields of spec merged in from the tables that parse the manifest
 *     crd chart FILE CONDITION    FILE as a template of the Helm chart that is rendered when CONDITION is true
 */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "codec/yaml.h"
#include "job/fields.h"

enum { FILE_MAX_BYTES = 1 << 20 };
#define EXACT_MAX    (INT64_C(1) << 53) /* bounds are doubles in a CRD */
#define KEEP_UNKNOWN "x-kubernetes-preserve-unknown-fields"

static json_t *table_schema(const struct field_table *t, const char *help);

/* ---- one field ---- */

static void put_text(json_t *schema, const char *key, const char *text)
{
    json_object_set_new(schema, key, json_string(text));
}

static void put_kind(json_t *schema, const char *type)
{
    put_text(schema, "type", type);
}

static void put_bounds(json_t *schema, const struct field *f)
{
    bool whole = f->kind == FIELD_INT;

    put_kind(schema, whole ? "integer" : "number");
    if (whole) /* never int32: a number beyond it would be called no integer, instead of too large */
        put_text(schema, "format", "int64");
    json_object_set_new(schema, "minimum", json_integer(f->min));
    if (f->above_min)
        json_object_set_new(schema, "exclusiveMinimum", json_true());
    if (f->max <= EXACT_MAX)
        json_object_set_new(schema, "maximum", json_integer(f->max));
    if (f->below_max)
        json_object_set_new(schema, "exclusiveMaximum", json_true());
}

static void put_names(json_t *schema, const struct field *f)
{
    json_t *names = json_array();

    put_kind(schema, "string");
    for (size_t i = 0; i < f->nnames; i++)
        json_array_append_new(names, json_string(f->names[i]));
    json_object_set_new(schema, "enum", names);
}

static json_t *anything(void)
{
    return json_pack("{s:b}", KEEP_UNKNOWN, 1);
}

static void put_bool(json_t *schema, const struct field *f UNUSED)
{
    put_kind(schema, "boolean");
}

static void put_string(json_t *schema, const struct field *f UNUSED)
{
    put_kind(schema, "string");
    json_object_set_new(schema, "minLength", json_integer(1));
}

static void put_list(json_t *schema, const struct field *f)
{
    put_kind(schema, "array");
    if (f->max > 0)
        json_object_set_new(schema, "maxItems", json_integer(f->max));
    json_object_set_new(schema, "items", anything());
}

static void put_anything(json_t *schema, const struct field *f UNUSED)
{
    json_object_set_new(schema, KEEP_UNKNOWN, json_true());
}

static void put_map(json_t *schema, const struct field *f)
{
    put_kind(schema, "object");
    put_anything(schema, f);
}

typedef void put_fn(json_t *schema, const struct field *f);
static put_fn *const PUT_TYPE[] = {
    [FIELD_INT] = put_bounds,   [FIELD_NUMBER] = put_bounds, [FIELD_BOOL] = put_bool, [FIELD_STRING] = put_string,
    [FIELD_CHOICE] = put_names, [FIELD_MAP] = put_map,       [FIELD_LIST] = put_list, [FIELD_ANY] = put_anything,
    [FIELD_TABLE] = put_map,    [FIELD_OWN] = put_anything,
};

/* The manual's words: what it is, what it is instead of a plain type, its default, what comes later. */
static void describe(json_t *schema, const struct field *f)
{
    AUTO_FINI(buf) text = BUF_INIT;

    buf_str(&text, f->help);
    if (f->type_text != NULL)
        buf_printf(&text, " Type: %s.", f->type_text);
    if (f->fallback_text != NULL)
        buf_printf(&text, " Default: %s.", f->fallback_text);
    else if (f->fallback != NULL)
        buf_printf(&text, " Default: %s.", f->fallback);
    for (size_t i = f->nworking; i < f->nnames; i++)
        buf_printf(&text, "%s%s%s", i == f->nworking ? " Not supported yet: " : ", ", f->names[i],
                   i + 1 == f->nnames ? "." : "");
    put_text(schema, "description", text.data);
}

static json_t *field_schema(const struct field *f)
{
    json_t *schema;

    if (f->kind == FIELD_TABLE)
        return table_schema(f->table, f->help);
    schema = json_object();
    describe(schema, f);
    PUT_TYPE[f->kind](schema, f);
    return schema;
}

/* ---- one table ---- */

/* Every row leads to one and the same table: the map's keys are names of equal things, such as roles, and rules can
 * look at all of them. The data sets are two fields, of which one must be there. */
static bool is_map_of_equals(const struct field_table *t)
{
    for (size_t i = 0; i < t->nrows; i++)
        if (t->rows[i].kind != FIELD_TABLE || t->rows[i].table != t->rows[0].table)
            return false;
    return t->nrows > 1 && t->rows[0].table != &DATA_FIELDS;
}

/* "Volumes, on a cluster." says nothing before "Volumes, on a cluster: ...". */
static bool begins_so(const char *about, const char *help)
{
    size_t n = strlen(help);
    return strncmp(about, help, n > 0 && help[n - 1] == '.' ? n - 1 : n) == 0;
}

static void describe_table(json_t *schema, const struct field_table *t, const char *help)
{
    AUTO_FINI(buf) text = BUF_INIT;

    if (help != NULL && !begins_so(t->about, help))
        buf_printf(&text, "%s ", help);
    buf_str(&text, t->about);
    for (size_t i = 0; is_map_of_equals(t) && i < t->nrows; i++)
        buf_printf(&text, "\n%s: %s", t->rows[i].key, t->rows[i].help);
    put_text(schema, "description", text.data);
}

static void put_rows(json_t *schema, const struct field_table *t)
{
    json_t *properties = json_object(), *required = json_array();

    for (size_t i = 0; i < t->nrows; i++) {
        if (t->rows[i].help == NULL)
            continue;
        json_object_set_new(properties, t->rows[i].key, field_schema(&t->rows[i]));
        if (t->rows[i].required)
            json_array_append_new(required, json_string(t->rows[i].key));
    }
    /* A key that is not known is kept, so that the operator can name it. */
    json_object_set_new(schema, KEEP_UNKNOWN, json_true());
    if (json_array_size(required) > 0)
        json_object_set(schema, "required", required);
    json_decref(required);
    json_object_set_new(schema, "properties", properties);
}

static json_t *table_schema(const struct field_table *t, const char *help)
{
    json_t *schema = json_object();

    describe_table(schema, t, help);
    put_kind(schema, "object");
    if (is_map_of_equals(t))
        json_object_set_new(schema, "additionalProperties", table_schema(t->rows[0].table, NULL));
    else
        put_rows(schema, t);
    return schema;
}

static json_t *spec_schema(void)
{
    for (size_t i = 0; i < JOB_FIELDS.nrows; i++)
        if (strcmp(JOB_FIELDS.rows[i].key, "spec") == 0)
            return field_schema(&JOB_FIELDS.rows[i]);
    return json_object();
}

/* ---- merging ---- */

/* Maps are merged, all else in `over` replaces what `base` has. */
static void merge(json_t *base, const json_t *over)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)over, key, value)
    {
        json_t *have = json_object_get(base, key);
        if (json_is_object(have) && json_is_object(value))
            merge(have, value);
        else
            json_object_set(base, key, value);
    }
}

static int read_yaml(const char *path, json_t **ret, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    AUTO(source) *places = NULL;

    if (file_read(path, FILE_MAX_BYTES, &text, e) < 0)
        return -1;
    return yaml_parse(text.data, text.len, path, ret, &places, e);
}

static int write_spec(const char *path, struct buf *out, struct err *e)
{
    json_auto_t *crd = NULL;

    if (read_yaml(path, &crd, e) < 0)
        return -1;
    json_t *fields = json_at(crd, "spec.versions.0.schema.openAPIV3Schema.properties");
    json_t *by_hand = json_object_get(fields, "spec"), *schema = spec_schema();
    if (by_hand == NULL) {
        json_decref(schema);
        return err_set(e, ERR_INPUT, "%s: has no schema of spec to merge into", path);
    }
    merge(schema, by_hand);
    json_object_set_new(fields, "spec", schema);
    buf_str(out, "# Written by `make docs`: the fields of spec from the tables in lib/job, the rest from "
                 "tools/crd. Change those.\n");
    yaml_emit(crd, out);
    return 0;
}

/* ---- the chart's copy ---- */

/* Helm's braces are text here. */
static void put_escaped(const char *text, struct buf *out)
{
    for (const char *p; (p = strstr(text, "{{")) != NULL; text = p + 2) {
        buf_add(out, text, (size_t)(p - text));
        buf_str(out, "{{ \"{{\" }}");
    }
    buf_str(out, text);
}

/* Helm owns what it installs, but must not take every job along when it is uninstalled. */
static int write_chart(const char *path, const char *condition, struct buf *out, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    static const char METADATA[] = "\nmetadata:\n";

    if (file_read(path, FILE_MAX_BYTES, &text, e) < 0)
        return -1;
    char *at = strstr(text.data, METADATA);
    if (at == NULL)
        return err_set(e, ERR_INPUT, "%s: has no metadata", path);
    *at = '\0';
    buf_printf(out, "{{- /* Written by `make docs` from %s. Change that. */ -}}\n{{- if %s }}\n", path, condition);
    put_escaped(text.data, out);
    buf_str(out, METADATA);
    buf_str(out, "  annotations:\n    helm.sh/resource-policy: keep\n"
                 "  labels:\n    {{- include \"trainyard.labels\" . | nindent 4 }}\n");
    put_escaped(at + strlen(METADATA), out);
    buf_str(out, "{{- end }}\n");
    return 0;
}

int main(int argc, char **argv)
{
    AUTO_FINI(buf) out = BUF_INIT;
    struct err e = { .code = ERR_NONE };
    int result = -1;

    if (argc == 3 && strcmp(argv[1], "spec") == 0)
        result = write_spec(argv[2], &out, &e);
    else if (argc == 4 && strcmp(argv[1], "chart") == 0)
        result = write_chart(argv[2], argv[3], &out, &e);
    else
        result = err_set(&e, ERR_INPUT, "usage: crd spec FRAGMENT | crd chart FILE CONDITION");
    if (result < 0) {
        fprintf(stderr, "crd: %s\n", e.msg);
        return err_exit_code(&e);
    }
    return fwrite(out.data, 1, out.len, stdout) == out.len ? 0 : 1;
}
