#include "data/dataset.h"

#include "base/rng.h"
#include "data/open.h"
#include "data/records.h"

struct dataset {
    struct records *records;
    uint64_t fingerprint;
};

static int (*const OPEN[])(const struct data_place *at, struct records **ret, struct err *e) = {
    [DATA_IDX] = arrays_open,
    [DATA_NPY] = arrays_open,
    [DATA_CSV] = csv_open,
    [DATA_TFRECORD] = tfrecord_open,
};

int dataset_open(const struct data_spec *spec, const char *base_dir, const char *cache_dir, struct dataset **ret,
                 struct err *e)
{
    struct data_place at = { .spec = spec, .base_dir = base_dir, .cache_dir = cache_dir };
    AUTO(dataset) *d = xcalloc(1, sizeof(*d));

    if (OPEN[spec->format](&at, &d->records, e) < 0)
        return -1;
    d->fingerprint = hash64_mix(d->records->fingerprint, (uint64_t)spec->format);
    *ret = TAKE(d);
    return 0;
}

void dataset_free(struct dataset *d)
{
    if (d == NULL)
        return;
    records_free(d->records);
    free(d);
}

const struct records *dataset_records(const struct dataset *d)
{
    return d->records;
}

int64_t dataset_size(const struct dataset *d)
{
    return d->records->n;
}

uint64_t dataset_fingerprint(const struct dataset *d)
{
    return d->fingerprint;
}

const struct shape *dataset_feature_shape(const struct dataset *d)
{
    return &d->records->x;
}

bool dataset_has_labels(const struct dataset *d)
{
    return d->records->has_labels;
}

bool dataset_integer_labels(const struct dataset *d)
{
    return d->records->integer_labels;
}

const struct shape *dataset_label_shape(const struct dataset *d)
{
    return &d->records->y;
}

int64_t dataset_label_max(const struct dataset *d)
{
    return d->records->label_max;
}
