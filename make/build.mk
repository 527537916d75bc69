# How things are built: every lib/<name>/*.c goes into $(BUILD)/lib<name>.a, *.proto there through protoc-c first,
# a program is all .c files of its folder, a unit test links its own layer and those above it.
# V=1 shows whole command lines.
Q        = $(if $(V),,@echo "  $(1)" $(2);)
PROTOS  := $(wildcard lib/*/*.proto)
GEN_C   := $(patsubst lib/%.proto,$(BUILD)/gen/%.pb-c.c,$(PROTOS))
GEN_H   := $(GEN_C:.c=.h)
src_of   = $(wildcard lib/$1/*.c lib/$1/*/*.c)
obj_of   = $(patsubst %.c,$(BUILD)/obj/%.o,$1)
LIB_A   := $(foreach l,$(LIBS),$(BUILD)/lib$l.a)
.SECONDARY:
# $(call above,nn) = nn and what it may use
above    = $(strip $(eval seen :=)$(foreach l,$(LIBS),$(if $(filter $1,$l),$(eval seen := 1))$(if $(seen),$l)))

# Services are for other languages' generators: protobuf-c's stubs would be dead code, and clash with method names.
# All at once (&:), because each file includes common.proto: one job must not rewrite what another reads.
$(GEN_C) $(GEN_H) &: $(PROTOS)
	@mkdir -p $(sort $(dir $(GEN_C) $(PROTOS:lib/%=$(BUILD)/proto/%)))
	@for p in $(PROTOS:lib/%=%); do sed '/^service /,/^}/d' lib/$$p > $(BUILD)/proto/$$p; done
	@protoc-c --proto_path=$(BUILD)/proto --c_out=$(BUILD)/gen $(PROTOS:lib/%=$(BUILD)/proto/%)

$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.pb-c.c | $(GEN_H)
	@mkdir -p $(@D)
	$(call Q,CC  ,$<)$(CACHED_CC) -std=gnu17 $(OPT) $(INCLUDES) -w -c $< -o $@

# Kernels: inner loops that vectorise; see KERNEL in tensor/kernel.h.
$(BUILD)/obj/lib/tensor/%.o $(BUILD)/obj/lib/nn/%.o $(BUILD)/obj/lib/data/dtype_convert.o $(BUILD)/obj/lib/data/image_resize.o $(BUILD)/obj/lib/shard/update_kernel.o $(BUILD)/obj/test/bench/bench_step.o: OPT += $(KERNEL_OPT)

$(BUILD)/obj/%.o: %.c | $(GEN_H)
	@mkdir -p $(@D)
	$(call Q,CC  ,$<)$(CACHED_CC) $(CFLAGS_ALL) -c $< -o $@

define lib_rule
$(BUILD)/lib$1.a: $(call obj_of,$(call src_of,$1)) $(patsubst lib/%.proto,$(BUILD)/obj/gen/%.o,$(filter lib/$1/%,$(PROTOS)))
	@rm -f $$@
	@ar rcsD $$@ $$^
endef
$(foreach l,$(LIBS),$(eval $(call lib_rule,$l)))

