# On a fresh machine `make demo` and `make test` are all there is to run: they need make and a Python from 3.11 on.

MINORS := 14 13 12 11

# Prints an interpreter for each minor version that is there, the newest first. Some are found by name but do not run
# (pyenv's shims for versions that are not selected) or cannot make virtual environments, so each is tried.
define FIND_PYTHONS
for minor in $(MINORS); do \
	for python in python3.$$minor python3 python "$$HOME"/.pyenv/versions/3.$$minor.*/bin/python; do \
		if "$$python" -c "import sys, ensurepip, venv; sys.exit(sys.version_info[:2] != (3, $$minor))" 2>/dev/null; \
		then echo "$$python"; break; fi; \
	done; \
done
endef

PYTHON ?= $(or $(firstword $(shell $(FIND_PYTHONS))),$(error there is no Python from 3.11 to 3.14 with the venv module))
VENV ?= .venv
BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip --quiet --disable-pip-version-check
PYTEST = $(BIN)/python -m pytest

# Python's bytecode is kept: without it each process that a test starts compiles all that it imports. And programs
# write as they do for users, through a buffer.
unexport PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED

.PHONY: help demo test check static test-all test-pythons test-lowest interop interop-pins simulate deliveries soak fuzz bench coverage docs pictures fmt clean

help:
	@echo "make demo       watch a run of the built-in agent over this folder"
	@echo "make test       run the tests; those of one folder with FOLDER=tests/web"
	@echo "make check      the tests, and formatting, lint, types and the layers of imports"
	@echo "make test-all   run the tests that take long: browsers, npm, servers, many seeds, packages, types"
	@echo "make test-pythons  run the tests on every Python from 3.11 on that this machine has"
	@echo "make test-lowest  run the tests with the oldest versions of the dependencies that pyproject.toml allows"
	@echo "make interop    drive agents from npm against a stand-in for their model; needs node"
	@echo "                AGENTS=more drives those that nothing was made for;"
	@echo "                MATRIX=write puts what they came to into docs/reference/agents.md"
	@echo "make interop-pins  pin today's versions of those agents and of all that they need, and show what changes"
	@echo "make simulate   run the simulation: SEEDS=10000 runs of agents that stall, lie and die"
	@echo "make deliveries deliver RUNS=1000 answers to chats where much goes wrong"
	@echo "make soak       kill a server KILLS=3 times that has RUNS=500 runs, watched by WATCHERS=2000;"
	@echo "                with JOURNAL=sqlite, or two with JOURNAL=redis; without, both"
	@echo "make fuzz       feed everything that reads with nonsense, for MINUTES=5"
	@echo "make bench      measure; see benchmarks/README.md"
	@echo "make pictures   make the pictures in docs/pictures anew"
	@echo "make coverage   run the tests and show which lines and branches they miss"
	@echo "make docs       build the documentation as a site, in build/site"
	@echo "make fmt        format the code"
	@echo "make clean      remove what the commands above have made"

demo: $(VENV)/.installed
	@$(BIN)/thinkwell demo

# The workers share the cases; MOST_CPU=1200 fails a run that takes more seconds of processor time.
PARALLEL = -n auto --dist loadgroup

test: $(VENV)/.installed-test .cache/.fetched
	$(PYTEST) $(PARALLEL) -m "not interop and not long" $(if $(MOST_CPU),--most-cpu $(MOST_CPU)) $(FOLDER)

test-all: $(VENV)/.installed-test .cache/.fetched
	$(PYTEST) $(PARALLEL) -m "long and not interop" $(FOLDER)

check: static test

static: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/python tests/suite/private_imports.py
	$(BIN)/python tests/suite/shape.py
	$(BIN)/python tests/suite/prose.py
	$(BIN)/python tests/suite/api.py
	$(BIN)/codespell

test-pythons:
	@set -eu; for python in $$($(FIND_PYTHONS)); do \
		version=$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
		echo "== Python $$version"; \
		$(MAKE) --no-print-directory test PYTHON="$$python" VENV=".venvs/$$version"; \
	done

