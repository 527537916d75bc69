/* json_fill - fills in members that a template does not set.
 *
 * Templates come from users and are not validated. These functions do not change a member of the wrong type; the API
 * server then rejects the object with its own message. null counts as absent.
 */
#ifndef TRAINYARD_BUILD_JSON_FILL_H
#define TRAINYARD_BUILD_JSON_FILL_H

#include "codec/json.h"

bool json_has(const json_t *object, const char *key);           /* present and not null */
void json_fill(json_t *object, const char *key, json_t *value); /* set if absent; takes the value */
json_t *json_fill_object(json_t *parent, const char *key);      /* borrowed, created if absent; NULL: another type */
json_t *json_fill_array(json_t *parent, const char *key);
json_t *json_find_named(const json_t *array, const char *name); /* the item whose "name" is this, borrowed, or NULL */

#endif
