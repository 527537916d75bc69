/* Writes and checks the JSON state of a checkpoint. A mismatch names the field of the manifest that differs, with
 * both values. */
#include "chief/training_state.h"

#include <inttypes.h>
#include <string.h>

#include "base/opt.h"

static json_t *hex_json(uint64_t v)
{
    char text[24];
    str_fmt(text, sizeof(text), "%016" PRIx64, v);
    return json_string(text);
}

static uint64_t hex_value(const struct node *n, const char *key)
{
    const char *text = json_string_value(json_object_get(n->v, key));
    return text != NULL ? strtoull(text, NULL, 16) : 0;
}

json_t *training_state_new(const struct ordinal_space *space, const struct layout *l, const char *job_uid,
                           uint64_t generation)
{
    json_t *s =
        json_pack("{s:o, s:s, s:I, s:I, s:o, s:b, s:i}", "fingerprint", hex_json(space->fingerprint), "data",
                  "data.train", "examples", (json_int_t)space->examples, "batchSize", (json_int_t)space->batch_size,
                  "seed", hex_json(space->seed), "shuffle", (int)space->shuffle, "shuffleVersion", SHUFFLE_VERSION);
    return json_pack("{s:i, s:s, s:s, s:o, s:o, s:o}", "format", 1, "version", TRAINYARD_VERSION, "jobUid", job_uid,
                     "generation", hex_json(generation), "layout", hex_json(l->hash), "space", s);
}

json_t *training_state_segment(int64_t version, const struct ordinal_set *applied)
{
    auto_free int64_t *ranges = NULL;
    size_t n = ordinal_set_ranges(applied, &ranges);
    json_t *list = json_array();
    json_array_append_new(list, json_integer(version));
    json_array_append_new(list, json_integer(applied->low));
    for (size_t i = 0; i < 2 * n; i++)
        json_array_append_new(list, json_integer(ranges[i]));
    return list;
}

int training_state_read_segment(const struct node *state, size_t i, int64_t *ret_version,
                                struct ordinal_set *ret_applied, struct err *e)
{
    struct node segments = node_get(state, "segments"), segment = node_item(&segments, i);
    size_t n = node_size(&segment);
    if (n < 2)
        return node_error(&segment, e, "the state of segment %zu is missing", i);
    auto_free int64_t *values = xcalloc(n, sizeof(*values));
    for (size_t j = 0; j < n; j++) {
        struct node value = node_item(&segment, j);
        if (node_i64(&value, 0, INT64_MAX, &values[j], e) < 0)
            return -1;
    }
    if (ordinal_set_from(values[1], values + 2, n - 2, ret_applied, e) < 0)
        return -1;
    *ret_version = values[0];
    return 0;
}

uint64_t training_state_generation(const struct node *state)
{
    return hex_value(state, "generation");
}

bool training_state_space(const struct node *state, struct ordinal_space *ret)
{
    struct node s = node_get(state, "space");
    int64_t examples = json_integer_value(json_object_get(s.v, "examples"));
    int64_t batch = json_integer_value(json_object_get(s.v, "batchSize"));
    if (examples <= 0 || batch <= 0 || json_integer_value(json_object_get(s.v, "shuffleVersion")) != SHUFFLE_VERSION)
        return false;
    *ret = (struct ordinal_space){ .fingerprint = hex_value(&s, "fingerprint"),
                                   .seed = hex_value(&s, "seed"),
                                   .examples = examples,
                                   .batch_size = batch,
                                   .shuffle = json_is_true(json_object_get(s.v, "shuffle")) };
    return true;
}

int training_state_arithmetic(const struct node *state, const char **ret, struct err *e)
{
    struct node n = node_get(state, "arithmetic");
    const char *text;
    if (node_str_or(state, "arithmetic", "", &text, e) < 0)
        return -1;
    if (strlen(text) >= ARITHMETIC_MAX)
        return node_error(&n, e, "has %zu bytes; at most %d", strlen(text), ARITHMETIC_MAX - 1);
    *ret = text;
    return 0;
}

int training_state_check_space(const struct node *state, const struct ordinal_space *space, const char *checkpoint,
                               struct err *e)
{
    struct node s = node_get(state, "space");
    int64_t examples = json_integer_value(json_object_get(s.v, "examples"));
    int64_t batch = json_integer_value(json_object_get(s.v, "batchSize"));
    uint64_t seed = hex_value(&s, "seed");
    if (!node_present(&s))
        return err_set(e, ERR_INPUT, "checkpoint %s: its state has no data", checkpoint);
    if (batch != space->batch_size)
        return err_set(e, ERR_INPUT,
                       "fit.batchSize is %" PRId64 ", checkpoint %s was made with %" PRId64
                       ": set it back, continue with --rebase, or start from scratch with --fresh",
                       space->batch_size, checkpoint, batch);
    if (seed != space->seed)
        return err_set(e, ERR_INPUT,
                       "fit.seed is %" PRIu64 ", checkpoint %s was made with %" PRIu64
                       ": set it back, continue with --rebase, or start from scratch with --fresh",
                       space->seed, checkpoint, seed);
    if (examples != space->examples)
        return err_set(
            e, ERR_INPUT,
            "the job trains on %" PRId64 " examples, checkpoint %s was made with %" PRId64
            ": restore data.train and fit.validationSplit, continue with --rebase, or start from scratch with --fresh",
            space->examples, checkpoint, examples);
    if (hex_value(&s, "fingerprint") != space->fingerprint)
        return err_set(e, ERR_INPUT,
                       "data.train is not the data that checkpoint %s was made with: restore it, continue with "
                       "--rebase, or start from scratch with --fresh",
                       checkpoint);
    if (json_is_true(json_object_get(s.v, "shuffle")) != space->shuffle)
        return err_set(e, ERR_INPUT, "data.train.shuffle is %s, checkpoint %s was made with %s",
                       space->shuffle ? "true" : "false", checkpoint, space->shuffle ? "false" : "true");
    if (json_integer_value(json_object_get(s.v, "shuffleVersion")) != SHUFFLE_VERSION)
        return err_set(e, ERR_INPUT, "checkpoint %s was made by a release with another shuffle algorithm", checkpoint);
    return 0;
}

int training_state_check_layout(const struct node *state, const struct layout *l, const char *checkpoint, struct err *e)
{
    struct node segments = node_get(state, "segments");
    if (hex_value(state, "layout") == l->hash && node_size(&segments) == l->n)
        return 0;
    return err_set(e, ERR_INPUT, "spec.model is not the model that checkpoint %s was made with", checkpoint);
}