# With the oldest Python too. What only the tests use stays as new as it is.
LOWEST := .venvs/lowest

test-lowest:
	@$(MAKE) --no-print-directory $(LOWEST)/.installed-lowest PYTHON="$(lastword $(shell $(FIND_PYTHONS)))" VENV=$(LOWEST)
	@$(MAKE) --no-print-directory test VENV=$(LOWEST)

interop: $(VENV)/.installed-test $(VENV)/.installed-uv
	$(if $(filter write,$(MATRIX)),THINKWELL_WRITE_MATRIX=1 )$(PYTEST) -m "$(if $(filter more,$(AGENTS)),more_agents,interop and not more_agents)" tests/interop

interop-pins: $(VENV)/.installed-test $(VENV)/.installed-uv
	cd tests && $(abspath $(BIN))/python -m interop

SEEDS ?= 10000
MINUTES ?= 5
SEED ?= 1

simulate: $(VENV)/.installed-test
	$(BIN)/python -m tests.simulation --seeds $(SEEDS)

deliveries: $(VENV)/.installed-test
	cd tests && $(abspath $(BIN))/python -W ignore -m deliveries $(or $(RUNS),1000)

soak: $(VENV)/.installed-test
	cd tests && $(abspath $(BIN))/python -W ignore -m soak $(or $(RUNS),500) $(or $(WATCHERS),2000) $(or $(KILLS),3) $(SEED) $(JOURNAL)

fuzz: $(VENV)/.installed-test
	cd tests && $(abspath $(BIN))/python -W ignore -m fuzz $(MINUTES)

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks

coverage: $(VENV)/.installed-test .cache/.fetched
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(PARALLEL) -m "not interop" $(FOLDER)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=100

docs: $(VENV)/.installed-docs
	$(BIN)/python tests/docs/building.py build/site

pictures: $(VENV)/.installed-test .cache/.fetched
	cd tests && $(abspath $(BIN))/python -W ignore -m pictures

fmt: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .venvs .cache .hypothesis .*_cache .coverage* build dist
	find acp thinkwell tests examples benchmarks -name __pycache__ -prune -exec rm -rf {} +

# The stamps stand for what is installed; a change of pyproject.toml installs anew.

$(VENV)/.installed: pyproject.toml
	@test -x $(BIN)/python || { echo "Making $(VENV) with $(PYTHON)"; "$(PYTHON)" -m venv $(VENV); }
	@$(PIP) install --upgrade "pip>=25.1"
	@$(PIP) install --editable ".[cli]"
	@touch $@

$(VENV)/.installed-%: $(VENV)/.installed
	@echo "Installing what is needed: $*"
	@$(PIP) install --group $*
	@touch $@

# The tools of the tests may ask for newer versions than ours: what is oldest overrides what they ask for.
$(LOWEST)/.installed-lowest: $(LOWEST)/.installed $(LOWEST)/.installed-uv
	@echo "Installing the oldest versions that pyproject.toml allows"
	@echo "opentelemetry-sdk>=1.30" | $(BIN)/uv pip compile --quiet --python $(BIN)/python --upgrade --resolution lowest-direct \
		--no-strip-extras --all-extras pyproject.toml - --output-file $(LOWEST)/lowest.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --override $(LOWEST)/lowest.txt --group test --editable ".[all]"
	@touch $(LOWEST)/.installed-test $@

# Downloads and compiles what the first run of the tests would wait for.
.cache/.fetched: tests/debian_packages.py tests/npm/package-lock.json | $(VENV)/.installed-test
	@echo "Fetching the browser and the servers of the tests"
	@cd tests && $(abspath $(BIN))/python -W ignore -m suite.fetched
	@$(BIN)/python -m compileall -q acp thinkwell tests
	-@$(PYTEST) --collect-only -q > /dev/null 2>&1
	@mkdir -p .cache && touch $@
