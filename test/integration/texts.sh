# Tests of run.sh: directories of texts. Sourced by it, after images.sh.
# shellcheck shell=bash disable=SC2154 # its variables

# text_files DIRECTORY FIRST N: N texts of each class, from its number FIRST on
text_files() {
    local class
    for class in neg pos; do mkdir -p "$1/$class/more"; done
    awk -v dir="$1" -v first="$2" -v n="$3" 'BEGIN {
        split("bad dull poor good fine great", word); split("the film was a plot and in it", other)
        for (i = first; i < first + n; i++)
            for (c = 0; c < 2; c++) {
                text = ""
                for (k = 0; k < 3 + i % 5; k++) text = text other[(i * 7 + k * 3 + c) % 8 + 1] " " (k == i % 3 ? word[c * 3 + (i + k) % 3 + 1] " " : "")
                file = dir "/" (c ? "pos" : "neg") (i % 4 ? "/" : "/more/") i ".txt"
                printf "%s", text "\n\"" (i % 2 ? "It was!" : "\\ in it.") "\"\n" >file
                close(file)
            }
    }'
}

texts_job() { # FORMAT-AND-FILES
    cat <<EOF
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: reviews}
spec:
  model:
    layers: [Embedding: {input_dim: 40, output_dim: 4, mask_zero: true}, GlobalAveragePooling1D: {}, Dense: {units: 2, activation: softmax}]
  compile: {optimizer: {Adam: {learning_rate: 0.1}}, loss: sparse_categorical_crossentropy, metrics: [accuracy]}
  data:
    train: {$1, columns: [{name: text, type: text, vocabulary: auto, maxTokens: 40, outputSequenceLength: 12}]}
  fit: {epochs: 4, batchSize: 8, seed: 1}
  replicaSpecs: {Chief: {}, PS: {}, Worker: {replicas: 2}}
  strategy: {updates: sync, replicasToAggregate: 2}
EOF
}

# A directory for each class, as for Keras's text_dataset_from_directory: trained by processes that each open it, evaluated,
# and new files are classified. The copy of the texts in the cache folder is JSON Lines, which give the same weights.
test_a_directory_of_texts_is_learned() {
    text_files "$dir/train" 0 40
    text_files "$dir/test" 40 10
    texts_job 'format: text, directory: train' >"$dir/job.yaml"
    sed -i 's/^  fit:/    validation: {format: text, directory: test}\n  fit:/' "$dir/job.yaml"
    want_exit 0 trainyard run "$dir/job.yaml" --output-dir "$dir/run" || return
    want_line 'Test loss: [0-9.]+, Test accuracy: 1'
    want_exit 0 trainyard evaluate "$dir/run" "$dir/test" --json || return
    want_line "\"loss\":$(final "$dir/run" loss),"
    cp "$dir/run/cache"/texts-*.raw "$dir" 2>/dev/null
    grep -l '"path":"pos/1.txt"' "$dir"/texts-*.raw | while read -r file; do mv "$file" "$dir/t.jsonl"; done
    texts_job 'format: jsonl, files: t.jsonl' >"$dir/lines.yaml"
    want_exit 0 trainyard run "$dir/lines.yaml" --output-dir "$dir/lines" || return
    [ -n "$(hash_of run)" ] && [ "$(hash_of run)" = "$(hash_of lines)" ] || wrong "the directory gives '$(hash_of run)', its lines '$(hash_of lines)'"

    printf 'A GREAT film!' | tee "$dir/new.txt" >"$dir/new \"é\" \\.txt"
    mkdir "$dir/odd" && cp "$dir/new.txt" "$dir/odd"/$'\xff.txt' # not UTF-8
    want_exit 0 trainyard predict "$dir/run" "$dir/new.txt" "$dir/new \"é\" \\.txt" "$dir/odd" "$dir/test/neg" --classes --id path -o "$dir/p.csv" || return
    want_line 'new.txt,pos,' "$dir/p.csv"
    want_line 'new ""é"" \\.txt",pos,' "$dir/p.csv"
    want_line '/[?].txt,pos,' "$dir/p.csv"
    want_exit 2 trainyard predict "$dir/run" "$dir/new.txt" "$dir/odd"/$'\xff.txt'
    want_line 'odd/[?].txt: the name of the file must be UTF-8; rename it, or name its directory'
    want_line 'test/neg/41.txt,neg,' "$dir/p.csv"
    [ "$(grep -c ,neg, "$dir/p.csv")" = 10 ] || problem "$(grep -c ,neg, "$dir/p.csv") texts of 10 are neg"
    mkdir "$dir/test/mixed" && cp "$dir/new.txt" "$dir/test/mixed"
    want_exit 2 trainyard evaluate "$dir/run" "$dir/test"
    want_line "the directory 'mixed' of .* is not one of the classes that the run was trained with, neg, pos"
    want_exit 0 trainyard show data "$dir/job.yaml" || return
    want_line '^ *text, 1 directory: train'
    want_line '^ *1  pos +40  50.0%'
    printf 'GIF89a\0' >"$dir/train/pos/0.gif.txt"
    want_exit 2 trainyard validate "$dir/job.yaml"
    want_line "train/pos/0.gif.txt: is not a text: it has a NUL, in its byte 7"
}

