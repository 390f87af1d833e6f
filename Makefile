# Needs only python3 (3.11 or newer) and make; the rest is installed, pinned, into .venv.
# PYTHON=python3.12 chooses another Python. ARGS="…" is passed on: make test ARGS="-k names -x"

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
RUNS   := $(VENV)/.runs
ARGS   ?=
WORKERS ?= 4
NAME   ?=

# Tests start hundreds of Python processes, each of which would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

WITH_SERVICES := $(BIN)/python tools/services.py run

# Tests keep their files and databases in memory if there is room: on a disk they wait. Proofs and benches use the disk.
MEMORY        := $(shell df -k --output=avail /dev/shm 2>/dev/null | awk '$$1 + 0 > 6000000 { print "/dev/shm" }')
TEST_SERVICES := $(if $(MEMORY),TMPDIR=$(MEMORY) )$(WITH_SERVICES)

# Both `make proof kill` and `make proof NAME=kill` work. The extra word must not be a target.
ifneq ($(filter proof bench,$(firstword $(MAKECMDGOALS))),)
  WORDS := $(wordlist 2,9,$(MAKECMDGOALS))
  ifneq ($(WORDS),)
    NAME := $(firstword $(WORDS))
    $(eval .PHONY: $(WORDS))
    $(eval $(WORDS):;@:)
  endif
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run demo setup test test-unit test-databases test-api test-browser test-faults model compiled again check format bench proof screens docs site messages lock audit sbom release image clean

help:  ## List targets
	@echo "make TARGET, with TARGET one of:"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-17s %s\n", $$1, $$2 }'

run: $(RUNS)  ## Set up and serve Refract on SQLite; prints the URL and a sign-in link
	$(BIN)/refract serve $(ARGS)

demo: $(RUNS)  ## Serve a directory with realistic sample data (demo)
	test -e demo/refract.db || $(BIN)/refract demo --data-dir demo
	$(BIN)/refract serve --data-dir demo $(ARGS)

setup: $(READY)  ## Only create the development environment (.venv); every target does this if necessary

# Two locks: the runtime, and everything for development, which includes the runtime. The third compiles fast lane and ingest.
NATIVE := src/refract/redirect/_lane.pyx src/refract/clicks/_frames.pyx src/refract/clicks/spool/_crc32.pxi tools/extension.py requirements-build.lock

$(RUNS): requirements.lock tools/environment.py $(NATIVE)
	$(PYTHON) -m tools.environment $(VENV)
	@touch $@

$(READY): requirements.lock requirements-dev.lock tools/environment.py $(NATIVE)
	$(PYTHON) -m tools.environment --dev $(VENV)
	@touch $@ $(RUNS)

# Without --dist the tests are distributed by file (tests/groups_plugin.py), long ones first.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --no-loadscope-reorder --durations 15

test: $(READY)  ## Everything: make check, then all tests against real PostgreSQL, MariaDB, Redis and Chromium
	$(MAKE) --no-print-directory -j3 check model compiled
	$(TEST_SERVICES) -- $(PYTEST) $(ARGS)

# Beside mypy, which uses one core: services are installed, and every module is compiled once instead of by each worker.
compiled: $(READY)
	$(TEST_SERVICES) -- $(BIN)/python -m pytest --collect-only -qq > $(VENV)/collected.txt || { tail -n 40 $(VENV)/collected.txt; exit 1; }

# The same tests in groups that share nothing, so that they can run in parallel: make -j2 test-unit test-faults
SERVICES_unit      := redis,nginx,caddy,oidc
SERVICES_databases := postgresql,mysql,redis,nginx,oidc
SERVICES_api       := postgresql,mysql,redis
SERVICES_browser   := chromium
SERVICES_faults    := postgresql,mysql,redis,nginx

test-unit: model  ## Only the tests on SQLite or without a database
test-databases:   ## Only the tests on PostgreSQL and MariaDB
test-api:         ## Only the tests of the whole program over HTTP
test-browser:     ## Only the tests in Chromium
test-faults:      ## Only the proofs under faults, in their short size
test-unit test-databases test-api test-browser test-faults: test-%: $(READY)
	$(TEST_SERVICES) --only $(SERVICES_$*) -- $(PYTEST) --group $* -o cache_dir=.pytest_cache/$* $(ARGS)

