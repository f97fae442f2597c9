# Simurgh. `make run` (libtorch, build, a search) and `make test` are the two commands to know.
#
#   make                         the release binary, target/release/simurgh
#   make EXE=name EVALFILE=net   the binary as ./name with that network embedded (OpenBench's way)
#   make libtorch [CUDA=1]       libtorch into .libtorch/ (CPU, about 1.2 GB; CUDA, about 4.7 GB)
#   make run | test | bench | fmt | lint | clean
#
# A LIBTORCH in the environment (a folder with lib/ and include/) is used instead of .libtorch/.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.PHONY: build libtorch run test bench perft fmt lint clean

PYTHON ?= python3
CARGO ?= cargo
CUDA ?= 0
EXE ?=
EVALFILE ?=

TORCH_VERSION := 2.11.0
CUDART_VERSION := 13.0.96
CUPTI_VERSION := 13.0.85
TARGET := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
BIN := $(TARGET)/release/simurgh

# The set-up that is there says what it is in its stamp; it is written last, inside the folder that
# one rename then puts in place, so half an installation is never taken for a whole one.
KIND := $(if $(filter 1 yes true,$(CUDA)),cuda,cpu)-$(TORCH_VERSION)
STAMP := .libtorch/installed-$(KIND)

# Only files are wanted, no working Python package: any Python 3 with pip may fetch them, so the
# wheel's own Python version is named where the system's may be too old or too new for it.
PIP_INSTALL := PIP_USER=0 PIP_ROOT_USER_ACTION=ignore $(PYTHON) -m pip install --disable-pip-version-check --no-warn-script-location \
	--no-compile --upgrade --only-binary=:all: --implementation cp --python-version 3.12 --target .libtorch.part

ifeq ($(shell uname -s),Linux)
# libtorch_cpu.so of the wheel links to these two even when no GPU is used.
CUDA_STUBS := nvidia-cuda-runtime==$(CUDART_VERSION) nvidia-cuda-cupti==$(CUPTI_VERSION)
endif

# A CPU request is satisfied by a CUDA set-up, not the other way round.
ifeq ($(LIBTORCH),)
libtorch: $(if $(wildcard $(STAMP) .libtorch/installed-cuda-$(TORCH_VERSION)),,$(STAMP))
	@:

$(STAMP):
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || { echo "make libtorch: $(PYTHON) with pip is needed (Debian, Ubuntu: apt install python3-pip), or set LIBTORCH to a libtorch $(TORCH_VERSION) of your own" >&2; exit 1; }
	rm -rf .libtorch.part
ifeq ($(KIND),cuda-$(TORCH_VERSION))
	$(PIP_INSTALL) torch==$(TORCH_VERSION)
else
	$(PIP_INSTALL) --no-deps torch==$(TORCH_VERSION) $(CUDA_STUBS)
endif
	@ls .libtorch.part/torch/lib/libtorch_cpu.* >/dev/null
	touch .libtorch.part/$(notdir $(STAMP))
	rm -rf .libtorch
	mv .libtorch.part .libtorch
else
libtorch:
	@ls "$(LIBTORCH)"/lib/libtorch_cpu.* >/dev/null 2>&1 || { echo "LIBTORCH=$(LIBTORCH): no lib/libtorch_cpu in it; unset LIBTORCH to use .libtorch/, or name the folder of a libtorch $(TORCH_VERSION)" >&2; exit 1; }
endif

build: libtorch
	$(if $(EVALFILE),EVALFILE="$(abspath $(EVALFILE))") $(CARGO) build --release
	$(if $(EXE),cp "$(BIN)" "$(EXE)")

# A search on a position from a real game. The engine's input stays open until its bestmove.
run: build
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; mkfifo "$$dir/done"; exec 3<>"$$dir/done"; \
	{ printf '%s\n' uci isready "position startpos moves e2e4 c7c5 g1f3 d7d6 d2d4 c5d4 f3d4 g8f6 b1c3 a7a6" "go nodes 800"; head -n 1 <&3; } \
	| "$(BIN)" | { found=; while IFS= read -r line; do printf '%s\n' "$$line"; \
	case $$line in bestmove*) found=yes; echo quit >&3;; esac; done; echo quit >&3; [ -n "$$found" ]; }

test: libtorch
	$(CARGO) test --release

bench: build
	"$(BIN)" bench

# The micro-benchmarks under bench/, which also check their answers.
perft: libtorch
	$(CARGO) bench --profile release --bench perft

fmt:
	$(CARGO) fmt

lint: libtorch
	$(CARGO) fmt --check
	$(CARGO) clippy --release --all-targets -- -D warnings

clean:
	$(CARGO) clean
	rm -rf .libtorch.part
