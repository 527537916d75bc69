/* yaml_value - inside of codec/yaml.h: one value of a document, from libyaml's events to JSON. */
#ifndef TRAINYARD_CODEC_YAML_VALUE_H
#define TRAINYARD_CODEC_YAML_VALUE_H

#include "base/map.h"
#include "base/str.h"
#include "codec/source.h"

struct yaml_parser_s; /* libyaml's; only yaml*.c include <yaml.h> */
struct yaml_event_s;

/* One document under way. */
struct yaml_parse {
    struct yaml_parser_s *lib;
    struct yaml_event_s *event; /* the current one; its content is owned */
    const char *text, *name;
    size_t size;
    struct source *src; /* of the current document */
    struct map anchors; /* name -> json_t, owned references */
    struct buf path;    /* of the value being read, as in codec/node.h */
    size_t expanded;    /* bytes that aliases and merges copied */
    int depth;
};

struct place yaml_here(const struct yaml_parse *p); /* of the current event */
/* Moves on to the next event. */
MUST_USE int yaml_next(struct yaml_parse *p, struct err *e);
/* The value that begins with the current event; afterwards the current event is its last. */
MUST_USE int yaml_read_value(struct yaml_parse *p, json_t **ret, struct err *e);

#endif
