# Tests of run.sh: evaluate and predict. Sourced by it.
# shellcheck shell=bash disable=SC2154 # its variables

listed() { find "$dir/run" -type f -exec md5sum {} + | sort; }

test_evaluate_is_the_runs_own() { # the same loss as the chief computed at the end, and nothing in the run changes
    want_exit 0 run --set fit.epochs=3 || return
    listed >"$dir/before"
    chmod -R a-w "$dir/run"
    want_exit 0 trainyard evaluate "$dir/run" --data-dir "$data" --json || return
    local loss
    loss=$(sed -n 's/.*"loss":\([-0-9.e]*\).*/\1/p' "$dir/out")
    [ "$loss" = "$(final "$dir/run" loss)" ] || problem "the loss is $loss, the run's own is $(final "$dir/run" loss)"
    want_exit 0 trainyard evaluate "$dir/run" --batch-size 7 "$data/digits/validation-images-idx3-ubyte" \
        --labels "$data/digits/validation-labels-idx1-ubyte"
    want_line '^loss 0\.[0-9]+, accuracy 0\.[0-9]+ \(297 examples, .*model.ckpt-150\)$'
    want_exit 0 trainyard predict "$dir/run" --data-dir "$data" -o "$dir/p.npy"
    chmod -R u+w "$dir/run"
    listed | cmp - "$dir/before" || wrong "the run was changed"
}

test_predict_is_as_accurate_as_evaluate() { # and the three formats contain the same numbers
    want_exit 0 run --set fit.epochs=3 || return
    local images=$data/digits/validation-images-idx3-ubyte labels=$data/digits/validation-labels-idx1-ubyte right
    want_exit 0 trainyard predict "$dir/run" "$images" -o "$dir/p.csv" || return
    want_exit 0 trainyard predict "$dir/run" "$images" -o "$dir/p.jsonl" || return
    want_exit 0 trainyard predict "$dir/run" "$images" -o "$dir/p11.csv" --batch-size 11 || return
    want_exit 0 trainyard predict "$dir/run" --data "{format: idx, features: $images}" -o "$dir/p.npy" || return
    trainyard predict "$dir/run" - <"$images" >"$dir/stdin.csv" || problem "standard input is not read"
    cmp "$dir/p.csv" "$dir/stdin.csv" || wrong "standard input gives other predictions"
    sed -n '2,$p' "$dir/p.csv" >"$dir/rows"
    sed 's/{"prediction":\[//; s/\]}//' "$dir/p.jsonl" | cmp - "$dir/rows" || wrong "JSON lines differ from CSV"
    paste -d, "$dir/p.csv" "$dir/p11.csv" | awk -F, 'NR > 1 { for (i = 1; i <= NF / 2; i++) { d = $i - $(i + NF / 2); if (d > 1e-5 || d < -1e-5) exit 1 } } END { if (NR < 100) exit 1 }' ||
        problem "the batch size changes predictions by more than rounding" # the BLAS adds in another order
    tail -c +129 "$dir/p.npy" | od -An -v -w40 -t f4 | awk '{for (i = 1; i <= NF; i++) printf "%.5g%s", $i, i < NF ? "," : "\n"}' >"$dir/npy"
    awk -F, '{for (i = 1; i <= NF; i++) printf "%.5g%s", $i, i < NF ? "," : "\n"}' "$dir/rows" | cmp - "$dir/npy" || wrong "npy differs from CSV"
    right=$(tail -c +9 "$labels" | od -An -v -w1 -t u1 | tr -d ' ' | paste -d, - "$dir/rows" |
        awk -F, '{best = 2; for (i = 3; i <= NF; i++) if ($i > $best) best = i; n += best - 2 == $1} END {printf "%.12g", n / NR}')
    awk -v a="$right" -v b="$(final "$dir/run" accuracy)" 'BEGIN {exit !(a - b < 1e-9 && b - a < 1e-9)}' ||
        problem "the predictions are right in $right, the run says $(final "$dir/run" accuracy)"
}

