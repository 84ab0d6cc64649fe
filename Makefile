# Every target makes the environment it needs; a plain Python >= 3.11 is enough to start.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements/dev.lock

.PHONY: demo test lint bench lock clean

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

test: venv
	$(BIN)/python -m pytest

lint: venv
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/pyright

clean:
	rm -rf $(VENV) .dapr-runners

bench: venv
	$(BIN)/python -m benchmarks.langgraph
