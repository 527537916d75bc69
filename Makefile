# Trainyard. `make help` lists the targets. One build tree per flavour: build/release, build/debug,
# build/asan, build/tsan, build/clang.
FLAVOUR ?= release
BUILD   ?= build/$(FLAVOUR)
DEV     ?= 0
include test/tools/flags.mk

LIBS     := train rpc data nn tensor net job codec base# link order: a library comes before those it uses
PROGRAMS := ps:trainyard-ps worker:trainyard-worker cli:trainyard
BINS     := $(foreach p,$(PROGRAMS),$(BUILD)/bin/$(lastword $(subst :, ,$p)))
UNIT     := $(patsubst test/%.c,$(BUILD)/test/%,$(wildcard test/unit/*/test_*.c))

all: $(BINS) ## build the programs
.DEFAULT_GOAL := all
include test/tools/build.mk
