# Everything here works on a machine that has only Python 3.11 or newer and make: no Java, no uv, no other tool.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.spillway-setup
TEST_ARGS ?=
# Test files are shared among this number of processes, each with one Spark session; 0: all in one process.
WORKERS ?= 2
MINUTES ?= 60
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast nightly histories mutants check format bench docs lock clean

help:                ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: $(STAMP)      ## virtual environment with the locked dependencies and this package

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Spillway needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1)." \
	            "Run: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
	  || { echo "'$(PYTHON) -m venv' failed: install your system's package for it (Debian: python3-venv)" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --prefer-binary -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: setup          ## three streams joined with too little memory, and the answer checked
	$(BIN)/spillway demo

test: setup          ## the whole suite
	$(PYTEST) $(TEST_ARGS)

test-fast: setup     ## everything quick that needs no Spark and no server: a minute
	$(PYTEST) $(TEST_ARGS) -m "not nightly and not slow" $(wildcard tests/property tests/unit tests/golden tests/docs)

nightly: setup       ## the same tests with 50 times as many random examples, and the large cases: hours
	HYPOTHESIS_PROFILE=deep $(PYTEST) --timeout=0 -m "" $(TEST_ARGS) tests/property tests/unit tests/maintain tests/spark/stream/test_views.py tests/chaos/test_storm.py

histories: setup     ## random histories of the engine for MINUTES=60 minutes, counted
	$(BIN)/python tests/play_histories.py --minutes $(MINUTES) --workers $(WORKERS)

check: setup         ## lint, format, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: setup        ## apply the formatter and the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Not part of `test`: an hour on two cores. MUTANTS="--count 1000 --seed 2" takes another sample.
mutants: setup       ## change the code in small ways and see whether a test notices
	$(BIN)/python tests/mutation/runner.py $(MUTANTS)

bench: setup         ## Spillway against Spark's own join and DuckDB
	$(BIN)/spillway bench join --json

docs: setup          ## build the documentation into build/docs; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "the documentation is build/docs/index.html"

# uv is itself in the lock; --no-header and --no-annotate keep the file free of machine paths and churn.
lock: setup          ## resolve pyproject.toml again into requirements.lock
	$(BIN)/uv pip compile --quiet --generate-hashes --python-version 3.11 --universal --no-header \
	  --no-emit-index-url --no-emit-find-links --extra dev $(LOCK_ARGS) --output-file requirements.lock pyproject.toml

clean:               ## remove the environment, caches and generated output
	rm -rf $(VENV) build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	rm -rf spark-warehouse metastore_db derby.log artifacts
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