# A part of the files is for validation: the order of their hashes has both classes in each part. A stopped run continues.
test_a_split_of_texts_has_all_classes() {
    text_files "$dir/train" 0 40
    texts_job 'format: text, directory: train' | sed 's/seed: 1/seed: 1, validationSplit: 0.25/' >"$dir/job.yaml"
    want_exit 0 trainyard run "$dir/job.yaml" --output-dir "$dir/run" || return
    want_line 'Test accuracy: (0\.9[0-9]*|1)'
    want_exit 0 trainyard run "$dir/job.yaml" --output-dir "$dir/parts" --set fit.epochs=2 || return
    mv "$dir/train" "$dir/moved" && mv "$dir/moved" "$dir/train"
    find "$dir/train" -name '*.txt' -exec touch {} + # the same texts
    want_exit 0 trainyard run "$dir/job.yaml" --output-dir "$dir/parts" --resume || return
    [ -n "$(hash_of run)" ] && [ "$(hash_of run)" = "$(hash_of parts)" ] || wrong "a run in parts gives '$(hash_of parts)', not '$(hash_of run)'"
    printf 'another text' >"$dir/train/neg/1.txt"
    want_exit 2 trainyard run "$dir/job.yaml" --output-dir "$dir/parts" --resume --set fit.epochs=6
}

# The weights of words are those of the run: a run that is continued ends as one without a stop, also when other texts
# would give other weights, and evaluate and predict take them from its job.yaml.
test_weights_of_words_are_those_of_the_run() {
    text_files "$dir/train" 0 40
    text_files "$dir/test" 40 10
    texts_job 'format: text, directory: train' | sed 's/^    layers: .*/    layers: [Dense: {units: 2, activation: softmax}]/
        s/maxTokens: 40, outputSequenceLength: 12/ngrams: 2, maxTokens: 60, encoding: tf_idf/
        s/^  fit:/    validation: {format: text, directory: test}\n  fit:/' >"$dir/job.yaml"
    want_exit 0 trainyard run "$dir/job.yaml" --output-dir "$dir/run" || return
    want_line 'Test accuracy: 1'
    want_line '^ *idfWeights:' "$dir/run/job.yaml"
    want_exit 0 trainyard evaluate "$dir/run" "$dir/test" --json || return
    want_line "\"loss\":$(final "$dir/run" loss),"
    want_exit 0 trainyard predict "$dir/run" "$dir/test/neg" --classes --id path -o "$dir/p.csv" || return
    [ "$(grep -c ,neg, "$dir/p.csv")" = 10 ] || problem "$(grep -c ,neg, "$dir/p.csv") texts of 10 are neg"
    want_exit 0 trainyard run "$dir/job.yaml" --output-dir "$dir/parts" --set fit.epochs=2 || return
    want_exit 0 trainyard run "$dir/job.yaml" --output-dir "$dir/parts" --resume || return
    [ -n "$(hash_of run)" ] && [ "$(hash_of run)" = "$(hash_of parts)" ] || wrong "a run in parts gives '$(hash_of parts)', not '$(hash_of run)'"
    grep -E '^ +- [0-9.]+$' "$dir/run/job.yaml" >"$dir/weights"
    text_files "$dir/train" 50 20
    want_exit 0 trainyard run "$dir/job.yaml" --output-dir "$dir/run" --rebase --set fit.epochs=5 || return
    grep -E '^ +- [0-9.]+$' "$dir/run/job.yaml" | cmp - "$dir/weights" || wrong "other texts changed the weights of the run"
}
