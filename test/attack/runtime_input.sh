# shellcheck shell=bash disable=SC2154 # variables of test/integration/lib.sh
# Hostile files and fields: each ends at once with exit code 2 and a message with the place of the error, and leaves no
# files behind.

# input_job DATA [SED]: a job on the data set DATA, in $dir/job.yaml
input_job() {
    cat >"$dir/job.yaml" <<YAML
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: input}
spec:
  model: {inputShape: [2], layers: [{Dense: {units: 1}}]}
  compile: {optimizer: SGD, loss: mse}
  data: {train: $1}
  fit: {epochs: 1, batchSize: 2}
YAML
    [ $# = 1 ] || sed -i "$2" "$dir/job.yaml"
}
# Never hangs: SIGKILL ends a hanging program after a generous time, which gives another exit code.
input_worker() { want_exit 2 timeout -s KILL 60 trainyard-worker --job "$dir/job.yaml" --data-dir "$dir" --output-dir "$dir/run"; }

# Pipes and devices where a file is expected: nothing is read, and the program does not wait.
test_input_pipes_and_devices() {
    mkfifo "$dir/pipe"
    local spec
    for spec in '{format: csv, files: pipe}' '{format: npy, features: pipe}' '{format: tfrecord, files: pipe, label: "", columns: [{name: x, type: float}]}' \
        '{format: idx, features: /dev/zero}' '{format: csv, files: /dev/tty}'; do
        input_job "$spec"
        input_worker
        want_line 'not a regular file|No such device'
    done
    input_job '{format: csv, files: a}' 's/^  model: .*/  model: {kerasFile: pipe}/'
    input_worker
    want_line 'job.yaml:5:[0-9]*: spec.model.kerasFile: .*pipe: not a regular file'
    want_exit 2 timeout -s KILL 60 trainyard validate "$dir/pipe"
    want_line 'pipe: not a regular file'
    want_exit 2 timeout -s KILL 60 trainyard-worker --job "$dir/pipe"
    want_exit 0 timeout -s KILL 60 trainyard show events "$dir/pipe"
    want_line 'warning: .*pipe: not a regular file'
    # the shell's <(...) is a pipe with a writer
    want_exit 0 timeout -s KILL 60 trainyard validate <(sed '1,/^---/d' "$root/deploy/examples/digits.yaml")
    want_no_process
}

# 300 kB of gzip that become 300 MB: refused when 256 MiB are exceeded, and the unpacked data is deleted.
# maxUnpackedBytes changes the limit.
test_input_gzip_bomb() {
    { echo a,b,c && head -c 300000000 /dev/zero | tr '\0' '\n'; } | gzip -9 >"$dir/bomb.csv.gz"
    at_most "$(stat -c %s "$dir/bomb.csv.gz")" 1000000 "bytes of the bomb"
    input_job '{format: csv, files: bomb.csv}'
    input_worker
    want_line 'bomb.csv.gz: is larger than 256.0 MiB when decompressed; .*maxUnpackedBytes'
    at_most "$(du -sk "$dir/run" 2>/dev/null | cut -f1)" 1000 "kB in the output folder"
    input_job '{format: csv, files: bomb.csv, maxUnpackedBytes: 1000000}'
    input_worker
    want_line 'is larger than 976.6 KiB'
    input_job '{format: csv, files: bomb.csv, maxUnpackedBytes: 400000000}'
    input_worker
    want_line 'bomb.csv.gz: holds no examples|bomb.csv: holds no examples'
}

# Fields that point outside the output folder, or to another API path.
test_input_fields_that_lead_away() {
    local directory
    for directory in ../x /tmp/x a/../../x .. ./../x; do
        input_job '{format: csv, files: a.csv}' "s|^  fit:|  summaries: {directory: $directory}\n  fit:|"
        want_exit 2 trainyard validate "$dir/job.yaml"
        want_line "job.yaml:8:[0-9]*: spec.summaries.directory: '$directory' must be a folder within the output folder"
        input_worker
    done
    [ ! -e "$dir/x" ] || problem "the worker made a folder beside its output"
    input_job '{format: csv, files: a.csv}' 's|^  fit:|  summaries: {directory: a/..b/c}\n  fit:|'
    want_exit 0 trainyard validate "$dir/job.yaml"
    local name
    for name in .. a/b ../../secrets/x A 'a..b' -a; do
        input_job '{format: csv, files: a.csv}' "s|^  fit:|  storage: {data: {persistentVolumeClaim: {claimName: \"$name\"}}}\n  fit:|"
        want_exit 2 trainyard validate "$dir/job.yaml"
        want_line "job.yaml:8:[0-9]*: spec.storage.data.persistentVolumeClaim.claimName: '$name' is not a valid claim name"
    done
}

