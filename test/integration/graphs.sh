# Tests of run.sh: models with shared layers and nested models. Sourced by it, after mirrored.sh.
# shellcheck shell=bash disable=SC2154 # its variables

# The digits with a nested model and a layer that are called three times.
graph_job() { # STRATEGY [SED]
    sync_job "${2:-}"
    sed -E -i "s/^  strategy:.*/  strategy: {$1}/; /^  model:/,/^  compile:/{/^  compile:/!d}" "$dir/job.yaml"
    sed -i "s|^  compile:|  model: {kerasFile: $root/test/data/graph/model.json}\n&|" "$dir/job.yaml"
}

# The same weights from ps with workers and from threads; and all commands that read the run know its model.
test_a_nested_model_trains_everywhere() {
    graph_job 'updates: sync, replicasToAggregate: 2'
    want_exit 0 trainyard validate "$dir/job.yaml" --data-dir "$data" || return
    sync_run ps --replicas ps=2,worker=2 || return
    graph_job 'name: Mirrored, replicas: 2' '/replicaSpecs:/,$d'
    sync_run threads || return
    [ -n "$(hash_of ps)" ] && [ "$(hash_of ps)" = "$(hash_of threads)" ] || wrong "ps and threads give other weights"
    at_least "$(final "$dir/ps" accuracy)" 0.8 accuracy
    want_exit 0 trainyard evaluate "$dir/ps" --data-dir "$data" || return
    want_exit 0 trainyard predict "$dir/ps" --data-dir "$data" -o "$dir/p.csv" || return
    want_exit 0 trainyard show checkpoint "$dir/ps/checkpoints" || return
    want_line ' tower/dense/kernel '
    want_line ' tower/norm/moving_mean '
    want_exit 0 trainyard show model "$dir/ps/job.yaml" --data-dir "$data" || return
    want_line 'tower \(Sequential\) .* flat\[0\]\[0\], mix\[0\]\[0\], mix\[2\]\[0\]'
    want_exit 0 trainyard show model "$dir/ps/job.yaml" --data-dir "$data" --plot "$dir/model.svg" || return
    want_line 'mix \[1\]' "$dir/model.svg"
    want_line '</svg>' "$dir/model.svg"
    want_exit 0 trainyard export "$dir/ps" -o "$dir/model.keras" || return
}

# Weights of another run, and of a file of Keras, find the variables of a nested model.
test_a_nested_model_starts_from_weights() {
    graph_job 'updates: sync'
    sync_run first || return
    want_exit 0 trainyard export "$dir/first" -o "$dir/first.keras" || return
    for from in first first.keras; do
        rm -rf "$dir/next"
        sync_run next --set fit.initialWeights="$dir/$from" || return
        want_line "initial weights from .*$from: 10 of 10 variables"
    done
}

# The example with two inputs and two outputs, by every strategy; the commands that read the run know both.
test_two_inputs_and_outputs_train_everywhere() {
    local job=$root/deploy/examples/penguins-two-outputs.yaml penguins=$root/deploy/examples/penguins
    want_exit 0 trainyard run "$job" --output-dir "$dir/run" || return
    at_least "$(final "$dir/run" species_accuracy)" 0.95 'the accuracy of species'
    at_most "$(final "$dir/run" mass_mae)" 300 'the error of mass'
    want_exit 0 trainyard evaluate "$dir/run" || return
    want_line '^loss .*, species_loss .*, mass_loss .*, species_accuracy .*, mass_mae .* \([0-9]+ examples'
    want_exit 0 trainyard predict "$dir/run" "$penguins/new.csv" --id id -o "$dir/p.csv" || return
    want_line '^id,species_0,species_1,species_2,mass$' "$dir/p.csv"
    want_exit 0 trainyard predict "$dir/run" "$penguins/new.csv" -o "$dir/p.jsonl" || return
    want_line '^\{"species":\[[0-9.e,-]*\],"mass":[0-9.]*\}$' "$dir/p.jsonl"
    want_exit 0 trainyard export "$dir/run" -o "$dir/m.keras" || return
    want_exit 0 trainyard export "$dir/run" -o "$dir/columns.keras" --preprocessing || return
    want_line '"StringLookup",.*"output_mode":"one_hot","vocabulary":\["Biscoe","Dream","Torgersen"\],"name":"island_words"' "$dir/columns.keras"
    want_line '"keras_history":\["bill_row",0,0\].*"keras_history":\["group_row",0,0\]' "$dir/columns.keras"

    sed 's|^  fit:|  strategy: {updates: sync, replicasToAggregate: 2}\n  replicaSpecs: {PS: {replicas: 1}, Worker: {replicas: 2}}\n&|' "$job" >"$dir/ps.yaml"
    sed 's|^  fit:|  strategy: {name: Mirrored, replicas: 2}\n&|' "$job" >"$dir/threads.yaml"
    for form in ps threads; do
        want_exit 0 trainyard run "$dir/$form.yaml" --data-dir "$root/deploy/examples" --output-dir "$dir/$form" || return
    done
    [ -n "$(hash_of ps)" ] && [ "$(hash_of ps)" = "$(hash_of threads)" ] || wrong "ps and threads give other weights"
}

