# Compiler flags by flavour.
ifeq ($(origin CC),default)
  CC := gcc
endif
# A compilation that was done before, in this folder or another one, comes from the cache. CCACHE= switches it off.
CCACHE    ?= $(shell command -v ccache)
CACHED_CC  = $(CCACHE) $(CC)
WARN     := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wold-style-definition -Wmissing-prototypes \
            -Wmissing-declarations -Wpointer-arith -Wcast-qual -Wwrite-strings -Wformat=2 -Wundef -Wvla -Wnull-dereference \
            -Wdouble-promotion -Wconversion -Wswitch-enum -Wredundant-decls -Wdate-time
GCC_WARN := -Wformat-signedness -Wimplicit-fallthrough=5 -Wduplicated-cond -Wduplicated-branches -Wlogical-op \
            -Walloc-zero -Wuse-after-free=3 -Wjump-misses-init -Wcast-align=strict
CLANG_WARN := -Wcomma -Wconditional-uninitialized -Wassign-enum -Wunreachable-code-aggressive -Wmissing-variable-declarations
# Control flow: each architecture has its own flag.
MACHINE  := $(if $(filter arm64,$(FLAVOUR)),aarch64,$(firstword $(subst -, ,$(shell $(CC) -dumpmachine))))
CONTROL_FLOW := $(if $(filter x86_64 i%86,$(MACHINE)),-fcf-protection)$(if $(filter aarch64,$(MACHINE)),-mbranch-protection=standard)
HARDEN   := -fno-common -fstack-protector-strong $(CONTROL_FLOW) -fno-strict-overflow -fvisibility=hidden -fPIE
SAN_COMMON := -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all -DTRAINYARD_SANITIZED=1

ifneq ($(filter release arm64,$(FLAVOUR)),)
  OPT := -O2 -g $(HARDEN) -fstack-clash-protection -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -ftrivial-auto-var-init=zero
  KERNEL_OPT := -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off
else ifeq ($(FLAVOUR),debug)
  OPT := -O0 -g $(HARDEN)
  KERNEL_OPT := -O2 -fno-math-errno -fno-trapping-math -ffp-contract=off
else ifeq ($(FLAVOUR),asan)
  OPT := $(SAN_COMMON) -fsanitize=address,undefined,float-cast-overflow
  SAN_LINK := -fsanitize=address,undefined
else ifeq ($(FLAVOUR),tsan)
  OPT := $(SAN_COMMON) -fsanitize=thread
  SAN_LINK := -fsanitize=thread
else ifeq ($(FLAVOUR),clang)
  CC  := clang
  OPT := -O1 -g $(HARDEN)
else ifeq ($(FLAVOUR),fuzz)
  CC  := clang
  OPT := -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all -DTRAINYARD_SANITIZED=1 -fsanitize=fuzzer-no-link,address,undefined
  SAN_LINK := -fsanitize=fuzzer,address,undefined
else ifeq ($(FLAVOUR),cov)
  OPT := -O0 -g --coverage
  SAN_LINK := --coverage
else
  $(error FLAVOUR must be release, debug, asan, tsan, clang, fuzz, cov or arm64)
endif
# Cross-compiled, not linked (make objects): the libraries' headers are those of this machine, behind the compiler's own.
ifeq ($(FLAVOUR),arm64)
  CC := aarch64-linux-gnu-gcc
  CROSS := -idirafter /usr/include -idirafter /usr/include/$(shell gcc -print-multiarch)
endif
IS_CLANG := $(findstring clang,$(notdir $(CC)))
WARNINGS := $(WARN) $(if $(IS_CLANG),$(CLANG_WARN),$(GCC_WARN))
# gcc sees less of the flow through a sanitizer's checks, and says so wrongly; release, debug and clang warn of it.
ifneq ($(filter asan tsan,$(FLAVOUR)),)
  WARNINGS += -Wno-maybe-uninitialized
endif
# A unit test is run once or twice for each time that it is compiled. Release shows the warnings that need optimization.
ifneq ($(filter asan tsan clang,$(FLAVOUR)),)
  UNIT_OPT := -O0
endif
UNIT_LINKER := $(if $(shell command -v ld.gold),-fuse-ld=gold) # 0.4 s faster for each program
ifeq ($(DEV),1)
  WARNINGS += -Werror
endif
# Debian keeps HDF5's headers in a folder of their own.
HDF5_INCLUDE := $(shell pkg-config --cflags-only-I hdf5 2>/dev/null | sed 's/-I/-isystem /g')
INCLUDES := -Ilib -Ioperator -I. -I$(BUILD)/gen $(HDF5_INCLUDE) $(CROSS)
OPT += -fdebug-prefix-map=$(CURDIR)=. # one result in every folder
CFLAGS_ALL = -std=gnu17 -D_GNU_SOURCE $(OPT) $(WARNINGS) $(INCLUDES) -MMD -MP $(CFLAGS)
PKGS     := grpc libprotobuf-c openblas jansson yaml-0.1 libmicrohttpd zlib libpng libjpeg libcurl hdf5 libssl libcrypto gnutls
# pkg-config takes 0.4 s for gRPC: it is asked once, by the first link.
LDLIBS_ALL = $(eval LDLIBS_ALL := $(shell pkg-config --libs $(PKGS)) -lgpr -lm -lpthread)$(LDLIBS_ALL)
LDFLAGS_ALL = $(SAN_LINK) -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed $(if $(SAN_LINK),,-pie) $(LDFLAGS)
