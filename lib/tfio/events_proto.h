/* events_proto - inside of tfio/events.h: field numbers of the messages in event files. From tensorflow
 * core/util/event.proto, core/framework/{summary,tensor,tensor_shape}.proto,
 * tensorboard/plugins/hparams/{plugin_data,api}.proto, and google/protobuf/struct.proto. */
#ifndef TRAINYARD_TFIO_EVENTS_PROTO_H
#define TRAINYARD_TFIO_EVENTS_PROTO_H

enum { EVENT_WALL = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION_LOG = 7 };
enum { SESSION_STATUS = 1, SESSION_PATH = 2, SESSION_MSG = 3 };
enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_HISTO = 5, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum {
    HISTO_MIN = 1,
    HISTO_MAX = 2,
    HISTO_NUM = 3,
    HISTO_SUM = 4,
    HISTO_SUM_SQUARES = 5,
    HISTO_LIMITS = 6,
    HISTO_COUNTS = 7
};
enum { METADATA_PLUGIN = 1, METADATA_CLASS = 4 };
enum { PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
enum { CLASS_TENSOR = 2 };
enum {
    TENSOR_DTYPE = 1,
    TENSOR_SHAPE = 2,
    TENSOR_CONTENT = 4,
    TENSOR_FLOATS = 5,
    TENSOR_DOUBLES = 6,
    TENSOR_INTS = 7,
    TENSOR_STRINGS = 8,
    TENSOR_INT64S = 10
};
enum { SHAPE_DIM = 2, DIM_SIZE = 1 };
enum { HPARAMS_EXPERIMENT = 2, HPARAMS_START = 3, HPARAMS_END = 4 };
enum { EXPERIMENT_TIME = 3, EXPERIMENT_HPARAM = 4, EXPERIMENT_METRIC = 5 };
enum { HPARAM_NAME = 1, HPARAM_TYPE = 4, HPARAM_TYPE_STRING = 1, HPARAM_TYPE_BOOL = 2, HPARAM_TYPE_NUMBER = 3 };
enum { METRIC_NAME = 1, METRIC_TAG = 2 };
enum { START_HPARAMS = 1, START_GROUP = 4, START_TIME = 5 };
enum { END_STATUS = 1, END_TIME = 2, END_SUCCESS = 1, END_FAILURE = 2 };
enum { MAP_KEY = 1, MAP_VALUE = 2, STRUCT_NUMBER = 2, STRUCT_STRING = 3, STRUCT_BOOL = 4 };

#endif
