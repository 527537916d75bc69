# Tests of run.sh: models with convolutions. Sourced by it, after graphs.sh.
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

# Convolutions, pooling and the sums of their gradients have the same bits in every process and thread.
test_a_convolutional_network_has_one_hash() {
    sed 's/updates: async/updates: sync, replicasToAggregate: 2/; s/epochs: 20/epochs: 2/' "$data/digits-cnn.yaml" >"$dir/job.yaml"
    sync_run one --replicas ps=1,worker=1 || return
    sync_run two --replicas ps=2,worker=2 || return
    sed -i 's/updates: sync, replicasToAggregate: 2/name: Mirrored, replicas: 2/; /replicaSpecs:/,$d' "$dir/job.yaml"
    sync_run threads || return
    [ -n "$(hash_of one)" ] && [ "$(hash_of two)" = "$(hash_of one)" ] && [ "$(hash_of threads)" = "$(hash_of one)" ] ||
        wrong "1 worker gives '$(hash_of one)', 2 workers '$(hash_of two)', 2 threads '$(hash_of threads)'"
}