test_predict_csv_with_and_without_labels() {
    local csv=$data/regression/validation.csv
    want_exit 0 trainyard run "$data/regression.yaml" --data-dir "$data" --output-dir "$dir/run" --set fit.epochs=2 || return
    cut -d, -f1-10 "$csv" >"$dir/features.csv"
    gzip -c "$csv" >"$dir/validation.csv.gz"
    want_exit 0 trainyard predict "$dir/run" "$csv" -o "$dir/with.csv" || return
    want_exit 0 trainyard predict "$dir/run" "$dir/features.csv" -o "$dir/without.csv" || return
    want_exit 0 trainyard predict "$dir/run" "$dir/validation.csv.gz" "$dir/validation.csv.gz" -o "$dir/twice.csv" || return
    cmp "$dir/with.csv" "$dir/without.csv" || wrong "a label column changes the predictions"
    [ "$(head -n 1 "$dir/with.csv")" = prediction ] || problem "the header is $(head -n 1 "$dir/with.csv")"
    [ "$(wc -l <"$dir/twice.csv")" = $((2 * $(wc -l <"$csv") - 1)) ] || problem "two files give $(wc -l <"$dir/twice.csv") lines"
    # the mean squared error of the predictions is the loss
    want_exit 0 trainyard evaluate "$dir/run" "$csv" --json || return
    paste -d, "$csv" "$dir/with.csv" | awk -F, 'NR > 1 {s += ($11 - $12) ^ 2} END {print s / (NR - 1)}' >"$dir/mse"
    awk -v a="$(cat "$dir/mse")" -v b="$(sed -n 's/.*"loss":\([-0-9.e]*\).*/\1/p' "$dir/out")" 'BEGIN {exit !(a > 0 && (a - b) ^ 2 < 1e-8 * a * a)}' ||
        problem "predictions have the error $(cat "$dir/mse"), evaluate says $(cat "$dir/out")"
}

# Columns of a file in another order, under other names, and a file without its header.
test_columns_are_found_by_name() {
    local csv=$data/regression/validation.csv name
    mkdir "$dir/data"
    cp -r "$data/regression" "$dir/data/"
    reorder() { awk -F, -v OFS=, '{print $11, "note", $10, $9, $8, $7, $6, $5, $4, $3, $2, $1}' "$1"; }
    reorder "$csv" >"$dir/data/regression/validation.csv"
    want_exit 0 trainyard run "$data/regression.yaml" --data-dir "$dir/data" --output-dir "$dir/run" --set fit.epochs=2 || return
    trainyard evaluate "$dir/run" "$csv" --json | sed 's/,"checkpoint.*//' >"$dir/want"
    trainyard evaluate "$dir/run" "$dir/data/regression/validation.csv" --json | sed 's/,"checkpoint.*//' >"$dir/got"
    cmp "$dir/want" "$dir/got" || wrong "evaluate gives $(cat "$dir/got"), in the run's order $(cat "$dir/want")"
    want_line "\"loss\": *$(sed -n 's/.*"loss":\([0-9]*\.[0-9]\{4\}\).*/\1/p' "$dir/want")" "$dir/run/history.json" # of data.validation
    trainyard predict "$dir/run" "$csv" -o "$dir/want.csv" && trainyard predict "$dir/run" "$dir/data/regression/validation.csv" -o "$dir/got.csv"
    cmp "$dir/want.csv" "$dir/got.csv" || wrong "predict reads other columns"
    sed "1s/^[^,]*/first/" "$csv" >"$dir/renamed.csv"
    want_exit 2 trainyard evaluate "$dir/run" "$dir/renamed.csv"
    want_line "renamed.csv:1: no column $(head -n 1 "$csv" | cut -d, -f1);? .*the run was trained with $(head -n 1 "$csv" | cut -d, -f1), .*; here are first, "
    want_exit 2 trainyard predict "$dir/run" "$dir/renamed.csv"
    sed 1d "$csv" >"$dir/headerless.csv"
    want_exit 2 trainyard evaluate "$dir/run" "$dir/headerless.csv"
    want_line 'headerless.csv:1: the first line has numbers .*set header: false'
    trainyard evaluate "$dir/run" --data "{format: csv, files: $dir/headerless.csv, header: false}" --json | sed 's/,"checkpoint.*//' >"$dir/got"
    cmp "$dir/want" "$dir/got" || wrong "a file without a header gives $(cat "$dir/got")"
    for name in train validation; do reorder "$data/regression/$name.csv" | cut -d, -f1,3- >"$dir/data/regression/$name.csv"; done
    want_exit 2 trainyard run "$data/regression.yaml" --data-dir "$dir/data" --output-dir "$dir/run" --rebase --set fit.epochs=4
    want_line "the run was trained with the columns $(head -n 1 "$csv" | cut -d, -f1), .*; data.train has .*: name the run's columns in data.train.columns"
}

# The chief says it once, whatever the number of replicas, and validate before it.
test_labels_that_are_all_equal() {
    printf 'Label,a,b\n1,4,0\n0,5,0\n1,6,0\n0,7,0\n' >"$dir/t.csv"
    cat >"$dir/job.yaml" <<'END'
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: labels}
spec:
  model: {inputShape: [2], layers: [{Dense: {units: 2, activation: softmax}}]}
  compile: {optimizer: SGD, loss: sparse_categorical_crossentropy}
  data: {train: {format: csv, files: t.csv}}
  fit: {epochs: 1, batchSize: 2}
  replicaSpecs: {Chief: {}, PS: {replicas: 1}, Worker: {replicas: 2}}
END
    local warning="warning: data.train: .*t.csv:2:5: column 'b': the label of all 4 examples is 0, .*; if 'Label' is the label, set label: Label"
    want_exit 0 trainyard validate "$dir/job.yaml" --data-dir "$dir" || return
    want_line "$warning"
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$dir" --output-dir "$dir/run" || return
    [ "$(grep -cE "$warning" "$dir/out")" = 1 ] || problem "the warning is printed $(grep -cE "$warning" "$dir/out") times"
}

