# Every target makes the environment it needs; a plain Python >= 3.11 is enough to start.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements/dev.lock

.PHONY: chaos demo demo-crew test test-dapr-1.18 lint bench lock clean kill-matrix suite-langgraph \
  suite-langgraph-sample suite-crewai bench-crew bench-effects bench-load soak

$(VENV)/.installed: $(LOCK) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is older than 3.11: name a newer one, as in: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $@

venv: $(VENV)/.installed

demo: venv
	$(BIN)/python examples/demo/demo.py

demo-crew: venv
	$(BIN)/python examples/crew_support/demo.py

test: venv
	$(BIN)/python -m pytest

kill-matrix: venv
	$(BIN)/python -m pytest -m "" tests/acceptance/kill_matrix tests/acceptance/crew_matrix

# Crashes of others' frameworks and of our runners, and the charges that come of them.
chaos: venv
	$(BIN)/python -m chaos.matrix
	DAPR_RUNNERS_EXAMPLES=10000 $(BIN)/python -m pytest tests/integration/effects/test_record_model.py
	$(BIN)/python -m pytest -m "" tests/acceptance/test_crash_test.py

# The other SDK the README names: two wheels, and its 4 MiB limit on messages lifted by us.
OLD_DAPR := 1.18.3
OLD_VENV := .venv-dapr-$(OLD_DAPR)

$(OLD_VENV)/.installed: $(LOCK) pyproject.toml
	$(PYTHON) -m venv $(OLD_VENV)
	sed -E '/--hash=/d; s/ \\$$//; /^dapr==/d' $(LOCK) > $(OLD_VENV)/lock.txt
	$(OLD_VENV)/bin/python -m pip install --quiet -r $(OLD_VENV)/lock.txt \
	  dapr==$(OLD_DAPR) dapr-ext-workflow==$(OLD_DAPR)
	$(OLD_VENV)/bin/python -m pip install --quiet --no-deps --editable .
	touch $@

test-dapr-1.18: $(OLD_VENV)/.installed
	$(OLD_VENV)/bin/python -m pytest tests/integration
	$(OLD_VENV)/bin/python examples/demo/demo.py

# The minor version of CrewAI before the locked one. pip refuses it beside any Dapr SDK (its telemetry
# wants an older protobuf), so it gets what the locked one depends on.
OLD_CREWAI := 1.14.7
OLD_CREWAI_VENV := .venv-crewai-$(OLD_CREWAI)

$(OLD_CREWAI_VENV)/.installed: $(LOCK) pyproject.toml
	$(PYTHON) -m venv $(OLD_CREWAI_VENV)
	$(OLD_CREWAI_VENV)/bin/python -m pip install --quiet --require-hashes -r $(LOCK)
	$(OLD_CREWAI_VENV)/bin/python -m pip install --quiet --no-deps \
	  $(foreach package,crewai crewai-core crewai-cli,$(package)==$(OLD_CREWAI))
	$(OLD_CREWAI_VENV)/bin/python -m pip install --quiet --no-deps --editable .
	touch $@

test-crewai-1.14: $(OLD_CREWAI_VENV)/.installed
	$(OLD_CREWAI_VENV)/bin/python -m pytest tests/integration/crewai
	$(OLD_CREWAI_VENV)/bin/python examples/crew_support/demo.py

# LangGraph's own tests, from its source distribution, as durable runs.
SUITE_VENV := .venv-suite
SUITE_LOCK := requirements/suite-langgraph.lock

$(SUITE_VENV)/.installed: $(SUITE_LOCK) pyproject.toml
	$(PYTHON) -m venv $(SUITE_VENV)
	$(SUITE_VENV)/bin/python -m pip install --quiet --require-hashes -r $(SUITE_LOCK)
	$(SUITE_VENV)/bin/python -m pip install --quiet --no-deps --editable .
	touch $@

suite-langgraph: $(SUITE_VENV)/.installed
	$(SUITE_VENV)/bin/python tests/suites/langgraph/run.py

suite-langgraph-sample: $(SUITE_VENV)/.installed
	$(SUITE_VENV)/bin/python tests/suites/langgraph/run.py --sample 6

# CrewAI's own tests, from a checkout (see tests/suites/README.md), with the version it is of.
CREWAI_SRC ?=
CREWAI_VERSION = $(if $(CREWAI_SRC),$(shell \
  sed -n 's/^__version__ = "\(.*\)"/\1/p' $(CREWAI_SRC)/lib/crewai/src/crewai/__init__.py))
CREWAI_VENV = .venv-suite-crewai-$(CREWAI_VERSION)
CREWAI_TOOLS := requirements/suite-crewai.txt
CREWAI_EXTRAS := litellm,anthropic,google-genai,azure-ai-inference,file-processing

.venv-suite-crewai-%/.installed: $(CREWAI_TOOLS) pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet -r $(CREWAI_TOOLS) "crewai[$(CREWAI_EXTRAS)]==$*"
	$(@D)/bin/python -m pip install --quiet --no-deps --editable .
	touch $@

suite-crewai:
	@test -n "$(CREWAI_VERSION)" || \
	  { echo "Name a checkout of CrewAI: make suite-crewai CREWAI_SRC=../crewAI"; exit 1; }
	$(MAKE) $(CREWAI_VENV)/.installed
	$(CREWAI_VENV)/bin/python tests/suites/crewai/run.py $(abspath $(CREWAI_SRC))

# The locked versions, with what pyproject.toml has new. Versions that still fit stay as they are.
# The locked CrewAI is the newest whose own tests (`suite-crewai`) could be had.
CREWAI := 1.15.17

lock:
	uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
	  --upgrade-package crewai==$(CREWAI) \
	  --python-version 3.11 --extra all --group test --group lint pyproject.toml -o $(LOCK)
	uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --extra langgraph --group suite-langgraph pyproject.toml -o $(SUITE_LOCK)

lint: venv
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/pyright
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive runners

clean:
	rm -rf $(VENV) .venv-dapr-* .venv-crewai-* .venv-suite* .dapr-runners

bench: venv
	$(BIN)/python -m benchmarks.langgraph

soak: venv
	$(BIN)/python -m chaos.soak

bench-load: venv
	$(BIN)/python -m benchmarks.load

bench-effects: venv
	$(BIN)/python -m benchmarks.effects

bench-crew: venv
	$(BIN)/python -m benchmarks.crewai
