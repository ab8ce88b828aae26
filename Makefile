# make lab        JupyterLab on the notebooks; make lab ARGS="--no-browser --port 8899" passes options on
# make test       lint, types and the tests, but for those marked slow
# make test-all   all tests that need no GPU, and the types for Windows and macOS: what .ci/run calls
# make quick      lint, types and the quickest tests: less than a minute once .venv is there
# make test-gpu   on a machine with a GPU: its tests, and all solved notebooks on it; make test-gpu-tests and
#                 make test-gpu-notebooks are its parts. Without a network: make test-gpu WITH=python3
# make mutants    how many small mistakes in the code the tests notice; make mutants ARGS="--module sanitizer --seed 7"
# make docs       write the generated tables of README.md and docs/
# make book       the course and docs/ as a site, in build/book/html; make book ARGS="--repository OWNER/REPO"
# All install into .venv the first time, and again when pyproject.toml changes.

VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

# The first Python that is new enough; choose another with make PYTHON=/path/to/python3.12
PYTHON ?= $(firstword $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python; done; true))

# The tests start some hundred Python processes: each would compile Jupyter's modules anew.
unexport PYTHONDONTWRITEBYTECODE

# $(call install,EXTRAS): labkit with these extras and those that this machine's GPU and C compiler call for.
# uv takes a third of pip's time. It does not know pip's settings, a mirror for instance: then pip installs.
install = extras="$(1)$$($(BIN)/python -c \
	'from labkit.doctor import suggested_extras; print(*["", *suggested_extras()], sep=",")')"; \
	$(BIN)/python -m pip install --quiet uv && \
		$(BIN)/uv pip install --python $(BIN)/python --compile-bytecode --editable ".[$$extras]" || \
	$(BIN)/python -m pip install --editable ".[$$extras]"

.PHONY: lab test test-all quick test-gpu test-gpu-tests test-gpu-notebooks gpu mutants lint platforms collect system format docs book clean

lab: $(VENV)/.lab
	$(BIN)/labkit lab $(ARGS)

# One more than two cores: while a test waits for a notebook, a sandbox or a browser, another works. The tests of
# a file share what it sets up, and tests/conftest.py puts the longest files first.
WORKERS := -n 3 --dist loadfile --no-loadscope-reorder

test: CASES := -m "not slow and not gpu"
test-all: CASES := -m "not gpu"
test-all: platforms
test test-all: $(VENV)/.dev
	$(MAKE) --jobs=3 lint collect system
	$(BIN)/python -m pytest $(WORKERS) $(CASES)

# Folders and files that compile few kernels.
QUICK := simt/common simt/compiler/test_options.py simt/test_language.py simt/test_check.py simt/test_counters.py \
	labkit/records $(addprefix labkit/,devices/test_device.py kernels/test_problems.py model/test_roofline.py)

quick: lint
	$(BIN)/python -m pytest -q $(WORKERS) -m "not slow and not gpu" $(addprefix tests/,$(QUICK))

# WITH names a Python in which all is installed already; see CONTRIBUTING.md.
WITH ?=
GPU_PYTHON = $(or $(WITH),$(BIN)/python)
ON_GPU = LABKIT_DEVICE=gpu PYTHONPATH="$(CURDIR)$${PYTHONPATH:+:$$PYTHONPATH}" $(GPU_PYTHON)

# Tests of the device and notebook 01 measure times, so they run alone; the other notebooks run side by side.
test-gpu: test-gpu-tests
	$(MAKE) test-gpu-notebooks

test-gpu-tests: gpu
	$(ON_GPU) -m pytest -q -m gpu $(addprefix --ignore=tests/,browser labkit/course/test_notebooks_on_gpu.py)

test-gpu-notebooks: gpu
	$(ON_GPU) -m pytest -q -n 6 --dist load tests/labkit/course/test_notebooks_on_gpu.py -k "not 01_cpu"
	$(ON_GPU) -m pytest -q tests/labkit/course/test_notebooks_on_gpu.py -k 01_cpu

gpu: $(if $(WITH),,$(VENV)/.dev)
	@$(ON_GPU) -c 'from labkit.devices.select import find_gpu; print(find_gpu())'

mutants: $(VENV)/.dev
	$(BIN)/python tests/mutants.py $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

platforms: $(VENV)/.dev
	for system in win32 darwin; do $(BIN)/mypy --platform $$system simt labkit || exit 1; done

# pytest rewrites each test file's asserts the first time: once here, beside mypy, rather than in each worker.
collect: $(VENV)/.dev
	@$(BIN)/python -m pytest --collect-only -qq >/dev/null || true # make test says what is wrong

docs: $(VENV)/.dev
	$(BIN)/python docs/tables.py

book: $(VENV)/.book
	$(BIN)/python docs/book/build.py $(ARGS)

# What the tests need of the system: root on Debian and Ubuntu installs it, elsewhere its tests are skipped.
system: $(VENV)/.dev
	$(BIN)/python tests/bubblewrap.py
	$(BIN)/python tests/browser/chromium.py

format: $(VENV)/.dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .import_linter_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/.lab: pyproject.toml | $(BIN)/python
	$(call install,lab)
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(call install,dev)
	@touch $@ $(VENV)/.lab $(VENV)/.book

$(VENV)/.book: pyproject.toml | $(BIN)/python
	$(call install,book)
	@touch $@ $(VENV)/.lab

VERSION := import sys; print("python%d.%d" % sys.version_info[:2])

$(BIN)/python:
	@$(or $(PYTHON),false) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "labkit needs Python 3.11 or newer. Here is: $$($(or $(PYTHON),python3) --version 2>&1 | head -n 1)"; \
		echo "  Ubuntu 22.04   sudo apt install python3.11-venv"; \
		echo "  macOS          brew install python@3.13"; \
		echo "  elsewhere      from python.org, then: make PYTHON=/path/to/python3.13"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot make a virtual environment. On Debian or Ubuntu: sudo apt install" \
			"$$($(PYTHON) -c '$(VERSION)')-venv"; exit 1; }
