# Tests of run.sh: `trainyard show data`. Sourced by it, after look.sh.
# shellcheck shell=bash disable=SC2154 # its variables

# data_job FIELDS: job.yaml with these fields of data.train.
data_job() {
    cat >"$dir/job.yaml" <<END
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: look}
spec:
  model: {layers: [Dense: {units: 2, activation: softmax}]}
  compile: {optimizer: Adam, loss: sparse_categorical_crossentropy}
  data:
    train: {$1}
  fit: {epochs: 1, validationSplit: 0.25}
END
}

put_table() {
    printf '%s\n' id,age,town,note,bought 1,20,Bern,x,no 2,,Bern,y,yes 3,40,Basel,,yes '4,60,"<b>,ESC[31m&",z,no' >"$dir/t.csv"
    data_job 'format: csv, files: t.csv, label: bought, columns: [{name: age, type: float, missing: mean}, {name: town, type: category, vocabulary: auto, encoding: one_hot}, {name: bought, type: category, vocabulary: [no, yes]}]'
}

test_show_data_of_a_table() {
    put_table
    want_exit 0 trainyard show data "$dir/job.yaml" --rows 2 || return
    want_line "^learned from data.train: column 'age': 1 missing value, read as the mean 40$"
    want_line "^data.train of job 'look'$"
    want_line '^  csv, 1 file: t.csv$'
    want_line '^  4 examples of shape \(4,\) \(float32\), labels: class numbers$'
    want_line '^  fit.validationSplit reserves the last 1 for validation$'
    want_line '^  column  role     type      count  missing  min  max  mean      std  words  most frequent$'
    want_line '^  id      unused   number        4        0    1    4   2.5  1.29099$'
    want_line '^  age     feature  float         3        1   20   60    40       20$'
    want_line '^  town    feature  category      4        0 +3  Bern 2, <b>,ESC\[31m& 1, Basel 1$'
    want_line '^  note    unused   text          3        1 +3  x 1, y 1, z 1$'
    want_line '^      0  no           2  50.0%  #{30}$'
    want_line '^      1  yes          2  50.0%  #{30}$'
    want_line '^The first 2 examples:$'
    [ "$(sed -n '/^The first 2/,$p' "$dir/out" | tr -s ' ')" = "$(printf 'The first 2 examples:\n age town bought\n 20 Bern no\n Bern yes')" ] || wrong "the first rows differ: $(sed -n '/^The first 2/,$p' "$dir/out")"
    want_exit 0 trainyard show data "$dir/job.yaml" --limit 2 --rows 0
    want_line '^  the statistics are over the first 2 of 4 examples \(--limit N sets how many\)$'
    want_line '^  id +unused +number +2 +0 +1 +2 '
    sed -i 's/missing: mean/missing: drop/' "$dir/job.yaml"
    want_exit 0 trainyard show data "$dir/job.yaml"
    want_line '^  3 examples of shape'
    want_line '^  1 of 4 examples lack a value and are left out \(missing: drop\)$'
    want_exit 2 trainyard show data "$dir/job.yaml" --validation
    want_line '^error: .*has no data.validation: fit.validationSplit reserves a part of data.train'
    want_exit 2 trainyard show data "$dir/job.yaml" --limit 0
    want_line '^error: --limit: 0 is out of range'
    data_job 'format: csv, files: u.csv'
    { echo size,price; seq 300 | sed 's|.*|&,&000|'; } >"$dir/u.csv"
    want_exit 0 trainyard show data "$dir/job.yaml"
    want_line '^  the labels have more than 100 different values; the table of the numbers has their range$'
    want_line '^  price   label    float    300        0  1000  300000  150500 '
    want_no_line '^Labels'
    put_table
    echo 5,old,Bern,x,no >>"$dir/t.csv"
    want_exit 2 trainyard show data "$dir/job.yaml"
    want_line "^error: .*t.csv:6:3: column 'age': 'old' is not a number"
    gzip "$dir/t.csv"
    mkdir "$dir/tmp"
    want_exit 2 env TMPDIR="$dir/tmp" trainyard show data "$dir/job.yaml"
    [ -z "$(ls "$dir/tmp")" ] || problem "left in TMPDIR: $(ls "$dir/tmp")"
}

