# Everything runs in .venv, which these targets make. Needs Python >= 3.11 and make, nothing else.
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3,$(shell command -v $(p) 2>/dev/null)))
BIN := .venv/bin
SOURCES := src adapters tests benchmarks docs

.PHONY: help demo serve test delivery schemathesis durability torture soak example fuzz e2e e2e-results check bench docs goldens clean

help:
	@echo "make demo    set up, and watch the embedded agent mend a repository with a failing test (no key, no network)"
	@echo "make serve   set up, and start the service on loopback: then POST a run (docs/how-to/run-the-service.md)"
	@echo "make test    set up, and pass the unit, conformance and process tests; AMUX_PROPERTIES=thorough tries properties with 1,000 examples"
	@echo "make example install the third-party adapter of docs/how-to, and pass its tests"
	@echo "make soak    200 runs at once and 1,000 in a row, on both event loops"
	@echo "make schemathesis  thousands of requests that the OpenAPI document allows, or not: some minutes"
	@echo "make torture the torture suite in full size, on both event loops: some minutes"
	@echo "make delivery  50 runs with 20 watchers each, 500 reconnections, readers who stall: a minute"
	@echo "make durability  kill -9 and restart the service 20 times, on SQLite and on PostgreSQL: some minutes"
	@echo "make fuzz    10,000 mutated recordings through each codec: slower than the tests"
	@echo "make e2e     drive the real CLIs, installed at pinned versions, offline; AGENTS=... for some of them, MARK=core for the main scenarios"
	@echo "make e2e-results  the same, and write what came of it into the support matrix"
	@echo "make check   lint, types, import rules, generated docs"
	@echo "make bench   the benchmarks, as ratios from one run"
	@echo "make docs    generate the reference pages again"
	@echo "make goldens rewrite the golden events (then review the diff)"

.venv/base: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "agent-mux needs Python >= 3.11; say make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

.venv/dev: .venv/base
	$(BIN)/python -m pip install --quiet --group dev --editable .
	@touch $@

.venv/demo: .venv/base
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	@touch $@

demo: .venv/demo
	$(BIN)/amux demo

serve: .venv/base
	$(BIN)/python -m pip install --quiet --editable '.[service]'
	$(BIN)/amux serve

# Tests of processes wait more than they work: two at a time for each processor.
test: .venv/dev
	$(BIN)/python -m pytest --numprocesses=auto $(if $(COVERAGE),--cov --cov-report=) tests/unit tests/conformance
	$(BIN)/python -m pytest --numprocesses=$$((2 * $$(getconf _NPROCESSORS_ONLN))) \
	  $(if $(COVERAGE),--cov --cov-append --cov-report=term:skip-covered --cov-fail-under=90) tests/process tests/service

example: .venv/dev
	$(BIN)/python -m pip install --quiet --editable docs/how-to/write-an-adapter
	cd docs/how-to/write-an-adapter && ../../../$(BIN)/python -m pytest --numprocesses=auto

soak: .venv/dev
	AMUX_SOAK=full $(BIN)/python -m pytest tests/process/test_many_runs.py -s

schemathesis: .venv/dev
	AMUX_SCHEMATHESIS=full $(BIN)/python -m pytest tests/service/test_schemathesis.py

torture: .venv/dev
	AMUX_TORTURE=full $(BIN)/python -m pytest tests/process/test_torture.py

delivery: .venv/dev
	AMUX_DELIVERY=full $(BIN)/python -m pytest tests/service/test_delivery.py

durability: .venv/dev
	AMUX_DURABILITY=full $(BIN)/python -m pytest tests/service/durable

fuzz: .venv/dev
	$(BIN)/python -m agent_mux_testing.fuzz

e2e: .venv/dev
	$(BIN)/python -m agent_mux_testing.provision $(AGENTS)
	$(BIN)/python -m agent_mux_testing.offline -- $(BIN)/python -m pytest tests/e2e --numprocesses=2 $(AGENTS:%=--agent %) $(MARK:%=-m %)

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

bench: .venv/dev
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python -m benchmarks

docs: .venv/dev
	$(BIN)/python docs/generate.py

goldens: .venv/dev
	AMUX_UPDATE_GOLDENS=1 $(BIN)/python -m pytest tests/conformance

clean:
	rm -rf .venv dist build .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