# ratings SEED N: made ones of 68 users and 50 movies, with the least and the largest number that movielens.yaml allows. A rating
# depends on the group of the user and on that of the movie, three each; noise of -0.5, 0 or 0.5 is added.
ratings() {
    awk -v seed="$1" -v n="$2" 'BEGIN {
        srand(seed)
        print "user,movie,rating"
        for (i = 0; i < n; i++) {
            user = int(rand() * 68); movie = int(rand() * 50)
            rating = 1 + user % 3 + movie % 3 + int(rand() * 3) / 2 - 0.5
            printf "%d,%d,%.1f\n", user * 10, movie * 185, (rating > 5 ? 5 : rating)
        }
    }'
}

# The example with vectors of users and movies learns made ratings. Their mean has a loss of 1.4; Keras ends at 0.17 to 0.18.
test_a_recommender_learns_ratings() {
    local loss
    mkdir "$dir/data" && cp "$data/movielens/model.json" "$dir/data"
    ratings 1 2000 >"$dir/data/train.csv"
    ratings 2 400 >"$dir/data/validation.csv"
    want_exit 0 trainyard run "$data/movielens.yaml" --data-dir "$dir/data" --output-dir "$dir/run" \
        --set compile.optimizer.Adam.learning_rate=0.003 || return
    want_line 'single machine, 315,809 parameters'
    loss=$(final "$dir/run" loss)
    at_most "${loss:-9}" 0.25 'the loss'
    want_exit 0 trainyard evaluate "$dir/run" --data-dir "$dir/data" || return
    want_line '^loss 0\.[0-9]*, root_mean_squared_error 0\.[0-9]*, mean_absolute_error 0\.[0-9]* \(400 examples'
}

# people SEED N TEST: made rows with the columns of census.yaml that it uses, and as many words as it has numbers for. The income depends
# on education, industry, sex and age. With TEST there are also workers of a word that the training data do not have.
people() {
    awk -v seed="$1" -v n="$2" -v test="$3" 'BEGIN {
        srand(seed)
        words = split("industry 52 occupation 47 education 17 major_industry 24 major_occupation 15 previous_state 51 household_status 38 " \
            "father_born 43 mother_born 43 self_born 43 worker 9 enrolled 3 marital_status 7 race 5 hispanic_origin 10 sex 2 union_member 3 " \
            "unemployment_reason 6 employment 8 tax_filer 6 previous_region 6 household_summary 8 moved_msa 10 moved_region 9 " \
            "moved_within_region 10 same_house_last_year 3 previous_sunbelt 4 family_under_18 5 citizenship 5 self_employed 3 " \
            "veterans_questionnaire 3 veterans_benefits 3", word, " ")
        numbers = split("age wage_per_hour capital_gains capital_losses dividends persons_of_employer weeks_worked", number, " ")
        for (j = 1; j <= words; j += 2) printf "%s,", word[j]
        for (j = 1; j <= numbers; j++) printf "%s,", number[j]
        print "instance_weight,year,income"
        for (i = 0; i < n; i++) {
            for (j = 1; j <= words; j += 2) {
                k = i < 52 ? i % word[j + 1] : int(rand() * word[j + 1])
                value[word[j]] = k
                printf "%s,", (k > 0 ? "word " k : test && word[j] == "worker" ? "a new word" : "?")
            }
            age = int(rand() * 60) + 20
            printf "%d", age
            for (j = 2; j <= numbers; j++) printf ",%d", (rand() < 0.9 ? 0 : rand() * 1000)
            score = value["education"] % 4 + value["industry"] % 3 + 2 * value["sex"] + age / 20 + rand()
            printf ",1700.09,94,%s\n", (score > 7 ? "above" : "below")
        }
    }'
}

# The example with vectors of words learns made rows; `?` is a word like others, and a new word has the number 0. Keras ends at 0.967 to 0.978.
test_a_table_of_words_learns() {
    local area
    mkdir "$dir/data" && cp "$data/census/model.json" "$dir/data"
    people 1 4000 0 >"$dir/data/train.csv"
    people 2 1000 1 >"$dir/data/test.csv"
    want_exit 0 trainyard run "$data/census.yaml" --data-dir "$dir/data" --output-dir "$dir/run" \
        --set compile.optimizer.Adam.learning_rate=0.005 --set fit.epochs=6 --set fit.batchSize=32 || return
    want_line 'single machine, 20,423 parameters'
    area=$(final "$dir/run" AUC)
    at_least "${area:-0}" 0.94 'the AUC'
    want_exit 0 trainyard evaluate "$dir/run" --data-dir "$dir/data" || return
    want_line '^loss 0\.[0-9]*, AUC 0\.[0-9]*, accuracy 0\.[0-9]* \(1000 examples'
}