# The manifest, the model, what it is compiled with, and the data, in one go.
test_validate_tells_all_faults() {
    local i
    { echo a,b,y; for i in 1 2 3 4 5 6; do echo "$i,0,$((i / 4))"; done; } >"$dir/t.csv"
    sed 's/2,0/2,many/' "$dir/t.csv" >"$dir/words.csv"
    cat >"$dir/job.yaml" <<'END'
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: faults}
spec:
  model: {inputShape: [2], layers: [{Dense: {units: 0}}]}
  compile: {optimizer: adm, loss: mse, metrics: [nope, maee]}
  data: {train: {format: csv, files: words.csv}}
  fit: {epochs: -1, batchSize: 2}
END
    want_exit 2 trainyard validate "$dir/job.yaml"
    want_line 'fit.epochs: must be 1 to'
    want_line 'layers\[0\].Dense.units: must be 1 or greater'
    want_line "optimizer 'adm' is not known; did you mean 'Adam'"
    want_line "metrics\[0\]: metric 'nope' is not known"
    want_line "metrics\[1\]: metric 'maee' is not known; did you mean 'mae'"
    want_line "words.csv:3:3: column 'b': 'many' is not a number"
    [ "$(grep -c '^error' "$dir/out")" = 6 ] || problem "validate tells $(grep -c '^error' "$dir/out") faults"
    set -- --set fit.epochs=1 --set 'model.layers=[Dense: {units: 1}]' --set compile.optimizer=SGD --set 'compile.metrics=[mae]'
    want_exit 0 trainyard validate "$dir/job.yaml" "$@" --set data.train.files=t.csv --set fit.validationSplit=0.4
    want_line "warning: fit.validationSplit: .*t.csv:5:5: column 'y': the label of the last 3 examples is 1"
    { sed '/model:/,$d' "$dir/job.yaml"
      printf "  model: {keras: '%s%1100000s'}\n" '{"class_name": "Sequential", "config": {"layers": [{"class_name": "Dense", "config": {"units": 1, "batch_input_shape": [null, 2]}}]}}' ''
      sed '1,/model:/d' "$dir/job.yaml"; } >"$dir/large.yaml"
    want_exit 0 trainyard validate "$dir/large.yaml" --set fit.epochs=1 --set compile.optimizer=SGD --set 'compile.metrics=[]' --set data.train.files=t.csv
    want_line 'warning: .*large.yaml: on a cluster it is refused: spec: has 1075 KiB for the replicas, and a ConfigMap at most 1024: .* with .kerasFile'
}

# Semicolons, decimal commas, thousands, a title, a comma at the end of the header, and missing values.
test_a_table_of_a_spreadsheet() {
    local i
    { echo "Prices of flats;;;"; echo "size;rooms;price;"
      for i in $(seq 40); do printf '%d,5;%d;"1.%03d,25"\n' "$i" $((i % 4)) $((i * 10)); done
      echo "-;1;2"; echo "7,5;NA;2"; echo "8;2;null"; } >"$dir/t.csv"
    cat >"$dir/job.yaml" <<'END'
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: flats}
spec:
  model: {inputShape: [2], layers: [{Normalization: {}}, {Dense: {units: 1}}]}
  compile: {optimizer: {SGD: {learning_rate: 0.01}}, loss: mse}
  data:
    train:
      {format: csv, files: t.csv, skipRows: 1, delimiter: ";", decimal: ",", thousands: ".", naValues: [NA, "-", "null"], missing: drop}
  fit: {epochs: 2, batchSize: 8}
