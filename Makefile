# All targets use .venv and create it. Requirements: Python >= 3.11 and make.
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3,$(shell command -v $(p) 2>/dev/null)))
BIN := .venv/bin
unexport PYTHONDONTWRITEBYTECODE  # tests start thousands of Python processes, which would compile all modules each time
SOURCES := src adapters testing tests benchmarks docs examples

.PHONY: help demo serve pictures test test-slow test-exhaustive test-all delivery schemathesis durability torture soak example fuzz e2e e2e-results check bench docs goldens lock dev clean

help:
	@echo "make demo    set up; the embedded agent repairs a repository with a failing test (no key, no network)"
	@echo "make serve   set up and start the service on loopback (docs/how-to/run-the-service.md)"
	@echo "make test    set up and run the fast tests: unit, conformance, process, service (4 minutes on 2 processors)"
	@echo "make test-slow  slow tests, a sample of their cases, soak and torture (25 minutes on 2 processors)"
	@echo "make test-all  all tests: make test, make test-slow, and what both leave out (an hour); without e2e"
	@echo "make example install the example adapter of docs/how-to and run its tests"
	@echo "make soak    200 concurrent runs and 1,000 consecutive runs, on both event loops"
	@echo "make schemathesis  thousands of valid and invalid requests from the OpenAPI document (minutes)"
	@echo "make torture the full torture suite, on both event loops (minutes)"
	@echo "make delivery  50 runs with 20 readers each, 500 reconnections, stalled readers (1 minute)"
	@echo "make durability  kill -9 and restart the service 20 times, on SQLite and PostgreSQL (minutes)"
	@echo "make fuzz    10,000 mutated recordings through each codec (slow)"
	@echo "make e2e     drive the real CLIs at pinned versions, offline; AGENTS=\"claude codex\" for some, MARK=core for the main scenarios"
	@echo "make e2e-results  the same, and write the results into the support matrix"
	@echo "make check   lint, types (mypy and pyright), import rules, generated docs"
	@echo "make bench   the benchmarks, as ratios from one run"
	@echo "make dev     install what the other targets need, at the versions of requirements-dev.txt, into .venv"
	@echo "make lock    upgrade uv.lock and requirements-dev.txt to the newest versions that pyproject.toml allows"
	@echo "make docs    regenerate the reference pages"
	@echo "make pictures redraw the terminal pictures of the pages, from recordings of real CLIs"
	@echo "make goldens regenerate the golden events; review the diff"

.venv/base: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "agent-mux needs Python >= 3.11; run make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

.venv/dev: .venv/base testing/pyproject.toml requirements-dev.txt
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements-dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --editable . --editable ./testing
	@touch $@

demo: .venv/base
	$(BIN)/amux demo

serve: .venv/base
	$(BIN)/python -m pip install --quiet --editable '.[service]'
	$(BIN)/amux serve

# The fast suite. Process tests mostly wait, so two of them run per processor.
test: .venv/dev
	$(BIN)/python -m pytest --dist=worksteal --numprocesses=auto $(if $(COVERAGE),--cov --cov-report=) tests/unit tests/conformance
	$(BIN)/python -m pytest --dist=worksteal --numprocesses=$$((2 * $$(getconf _NPROCESSORS_ONLN))) \
	  $(if $(COVERAGE),--cov --cov-append --cov-report=term:skip-covered --cov-fail-under=90) tests/process tests/service

# Slow tests, long runs of single modules, and properties with 50 examples each.
test-slow: .venv/dev
	AMUX_PROPERTIES=sample $(BIN)/python -m pytest --dist=worksteal --numprocesses=auto \
	  -m "(slow or hypothesis) and not exhaustive" tests/unit tests/conformance
	$(BIN)/python -m pytest --dist=worksteal --numprocesses=$$((2 * $$(getconf _NPROCESSORS_ONLN))) \
	  -m "slow and not exhaustive" tests/process tests/service
	$(MAKE) --jobs=2 --output-sync=target torture soak delivery example  # each uses one processor

# What both leave out: all other cases, the longest runs, and properties with 200 examples each
# (AMUX_PROPERTIES=thorough: 1,000).
test-exhaustive: .venv/dev
	AMUX_PROPERTIES=$${AMUX_PROPERTIES:-full} $(BIN)/python -m pytest --dist=worksteal --numprocesses=auto \
	  -m "exhaustive or hypothesis" tests/unit tests/conformance
	$(BIN)/python -m pytest --dist=worksteal --numprocesses=$$((2 * $$(getconf _NPROCESSORS_ONLN))) \
	  -m exhaustive tests/process tests/service
	$(MAKE) --jobs=2 --output-sync=target durability schemathesis

test-all: test test-slow test-exhaustive

example: .venv/dev
	rm -rf .venv/example
	$(BIN)/python -m pip install --quiet --no-deps --target .venv/example docs/how-to/write-an-adapter
	cd docs/how-to/write-an-adapter && \
	  PYTHONPATH=$(CURDIR)/.venv/example ../../../$(BIN)/python -m pytest --numprocesses=auto

soak: .venv/dev
	AMUX_SOAK=full $(BIN)/python -m pytest -m "" tests/process/test_many_runs.py -s

schemathesis: .venv/dev
	AMUX_SCHEMATHESIS=full $(BIN)/python -m pytest -m "" tests/service/test_schemathesis.py

torture: .venv/dev
	AMUX_TORTURE=full $(BIN)/python -m pytest -m "" tests/process/test_torture.py

delivery: .venv/dev
	AMUX_DELIVERY=full $(BIN)/python -m pytest -m "" tests/service/test_delivery.py

durability: .venv/dev
	AMUX_DURABILITY=full $(BIN)/python -m pytest -m "" tests/service/durable

fuzz: .venv/dev
	$(BIN)/python -m agent_mux_testing.fuzz

e2e: .venv/dev
	$(BIN)/python -m agent_mux_testing.provision $(if $(AGENTS),$(AGENTS) acpx mcp-server-time)
	$(BIN)/python -m agent_mux_testing.offline -- $(BIN)/python -m pytest tests/e2e --numprocesses=3 $(AGENTS:%=--agent %) $(if $(MARK),-m "$(MARK)")

e2e-results: .venv/dev
	$(BIN)/python -m agent_mux_testing.provision
	$(BIN)/python -m agent_mux_testing.offline -- $(BIN)/python -m pytest tests/e2e --results tests/e2e/results.json
	$(BIN)/python docs/generate.py support-matrix

check: .venv/dev
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check
	$(BIN)/python -m pytest -q tests/typing

bench: .venv/dev
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python -m benchmarks

docs: .venv/dev
	$(BIN)/python docs/generate.py

pictures: .venv/dev
	$(BIN)/python docs/pictures.py
	$(BIN)/python docs/report_picture.py

goldens: .venv/dev
	AMUX_UPDATE_GOLDENS=1 $(BIN)/python -m pytest tests/conformance

# The versions of the development install: uv.lock for uv, and the same for pip.
lock:
	$(PYTHON) -m venv .venv/uv
	.venv/uv/bin/python -m pip install --quiet uv
	.venv/uv/bin/uv lock --upgrade
	.venv/uv/bin/uv export --quiet --frozen --no-emit-local --output-file requirements-dev.txt

dev: .venv/dev

clean:
	rm -rf .venv dist build .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