# paragraphs SEED N TEST: made ones for shakespeare.yaml, of common words and of some that one kind has more often than the others.
# They have capitals, punctuation, quotes and line ends, which `type: text` leaves out. With TEST some words are not in the training data.
paragraphs() {
    awk -v seed="$1" -v n="$2" -v test="$3" 'BEGIN {
        srand(seed)
        split("comedy history tragedy", kinds, " ")
        split(" |, |. |! |; |\n|? ", ends, "|")
        print "text,kind"
        for (i = 0; i < n; i++) {
            kind = int(rand() * 3)
            words = 10 + int(rand() * 30)
            printf "\""
            for (j = 0; j < words; j++) {
                topic = rand() < 0.4 ? kind : int(rand() * 3)
                word = rand() < 0.3 ? "about" topic * 50 + int(rand() * 50) : "word" int(rand() * 200)
                if (test && rand() < 0.05) word = "new" j
                if (rand() < 0.2) word = toupper(substr(word, 1, 1)) substr(word, 2)
                if (rand() < 0.05) word = "\"\"" word "\"\""
                printf "%s%s", word, ends[int(rand() * 7) + 1]
            }
            printf "\",%s\n", kinds[kind + 1]
        }
    }'
}

# The example with vectors of the words of a text learns made paragraphs. Keras ends at an accuracy of 0.772 to 0.780.
test_a_text_is_classified() {
    local accuracy
    mkdir "$dir/data"
    paragraphs 1 2000 0 >"$dir/data/train.csv"
    paragraphs 2 500 1 >"$dir/data/validation.csv"
    want_exit 0 trainyard run "$data/shakespeare.yaml" --data-dir "$dir/data" --output-dir "$dir/run" || return
    want_line 'single machine, 160,051 parameters'
    accuracy=$(final "$dir/run" accuracy)
    at_least "${accuracy:-0}" 0.72 accuracy
    want_exit 0 trainyard evaluate "$dir/run" --data-dir "$dir/data" || return
    want_line '^loss 0\.[0-9]*, accuracy 0\.[0-9]* \(500 examples'
}

# A callback monitors an output's metric; a run that was stopped continues, but not with other weights of the losses.
test_a_run_of_two_outputs_goes_on() {
    local job=$root/deploy/examples/penguins-two-outputs.yaml
    want_exit 0 trainyard run "$job" --output-dir "$dir/run" --set 'fit.callbacks=[{EarlyStopping: {monitor: val_mass_mae, patience: 0}}]' \
        --set fit.epochs=200 || return
    want_line 'ended +after epoch [0-9]+ by a callback'
    want_exit 0 trainyard run "$job" --output-dir "$dir/run" --set fit.epochs=210 --resume || return
    want_line 'epoch 210/210 done'
    want_exit 2 trainyard run "$job" --output-dir "$dir/run" --set fit.epochs=210 --set compile.lossWeights.mass=0.01 || return
    want_line 'compile.lossWeights.mass is 0.01, was 1e-06'
}

# Arrays by the names of inputs and outputs: the same digits twice. What is compiled is in the file of Keras.
test_arrays_of_several_inputs_and_outputs() {
    local at=digits/validation
    local features="{left: $at-images-idx3-ubyte, right: $at-images-idx3-ubyte}"
    local labels="{digit: $at-labels-idx1-ubyte, number: $at-labels-idx1-ubyte}"
    cat >"$dir/job.yaml" <<-EOF
	apiVersion: trainyard.dev/v1alpha1
	kind: TrainJob
	metadata: {name: pairs}
	spec:
	  model: {kerasFile: $root/test/data/graph/pairs.json}
	  data:
	    train: {format: idx, features: {left: digits/train-images-idx3-ubyte, right: digits/train-images-idx3-ubyte},
	            labels: {number: digits/train-labels-idx1-ubyte, digit: digits/train-labels-idx1-ubyte}}
	    validation: {format: idx, features: $features, labels: $labels}
	  fit: {epochs: 10, batchSize: 30, seed: 7}
	  replicaSpecs: {PS: {replicas: 2}, Worker: {replicas: 2}}
	EOF
    sync_run run || return
    at_least "$(final "$dir/run" digit_accuracy)" 0.8 'the accuracy of digit'
    want_exit 2 trainyard predict "$dir/run" "$data/$at-images-idx3-ubyte" || return
    want_line "^error: the run's features are a map of inputs: name the file of each with --data, such as --data '\{format: idx, features: \{\.\.\.\}\}'"
    want_exit 0 trainyard predict "$dir/run" --data "{format: idx, features: $features}" --data-dir "$data" -o "$dir/p.csv" || return
    want_line '^number,digit_0,digit_1,' "$dir/p.csv"
    want_exit 2 trainyard predict "$dir/run" --data-dir "$data" -o "$dir/p.npy" || return
    want_line '^error: the model has 2 outputs, and npy holds one array; use csv or jsonl'
    want_exit 2 trainyard predict "$dir/run" --data-dir "$data" --classes || return
    want_line '^error: --classes: the model has 2 outputs, and only the classes of one can be written'
    want_exit 0 trainyard evaluate "$dir/run" --data "{format: idx, features: $features, labels: $labels}" --data-dir "$data" || return
    want_line '^loss .*, number_loss .*, digit_loss .*, number_mae .*, digit_accuracy '
}