# No text of the file becomes a part of the page, and none reaches the terminal as an escape sequence.
test_show_data_as_a_page() {
    put_table
    sed -i "s/ESC/$(printf '\033')/" "$dir/t.csv"
    want_exit 0 trainyard show data "$dir/job.yaml" || return
    grep -q "$(printf '\033')" "$dir/out" && wrong "an escape sequence of the file is printed"
    want_exit 0 trainyard show data "$dir/job.yaml" --html "$dir/t.html" || return
    want_line "^data.train of job 'look' written to .*/t.html$"
    want_line '<td>&lt;b&gt;, \[31m&amp;' "$dir/t.html"
    want_no_line '<b>' "$dir/t.html"
    want_line '<td><div class="bar" style="width:16em"></div></td>' "$dir/t.html"
    cd "$dir" || return
    want_exit 0 trainyard show data "$data/digits.yaml" --validation --html digits.html --rows 7
    cd "$root" || return
    python3 - "$dir/digits.html" "$dir/t.html" <<'END' >"$dir/parsed" 2>&1 || wrong "the page is not well-formed: $(tail -n 1 "$dir/parsed")"
import base64, html.parser, sys
class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.images, self.rows = [], [], 0
        self.feed(text)
        assert self.open == [], self.open
    def handle_starttag(self, tag, attrs):
        self.rows += tag == "tr"
        if tag == "img":
            self.images.append(base64.b64decode(dict(attrs)["src"].split(",", 1)[1]))
        elif tag != "meta":
            self.open.append(tag)
    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag
digits, table = [Page(open(name, encoding="utf-8").read()) for name in sys.argv[1:]]
assert len(digits.images) == 7 and len(set(digits.images)) == 7, len(digits.images)
assert all(i.startswith(b"\x89PNG\r\n\x1a\n") and i[16:24] == bytes([0, 0, 0, 8, 0, 0, 0, 8]) for i in digits.images)
assert digits.rows == 1 + 2 + 1 + 10 and table.rows == 1 + 5 + 1 + 2 + 1 + 4, (digits.rows, table.rows)
END
}

test_show_data_of_arrays() {
    want_exit 0 trainyard show data "$data/digits.yaml" --rows 1 || return
    want_line '^  idx, 2 files: digits/train-images-idx3-ubyte, digits/train-labels-idx1-ubyte$'
    want_line '^  1,500 examples of shape \(8, 8\) \(uint8\), labels: class numbers$'
    want_line '^  features  feature  uint8  96000    0   16  4.88554  6.02196$'
    want_line '^      2       143   9.5%  #{28}$'
    want_line '^The first example \(a terminal shows the image, and so does a page made with --html FILE\):$'
    want_line '^  0: label 5$'
    want_exit 0 script -qfec "TERM=xterm trainyard show data '$data/digits.yaml' --rows 2" /dev/null
    # 8 rows of pixels are 4 lines of two images of 8 pixels each
    [ "$(grep -c '▀' "$dir/out")" = 4 ] && [ "$(grep -o '▀' "$dir/out" | wc -l)" = 64 ] || wrong "a terminal shows $(grep -o '▀' "$dir/out" | wc -l) blocks"
    want_exit 0 script -qfec "NO_COLOR=1 TERM=xterm trainyard show data '$data/digits.yaml'" /dev/null
    want_no_line '▀'
}

test_show_data_of_images() {
    local i n=0
    mkdir -p "$dir/pets/cat" "$dir/pets/dog" "$dir/pets/eel"
    cd "$dir" || return
    want_exit 0 trainyard show data "$data/digits.yaml" --html digits.html --rows 5
    grep -o 'base64,[^"]*' digits.html | cut -c 8- | while read -r i; do n=$((n + 1)); echo "$i" | base64 -d >pets/dog/$n.png; done
    mv pets/dog/1.png pets/cat
    data_job 'format: images, directory: pets, imageSize: [16, 16]'
    sed -i '/model:/d; s/validationSplit: 0.25/batchSize: 2/; s/  compile:/  model: {layers: [Flatten: {}, Dense: {units: 3, activation: softmax}]}\n&/' job.yaml
    want_exit 0 trainyard show data job.yaml --rows 2
    want_line '^  images, 1 directory: pets$'
    want_line '^  5 examples of shape \(16, 16, 3\) \(float32\), labels: class numbers$'
    want_line '^  features  feature  float32   3840    0  255 '
    want_line '^      0  cat          1  20.0%  #{8}$'
    want_line '^      1  dog          4  80.0%  #{30}$'
    want_line '^  1: label 1 dog, dog/2.png$'
    want_line '^warning: .*pets: classes without images: 1, such as eel$'
    want_exit 0 trainyard show data job.yaml --limit 3
    want_line '^  the statistics are over 3 of 5 examples, at equal distances'
    echo broken >>pets/dog/zz.png
    want_exit 2 trainyard show data job.yaml
    want_line '^error: .*pets/dog/zz.png'
    cd "$root" || return
}