model: $(READY)
	$(BIN)/python -m tools.model $(VENV)/model

again: $(READY)  ## Repeat the tests that failed last time, alone; those that pass now are flaky
	$(TEST_SERVICES) -- $(BIN)/python -m tools.flaky dist/flaky.txt

check: $(READY)  ## Lint, format, types and import layers; scripts, stylesheets and templates too
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.frontend check

format: $(READY)  ## Format everything, and fix what the linters can fix
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/python -m tools.frontend format

bench: $(READY)  ## Measure: all of bench/, or one with NAME=…
	$(WITH_SERVICES) --as-shipped --only postgresql,mysql,redis,chromium,nginx,wrk -- $(BIN)/python -m bench $(NAME) $(ARGS)

proof: $(READY)  ## Run one long proof: make proof NAME; without a name, list them
	$(if $(NAME),$(WITH_SERVICES) --only postgresql$(,)mysql$(,)redis$(,)nginx -- $(BIN)/python -m proofs $(NAME) $(ARGS),@$(BIN)/python -m proofs)

screens: $(READY)  ## Take screenshots of every screen in a real browser
	$(WITH_SERVICES) --only chromium -- $(BIN)/python -m tools.screens $(ARGS)

docs: $(READY)  ## Generate the reference pages and the comparison of the README, and build the website
	$(BIN)/python -m tools.api_examples
	$(BIN)/python -m tools.docs $(ARGS)
	$(BIN)/python -m tools.comparison
	$(MAKE) --no-print-directory site

site: $(READY)  ## Build the documentation as a website in dist/site, with search and without a network
	$(BIN)/python -m tools.site $(ARGS)

messages: $(READY)  ## Extract messages for translation and update the catalogues
	$(BIN)/python -m tools.messages $(ARGS)

EXPORT := .uv/bin/uv export --format requirements-txt --no-header --no-emit-project --quiet

lock: .uv/bin/uv  ## Resolve pyproject.toml into requirements.lock (runtime), -build.lock and -dev.lock (with extras and tools)
	$(EXPORT) --all-groups --all-extras --upgrade > requirements-dev.lock.new
	$(EXPORT) --no-default-groups > requirements.lock.new
	$(EXPORT) --only-group build > requirements-build.lock.new
	mv requirements-build.lock.new requirements-build.lock
	mv requirements-dev.lock.new requirements-dev.lock
	mv requirements.lock.new requirements.lock
	for directory in tools/clients tools/release tools/site; do .uv/bin/uv pip compile --quiet --upgrade --generate-hashes --no-header --no-emit-index-url --python-version 3.11 $$directory/requirements.in -o $$directory/requirements.lock || exit 1; done

.uv/bin/uv:
	$(PYTHON) -m venv .uv
	.uv/bin/pip --quiet install uv

audit: .audit/bin/pip-audit  ## Check the locked dependencies for known vulnerabilities (needs a network)
	$(PYTHON) -m tools.audit .audit/bin/pip-audit

.audit/bin/pip-audit:
	$(PYTHON) -m venv .audit
	.audit/bin/pip --quiet install pip-audit

sbom:  ## Write the bill of materials of the runtime (CycloneDX) to dist/sbom.json
	@mkdir -p dist
	$(PYTHON) -m tools.sbom > dist/sbom.json

release: $(READY)  ## Build a release twice, compare, and tag it; ARGS=--dry-run tags nothing
	$(BIN)/python -m tools.release $(ARGS)

image: $(READY)  ## Build the container image without a daemon, run it, and judge it (needs root)
	$(BIN)/python -m tools.image $(ARGS)

clean:  ## Remove everything that make created, but never data/
	rm -rf $(VENV) .uv .audit uv.lock dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .schemathesis
	rm -f src/refract/redirect/_lane.*.so src/refract/clicks/_frames.*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

, := ,