END
    want_exit 2 trainyard validate "$dir/job.yaml" --data-dir "$dir" --set data.train.missing=error
    want_line "t.csv:43:1: column 'size': the value is missing \('-'\); set missing: mean or mode, the column's 'default', or missing: drop"
    want_exit 2 trainyard validate "$dir/job.yaml" --data-dir "$dir" --set data.train.skipRows=0
    want_exit 2 trainyard validate "$dir/job.yaml" --data-dir "$dir" --set 'data.train.decimal="."' --set 'data.train.thousands=","'
    want_line "t.csv:3:1: column 'size': '1,5' is not a number as the data set writes them; it is 1.5 with decimal: \",\""
    want_exit 0 trainyard validate "$dir/job.yaml" --data-dir "$dir" || return
    want_line 'warning: data.train: 3 of 43 examples lack a value and are left out \(missing: drop\)'
    want_line ', 40 examples, 0 for validation'
    want_exit 0 trainyard validate "$dir/job.yaml" # the manifest's folder
    want_line ', 40 examples, 0 for validation'
    mkdir "$dir/elsewhere"
    cp "$dir/job.yaml" "$dir/elsewhere"
    want_exit 0 trainyard validate "$dir/elsewhere/job.yaml" # the data need not be there
    want_line 'single machine, 2 epochs\)'
    want_exit 2 trainyard validate "$dir/elsewhere/job.yaml" --data-dir "$dir/elsewhere"
    want_line "no file matches 't.csv'"
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$dir" --output-dir "$dir/run" || return
    [ "$(grep -c 'examples lack a value' "$dir/out")" = 1 ] || problem "the warning is printed $(grep -c 'examples lack a value' "$dir/out") times"
    want_exit 0 trainyard evaluate "$dir/run" "$dir/t.csv" || return
    want_line 'warning: 3 of 43 examples lack a value'
    want_line '\(40 examples, '
    want_exit 0 trainyard predict "$dir/run" "$dir/t.csv" -o "$dir/p.csv" || return
    want_line 'warning: 2 of 43 examples lack a value' # whatever the label
    [ "$(wc -l <"$dir/p.csv")" = 42 ] || problem "$(wc -l <"$dir/p.csv") lines of predictions"
    iconv -f UTF-8 -t UTF-16 "$dir/t.csv" >"$dir/utf-16.csv"
    want_exit 0 trainyard predict "$dir/run" "$dir/utf-16.csv" -o "$dir/q.csv" || return
    cmp "$dir/p.csv" "$dir/q.csv" || wrong "the file in UTF-16 gives other predictions"
}

# Titanic's way: an id and a word for each passenger, of a file without the label and with examples that are left out.
test_predict_ids_and_classes() {
    local i
    { echo "PassengerId,age,Name,survived"
      for i in $(seq 40); do echo "$((800 + i)),$((i % 7)),\"Doe, $i\",$([ $((i % 7)) -gt 3 ] && echo yes || echo no)"; done; } >"$dir/t.csv"
    cat >"$dir/job.yaml" <<'END'
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: titanic}
spec:
  model: {inputShape: [1], layers: [{Dense: {units: 1, activation: sigmoid}}]}
  compile: {optimizer: {Adam: {learning_rate: 0.5}}, loss: binary_crossentropy, metrics: [accuracy]}
  data:
    train:
      {format: csv, files: t.csv, missing: drop, label: survived, columns: [{name: age}, {name: survived, type: category, vocabulary: ["no", "yes"]}]}
  fit: {epochs: 60, batchSize: 8, validationSplit: 0.25}
END
    want_exit 0 trainyard run "$dir/job.yaml" --output-dir "$dir/run" || return
    { echo "Name,PassengerId,age"; echo '"Doe, ""J""",892,0'; echo 'Roe,893,'; echo ' Poe ,894,6'; } >"$dir/new.csv"
    want_exit 0 trainyard predict "$dir/run" "$dir/new.csv" --id PassengerId --classes || return
    want_line '^PassengerId,class,probability$'
    want_line '^892,no,(0\.[5-9][0-9]*|1)$'
    want_line '^894,yes,(0\.[5-9][0-9]*|1)$'
    want_no_line '^893'
    want_exit 0 trainyard predict "$dir/run" "$dir/new.csv" --id Name -o "$dir/p.jsonl"
    [ "$(cut -d: -f1,2 "$dir/p.jsonl" | sed 's/,"prediction.*//' | tr '\n' ';')" = '{"Name":"Doe, \"J\"";{"Name":"Poe";' ] || problem "the names are $(cat "$dir/p.jsonl")"
    want_exit 0 trainyard predict "$dir/run" "$dir/new.csv" --id Name
    want_line '^"Doe, ""J""",[0-9.e-]+$'
    want_exit 2 trainyard predict "$dir/run" "$dir/new.csv" --id ticket
    want_line "^error: --id: .*new.csv has no column 'ticket'; the columns are Name, PassengerId, age"
    want_exit 2 trainyard predict "$dir/run" "$dir/new.csv" --id passengerid
    want_line "^error: --id: .*new.csv has no column 'passengerid'; did you mean 'PassengerId'\?$"
    want_exit 2 trainyard predict "$dir/run" "$dir/new.csv" --id Name -o "$dir/p.npy"
    want_line 'npy has numbers only'
    # its own data, wherever the command is called
    (cd / && trainyard predict "$dir/run" --id PassengerId) >"$dir/own.csv" 2>"$dir/err" || problem "predict of the run's own data: $(cat "$dir/err")"
    cut -d, -f1 "$dir/own.csv" | tr '\n' ' ' | grep -qx 'PassengerId 831 832 833 834 835 836 837 838 839 840 ' || problem "the ids are $(cut -d, -f1 "$dir/own.csv")"
    # a reader that has enough: more output than a pipe holds
    { echo age; seq 100000 | awk '{print $1 % 7}'; } >"$dir/big.csv"
    (set -o pipefail; trainyard predict "$dir/run" "$dir/big.csv" 2>"$dir/err" | head -n 1 >"$dir/out") || problem "a closed pipe is an error: $(cat "$dir/err")"
    [ ! -s "$dir/err" ] || problem "a closed pipe: $(cat "$dir/err")"
}

