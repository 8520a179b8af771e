# `make` alone lists the targets. Everything they make stays in .venv/ and build/ of this directory.

PYTHON ?=
export PYTHON
unexport PYTHONPATH PYTHONHOME PIP_USER

PY := .venv/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet
STAMPS := .venv/.stamps
SUITES := build/integrations/bin/python
SITE := build/docs/bin/python
# half of the tests' time is waiting: two processes run them, each whole files (tests/conftest.py); WORKERS=0 is one
WORKERS ?= 2
BESIDE := -n $(WORKERS) --dist loadgroup --no-loadscope-reorder
# of ten thousand tests one may wait too long for a busy machine: three may be tried once more, and are named (CONTRIBUTING.md)
AGAIN := --reruns 1 --max-suite-reruns 3 --rerun-show-tracebacks

# directories are listed too, so that a deleted file rebuilds the wheel
SOURCES := $(shell find src -name __pycache__ -prune -o -print) pyproject.toml $(wildcard README.md)
ATTACKS := $(shell find attacks -name __pycache__ -prune -o -print)

# no stamp counts when .venv was copied from elsewhere or its Python is gone
VENV_STATE := $(shell [ "$$(cat $(STAMPS)/venv 2>/dev/null)" = "$$(pwd)" ] && $(PY) -c '' 2>/dev/null && echo whole)

.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test thorough endurance containers integrations fuzz lint bench docs venv clean force

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1:/p' Makefile | awk -F: '{ printf "  make %-10s %s\n", $$1, $$2 }'
	@echo "  PYTHON=/path/to/python3 chooses the interpreter .venv is made from (at least 3.11)"

demo: $(STAMPS)/data  ## install the wheel and show what cellblock does
	@.venv/bin/cellblock demo

test: lint  ## build and install the wheel, lint it, test it
	@echo "-- pytest"
	@$(PY) -m pytest $(BESIDE) $(AGAIN) $(ARGS)

thorough: $(STAMPS)/dev $(STAMPS)/as-wheel  ## kills, state models and fuzzing with a seed of the day: up to 25 minutes
	@$(PY) -m pytest $(BESIDE) -m thorough $(ARGS)

endurance: $(STAMPS)/dev $(STAMPS)/as-wheel  ## the same with full counts, and every test that takes long
	@CELLBLOCK_KILLS=$${CELLBLOCK_KILLS:-10000} CELLBLOCK_EXAMPLES=$${CELLBLOCK_EXAMPLES:-400} CELLBLOCK_FUZZ_SECONDS=60 \
	$(PY) -m pytest $(BESIDE) -m "slow or thorough" $(ARGS)

containers: $(STAMPS)/dev $(STAMPS)/as-wheel  ## the tests in containers of podman, where there is one
	@$(PY) -m pytest -m containers -rs $(ARGS)

integrations: $(STAMPS)/wheel  ## suites that other projects publish, in an environment of their own
	@[ -x $(SUITES) ] || $(PY) -m venv build/integrations
	@$(SUITES) -m pip --disable-pip-version-check --quiet install "$$(ls build/wheel/*.whl)[integrations]"
	@$(SUITES) -m pip --disable-pip-version-check --quiet install --no-deps --force-reinstall build/wheel/*.whl
	@$(SUITES) -m pytest -c tests/integrations/published/pytest.ini tests/integrations/published $(ARGS)

fuzz: $(STAMPS)/dev $(STAMPS)/as-wheel  ## bytes from inside, made wrong, and read as the host reads them
	@PYTHONPATH=tests/fuzz $(PY) -m fuzzer $(ARGS)

lint: $(STAMPS)/dev $(STAMPS)/as-wheel  ## ruff, mypy with the border for text, and the layers
	@echo "-- ruff"
	@$(PY) -m ruff check
	@echo "-- mypy"
	@$(PY) -m mypy
	@echo "-- layers"
	@.venv/bin/lint-imports --no-logo

bench: $(STAMPS)/dev $(STAMPS)/as-wheel  ## measure, beside references on the same machine
	@$(PY) bench $(ARGS)

# not --quiet, with which strict counts no warnings
docs: $(STAMPS)/wheel  ## the documents as a site with search and an API reference, in build/site; strict
	@[ -x $(SITE) ] || $(PY) -m venv build/docs
	@$(SITE) -m pip --disable-pip-version-check --quiet install "$$(ls build/wheel/*.whl)[docs]"
	@$(SITE) -m pip --disable-pip-version-check --quiet install --no-deps --force-reinstall build/wheel/*.whl
	@NO_MKDOCS_2_WARNING=1 $(SITE) -m mkdocs build
	@echo "-- build/site/index.html"

venv: $(STAMPS)/dev  ## .venv with the wheel and everything the tests need

clean:  ## remove .venv, builds and caches
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src attacks tests -name __pycache__ -prune -exec rm -rf {} +

# --- what the targets stand on -------------------------------------------------------------------------------

$(STAMPS)/venv: $(if $(VENV_STATE),,force)
	@tools/venv.sh $(if $(wildcard $(STAMPS)/venv),--new)
	@rm -rf $(STAMPS) && mkdir -p $(STAMPS) && pwd > $@

$(STAMPS)/wheel: $(STAMPS)/venv $(SOURCES)
	@echo "-- building and installing the wheel"
	@rm -rf build/wheel
	@$(PIP) wheel --no-deps --wheel-dir build/wheel .
	@$(PIP) install --no-deps --force-reinstall build/wheel/*.whl
	@touch $@

# the extras of the wheel: `data` for the demo, `dev` for the tests
$(STAMPS)/data $(STAMPS)/dev: $(STAMPS)/%: $(STAMPS)/venv pyproject.toml | $(STAMPS)/wheel
	@echo "-- installing what cellblock[$*] needs"
	@$(PIP) install "$$(ls build/wheel/*.whl)[$*]"
	@touch $@

# a distribution of its own, on no index
$(STAMPS)/attacks: $(STAMPS)/venv $(ATTACKS) | $(STAMPS)/wheel
	@echo "-- installing the attacks"
	@$(PIP) install --no-deps --force-reinstall ./attacks
	@touch $@

$(STAMPS)/dev: | $(STAMPS)/attacks

# an editable install would have the tests see the sources and not the wheel
$(STAMPS)/as-wheel: force | $(STAMPS)/wheel
	@$(PY) -P -c 'import sys, sysconfig, cellblock; \
	sys.exit(not cellblock.__file__.startswith(sysconfig.get_path("purelib")))' || { \
	echo "-- an editable install is in the way: putting the wheel back"; \
	$(PIP) install --no-deps --force-reinstall build/wheel/*.whl; }
