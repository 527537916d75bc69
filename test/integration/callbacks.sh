# Tests of run.sh: fit.callbacks with real processes. Sourced by it.
# shellcheck shell=bash disable=SC2154 # its variables

# Inputs are zero and labels far above, so that each batch adds the learning rate to the bias: its value shows how many
# batches were trained, and at which rates. Validation wants 110, so that val_loss is the distance to it: epoch 2 ends
# best, at 100. All numbers are exact in float32.
stopping_job() {
    mkdir -p "$dir/data"
    awk 'BEGIN {print "x,y"; for (i = 0; i < 800; i++) print "0,1000000"}' >"$dir/data/train.csv"
    awk 'BEGIN {print "x,y"; for (i = 0; i < 16; i++) print "0,110"}' >"$dir/data/validation.csv"
    cat >"$dir/job.yaml" <<YAML
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: stopping}
spec:
  model: {inputShape: [1], layers: [Dense: {units: 1, kernel_initializer: zeros}]}
  compile: {optimizer: {SGD: {learning_rate: 1}}, loss: mean_absolute_error}
  data:
    train: {format: csv, files: train.csv, label: y}
    validation: {format: csv, files: validation.csv, label: y}
  fit:
    epochs: 20
    batchSize: 16
    seed: 3
    callbacks:
      - ReduceLROnPlateau: {patience: 1, factor: 0.5}
      - ModelCheckpoint: {save_best_only: true}
      - EarlyStopping: {patience: 4, restore_best_weights: true}
  checkpoint: {everySeconds: 600, keep: 2}
  replicaSpecs: {Chief: {}, PS: {replicas: 2}, Worker: {replicas: 2}}
YAML
}

bias() { trainyard show checkpoint "$1" --tensor dense/bias | tail -n 1; }
words_of() { list_of "$1" | tr '\n' ' '; }
once() { # TEXT: the log has it at most once
    local n
    n=$(grep -c -- "$1" "$dir/out")
    [ "$n" -le 1 ] || wrong "$n times in the log: $1"
}

# The required result of a run of stopping_job, whichever process was killed. A checkpoint that was saved but not
# published keeps its name: the next one of that step is model.ckpt-100-1.
want_stopped_run() {
    local name file
    [ "$(words_of val_loss)" = "60.0 10.0 40.0 65.0 77.5 83.75 " ] || wrong "val_loss is $(words_of val_loss)"
    [ "$(words_of learning_rate)" = "1.0 1.0 1.0 0.5 0.25 0.125 " ] || wrong "the learning rates are $(words_of learning_rate)"
    want_list loss 6
    for name in '"step":300' '"checkpoint":"model.ckpt-100\(-1\)\?"' '"best_epoch":1' '"stopped_epoch":5'; do
        for file in finished history.json; do
            tr -d ' \n' <"$dir/run/$file" | grep -q "$name" || problem "$file has no $name"
        done
    done
    [ "$(final "$dir/run" loss)" = 10.0 ] || wrong "the final loss is $(final "$dir/run" loss), not that of the best epoch"
    [ "$(bias "$dir/run/checkpoints")" = 193.75 ] || wrong "the bias is $(bias "$dir/run/checkpoints"): batches or rates are wrong"
    [ "$(bias "$dir/run")" = 100 ] || wrong "the best checkpoint has the bias $(bias "$dir/run")"
    once 'ReduceLROnPlateau sets the learning rate to 0.5 '
    once 'ReduceLROnPlateau sets the learning rate to 0.25 '
    once 'ReduceLROnPlateau sets the learning rate to 0.125 '
    once 'EarlyStopping ends training'
    once 'EarlyStopping keeps the checkpoint of epoch 2'
    want_no_line 'cannot decide|cannot be used'
    want_no_process
}

stopping_run() { trainyard run "$dir/job.yaml" --data-dir "$dir/data" --output-dir "$dir/run" "$@"; }
killed_run() { # MOMENT COMMAND...: the chief is killed there, once
    rm -rf "$dir/run" "$dir/mark"
    KILL_ROLE=chief KILL_MARK=$dir/mark KILL_AT=$1 LD_PRELOAD=$kill_at want_exit 0 "${@:2}" || return
    [ -e "$dir/mark" ] || problem "no process was killed"
    want_line 'chief-0 was killed by signal 9'
}

