/* growth_data - opening a data set of the growth tests. */
#ifndef TRAINYARD_CHIEF_GROWTH_DATA_H
#define TRAINYARD_CHIEF_GROWTH_DATA_H

#include <unistd.h>

#include "base/file.h"
#include "check_main.h"
#include "codec/yaml.h"
#include "data/dataset.h"
#include "job/fields.h"

/* Writes the text to a file and opens it as the data set that `yaml` describes. */
static inline void growth_open_data(const char *yaml, const char *text, size_t len)
{
    struct err e = { .code = ERR_NONE };
    json_auto_t *doc = NULL;
    AUTO(source) *src = NULL;
    AUTO(dataset) *d = NULL;
    struct data_spec spec = { .present = false };
    auto_free char *path = xasprintf("/dev/shm/trainyard-growth-%d", (int)getpid());

    ck_ok_e(file_write(path, text, len, &e));
    ck_ok_e(yaml_parse(yaml, strlen(yaml), "growth", &doc, &src, &e));
    struct node root = node_root(doc, src);
    ck_ok_e(fields_read(&DATA_FIELDS, &root, &spec, &e));
    strlist_fini(&spec.files);
    strlist_add(&spec.files, path);
    ck_ok_e(dataset_open(&spec, "/dev/shm", NULL, NULL, &d, &e));
    data_spec_fini(&spec);
    unlink(path);
}

#endif
