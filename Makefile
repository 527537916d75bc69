# Trainyard. `make help` lists the targets. Each flavour (release debug asan tsan clang fuzz cov arm64) has its build tree build/FLAVOUR.
FLAVOUR ?= release
BUILD   ?= build/$(FLAVOUR)
DEV     ?= 0
JOBS    ?= 2
include make/flags.mk

LIBS     := chief train coord collective params shard rpc data tfio nn tensor net identity job codec base# link order: a library comes before those it uses
PROGRAMS := ps:trainyard-ps worker:trainyard-worker cli:trainyard
# The operator has folders (operator/*/) and links neither gRPC nor BLAS.
OPERATOR_DIRS := operator operator/kube operator/api operator/build operator/plan operator/control
BINS     := $(foreach p,$(PROGRAMS),$(BUILD)/bin/$(lastword $(subst :, ,$p))) $(BUILD)/bin/trainyard-operator
UNIT     := $(patsubst test/%.c,$(BUILD)/test/%,$(wildcard test/unit/*/test_*.c test/unit/*/*/test_*.c))
BENCH    := $(patsubst test/bench/%.c,$(BUILD)/bench/%,$(wildcard test/bench/bench_*.c))
TOOLS    := $(patsubst %.c,$(BUILD)/tools/%,$(notdir $(wildcard tools/*.c test/tools/*.c)))
PREFIX   ?= /usr/local

.DEFAULT_GOAL := all
all: $(BINS) ## build the programs into build/release/bin
include make/build.mk

demo: deps ## install what is missing, build, train deploy/examples/digits.yaml: 1 ps, 2 workers, 1 chief
	@$(MAKE) --no-print-directory -j$(JOBS) all
	$(BUILD)/bin/trainyard run --fresh --output-dir runs/digits deploy/examples/digits.yaml
	@$(BUILD)/bin/trainyard show events runs/digits/summaries --plot runs/digits/curves.svg

check: ## unit tests and quick integration of this build, for every edit
	@test/tools/tiers.sh check
test: deps-test ## what CI runs, with a table of minutes by tier
	@test/tools/tiers.sh test
test-all: deps-test ## what takes long too: all flavours, analyzers, accuracy, node loss, soak, all storms
	@test/tools/tiers.sh all
flakes: deps-test ## N=20 runs of each of TESTS="TIER/NAME ..." beside busy loops, and its processes are stopped now and then
	@test/tools/flakes.sh $(or $(N),20) $(TESTS)
gate: ## `make test` in a fresh clone of main; when it is green, the tag green moves to that commit
	@test/tools/gate.sh
unit: $(UNIT) ## build and run the unit tests of this flavour
	@test/tools/unit.sh $(UNIT)
test-%: deps-test ## one tier alone: test- static unit clang arm64 integration bad converge fault chart operator attack e2e soak fuzz asan tsan
	@test/tools/tiers.sh $*
storm: deps-test ## attacks for an hour: replicas, operators, API servers killed; fuzzing (STORM_SECONDS, SOAK_SECONDS, FUZZ_SECONDS)
	@test/tools/tiers.sh storm
bench: all $(BENCH) ## figures of this machine: steps/s and shares of time, pull and push against raw TCP, one process against OpenBLAS
	@test/bench/run.sh $(BUILD)
bench-operator: deps-cluster all $(BUILD)/bench/operator/burst build/release/test/operator/kube_watch ## the operator with 100 and 1,000 jobs on a real API server, against a bare client (PEER=1: training-operator too)
	@test/bench/operator/run.sh $(BUILD)
bench-peers: all ## the same job with TensorFlow's parameter servers and PyTorch in the same run (makes a venv)
	@test/bench/peers/run.sh $(BUILD)
interop: all $(TOOLS) ## TensorFlow and TensorBoard read what we write (makes a venv)
	@test/interop/run.sh $(BUILD)
interop-operator: deps-cluster all build/release/test/operator/kube_watch ## Kubeflow's Python SDK with TFJobs of our operator, on a real API server (makes a venv)
	@test/interop/ecosystem/run.sh
data: deps-data ## fetch MNIST and Fashion-MNIST by package clients into the cache
	@test/tools/fetch_data.sh
fmt: ## lay out the C files by .clang-format (or FILES='a.c b.h'); test-static checks it
	@clang-format -i $(or $(FILES),$$(git ls-files '*.c' '*.h'))
docs: $(TOOLS) ## write the reference pages that come from tables
	@tools/docs.sh $(BUILD)
images: ## build the images trainyard/operator and trainyard/trainer with docker, podman or buildah (IMAGE_REGISTRY, IMAGE_TAG)
	@deploy/images.sh
install: all ## copy the programs, their manual pages and the completion for bash below PREFIX (/usr/local)
	install -D -t $(DESTDIR)$(PREFIX)/bin $(BINS)
	@tools/man.sh $(BUILD)/bin $(DESTDIR)$(PREFIX)/share/man/man1
	install -D -m 644 deploy/completion/trainyard.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/trainyard
deb: all ## a Debian package: build/trainyard.deb
	@tools/deb.sh $(BUILD) build/trainyard.deb
deps: ; @make/deps.sh
deps-test: ; @make/deps.sh --test
deps-data: ; @make/deps.sh --data
deps-cluster: ; @make/deps.sh --cluster
clean: ## remove all build trees
	rm -rf build
help: ## this list
	@awk -F':.*## ' '/^[a-z%-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' Makefile
.PHONY: all demo check test test-all flakes gate storm unit bench bench-operator bench-peers interop interop-operator data fmt docs images install deb deps deps-test deps-data deps-cluster clean help