test_callbacks_decide_in_a_cluster() { # without kills: the reference for the other runs
    stopping_job
    want_exit 0 stopping_run || return
    want_stopped_run
    want_line 'epoch 6/20 done .*val_loss 83.75'
    want_line 'EarlyStopping ends training after epoch 6: val_loss was best in epoch 2 \(10\)'
    want_line "the job's result is checkpoint model.ckpt-100 of epoch 2: val_loss 10 is the best"
    want_line '^  ended +after epoch 6 by a callback'
    want_line '^  result .*model.ckpt-100, of epoch 2'
}

test_chief_killed_around_decisions() { # each one is taken once, at the rates of an undisturbed run
    local moment kill_at before=$problems
    build_kill_at
    stopping_job
    while read -r moment; do
        killed_run "$moment" stopping_run && want_stopped_run
        [[ $moment != publish*ckpt-200* ]] || want_line 'the learning rate is 0.25 from epoch 5 on, set by ReduceLROnPlateau'
        [ "$problems" = "$before" ] || { problem "the chief was killed at: $moment"; return; }
    done <<'MOMENTS'
log 2 ps initialised
before-log epoch 2/20 done
log epoch 4/20 done
before-publish model_checkpoint_path: "model.ckpt-100"
publish model_checkpoint_path: "model.ckpt-100"
before-publish model_checkpoint_path: "model.ckpt-200"
publish model_checkpoint_path: "model.ckpt-200"
before-log sets the learning rate to 0.25
log sets the learning rate to 0.25
publish history.json
log epoch 6/20 done
publish model_checkpoint_path: "model.ckpt-300"
log EarlyStopping ends training
before-publish finished
publish finished
MOMENTS
}

test_callbacks_on_one_machine_and_in_a_cluster() { # reproducible results are the same in both
    local name where
    sed -e '/replicaSpecs:/,$d' -e 's/learning_rate: 0.002/learning_rate: 0.01/' "$digits" >"$dir/Single.yaml"
    sed -i 's/epochs: 20, batchSize/callbacks: [ReduceLROnPlateau: {monitor: val_accuracy, patience: 1, factor: 0.5},\n    ModelCheckpoint: {monitor: val_accuracy, save_best_only: true},\n    EarlyStopping: {patience: 2, min_delta: 0.005, restore_best_weights: true}], epochs: 40, batchSize/' "$dir/Single.yaml"
    { cat "$dir/Single.yaml" && echo '  replicaSpecs: {Chief: {}, PS: {}, Worker: {}}'; } >"$dir/Cluster.yaml"
    for where in Single Cluster; do
        want_exit 0 trainyard run "$dir/$where.yaml" --data-dir "$data" --output-dir "$dir/$where" || return
        sed -n 's/.*\] \(.*\(sets the learning rate\|ends training\|keeps the checkpoint\|result is\).*\)/\1/p' "$dir/out" >"$dir/$where.decisions"
        sed -i '/uid/d' "$dir/$where/finished"
        tensors "$dir/$where" "$dir/$where.npz"
    done
    for name in finished history.json; do cmp "$dir/Single/$name" "$dir/Cluster/$name" || wrong "$name differs"; done
    cmp "$dir/Single.decisions" "$dir/Cluster.decisions" || wrong "the decisions differ"
    cmp "$dir/Single.npz" "$dir/Cluster.npz" || wrong "the weights of the best epoch differ"
    [ "$(cd "$dir/Single/checkpoints" && ls -- *.index)" = "$(cd "$dir/Cluster/checkpoints" && ls -- *.index)" ] || problem "other checkpoints are kept"
    grep -q 'ends training' "$dir/Single.decisions" || problem "no callback ended training"
    grep -q 'sets the learning rate' "$dir/Single.decisions" || problem "no callback set the learning rate"
}

