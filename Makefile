# Longshore. `make serve` and `make test` work on a bare machine; every target may be run again at any time.

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip --disable-pip-version-check --no-input -q

.PRECIOUS: $(VENV)/.%
.PHONY: help setup serve test test-all check conformance suite site format bench fuzz soak lock clean
.DEFAULT_GOAL := help

help:
	@echo "make serve        set up and run the built-in server on http://127.0.0.1:9100 (ARGS='--port 8000')"
	@echo "make test         set up and run the tests (ARGS='-k name' to choose)"
	@echo "make test-all     run the tests on every Python from 3.11 on that this machine has (ARGS as above)"
	@echo "make check        lint, types and the layers of the packages"
	@echo "make conformance  run the official MCP conformance suite (ARGS=2026 for a part)"
	@echo "make suite        run the JSON Schema Test Suite (ARGS='--draft 7' for another draft)"
	@echo "make site         build the documentation: open build/site/index.html"
	@echo "make format       format the code with ruff"
	@echo "make bench        measure against the peers and save the figures (QUICK=1: a short run that saves nothing)"
	@echo "make fuzz         search for input that crashes (SECONDS=60)"
	@echo "make soak         repeat races, kills and generated input 20 times as often as make test (TIMES=20)"
	@echo "make lock         resolve the locked dependencies again"

setup: $(VENV)/.dev

# Serving needs a fifth of the packages of testing, so a first `make serve` installs only these.
$(VENV)/.%: requirements/%.txt pyproject.toml scripts/setup
	@PYTHON="$(PYTHON)" VENV="$(VENV)" sh scripts/setup $*

serve: $(VENV)/.serve
	@exec $(VENV)/bin/longshore serve --http $(ARGS)

test: setup
	@VENV="$(VENV)" sh scripts/interop
	@VENV="$(VENV)" sh scripts/suite
	@VENV="$(VENV)" sh scripts/site --setup
	@VENV="$(VENV)" sh scripts/tests $(ARGS)

test-all: setup
	@VENV="$(VENV)" sh scripts/interop
	@VENV="$(VENV)" sh scripts/suite
	@VENV="$(VENV)" sh scripts/site --setup
	@VENV="$(VENV)" sh scripts/test-all $(ARGS)

check: setup
	$(VENV)/bin/ruff format --check src tests benchmarks examples scripts
	$(VENV)/bin/ruff check src tests benchmarks examples scripts
	$(VENV)/bin/mypy & mypy=$$!; $(VENV)/bin/pyright; pyright=$$?; wait $$mypy && exit $$pyright
	$(VENV)/bin/lint-imports --no-logo

conformance: setup
	@sh scripts/conformance
	@$(PY) -m tests.conformance $(ARGS)

suite: setup
	@VENV="$(VENV)" CI=true sh scripts/suite
	@$(PY) -m tests.schema.suite .suite $(ARGS)

site: setup
	@VENV="$(VENV)" sh scripts/site
	@echo "build/site/index.html"

format: setup
	$(VENV)/bin/ruff format src tests benchmarks examples scripts
	$(VENV)/bin/ruff check --fix src tests benchmarks examples scripts

bench: setup
	$(PY) -m benchmarks $(if $(QUICK),--quick,--save)

fuzz: setup
	$(PIP) install --require-hashes -r requirements/fuzz.txt
	$(PY) tests/fuzz/run.py --seconds $(or $(SECONDS),60)

soak: setup
	@SOAK=$(or $(TIMES),20) VENV="$(VENV)" sh scripts/tests -o timeout=7200 $$(grep -rl --include='test_*.py' 'counts import' tests) $(ARGS)

lock: setup
	@VENV="$(VENV)" sh scripts/lock

clean:
	rm -rf $(VENV) $(VENV)-3.* build .site .bench .fuzz .conformance .interop .suite .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
