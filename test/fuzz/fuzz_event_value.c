/* Any bytes as the record of an event file (framing and checksums stripped). */
#include <stdlib.h>
#include <string.h>

#include "tfio/event_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FINI(event_record) record = { .next = 0 };
    AUTO_FINI(event_value) value = EVENT_VALUE_INIT;
    AUTO_FINI(map) plugins = { 0 };
    const struct map_slot *plugin;

    if (event_record_read(data, size, &record) == 0) {
        while (event_record_next(&record, &plugins, &value))
            if (strlen(value.text.data) > value.text.len || (value.nbuckets > 0) != (value.buckets != NULL))
                abort();
    }
    for (size_t i = 0; (plugin = map_next(&plugins, &i)) != NULL;)
        free(plugin->value);
    return 0;
}
