# Tests of run.sh: a job meets an earlier run in its output folder. Sourced by it.
# shellcheck shell=bash disable=SC2154 # its variables

# The files that a refusal must not change.
remember() {
    cp "$dir/run/job.yaml" "$dir/was.job.yaml"
    cp "$dir/run/finished" "$dir/was.finished"
    cp "$dir/run/uid" "$dir/was.uid"
    ls "$dir/run/checkpoints" "$dir/run/summaries"/* >"$dir/was.files"
}
untouched() {
    local name
    for name in job.yaml finished uid; do
        cmp "$dir/run/$name" "$dir/was.$name" || wrong "$name was touched by: $*"
    done
    ls "$dir/run/checkpoints" "$dir/run/summaries"/* | cmp - "$dir/was.files" || wrong "files were made or removed by: $*"
}
refused() { # LINE ARGS...: exit code 2, and nothing is changed
    local line=$1
    shift
    want_exit 2 run --set fit.epochs=2 "$@"
    want_line "$line"
    untouched "$@"
}

test_rerun_refuses_other_settings() {
    local name
    want_exit 0 run --set fit.epochs=2 || return
    remember
    refused 'compile.optimizer.Adam.learning_rate is 0.01, was 0.002; --resume continues' --set compile.optimizer.Adam.learning_rate=0.01
    refused 'fit.batchSize is 64, was 30; --rebase continues' --set fit.batchSize=64
    refused 'fit.batchSize is 64, was 30; fit.seed is 8, was 7; --rebase continues' --resume --set fit.batchSize=64 --set fit.seed=8
    refused 'compile.optimizer is SGD, was Adam; --fresh starts from scratch' --rebase --set compile.optimizer=SGD
    refused 'model.layers\[2\].Dense.units is 65, was 64.*; --fresh starts from scratch' --rebase --set 'model.layers[2].Dense.units=65'
    refused 'fit.epochs is 3, was 2; --resume continues' --set fit.epochs=3
    refused 'data.train.features is digits/validation.*, was digits/train.*; --rebase continues' --resume \
        --set data.train.features=digits/validation-images-idx3-ubyte --set data.train.labels=digits/validation-labels-idx1-ubyte
    # fields that may differ
    want_exit 0 run --set fit.epochs=2 --set checkpoint.keep=9 --replicas worker=1 --set fit.logEverySteps=3
    want_line 'already finished, at step 100'
    untouched "settings that may differ"
    # the same data under another name
    mkdir "$dir/moved" && cp -r "$data/digits" "$dir/moved/other"
    sed 's/digits\/train/other\/train/g; s/digits\/val/other\/val/g' "$digits" >"$dir/moved/digits.yaml"
    want_exit 2 trainyard run "$dir/moved/digits.yaml" --output-dir "$dir/run" --set fit.epochs=2
    want_line 'other settings: data.validation.features is other/.*; --resume continues'
    want_no_line 'data.train'
    # other data under the same name
    mkdir "$dir/moved/digits"
    for name in train-images-idx3-ubyte train-labels-idx1-ubyte validation-images-idx3-ubyte validation-labels-idx1-ubyte; do
        cp "$data/digits/${name/train/validation}" "$dir/moved/digits/$name"
    done
    refused 'data.train is 297 examples, was 1500 examples; --rebase continues' --resume --data-dir "$dir/moved"
}

# Checkpoints without their list: the run continues from the newest one, and never begins from scratch over them.
test_lost_list_of_checkpoints() {
    local checkpoints=$dir/run/checkpoints
    want_exit 0 run --set fit.epochs=2 || return
    rm "$checkpoints/checkpoint"
    want_exit 0 run --resume --set fit.epochs=3 || return
    want_line 'checkpoints/checkpoint: No such file or directory; checkpoint .*model.ckpt-100 is used, the newest whole one of the [0-9]+ in '
    want_line 'restoring .*model.ckpt-100: step 100, 100 of 150 batches done'
    : >"$checkpoints/checkpoint"
    rm "$dir/run/uid" "$dir/run/job.yaml"
    want_exit 0 run --set fit.epochs=4 || return
    want_line 'restoring .*model.ckpt-150: step 150, 150 of 200 batches done'
    [ "$(jq '.history.loss | length' "$dir/run/history.json")" = 4 ] || problem "the history is $(cat "$dir/run/history.json")"
    rm "$checkpoints"/model.ckpt-*
    : >"$checkpoints/checkpoint"
    want_exit 2 run --resume --set fit.epochs=5
    want_line 'checkpoints/checkpoint: .*, and no checkpoint is beside it: remove it to train from the beginning'
}

test_resume_takes_hyperparameters() {
    want_exit 0 run --set fit.epochs=2 || return
    want_exit 0 run --resume --set fit.epochs=4 --set compile.optimizer.Adam.learning_rate=0.0 || return
    want_line 'continuing .*: compile.optimizer.Adam.learning_rate is 0.?0?, was 0.002; fit.epochs is 4, was 2'
    want_line 'restoring .*model.ckpt-100: step 100, 100 of 200 batches done'
    trainyard export "$dir/run" -o "$dir/now.npz" >/dev/null && trainyard export "$dir/run/checkpoints/model.ckpt-100" -o "$dir/then.npz" >/dev/null
    cmp "$dir/now.npz" "$dir/then.npz" || wrong "the weights moved with a learning rate of 0"
    # from now on the run has the new value
    want_exit 2 run --set fit.epochs=4
    want_line 'compile.optimizer.Adam.learning_rate is 0.002, was 0'
}

test_rebase_takes_another_batch_size() { # every batch exactly once, in the old space and in the new one
    counting_job 3
    want_exit 0 counting_run || return
    want_count 150
    want_exit 2 counting_run --rebase --set fit.batchSize=60
    want_line 'fit.epochs ends after 75 batches of .*model.ckpt-150, 75 \(3 epochs\) are done: set more'
    want_exit 0 counting_run --rebase --set fit.batchSize=60 --set fit.epochs=5 || return
    want_line 'rebasing .*model.ckpt-150: step 150, other batches from epoch 4 on'
    want_count $((150 + 2 * 25))
    # steps still count from the beginning, also after another restart
    want_exit 0 counting_run --resume --set fit.epochs=null --set fit.steps=230 --set fit.batchSize=60 || return
    want_line 'restoring .*model.ckpt-200: step 200'
    want_count 230
    [ "$(sed -n 's/.*"step": *\([0-9]*\).*/\1/p' "$dir/run/finished")" = 230 ] || problem "the last step is not 230: $(cat "$dir/run/finished")"
}