# Words, means and the model's input come from the data, in every process, and the run keeps them.
test_a_job_that_leaves_columns_to_its_data() {
    local i
    { echo "maker,power,weight,name,origin"
      for i in $(seq 60); do
          case $((i % 3)) in 0) echo "Fiat,$((50 + i)),800,a$i,Europe" ;; 1) echo "Ford,$((100 + i)),?,b$i,USA" ;; *) echo "Honda,NA,900,c$i,Japan" ;; esac
      done; } >"$dir/cars.csv"
    cat >"$dir/job.yaml" <<'END'
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: cars}
spec:
  model: {layers: [{Normalization: {}}, {Dense: {units: 3, activation: softmax}}]}
  compile: {optimizer: Adam, loss: sparse_categorical_crossentropy, metrics: [accuracy]}
  data:
    train:
      {format: csv, files: cars.csv, missing: mean, label: origin, dropColumns: [name], columns: [{name: maker, type: category, vocabulary: auto, encoding: one_hot}, {name: origin, type: category, vocabulary: auto}]}
  fit: {epochs: 2, batchSize: 8}
  replicaSpecs: {Chief: {}, PS: {replicas: 1}, Worker: {replicas: 2}}
END
    want_exit 0 trainyard validate "$dir/job.yaml" || return
    want_line "learned from data.train: column 'maker': 3 words \(Fiat, Ford, Honda\)"
    want_line "learned from data.train: column 'weight': 20 missing values, read as the mean 850"
    want_line "learned from data.train: the model's input is \(5,\), as an example of data.train"
    want_line '60 examples, 0 for validation'
    want_exit 0 trainyard show model "$dir/job.yaml" || return
    want_exit 0 trainyard run "$dir/job.yaml" --output-dir "$dir/run" || return
    want_line 'running cars: 1 ps, 2 workers, 1 chief, 28 parameters'
    want_line 'vocabulary: *\[?' "$dir/run/job.yaml"
    want_line 'inputShape' "$dir/run/job.yaml"
    head -n 5 "$dir/cars.csv" >"$dir/new.csv"
    want_exit 0 trainyard predict "$dir/run" "$dir/new.csv" -o "$dir/p.csv" || return
    [ "$(wc -l <"$dir/p.csv")" = 5 ] || problem "$(wc -l <"$dir/p.csv") lines of predictions"
    want_exit 0 trainyard evaluate "$dir/run" "$dir/cars.csv" || return
    want_line '\(60 examples, '
    sed '2s/^[^,]*/Lada/' "$dir/cars.csv" >"$dir/other.csv"
    want_exit 2 trainyard predict "$dir/run" "$dir/other.csv"
    want_line "other.csv:2:1: column 'maker': 'Lada' is not in the vocabulary; it has Fiat, Ford, Honda"
    want_exit 0 trainyard run "$dir/job.yaml" --output-dir "$dir/run" --resume --set fit.epochs=3 || return # the same data, the same words
    mkdir "$dir/other"
    grep -v '^Fiat' "$dir/cars.csv" >"$dir/other/cars.csv" # the run keeps its words
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$dir/other" --output-dir "$dir/run" --rebase --set fit.epochs=4 || return
    want_line "learned from data.train: column 'maker': 3 words of the run \(Fiat, Ford, Honda\)"
    sed 's/^Fiat/Alfa/' "$dir/cars.csv" >"$dir/other/cars.csv"
    want_exit 2 trainyard run "$dir/job.yaml" --data-dir "$dir/other" --output-dir "$dir/run" --rebase --set fit.epochs=5
    want_line "cars.csv:4:1: column 'maker': 'Alfa' is not in the vocabulary"
    sed 's/vocabulary: auto, encoding: one_hot/vocabulary: [Alfa, Fiat, Ford, Honda], encoding: int/' "$dir/job.yaml" >"$dir/listed.yaml"
    want_exit 2 trainyard run "$dir/listed.yaml" --data-dir "$dir/other" --output-dir "$dir/run" --rebase --set fit.epochs=5
    want_line "the vocabulary of column 'maker' differs from that of the run: list the words of .*job.yaml"
    rm "$dir/cars.csv" # show model reads the run without its data
    want_exit 0 trainyard show model "$dir/run/job.yaml"
}

