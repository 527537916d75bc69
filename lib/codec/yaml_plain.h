/* yaml_plain - inside of codec/yaml.h: what an unquoted scalar means. */
#ifndef TRAINYARD_CODEC_YAML_PLAIN_H
#define TRAINYARD_CODEC_YAML_PLAIN_H

#include "codec/json.h"

/* New reference. kubectl's rules: null ~ and nothing; true false in three spellings; decimal, 0x and 0 or 0o (octal)
 * integers; floats with or without a dot; all else a string. ERR_INPUT (without a place) for .inf, .nan and floats
 * too large for a double, which JSON cannot hold. Decimal whole numbers beyond 64 bits become
 * floats. */
MUST_USE int yaml_plain(const char *text, json_t **ret, struct err *e);
/* Whether every YAML reader, also one with other rules (yes, on, dates), reads the unquoted text as a string. */
bool yaml_plain_is_safe(const char *text);

#endif