trains_again() { # FILE: the second chief of this run trains
    awk '/(rebasing|restoring) .*model.ckpt/ {n++} n >= 2 && / step [0-9]+ epoch/ {found = 1} END {exit !found}' "$1"
}

# In the middle of an epoch, and killed again right after it began. Both runs are stopped while they train: how many
# epochs there are is decided when it is known how many have begun.
test_rebase_of_an_interrupted_run() {
    counting_job 100000
    exec_run >"$dir/first" 2>&1 &
    local pid=$! epoch epochs most=0 i
    wait_for 60 grep -qE 'step [0-9]+ epoch [2-9]' "$dir/first"
    kill -INT $pid
    wait $pid
    [ -e "$dir/run/finished" ] && { problem "it ended before it could be stopped"; return; }
    local before=() after=() wanted=()
    mapfile -t before < <(counts)
    [ ${#before[@]} = 4 ] || { problem "the checkpoint of the first run does not show four counts: ${before[*]}"; return; }
    want_exit 2 counting_run --set fit.batchSize=60
    want_line 'an interrupted run with other settings: fit.batchSize is 60, was 30'
    exec_run --rebase --set fit.batchSize=60 >"$dir/second" 2>&1 &
    pid=$!
    wait_for 60 grep -q 'rebasing ' "$dir/second"
    pgrep -P $pid | xargs kill -9 # the replicas; the launcher restarts them
    wait_for 60 trains_again "$dir/second"
    kill -INT $pid
    wait $pid
    epoch=$(sed -nE 's/.*rebasing .*: step [0-9]+, other batches from epoch ([0-9]+) on/\1/p' "$dir/second" | head -n 1)
    mapfile -t after < <(counts)
    [ -n "$epoch" ] && [ ${#after[@]} = 4 ] ||
        { problem "the second run began with epoch '$epoch', its checkpoint shows the counts ${after[*]}"; return; }
    for i in 0 1 2 3; do most=$((after[i] - before[i] > most ? after[i] - before[i] : most)); done
    epochs=$((epoch + most / 25 + 30)) # 25 batches of 60
    for i in 0 1 2 3; do wanted+=($((before[i] + (epochs - epoch + 1) * 25))); done
    want_exit 0 counting_run --set fit.batchSize=60 --set fit.epochs=$epochs --resume ||
        { problem "from epoch $epoch on $most batches were done before; $epochs epochs in all"; return; }
    want_count "${wanted[@]}"
}

test_rebase_takes_other_data() { # and epochs are evaluated as before
    want_exit 0 run --set fit.epochs=2 || return
    want_exit 0 run --rebase --set fit.epochs=4 \
        --set data.train.features=digits/validation-images-idx3-ubyte --set data.train.labels=digits/validation-labels-idx1-ubyte || return
    want_line 'continuing .*data.train.features is digits/validation-images-idx3-ubyte, was digits/train-images'
    want_line 'epoch 4/4 done loss .* val_loss'
    tr -d ' \n' <"$dir/run/history.json" | grep -qE '"val_loss":\[[0-9.]+,[0-9.]+,[0-9.]+,[0-9.]+\]' ||
        problem "not every epoch was evaluated: $(cat "$dir/run/history.json")"
}

test_new_job_on_a_used_volume() { # as on a cluster: the chief decides by the manifest alone
    single_job 's/epochs: *[0-9]+/epochs: 2/'
    TRAINYARD_JOB_UID=uid-one want_exit 0 alone || return
    remember
    want_file "$dir/run/job.yaml"
    sed -i 's/learning_rate: 0.002/learning_rate: 0.5/; s/batchSize: 30/batchSize: 50/' "$dir/job.yaml"
    TRAINYARD_JOB_UID=uid-two want_exit 2 alone
    want_line 'holds a finished run of job uid uid-one; this job, uid uid-two, differs: compile.optimizer.Adam.learning_rate is 0.5, was 0.002; fit.batchSize is 50, was 30; set fit.rebase: true'
    untouched "another job"
    sed -i 's/batchSize: 50/batchSize: 30, resume: true/; s/epochs: 2/epochs: 3/' "$dir/job.yaml"
    TRAINYARD_JOB_UID=uid-two want_exit 0 alone || return
    want_line 'restoring .*model.ckpt-100: step 100, 100 of 150 batches done'
    grep -q uid-two "$dir/run/finished" || problem "finished is of another job: $(cat "$dir/run/finished")"
    # the same job again, as a restarted pod would
    TRAINYARD_JOB_UID=uid-two want_exit 0 alone
    want_line 'the job has already finished, at step 150'
    sed -i 's/batchSize: 30, resume/batchSize: 50, rebase/; s/epochs: 3/epochs: 5/' "$dir/job.yaml"
    TRAINYARD_JOB_UID=uid-three want_exit 0 alone || return
    want_line 'rebasing .*model.ckpt-150: step 150, other batches from epoch 4 on'
    [ "$(sed -n 's/.*"step": *\([0-9]*\).*/\1/p' "$dir/run/finished")" = 210 ] || problem "the last step is not 210"
}

test_two_launchers_in_one_folder() { # at the same time, into a new folder, a used one, and with --fresh
    local round i flags ran refused pids=()
    for round in 1 2 3 4 5 6 7 8 9 10 11 12; do
        flags=("--set" "fit.epochs=100000")
        rm -f "$dir"/launcher.* # lines of the round before
        [ $((round % 3)) = 1 ] && rm -rf "$dir"/run*
        [ $((round % 3)) = 0 ] && flags+=(--fresh)
        for i in 0 1; do
            run_bg "${flags[@]}" >"$dir/launcher.$i" 2>&1 &
            pids[i]=$!
        done
        wait_for 60 grep -qsE 'another trainyard run is using' "$dir/launcher.0" "$dir/launcher.1"
        wait_for 60 grep -qsE 'step [0-9]+' "$dir/launcher.0" "$dir/launcher.1"
        kill -INT "${pids[@]}" 2>/dev/null
        ran=0 refused=0
        for i in 0 1; do
            wait "${pids[i]}"
            case $? in
            143 | 130) ran=$((ran + 1)) ;;
            2) refused=$((refused + 1)) ;;
            esac
        done
        [ $ran = 1 ] && [ $refused = 1 ] || { problem "round $round: $ran of two launchers ran, $refused were refused"; return; }
    done
    want_no_process
}

test_deadline_is_exceeded() { # the job has a word and an exit code of its own, its steps are saved, and the same command continues
    counting_job 20
    sed -i 's/runPolicy: {/runPolicy: {activeDeadlineSeconds: 2, /' "$dir/job.yaml"
    pace # it cannot end before its deadline
    want_exit 124 paced trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run"
    want_line '^counting failed after .* with exit code 124: DeadlineExceeded: the job was active longer than 2 s \(runPolicy.activeDeadlineSeconds\); the same command continues it$'
    [ -e "$dir/run/finished" ] && problem "a job that was stopped at its deadline has finished"
    want_no_process
    rm "$dir/paced"
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --set runPolicy.activeDeadlineSeconds=600
    want_line '^resuming counting'
    want_count $((20 * batches))
}

# Replicas that are started by hand after the end, when no chief is there any more. They have no uid of the job.
test_late_replicas_by_hand_learn_of_the_end() {
    sed 's/epochs: *[0-9]*/epochs: 3/' "$digits" >"$dir/job.yaml"
    sed 's/epochs: *[0-9]*/epochs: 6, resume: true/' "$digits" >"$dir/longer.yaml"
    local chief=(--job-name=chief --task-index=0 --tls-dir "$dir/tls/chief-0") worker=(--job-name=worker --task-index=1 --tls-dir "$dir/tls/worker-1") longer elsewhere
    start_by_hand
    worker_by_hand 0
    cd "$dir" || return # without --output-dir a worker looks into runs/digits, which is not there
    # shellcheck disable=SC2086 # $hosts is a list of words
    late() { exec trainyard-worker --data-dir "$data" $hosts "$@"; }
    want_exit 0 late_here "${chief[@]}" --job job.yaml --output-dir run || return
    wait $ps_pid || ended_badly $? "the ps failed"
    want_exit 0 late_here "${worker[@]}" --job job.yaml --output-dir run
    want_line '\[worker-1\] the job has finished, at step 150$'
    want_no_line 'waiting'
    want_exit 0 late_here --job-name=evaluator --task-index=0 --insecure --job job.yaml --output-dir run
    want_line '\[evaluator-0\] the job has finished, at step 150$'
    late "${worker[@]}" --job longer.yaml --output-dir run >longer.out 2>&1 & # the run is about to be continued
    longer=$!
    late "${worker[@]}" --job job.yaml >elsewhere.out 2>&1 & # it cannot see the output folder
    elsewhere=$!
    wait_for 60 grep -qE 'waiting [0-9]+ s for the chief' longer.out
    wait_for 60 grep -qE 'waiting [0-9]+ s for the chief' elsewhere.out
    kill -TERM $longer
    want_exit 0 late_here "${chief[@]}" --job job.yaml --output-dir run # a chief that has nothing to do tells whoever waits
    wait $elsewhere || ended_badly $? "a worker that waits does not learn of the end from a chief"
    want_line '\[worker-1\] the job has finished, at step 150$' elsewhere.out
    wait $longer
    [ $? = 143 ] || problem "a worker of a job that is about to continue does not wait"
}
late_here() { (late "$@"); }

# One number for the weights: in the log, in the files, in the summary of the run. Another program computes the same from
# an export; a run that stops and continues has it, too.
test_weights_have_a_hash() {
    local hash
    single_job 's/epochs: *[0-9]+/epochs: 3/'
    want_exit 0 trainyard run "$job" --data-dir "$data" --output-dir "$dir/run" || return
    hash=$(sed -n 's/.*SHA-256 of the weights: \([0-9a-f]\{64\}\)$/\1/p' "$dir/out")
    [ -n "$hash" ] || problem "the log has no hash"
    want_line "^  SHA-256      $hash\$"
    want_line "\"weights_sha256\": \"$hash\"" "$dir/run/finished"
    want_line "\"weights_sha256\": \"$hash\"" "$dir/run/history.json"
    [ "$(exported_hash "$dir/run")" = "$hash" ] || wrong "an export has other weights"
    want_exit 0 trainyard run "$job" --data-dir "$data" --output-dir "$dir/run" # it has finished
    want_line "^  SHA-256      $hash\$"
    want_exit 0 trainyard run "$job" --data-dir "$data" --output-dir "$dir/parts" --set fit.epochs=1
    want_no_line "$hash"
    want_exit 0 trainyard run "$job" --data-dir "$data" --output-dir "$dir/parts" --resume
    want_line "^  SHA-256      $hash\$"
}

# A job of one machine, started by hand: with more epochs and resume it goes on, at once.
test_finished_run_continues_by_hand() {
    single_job 's/epochs: *[0-9]+/epochs: 2/'
    want_exit 0 alone || return
    want_exit 0 alone
    want_line 'already finished, at step 100'
    sed -i 's/epochs: 2/epochs: 3, resume: true/' "$job"
    want_exit 0 alone
    want_line 'epoch 3/3 done'
    want_no_line 'already finished'
    grep -q 150 "$dir/run/finished" || problem "the run did not finish at step 150: $(cat "$dir/run/finished")"
}
