# Every target makes the environment it needs; a plain Python >= 3.11 is enough to start.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements/dev.lock

.PHONY: demo test lint bench lock clean

$(VENV)/.installed: $(LOCK) pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $@

venv: $(VENV)/.installed

test: venv
	$(BIN)/python -m pytest

lint: venv
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/pyright

clean:
	rm -rf $(VENV) .dapr-runners
