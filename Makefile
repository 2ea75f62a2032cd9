# Everything a checkout needs. `make demo` and `make test` each set up their own environment first.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help

.PHONY: help
help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

# The lock names exact versions with hashes and no registry; an editable install follows without its dependencies.
$(READY): requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: setup
setup: $(READY)  ## make .venv with everything locked, Codex included

.PHONY: demo
demo: $(READY)  ## the main job on the real Codex with the scripted model; no account needed
	$(BIN)/termald demo

.PHONY: test
test: $(READY)  ## lint, types, import contracts, then every test
	$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest

.PHONY: lint
lint: $(READY)  ## ruff, mypy, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: format
format: $(READY)  ## let ruff lay the code out
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: bench
bench: $(READY)  ## what users would compare, beside the alternatives; ROWS=stream,turns QUICK=1 SOAK=1 OUT=FOLDER
	$(BIN)/python -m bench $(if $(ROWS),--rows $(ROWS)) $(if $(QUICK),--quick) $(if $(SOAK),--soak) $(if $(OUT),--out $(OUT))

CYCLES ?= 20
SEED ?= 1
.PHONY: crash
crash: $(READY)  ## kill the daemon, Codex or both under load; CYCLES=100 SEED=1
	$(BIN)/python tests/crash --cycles $(CYCLES) --seed $(SEED)

SECONDS ?= 600
.PHONY: races
races: $(READY)  ## new orders of events on the pure core, judged by the invariants; SECONDS=600, or SEEDS=2000 to simulate
	$(if $(filter command% environment%,$(origin SEEDS)),$(MAKE) simulate,$(BIN)/python tools/races.py --seconds $(SECONDS))

SEEDS ?= 500
.PHONY: simulate
simulate: $(READY)  ## the whole daemon from seeds, over a scripted Codex; SEEDS=2000, SEEDS=5000-7000
	SEEDS=$(SEEDS) DOOR=inside $(BIN)/python -m pytest tests/sim/test_seeds.py
	SEEDS=$(SEEDS) DOOR=http $(BIN)/python -m pytest tests/sim/test_seeds.py
	SEEDS=$(SEEDS) $(BIN)/python -m pytest tests/sim/test_every_step.py tests/sim/test_every_checkpoint.py

.PHONY: guards
guards: $(READY)  ## take each guard out, one at a time: its test must fail; WORDS="I6 REQ" for some
	$(BIN)/python tests/guards/run.py $(WORDS)

# A mutation tester and what it pulls in (a parser, a terminal interface) are nobody else's need: a place of their own.
MUTANTS_BIN := .venv-mutants/bin
.venv-mutants/.ready: requirements/mutants.txt pyproject.toml
	$(PYTHON) -m venv .venv-mutants
	$(MUTANTS_BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/mutants.txt
	$(MUTANTS_BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

MUTANTS ?= termald.core.*
.PHONY: mutants
mutants: .venv-mutants/.ready  ## change the core's decisions one at a time; MUTANTS='termald.core.queue* termald.core.work*'
	nice -n 15 $(MUTANTS_BIN)/mutmut run --max-children 1 $(foreach one,$(MUTANTS),'$(one)')
	$(MUTANTS_BIN)/python tools/mutants.py

.PHONY: coverage
coverage: .venv-mutants/.ready  ## lines and branches of the core that its own tests pass through
	$(MUTANTS_BIN)/python -m coverage run -m pytest -q tests/core --ignore=tests/core/test_model.py
	$(MUTANTS_BIN)/python -m coverage report

.PHONY: protocol
protocol: $(READY)  ## generate Codex's message types from the installed binary
	$(BIN)/python -m tools.generate_protocol

.PHONY: lock
lock:  ## renew the locks in requirements (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --extra codex --group dev requirements/build.in pyproject.toml -o requirements/dev.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  -c requirements/dev.txt --group dev --group mutants requirements/build.in pyproject.toml -o requirements/mutants.txt
