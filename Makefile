# make lab        JupyterLab on the notebooks; make lab ARGS="--no-browser --port 8899" passes options on
# make test       lint, types, unit tests, notebooks and the browser test
# make test-all   the same with every case of the long tables of cases, which takes twice as long
# make docs       write the generated tables of README.md and docs/
# All install into .venv the first time, and again when pyproject.toml changes.

VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

# The first Python that is new enough; choose another with make PYTHON=/path/to/python3.12
PYTHON ?= $(firstword $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python; done; true))

# $(call install,EXTRAS): labkit with these extras and those that this machine's GPU and C compiler call for
install = $(BIN)/python -m pip install --editable ".[$(1)$$($(BIN)/python -c \
	'from labkit.doctor import suggested_extras; print(*["", *suggested_extras()], sep=",")')]"

.PHONY: lab test test-all lint format docs clean

lab: $(VENV)/.lab
	$(BIN)/labkit lab $(ARGS)

test: CASES := and not thorough
test test-all: $(VENV)/.dev lint
	$(BIN)/python tests/bubblewrap.py
	$(BIN)/python -m pytest -n 2 -m "not browser $(CASES)"
	$(BIN)/python tests/browser/chromium.py
	$(BIN)/python -m pytest -n 2 -m "browser $(CASES)"

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	for system in win32 darwin; do $(BIN)/mypy --platform $$system --exclude labkit/grading labkit || exit 1; done

docs: $(VENV)/.dev
	$(BIN)/python docs/tables.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/.lab: pyproject.toml | $(BIN)/python
	$(call install,lab)
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(call install,dev)
	@touch $@ $(VENV)/.lab

$(BIN)/python:
	@$(or $(PYTHON),false) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "labkit needs Python 3.11 or newer, and $(or $(PYTHON),python3) is not."; \
		echo "Install one from python.org or your system's packages, then: make PYTHON=/path/to/python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot make a virtual environment. On Debian or Ubuntu: sudo apt install python3-venv"; exit 1; }
