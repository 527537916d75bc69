# Tests of run.sh: models of images. Sourced by it, after graphs.sh.
# shellcheck shell=bash disable=SC2154 # its variables

# The example reaches its accuracy, and all commands that read the run know its layers.
test_digits_cnn_learns() {
    want_exit 0 trainyard run "$data/digits-cnn.yaml" --output-dir "$dir/run" || return
    want_line 'Test loss: [0-9.]+, Test accuracy: (0\.9[7-9]|1)'
    want_exit 0 trainyard show model "$dir/run/job.yaml" --data-dir "$data" || return
    want_line 'conv2d_1 \(Conv2D\) .*\(None, 4, 4, 32\) .* 4,640'
    want_exit 0 trainyard show checkpoint "$dir/run/checkpoints" || return
    want_line '^ *conv2d/kernel .*\(3, 3, 1, 16\)'
    want_exit 0 trainyard evaluate "$dir/run" --data-dir "$data" || return
    want_line '^loss 0\.[0-9]*, accuracy (0\.9[7-9]|1)'
    want_exit 0 trainyard predict "$dir/run" "$data/digits/validation-images-idx3-ubyte" --classes -o "$dir/p.csv" || return
    want_line '^[0-9],[0-9.]+$' "$dir/p.csv"
    want_exit 0 trainyard export "$dir/run" -o "$dir/model.npz" || return
    want_exit 0 trainyard run "$data/digits-cnn.yaml" --output-dir "$dir/next" --set fit.initialWeights="$dir/model.npz" --set fit.epochs=1 || return
    want_line 'Test loss: [0-9.]+, Test accuracy: (0\.9[6-9]|1)'
}

# one_hash_everywhere [FLAG...]: the synchronous job.yaml of two epochs gives the same weights with one worker, two workers, two
# threads, and with a stop between the epochs.
one_hash_everywhere() {
    local name
    sync_run one "$@" --replicas ps=1,worker=1 || return
    sync_run two "$@" --replicas ps=2,worker=2 || return
    sync_run parts "$@" --replicas ps=1,worker=1 --set fit.epochs=1 || return
    sync_run parts "$@" --replicas ps=1,worker=1 --resume || return
    sed -i 's/updates: sync, replicasToAggregate: 2/name: Mirrored, replicas: 2/; /replicaSpecs:/,$d' "$dir/job.yaml"
    sync_run threads "$@" || return
    for name in two parts threads; do
        [ -n "$(hash_of one)" ] && [ "$(hash_of $name)" = "$(hash_of one)" ] || wrong "1 worker gives '$(hash_of one)', $name '$(hash_of $name)'"
    done
}

# Convolutions, pooling and the sums of their gradients have the same bits in every process and thread.
test_a_convolutional_network_has_one_hash() {
    sed 's/updates: async/updates: sync, replicasToAggregate: 2/; s/epochs: 20/epochs: 2/' "$data/digits-cnn.yaml" >"$dir/job.yaml"
    one_hash_everywhere
}

# What augmentation draws depends on the example alone: not on the process or thread that computes it, and not on a stop.
test_augmented_images_are_the_same_everywhere() {
    sed -e 's/updates: async/updates: sync, replicasToAggregate: 2/; s/epochs: 20/epochs: 2/' \
        -e 's/^      - Rescaling.*/      - RandomTranslation: {height_factor: 0.1, width_factor: 0.1}\n      - RandomRotation: {factor: 0.05}\n&/' \
        -e 's/^      - Rescaling.*/      - RandomCrop: {height: 7, width: 7}\n      - RandomBrightness: {factor: 0.1, value_range: [0, 16]}\n&/' \
        "$data/digits-cnn.yaml" >"$dir/job.yaml"
    one_hash_everywhere
}

# cifar_records FIRST N: records of CIFAR-10, as escapes of printf. A class has a colour; there is noise around it.
cifar_records() {
    awk -v first="$1" -v n="$2" 'BEGIN {
        srand(first)
        for (i = first; i < first + n; i++) {
            class = i % 10
            printf "\\%03o", class
            for (k = 0; k < 3; k++) {
                colour = 40 + (k == 0 ? 18 * class : k == 1 ? 18 * (9 - class) : 18 * (class * 7 % 10))
                for (p = 0; p < 1024; p++) printf "\\%03o", int(colour + (rand() - 0.5) * 60)
            }
        }
    }'
}