# Shapes whose product is more than memory, or more than 64 bits: the manifest is wrong, so a retry does not help.
test_input_shapes_that_overflow() {
    # one record: the empty message (length 0, both masked CRC-32C)
    printf '\0\0\0\0\0\0\0\0\x29\x03\x98\x07\xd8\xea\x82\xa2' >"$dir/t.tfrecord"
    local shape
    for shape in '2147483647, 2147483647, 2147483647' '2147483647, 4' '100000, 10000'; do
        input_job "{format: tfrecord, files: t.tfrecord, label: '', columns: [{name: x, type: float, shape: [$shape]}]}"
        input_worker
        want_line 'job.yaml:7:.*(is too large|columns: their shapes need 1000000000 numbers, but record 0 of .* has 0 bytes)'
    done
}

# A job's uid is used in JSON, in messages and in file names.
test_input_uid() {
    input_job '{format: csv, files: a.csv}'
    printf 'a,b,c\n1,2,3\n' >"$dir/a.csv"
    local uid
    for uid in $'\xff\xfe' 'a b' '../x' $'a\nb'; do
        want_exit 2 env TRAINYARD_JOB_UID="$uid" timeout -s KILL 60 trainyard-worker --job "$dir/job.yaml" --data-dir "$dir" --output-dir "$dir/run"
        want_line "the job's uid must be 1 to 128 letters"
        want_exit 2 timeout -s KILL 60 trainyard-ps --job "$dir/job.yaml" --job-uid "$uid" --job-name ps --task-index 0 --ps-hosts localhost:1 --worker-hosts localhost:2
        want_line "the job's uid must be 1 to 128 letters"
    done
    mkdir -p "$dir/run" && printf '\377\376\n' >"$dir/run/uid"
    input_worker
    want_line "run/uid: the job's uid must be"
}

# The operator does not guess which of the two is meant.
test_input_kubeconfig_insecure_with_ca() {
    openssl req -x509 -newkey rsa:2048 -nodes -keyout /dev/null -subj /CN=x -days 1 -out "$dir/ca.crt" 2>/dev/null
    cat >"$dir/config" <<YAML
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1", insecure-skip-tls-verify: true, certificate-authority: ca.crt}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
YAML
    want_exit 2 timeout -s KILL 60 trainyard-operator --kubeconfig "$dir/config"
    want_line 'config:4:[0-9]*: clusters\[0\].cluster: cannot be combined with certificate-authority'
}

# `trainyard validate` reports all errors, each with its place; with --data-dir it checks the data as well.
test_input_validate_names_all_faults() {
    cat >"$dir/job.yaml" <<'YAML'
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: bad}
spec:
  model:
    inputShape: [4]
    layers:
      - Dense: {unit: 3, activation: relu}
      - Flaten: {}
      - Dropout: {rate: 2}
      - Sequential: {layers: [{Dens: {units: 3}}]}
  compile: {optimizer: {Adam: {lr: 0.1}}, loss: msee}
  data:
    train: {format: csv, files: t.csv, columns: [{name: a, type: float, vocabulary: [x]}]}
  fit: {epoch: 2, batchSize: 0}
YAML
    want_exit 2 trainyard validate "$dir/job.yaml"
    local words
    while read -r words; do want_line "job.yaml:$words"; done <<'END'
8:17: .*key 'unit' is not known; did you mean 'units'
9:9: .*layer 'Flaten' is not known; did you mean 'Flatten'
10:25: .*rate: must be between 0 and 1
11:31: .*layers\[3\]\.Sequential\.layers\[0\]: layer 'Dens' is not known; did you mean 'Dense'
12:32: .*key 'lr' is not known; did you mean 'learning_rate'
12:49: .*loss 'msee' is not known; did you mean 'mse'
14:85: .*only a column of type category or text has 'vocabulary'
15:9: .*key 'epoch' is not known; did you mean 'epochs'
15:30: .*must be 1 to 16777216
END
    input_job '{format: csv, files: a.csv}'
    printf 'a,b,c\n1,2,3\n' >"$dir/a.csv"
    want_exit 0 trainyard validate --data-dir "$dir" "$dir/job.yaml"
    printf 'a,b,c\n1,x,3\n' >"$dir/a.csv"
    want_exit 2 trainyard validate --data-dir "$dir" "$dir/job.yaml"
    want_line "a.csv:2:3: column 'b': 'x' is not a number"
    want_exit 2 trainyard validate "$dir/job.yaml" # the data beside it
    mkdir "$dir/elsewhere"
    cp "$dir/job.yaml" "$dir/elsewhere"
    want_exit 0 trainyard validate "$dir/elsewhere/job.yaml" # none are there
    printf 'a,b\n1,2\n' >"$dir/a.csv"
    want_exit 2 trainyard validate --data-dir "$dir" "$dir/job.yaml"
    want_line 'job.yaml:7:.*spec.data.train: .*\(2,\)'
    printf 'a,b,c\n1,2,3\n' | gzip >"$dir/a.csv"
    want_exit 0 env TMPDIR="$dir" trainyard validate --data-dir "$dir" "$dir/job.yaml"
    [ -z "$(find "$dir" -name 'trainyard-look.*')" ] || problem "validate leaves its folder"
    want_exit 2 trainyard validate --set fit.epochs=null "$dir/job.yaml"
    want_line "'epochs' is missing"
    want_exit 0 trainyard validate --set fit.epochs=null --set fit.steps=5 "$dir/job.yaml"
}