test_npz_is_the_same_data() { # as the idx files from which it was made: the same order, so the same loss
    local npz=$root/test/data/data/npz/digits.npz loss
    single_job 's/^(  fit:.*epochs: )20/\12/'
    want_exit 0 alone || return
    loss=$(final "$dir/run" loss)
    awk '/^    (train|validation): / {next} {print} /^  data:/ {print "    train: {format: npz, files: digits.npz, features: x_train, labels: y_train}\n    validation: {format: npz, files: digits.npz, features: x_test, labels: y_test}"}' \
        "$dir/job.yaml" >"$dir/npz.yaml"
    cp "$npz" "$dir/digits.npz"
    want_exit 0 trainyard validate "$dir/npz.yaml" --data-dir "$dir"
    want_exit 0 trainyard-worker --job "$dir/npz.yaml" --data-dir "$dir" --output-dir "$dir/npz" || return
    [ "$(final "$dir/npz" loss)" = "$loss" ] || problem "the loss is $(final "$dir/npz" loss), of the idx files $loss"
    want_exit 0 trainyard evaluate "$dir/npz" --data-dir "$dir" digits.npz --json || return
    want_line "\"loss\":$loss,"
    want_exit 0 trainyard predict "$dir/npz" "$dir/digits.npz" -o "$dir/npz.csv" || return
    want_exit 0 trainyard predict "$dir/npz" -o "$dir/idx.csv" \
        --data "{format: idx, features: $data/digits/validation-images-idx3-ubyte}" || return
    cmp "$dir/npz.csv" "$dir/idx.csv" || wrong "the arrays give other predictions than the idx file"
    want_exit 2 trainyard predict "$dir/npz" --data "{format: npz, files: $dir/digits.npz, features: x_tests}"
    want_line "digits.npz has no array 'x_tests' \(it has x_train, y_train, x_test, y_test\); did you mean 'x_test'"
}

test_two_targets_of_csv_are_those_of_an_array() { # the same order, so the same numbers, alone and in a cluster
    local targets=$root/test/data/data/targets format one
    declare -A data_of=([csv]='{format: csv, files: homes.csv, label: [price, rent], shuffle: false}' \
        [npz]='{format: npz, files: homes.npz, features: x, labels: y, shuffle: false}')
    for format in csv npz; do
        cat >"$dir/$format.yaml" <<EOF
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: homes}
spec:
  model: {inputShape: [3], layers: [Dense: {units: 2}]}
  compile: {optimizer: {Adam: {learning_rate: 0.1}}, loss: mse, metrics: [mae]}
  data: {train: ${data_of[$format]}, validation: ${data_of[$format]}}
  fit: {epochs: 3, batchSize: 7, seed: 1}
  replicaSpecs: {PS: {replicas: 1}, Worker: {replicas: 1}, Chief: {}}
EOF
        want_exit 0 trainyard-worker --job "$dir/$format.yaml" --data-dir "$targets" --output-dir "$dir/$format" || return
        want_exit 0 trainyard run "$dir/$format.yaml" --data-dir "$targets" --output-dir "$dir/cluster-$format" || return
    done
    for one in loss mae; do
        [ "$(final "$dir/csv" $one)" = "$(final "$dir/npz" $one)" ] && [ -n "$(final "$dir/csv" $one)" ] ||
            problem "$one is $(final "$dir/csv" $one) with csv, $(final "$dir/npz" $one) with an array"
    done
    for format in csv npz; do
        want_exit 0 trainyard evaluate "$dir/cluster-csv" --data-dir "$targets" --data "${data_of[$format]}" --json || return
        want_line "\"loss\":$(final "$dir/cluster-csv" loss),"
    done
    want_exit 0 trainyard predict "$dir/csv" "$targets/homes.csv" -o "$dir/with.csv" || return
    cut -d, -f2,3,5 "$targets/homes.csv" >"$dir/features.csv"
    want_exit 0 trainyard predict "$dir/csv" "$dir/features.csv" -o "$dir/without.csv" || return
    cmp "$dir/with.csv" "$dir/without.csv" || wrong "the label columns change the predictions"
    [ "$(head -n 1 "$dir/with.csv")" = prediction_0,prediction_1 ] || problem "the header is $(head -n 1 "$dir/with.csv")"
    paste -d, "$targets/homes.csv" "$dir/with.csv" | awk -F, 'NR > 1 {s += ($4 - $6) ^ 2 + ($1 - $7) ^ 2} END {print s / 2 / (NR - 1)}' >"$dir/mse"
    awk -v a="$(cat "$dir/mse")" -v b="$(final "$dir/csv" loss)" 'BEGIN {exit !(a > 0 && (a - b) ^ 2 < 1e-8 * a * a)}' ||
        problem "predictions have the error $(cat "$dir/mse"), the run's loss is $(final "$dir/csv" loss)"
}

# lists_job FOLDER FORMAT TYPE: $dir/FOLDER.yaml trains on the lists `word` of test/data/data/valid/FOLDER.
lists_job() {
    cat >"$dir/$1.yaml" <<EOF
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: lists}
spec:
  model:
    layers:
      - Embedding: {input_dim: 9, output_dim: 4, mask_zero: true}
      - GlobalAveragePooling1D
      - Dense: {units: 2, activation: softmax}
  compile: {optimizer: {Adam: {learning_rate: 0.1}}, loss: sparse_categorical_crossentropy}
  data: {train: {format: $2, files: [t.$2], label: label, columns: [{name: word, type: $3, outputSequenceLength: 4}, {name: label, type: $3}]}}
  fit: {epochs: 3, batchSize: 2, seed: 1}