# All prerequisites make the program.
LINK_ALL = $(call Q,LINK,$@)$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o %.a,$^) $(LDLIBS_ALL)
define program_rule
$(BUILD)/bin/$2: $(call obj_of,$(wildcard $1/*.c)) $(LIB_A)
	@mkdir -p $$(@D)
	$$(LINK_ALL)
endef
$(foreach p,$(PROGRAMS),$(eval $(call program_rule,$(firstword $(subst :, ,$p)),$(lastword $(subst :, ,$p)))))

# Every source compiled, nothing linked: for an architecture whose libraries are not here.
OBJECTS := $(call obj_of,$(foreach l,$(LIBS),$(call src_of,$l)) $(wildcard $(addsuffix /*.c,$(OPERATOR_DIRS) $(foreach p,$(PROGRAMS),$(firstword $(subst :, ,$p))))))
objects: $(OBJECTS) $(patsubst lib/%.proto,$(BUILD)/obj/gen/%.o,$(PROTOS))
.PHONY: objects

# test/unit/<lib>/test_x.c links lib<lib>.a and the libraries it may use, plus test/unit/check_main.c
CHECK_MAIN := $(call obj_of,test/unit/check_main.c)
CHECK_LIBS  = $(eval CHECK_LIBS := $(shell pkg-config --libs check))$(CHECK_LIBS)
# FLAVOUR=clang is only for its warnings.
$(BUILD)/obj/test/unit/%.o: test/unit/%.c | $(GEN_H)
	@mkdir -p $(@D)
	$(call Q,CC  ,$<)$(CACHED_CC) $(CFLAGS_ALL) $(UNIT_OPT) -Itest/unit $(if $(filter clang,$(FLAVOUR)),-MF $(@:.o=.d) -MT $@ -fsyntax-only $< && touch $@,-c $< -o $@)
# Of all prerequisites
UNIT_PROGRAM = $(call Q,TEST,$@)$(if $(filter clang,$(FLAVOUR)),touch $@,$(CC) $(LDFLAGS_ALL) $(UNIT_LINKER) -o $@ $(filter %.o %.a,$^) $(CHECK_LIBS) $(LDLIBS_ALL))
define unit_rule
$(BUILD)/test/unit/$1/test_%: $(BUILD)/obj/test/unit/$1/test_%.o $(CHECK_MAIN) $(foreach l,$(call above,$1),$(BUILD)/lib$l.a)
	@mkdir -p $$(@D)
	$$(UNIT_PROGRAM)
endef
$(foreach l,$(LIBS),$(eval $(call unit_rule,$l)))

# cli/ is a program, not a library: test/unit/cli/test_x.c links its objects but main, and every library
CLI_OBJ := $(call obj_of,$(filter-out cli/main.c,$(wildcard cli/*.c)))
$(BUILD)/test/unit/cli/test_%: $(BUILD)/obj/test/unit/cli/test_%.o $(CHECK_MAIN) $(CLI_OBJ) $(LIB_A)
	@mkdir -p $(@D)
	$(UNIT_PROGRAM)

# ps/ likewise
PS_OBJ := $(call obj_of,$(filter-out ps/main.c,$(wildcard ps/*.c)))
$(BUILD)/test/unit/ps/test_%: $(BUILD)/obj/test/unit/ps/test_%.o $(CHECK_MAIN) $(PS_OBJ) $(LIB_A)
	@mkdir -p $(@D)
	$(UNIT_PROGRAM)

# operator/ likewise, with its folders: test/unit/operator/FOLDER/test_x.c and test/bench/operator/x.c link its objects but main;
# the unit tests also test/fake/*.c
OPERATOR_OBJ := $(call obj_of,$(filter-out operator/main.c,$(wildcard $(addsuffix /*.c,$(OPERATOR_DIRS)))))
$(BUILD)/bin/trainyard-operator: $(call obj_of,operator/main.c) $(OPERATOR_OBJ) $(LIB_A)
	@mkdir -p $(@D)
	$(LINK_ALL)
FAKE_OBJ := $(call obj_of,$(wildcard test/fake/*.c))
$(BUILD)/test/unit/operator/%: $(BUILD)/obj/test/unit/operator/%.o $(CHECK_MAIN) $(OPERATOR_OBJ) $(FAKE_OBJ) $(LIB_A)
	@mkdir -p $(@D)
	$(UNIT_PROGRAM)
$(BUILD)/test/operator/%: $(BUILD)/obj/test/operator/%.o $(OPERATOR_OBJ) $(LIB_A)
	@mkdir -p $(@D)
	$(LINK_ALL)
$(BUILD)/bench/operator/%: $(BUILD)/obj/test/bench/operator/%.o $(OPERATOR_OBJ) $(LIB_A)
	@mkdir -p $(@D)
	$(LINK_ALL)

# The fuzz targets of the operator's folders link its objects.
$(foreach x,kubeconfig operator progress watch,$(BUILD)/fuzz/fuzz_$x): $(BUILD)/fuzz/%: $(BUILD)/obj/test/fuzz/%.o $(OPERATOR_OBJ) $(LIB_A)
	@mkdir -p $(@D)
	$(LINK_ALL)

# tools/x.c, test/bench/bench_x.c, test/tools/x.c, test/fault/x.c, test/attack/x.c and test/fuzz/fuzz_x.c (FLAVOUR=fuzz) link everything.
define single_rule
$(BUILD)/$2/%: $(BUILD)/obj/$1/%.o $(LIB_A)
	@mkdir -p $$(@D)
	$$(LINK_ALL)
endef
$(foreach d,bench tools fuzz fault attack,$(eval $(call single_rule,test/$d,$d)))
$(eval $(call single_rule,tools,tools))

# test/interop/x.c: also the command line's objects, for the curves of event files.
$(BUILD)/interop/%: $(BUILD)/obj/test/interop/%.o $(CLI_OBJ) $(LIB_A)
	@mkdir -p $(@D)
	$(LINK_ALL)

# test/server/test_server.c is linked statically: its image holds nothing else.
$(BUILD)/server/test_server: $(BUILD)/obj/test/server/test_server.o $(BUILD)/libcodec.a $(BUILD)/libbase.a
	@mkdir -p $(@D)
	$(call Q,LINK,$@)$(CC) -static -o $@ $^ -ljansson -lm -lpthread

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