# The example with a small set of the same form; then commands that read its run, with and without labels of new files.
test_cifar10_example_learns() {
    local file
    mkdir "$dir/cifar"
    for file in 1 2 3; do
        # shellcheck disable=SC2059 # the records are escapes
        printf "$(cifar_records $((file * 100)) 100)" >"$dir/cifar/data_batch_$file.bin"
    done
    # shellcheck disable=SC2059
    printf "$(cifar_records 1000 60)" >"$dir/cifar/test_batch.bin"
    want_exit 0 trainyard run "$data/cifar10.yaml" --data-dir "$dir/cifar" --output-dir "$dir/run" --set fit.epochs=12 || return
    want_line 'Test loss: [0-9.]+, Test accuracy: (0\.9|1)'
    want_exit 0 trainyard evaluate "$dir/run" "$dir/cifar/data_batch_2.bin" || return
    want_line '^loss [0-9.]*, accuracy (0\.9[0-9]*|1) \(100 examples'
    want_exit 0 trainyard predict "$dir/run" "$dir/cifar/test_batch.bin" --classes -o "$dir/p.csv" || return
    want_line '^[0-9],[0-9.]+$' "$dir/p.csv"
    head -c 3000 "$dir/cifar/test_batch.bin" >"$dir/cifar/cut.bin"
    want_exit 2 trainyard evaluate "$dir/run" "$dir/cifar/cut.bin" || return
    want_line 'cut.bin: has 3000 bytes, but a file of CIFAR-10 has records of 3073 bytes'
}

# The example with a small set of five classes, smaller images and a split of its own. Then the commands that read its run: a
# directory with some of its classes only has the numbers of the run, and files need no class.
test_flowers_example_learns() {
    local loss
    mkdir "$dir/data" && tar -C "$dir/data" -xzf test/data/images/patterns.tar.gz && mv "$dir/data/patterns" "$dir/data/flower_photos"
    want_exit 0 trainyard validate "$data/flowers.yaml" --data-dir "$dir/data" || return
    sed 's/180/48/g; /Random/d; s/Conv2D: {filters: 64/Conv2D: {filters: 32/' "$data/flowers.yaml" >"$dir/job.yaml"
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$dir/data" --output-dir "$dir/run" --set fit.epochs=12 || return
    want_line 'Test loss: [0-9.]+, Test accuracy: (0\.9|1)'
    loss=$(sed -n 's/.*Test loss: \([0-9.]*\),.*/\1/p' "$dir/out")
    want_exit 0 trainyard evaluate "$dir/run" || return
    want_line "^loss ${loss:-none}, accuracy (0\.9[0-9]*|1) \(24 examples" # the same part
    cp "$dir/data/flower_photos/rows/00.png" "$dir/data/flower_photos" # belongs to no class
    want_exit 0 trainyard predict "$dir/run" --classes -o "$dir/part.csv" || return
    [ "$(wc -l <"$dir/part.csv")" = 25 ] || wrong "$(wc -l <"$dir/part.csv") lines of the part for evaluation"
    mkdir -p "$dir/some" && mv "$dir/data/flower_photos/rows" "$dir/data/flower_photos/plain" "$dir/some"
    want_exit 0 trainyard evaluate "$dir/run" "$dir/some" || return
    want_line '^loss [0-9.]*, accuracy (0\.9[0-9]*|1) \(48 examples'
    want_exit 0 trainyard predict "$dir/run" "$dir/some/rows/03.jpg" "$dir/some/plain" --classes --id path -o "$dir/p.csv" || return
    want_line '/some/rows/03\.jpg,rows,' "$dir/p.csv"
    want_line '/some/plain/00\.png,plain,' "$dir/p.csv"
    trainyard predict "$dir/run" - --id path <"$dir/some/rows/03.jpg" >"$dir/stdin.csv" || wrong "standard input is not read"
    want_line '^-,[0-9.e-]+,' "$dir/stdin.csv"
    [ "$(wc -l <"$dir/p.csv")" = 26 ] || wrong "$(wc -l <"$dir/p.csv") lines"
    mv "$dir/some/plain" "$dir/some/dots"
    want_exit 2 trainyard evaluate "$dir/run" "$dir/some" || return
    want_line "directory 'dots' of .*some is not one of the classes that the run was trained with, checks, columns, plain, rows, slopes; move it away"
    want_exit 2 trainyard evaluate "$dir/run" "$dir/some" "$dir/data" || return
    want_line 'name one directory, with a directory for each class'
}

# Images have the same bits in every process, and an order that does not depend on the workers.
test_directories_of_images_have_one_hash() {
    tar -C "$dir" -xzf test/data/images/patterns.tar.gz
    sed -e 's/180/24/g; s/flower_photos/patterns/; s/epochs: 15, batchSize: 32/epochs: 2, batchSize: 16/' \
        -e 's/^  fit:/  strategy: {updates: sync, replicasToAggregate: 2}\n&/; /storage:/d; /replicaSpecs:/,$d' "$data/flowers.yaml" >"$dir/job.yaml"
    one_hash_everywhere --data-dir "$dir"
}
