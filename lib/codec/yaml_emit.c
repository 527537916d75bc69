/* Prints a JSON value as YAML. A string gets quotes whenever a YAML reader would read it as something else. */
#include "codec/yaml.h"

#include <ctype.h>
#include <string.h>
#include <yaml.h>

#include "codec/yaml_plain.h"

static int on_output(void *user, unsigned char *data, size_t n)
{
    buf_add(user, data, n);
    return 1;
}

static yaml_char_t *yaml_chars(const char *s)
{
    return (yaml_char_t *)(uintptr_t)s;
}

/* Text that could be read as something else is quoted; text of several lines is written as a block. */
static yaml_scalar_style_t style_of(const char *s)
{
    size_t n = strlen(s);
    if (strchr(s, '\n') != NULL && !isspace((unsigned char)s[0]) && !(n > 1 && isspace((unsigned char)s[n - 2])))
        return YAML_LITERAL_SCALAR_STYLE;
    return yaml_plain_is_safe(s) ? YAML_PLAIN_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE;
}

static void emit_text(yaml_emitter_t *out, const char *s, yaml_scalar_style_t style)
{
    yaml_event_t ev;
    yaml_scalar_event_initialize(&ev, NULL, NULL, yaml_chars(s), (int)strlen(s), 1, 1, style);
    yaml_emitter_emit(out, &ev);
}

static void emit_value(yaml_emitter_t *out, const json_t *v);

static void emit_list(yaml_emitter_t *out, const json_t *v)
{
    yaml_event_t ev;
    size_t i;
    json_t *item;

    yaml_sequence_start_event_initialize(&ev, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE);
    yaml_emitter_emit(out, &ev);
    json_array_foreach(v, i, item) emit_value(out, item);
    yaml_sequence_end_event_initialize(&ev);
    yaml_emitter_emit(out, &ev);
}

static void emit_map(yaml_emitter_t *out, const json_t *v)
{
    yaml_event_t ev;
    const char *key;
    json_t *item;

    yaml_mapping_start_event_initialize(&ev, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE);
    yaml_emitter_emit(out, &ev);
    json_object_foreach((json_t *)(uintptr_t)v, key, item)
    {
        bool plain = yaml_plain_is_safe(key) && strchr(key, '\n') == NULL;
        emit_text(out, key, plain ? YAML_PLAIN_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
        emit_value(out, item);
    }
    yaml_mapping_end_event_initialize(&ev);
    yaml_emitter_emit(out, &ev);
}

static void emit_value(yaml_emitter_t *out, const json_t *v)
{
    if (json_is_object(v)) {
        emit_map(out, v);
    } else if (json_is_array(v)) {
        emit_list(out, v);
    } else if (json_is_string(v)) {
        emit_text(out, json_string_value(v), style_of(json_string_value(v)));
    } else {
        AUTO_FINI(buf) text = BUF_INIT;
        json_emit(v, &text);
        emit_text(out, text.data, YAML_PLAIN_SCALAR_STYLE);
    }
}

void yaml_emit(const json_t *v, struct buf *out)
{
    yaml_emitter_t emitter;
    yaml_event_t ev;

    if (!yaml_emitter_initialize(&emitter))
        return;
    yaml_emitter_set_output(&emitter, on_output, out);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    yaml_stream_start_event_initialize(&ev, YAML_UTF8_ENCODING);
    yaml_emitter_emit(&emitter, &ev);
    yaml_document_start_event_initialize(&ev, NULL, NULL, NULL, 1);
    yaml_emitter_emit(&emitter, &ev);
    emit_value(&emitter, v);
    yaml_document_end_event_initialize(&ev, 1);
    yaml_emitter_emit(&emitter, &ev);
    yaml_stream_end_event_initialize(&ev);
    yaml_emitter_emit(&emitter, &ev);
    yaml_emitter_delete(&emitter);
}
