/* example - tf.Example and tf.SequenceExample messages (tensorflow/core/example/{example,feature}.proto) to rows of
 * numbers. Pure.
 *
 *     Example { features = 1 }  Features { map<string, Feature> feature = 1 }
 *     SequenceExample { Features context = 1, FeatureLists feature_lists = 2 }
 *     FeatureLists { map<string, FeatureList> feature_list = 1 }  FeatureList { repeated Feature feature = 1 }
 *     Feature { oneof: BytesList bytes_list = 1, FloatList float_list = 2, Int64List int64_list = 3 }
 *     each list { repeated value = 1 }, numbers packed or not
 */
#ifndef TRAINYARD_DATA_EXAMPLE_H
#define TRAINYARD_DATA_EXAMPLE_H

#include "data/columns.h"

enum { EXAMPLE_FEATURES_MAX = 4096 };

/* What to read from a message, and where to write it. */
struct example_plan {
    const struct data_columns *columns; /* at most EXAMPLE_FEATURES_MAX */
    bool integer_label;                 /* y is int32_t, else float */
};
/* A feature that is absent, has no kind or is an empty list takes its column's default; without one it is an error.
 * Of a column with a length an empty list is a value. Its steps are those of the feature list of its name, else of the
 * feature, with the default or 0 behind them; steps beyond the length are only checked. Features that no column names
 * are ignored. x has columns->features floats; y the numbers of the label; w one float when the columns are weighted.
 * Errors name the feature, not the file. */
MUST_USE int example_decode(const struct example_plan *plan, const void *data, size_t n, float *x, void *y, float *w,
                            struct err *e);

#endif