loss_of() { trainyard evaluate "$1" --data-dir "$data" --json | sed -n 's/.*"loss":\([-0-9.e]*\).*/\1/p'; }

test_best_checkpoint_is_named() { # at the end of the log and of the run, in the history, and by show checkpoint
    local best
    single_job
    sed -i 's/epochs: 20, batchSize/callbacks: [ModelCheckpoint: {monitor: val_accuracy, mode: min, save_best_only: true}], epochs: 3, batchSize/' "$dir/job.yaml"
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" || return
    best=$(sed -n 's/.*ModelCheckpoint kept checkpoint \([^ ]*\) of epoch [0-9]*: val_accuracy [0-9.]* is the best$/\1/p' "$dir/out")
    [ -e "$dir/run/checkpoints/$best.index" ] || problem "no line of the log names the best checkpoint"
    want_line "^  best +$dir/run/checkpoints/$best, of epoch [0-9]+ \(val_accuracy 0\.[0-9]+\)$"
    want_line "\"checkpoint\": \"$best\"" "$dir/run/history.json"
    want_exit 0 trainyard show checkpoint "$dir/run" || return
    want_line "^  best +$dir/run/checkpoints/$best, of epoch"
    want_exit 0 trainyard show checkpoint "$dir/run/checkpoints/$best" || return
    want_no_line '^  best'
}

test_best_epoch_on_one_machine() { # later commands read the best checkpoint, which is kept in addition to the last ones
    local best newest
    single_job 's/learning_rate: 0.002/learning_rate: 0.02/; s/keep: 5/keep: 1/'
    sed -i 's/epochs: 20, batchSize/callbacks: [EarlyStopping: {patience: 3, restore_best_weights: true}], epochs: 60, batchSize/' "$dir/job.yaml"
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" || return
    want_line 'ends training after epoch'
    best=$(sed -n 's/.*"checkpoint": "\(.*\)".*/\1/p' "$dir/run/finished")
    newest=model.ckpt-$(sed -n 's/.*"step": \([0-9]*\).*/\1/p' "$dir/run/finished")
    [ "$best" != "$newest" ] || problem "the newest checkpoint is the best one"
    want_line "^  result .*$best, of epoch [0-9]+"
    # shellcheck disable=SC2012 # our own names
    [ "$(cd "$dir/run/checkpoints" && ls -- *.index | sort -V | tr '\n' ' ')" = "$best.index $newest.index " ] ||
        problem "kept are $(ls "$dir/run/checkpoints"), not $best and $newest"
    [ "$(loss_of "$dir/run")" = "$(final "$dir/run" loss)" ] || wrong "evaluate says $(loss_of "$dir/run"), the run $(final "$dir/run" loss)"
    [ "$(final "$dir/run" loss)" = "$(list_of val_loss | sort -g | head -n 1)" ] || wrong "the final loss is not the best one"
    want_exit 0 trainyard export "$dir/run" -o "$dir/model.npz"
    want_line "from .*$best\$"
    tensors "$dir/run/checkpoints/$best" "$dir/best.npz"
    cmp "$dir/model.npz" "$dir/best.npz" || wrong "export does not read the best checkpoint"
    want_line "\"weights_sha256\": \"$(exported_hash "$dir/run")\"" "$dir/run/history.json"
    trainyard predict "$dir/run" --data-dir "$data" -o "$dir/result.csv" && trainyard predict "$dir/run/checkpoints/$best" --job "$dir/job.yaml" --data-dir "$data" -o "$dir/best.csv"
    trainyard predict "$dir/run/checkpoints/$newest" --job "$dir/job.yaml" --data-dir "$data" -o "$dir/newest.csv"
    cmp "$dir/result.csv" "$dir/best.csv" || wrong "predict does not read the best checkpoint"
    cmp -s "$dir/result.csv" "$dir/newest.csv" && problem "the best and the newest model predict the same"
    # the same command again: nothing is trained, and the result is printed again
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run"
    want_line 'already finished'
    want_line "result .*$best"
}
