/* Raw deflate with a preset dictionary: short specs compress to a third, which plain deflate does not reach. */
#include "api/deflate.h"

#include <string.h>
#include <zlib.h>

/* Raw deflate without header and checksum, because the result never leaves memory. The window covers two pod templates.
 * A larger window and more memory for hashing gain little and cost page faults at every call. */
enum { WINDOW_BITS = 13, MEMORY_LEVEL = 6, LEVEL = 6 };

/* Frequent words are at the end, where references to them are short. */
static const char DICTIONARY[] =
    "\"annotations\":{},\"labels\":{\"kueue.x-k8s.io/"
    "queue-name\":\"successPolicy\":\"AllWorkers\",\"enableDynamicWorker\":true,\"schedulingPolicy\":{\"minAvailable\":"
    ",\"queue\":\"default\",\"priorityClass\":\"keras\":{\"class_name\":\"Sequential\",\"config\":{\"name\":"
    "\"sequential\",\"trainable\":true,\"dtype\":\"float32\",\"kernel_initializer\":{\"class_name\":\"GlorotUniform\","
    "\"config\":{\"seed\":null}},\"bias_initializer\":{\"class_name\":\"Zeros\",\"nodeSelector\":{\"tolerations\":[{"
    "\"key\":\"\",\"operator\":\"Exists\",\"effect\":\"NoSchedule\"}],\"affinity\":{\"securityContext\":{"
    "\"runAsNonRoot\":true,\"runAsUser\":1000,\"fsGroup\":\"serviceAccountName\":\"imagePullSecrets\":[{\"name\":"
    "\"imagePullPolicy\":\"IfNotPresent\",\"volumes\":[{\"name\":\"data\",\"configMap\":{\"name\":\"secret\":{"
    "\"emptyDir\":{}}],\"volumeMounts\":[{\"name\":\"data\",\"mountPath\":\"/"
    "data\",\"readOnly\":true}],\"envFrom\":\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"metadata.name\"}}\"env\":[{"
    "\"name\":\"\",\"value\":\"\"},{\"name\":\"\"command\":[\"python\",\"/var/tf_mnist/"
    "mnist_with_summaries.py\",\"sh\",\"-c\",\"args\":[\"--\"resources\":{\"limits\":{\"cpu\":\"1\",\"memory\":\"2Gi\","
    "\"nvidia.com/"
    "gpu\":1},\"requests\":{\"cpu\":\"500m\",\"memory\":\"512Mi\"}},\"ports\":[{\"containerPort\":2222,\"name\":"
    "\"tfjob-port\",\"protocol\":\"TCP\"}]\"model\":{\"inputShape\":[28,28],\"layers\":[{\"Rescaling\":{\"scale\":0."
    "00392156862745098}},{\"Flatten\":{}},{\"Dropout\":{\"rate\":0.5}},{\"BatchNormalization\":{}},{\"Dense\":{"
    "\"units\":128,\"activation\":\"relu\"}},{\"Dense\":{\"units\":10,\"activation\":\"softmax\"}}]},\"compile\":{"
    "\"optimizer\":{\"Adam\":{\"learning_rate\":0.001}},\"loss\":\"sparse_categorical_crossentropy\",\"metrics\":["
    "\"accuracy\"]},\"data\":{\"train\":{\"format\":\"idx\",\"features\":\"train-images-idx3-ubyte\",\"labels\":"
    "\"train-labels-idx1-ubyte\"},\"validation\":{\"format\":\"idx\",\"features\":\"t10k-images-idx3-ubyte\","
    "\"labels\":\"t10k-labels-idx1-ubyte\"}},\"fit\":{\"epochs\":5,\"batchSize\":64,\"seed\":7},\"strategy\":{\"name\":"
    "\"ParameterServer\",\"updates\":\"async\"},\"checkpoint\":{\"everySeconds\":600,\"keep\":5},\"summaries\":{"
    "\"everySteps\":100},\"storage\":{\"data\":{\"persistentVolumeClaim\":{\"claimName\":\"mnist-data\"}},\"output\":{"
    "\"persistentVolumeClaim\":{\"claimName\":\"mnist-out\"}}},\"tensorboard\":{},\"runPolicy\":{\"cleanPodPolicy\":"
    "\"Running\",\"backoffLimit\":6,\"activeDeadlineSeconds\":86400,\"ttlSecondsAfterFinished\":3600,\"suspend\":false}"
    ",\"tfReplicaSpecs\":{\"Chief\":{\"replicas\":1,\"restartPolicy\":\"OnFailure\",\"Never\",\"ExitCode\","
    "\"template\":{\"metadata\":{\"spec\":{\"containers\":[{\"name\":\"tensorflow\",\"image\":\"\"replicaSpecs\":{"
    "\"Chief\":{},\"PS\":{\"replicas\":1},\"Worker\":{\"replicas\":2,\"template\":{\"spec\":{\"containers\":[{\"name\":"
    "\"trainer\",\"image\":{\"metadata\":{\"name\":\"\",\"namespace\":\"default\",\"uid\":\"\"},\"spec\":{";

/* Allocates zlib's memory. Never fails, because the operator chose its size. */
static voidpf take_memory(voidpf user UNUSED, uInt count, uInt size)
{
    return xcalloc(count, size);
}

static void give_memory(voidpf user UNUSED, voidpf p)
{
    free(p);
}

static z_stream stream_of(const void *in, size_t nin, void *out, size_t nout)
{
    return (z_stream){ .zalloc = take_memory,
                       .zfree = give_memory,
                       .next_in = (Bytef *)(uintptr_t)in,
                       .avail_in = (uInt)nin,
                       .next_out = out,
                       .avail_out = (uInt)nout };
}

/* Returns the bytes written; 0 if they would not be fewer than n. */
static size_t deflate_into(const char *text, size_t n, void *out)
{
    z_stream z = stream_of(text, n, out, n - 1);
    bool small;

    if (deflateInit2(&z, LEVEL, Z_DEFLATED, -WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return 0;
    small = deflateSetDictionary(&z, (const Bytef *)DICTIONARY, sizeof(DICTIONARY) - 1) == Z_OK &&
            deflate(&z, Z_FINISH) == Z_STREAM_END;
    deflateEnd(&z);
    return small ? z.total_out : 0;
}

void *deflate_text(const char *text, size_t n, size_t *ret_len)
{
    auto_free char *out = xmalloc(n + 1);
    size_t len = n > 1 && n <= UINT32_MAX / 2 ? deflate_into(text, n, out) : 0;

    *ret_len = len > 0 ? len : n;
    return xmemdup(len > 0 ? out : text, *ret_len); /* shrinking `out` instead would leave holes in the heap */
}

static bool inflate_into(const void *deflated, size_t len, char *out, size_t n)
{
    z_stream z = stream_of(deflated, len, out, n);
    bool whole;

    if (inflateInit2(&z, -WINDOW_BITS) != Z_OK)
        return false;
    whole = inflateSetDictionary(&z, (const Bytef *)DICTIONARY, sizeof(DICTIONARY) - 1) == Z_OK &&
            inflate(&z, Z_FINISH) == Z_STREAM_END && z.total_out == n;
    inflateEnd(&z);
    return whole;
}

char *inflate_text(const void *deflated, size_t len, size_t n)
{
    auto_free char *out = xmalloc(n + 1);

    if (len == n)
        memcpy(out, deflated, n);
    else if (n > UINT32_MAX / 2 || !inflate_into(deflated, len, out, n))
        return NULL;
    out[n] = '\0';
    return TAKE(out);
}