EOF
}

test_lists_of_any_length_are_the_same_in_each_format() { # and in both messages of TFRecord files, so the same weights
    local folder format data="$root/test/data/data/valid"
    lists_job tfrecord-lists-sequence-example tfrecord int64
    lists_job tfrecord-lists-example tfrecord int64
    lists_job jsonl-lists-any-length jsonl int
    for folder in tfrecord-lists-sequence-example tfrecord-lists-example jsonl-lists-any-length; do
        format=${folder%%-*}
        want_exit 0 trainyard validate "$dir/$folder.yaml" --data-dir "$data/$folder" || return
        want_exit 0 trainyard show data "$dir/$folder.yaml" --data-dir "$data/$folder" || return
        want_line '^  6 examples of shape \(4,\) \(float32\), labels: class numbers$'
        want_exit 0 trainyard run "$dir/$folder.yaml" --data-dir "$data/$folder" --output-dir "$dir/$folder" || return
        want_exit 0 trainyard evaluate "$dir/$folder" "$data/$folder/t.$format" --json || return
        want_exit 0 trainyard predict "$dir/$folder" "$data/$folder/t.$format" -o "$dir/$folder.csv" || return
        [ -n "$(hash_of "$folder")" ] && [ "$(hash_of "$folder")" = "$(hash_of tfrecord-lists-sequence-example)" ] ||
            wrong "$folder gives other weights"
        cmp "$dir/$folder.csv" "$dir/tfrecord-lists-sequence-example.csv" || wrong "$folder gives other predictions"
    done
    sed -i 's/outputSequenceLength: 4/outputSequenceLength: 3/' "$dir/jsonl-lists-any-length.yaml"
    want_exit 2 trainyard run "$dir/jsonl-lists-any-length.yaml" --data-dir "$data/jsonl-lists-any-length" --output-dir "$dir/jsonl-lists-any-length"
}

test_json_lines_are_the_same_data_as_csv() { # the same words, the same order, so the same weights
    local format kind columns
    awk -v csv="$dir/t.csv" -v jsonl="$dir/t.jsonl" 'BEGIN {
        print "id,text,kind,stars,good" >csv
        split("fine bad dull great poor", word); split("shoes hats", kinds)
        for (i = 0; i < 60; i++) {
            text = word[i % 5 + 1] ", " word[i * 7 % 3 + 1]; kind = kinds[i % 3 % 2 + 1]; good = i % 5 == 0 || i % 5 == 3
            stars = i % 9 == 4 ? "" : i % 4 + 0.5
            printf "r%d,\"%s\",%s,%s,%d\n", i, text, kind, stars, good >csv
            field = stars != "" ? ", \"stars\": " stars : i % 2 ? ", \"stars\": null" : ""
            printf "{\"id\": \"r%d\", \"product\": {\"kind\": \"%s\"}, \"good\": %d%s, \"text\": \"%s\"}\n", i, kind, good, field, text >jsonl
        }
    }'
    for format in csv jsonl; do
        kind=kind
        [ $format = jsonl ] && kind=product.kind
        columns="{name: text, type: text, vocabulary: auto, outputSequenceLength: 4, encoding: int},
          {name: $kind, type: category, vocabulary: auto, encoding: one_hot}, {name: stars, type: float, missing: mean}"
        cat >"$dir/$format.yaml" <<EOF
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: reviews}
spec:
  model: {layers: [Dense: {units: 8, activation: relu}, Dense: {units: 2, activation: softmax}]}
  compile: {optimizer: {Adam: {learning_rate: 0.1}}, loss: sparse_categorical_crossentropy, metrics: [accuracy]}
  data: {train: {format: $format, files: [t.$format], label: good, columns: [$columns]}}
  fit: {epochs: 3, batchSize: 7, seed: 1, validationSplit: 0.2}
EOF
        want_exit 0 trainyard run "$dir/$format.yaml" --data-dir "$dir" --output-dir "$dir/$format" || return
        want_exit 0 trainyard evaluate "$dir/$format" --data-dir "$dir" --json || return
        want_line "\"loss\":$(final "$dir/$format" loss),"
        want_exit 0 trainyard predict "$dir/$format" "$dir/t.$format" --id id -o "$dir/$format.out.csv" || return
    done
    [ -n "$(hash_of csv)" ] && [ "$(hash_of csv)" = "$(hash_of jsonl)" ] || wrong "csv and jsonl give other weights"
    cmp "$dir/csv.out.csv" "$dir/jsonl.out.csv" || wrong "csv and jsonl give other predictions"
    grep -q '^r59,' "$dir/jsonl.out.csv" || problem "no ids: $(head -n 3 "$dir/jsonl.out.csv")"
    sed 's/, "good": [01]//' "$dir/t.jsonl" | gzip -c >"$dir/new.jsonl.gz" # no labels
    want_exit 0 trainyard predict "$dir/jsonl" "$dir/new.jsonl.gz" --id id -o "$dir/new.out.csv" || return
    cmp "$dir/new.out.csv" "$dir/jsonl.out.csv" || wrong "the label changes the predictions"
    want_exit 2 trainyard predict "$dir/jsonl" "$dir/t.jsonl" --id idd
    want_line "t.jsonl has no key 'idd'; did you mean 'id'"
    printf '{"id": "r0", "text": "fine", "product": {"kind": "hats"}, "stars": "3"}\n' >"$dir/wrong.jsonl"
    want_exit 2 trainyard predict "$dir/jsonl" "$dir/wrong.jsonl"
    want_line "wrong.jsonl:1:68: column 'stars': this is a text, not a number"
}

test_validation_data_are_described_by_the_training_data() { # also those of evaluate and predict, and between csv and jsonl
    awk -v csv="$dir/t.csv" -v jsonl="$dir/t.jsonl" 'BEGIN {
        print "good;kind;stars" >csv
        for (i = 0; i < 40; i++) {
            kind = i % 3 ? "hats" : "shoes"; good = i % 5 < 2; stars = i % 4
            printf "%d;%s;%d\n", good, kind, stars >csv
            printf "{\"kind\": \"%s\", \"stars\": %d, \"good\": %d}\n", kind, stars, good >jsonl
        }
    }'
    local set i=0
    for set in '{format: csv, files: t.csv}' '{format: jsonl, files: t.jsonl}'; do
        i=$((i + 1))
        cat >"$dir/$i.yaml" <<EOF
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: reviews}
spec:
  model: {layers: [Dense: {units: 1, activation: sigmoid}]}
  compile: {optimizer: SGD, loss: binary_crossentropy}
  data:
    train:
      {format: csv, files: t.csv, delimiter: ";", label: good, columns: [{name: kind, type: category, vocabulary: auto, encoding: one_hot},
       {name: stars, type: float}]}
    validation: $set
  fit: {epochs: 2, batchSize: 8, seed: 1}
EOF
        want_exit 0 trainyard run "$dir/$i.yaml" --data-dir "$dir" --output-dir "$dir/run$i" || return
    done
    [ "$(final "$dir/run1" loss)" = "$(final "$dir/run2" loss)" ] || wrong "validation by csv and by jsonl differ"
    cd "$dir" || return
    for set in t.csv t.jsonl '--data={format: csv, files: t.csv}' '--data={format: jsonl, files: t.jsonl}'; do
        want_exit 0 trainyard evaluate run1 "$set" --json || return
        want_line "\"loss\":$(final run1 loss),"
        want_exit 0 trainyard predict run1 "$set" -o "out$((i += 1)).csv" || return
        cmp out3.csv "out$i.csv" || wrong "$set gives other predictions"
    done
}

test_predict_needs_no_keras_file() { # the run's folder is enough
    want_exit 0 run --set fit.epochs=1 || return
    cp "$dir/run/model.json" "$dir/model.json"
    mkdir "$dir/data" && cp -r "$data/digits" "$dir/model.json" "$dir/data"
    awk '/^  model:/ {print "  model: {kerasFile: model.json}"; skip = 1; next} /^  [a-z]/ {skip = 0} !skip' "$digits" >"$dir/keras.yaml"
    want_exit 0 trainyard run "$dir/keras.yaml" --data-dir "$dir/data" --output-dir "$dir/keras" --set fit.epochs=1 || return
    rm "$dir/data/model.json"
    want_exit 0 trainyard evaluate "$dir/keras" --data-dir "$dir/data"
    want_line 'accuracy 0\.[0-9]+ \(297 examples'
}

test_a_compiled_keras_model() { # its compile_config counts where the manifest says nothing
    sed '/^  strategy:/d; /^  replicaSpecs:/,$d' "$digits" >"$dir/single.yaml"
    want_exit 0 trainyard run "$dir/single.yaml" --data-dir "$data" --output-dir "$dir/run" --set fit.epochs=1 || return
    mkdir "$dir/data" && cp -r "$data/digits" "$dir/run/model.json" "$dir/data"
    awk '/^  model:/ {print "  model: {kerasFile: model.json}"} /^  (model|compile):/ {skip = 1; next} /^  [a-z]/ {skip = 0} !skip' "$dir/single.yaml" >"$dir/keras.yaml"
    want_exit 0 trainyard run "$dir/keras.yaml" --data-dir "$dir/data" --output-dir "$dir/keras" --set fit.epochs=1 || return
    [ "$(final "$dir/keras" loss)" = "$(final "$dir/run" loss)" ] || wrong "the loss is $(final "$dir/keras" loss), not $(final "$dir/run" loss)"
    want_exit 0 trainyard evaluate "$dir/keras" --data-dir "$dir/data"
    want_line 'accuracy 0\.[0-9]+ \(297 examples'
}
