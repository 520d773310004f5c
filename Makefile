# Every target sets up what it needs: a virtual environment in .venv, from requirements.lock, once.

PYTHON   ?= python3
ARGS     ?=
EXAMPLES ?= 300
SECONDS_ ?= 600

VENV  := .venv
PY    := $(VENV)/bin/python
READY := $(VENV)/.ready
JAVA  := build/java/spark.jsa
UV    := build/uv/bin/uv
UV_VERSION := 0.13.7

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Containers often set it; without compiled files every process of the tests compiles all it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test check ui docs dist screenshots fmt fuzz fuzz-server soak soak-server mutants compat bench docs-gen lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(READY) ## Show what omnigraph does, on sample data
	@$(PY) demo/run.py $(ARGS)

# One process more than there are cores: tests that start servers and Spark wait a good deal.
test: $(READY) ## Run the checks and the whole suite, on all cores (ARGS="-k parser" goes to pytest)
	@$(MAKE) --no-print-directory -j3 check ui $(JAVA)
	$(PY) -m pytest -n $$($(PY) -c "import os; print(os.cpu_count() + 1)") \
	  --dist loadscope --no-loadscope-reorder --timeout 300 $(ARGS)

check: $(READY) ## Lint, format check, types, import layers, spelling, words
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-logo
	$(PY) -m codespell_lib
	$(PY) scripts/check_words.py

ui: $(READY) ## Build Studio, the web page of the server, if ui/ has changed
	@$(PY) scripts/build_ui.py

dist: ui ## Build the sdist and the wheel in dist/
	@rm -rf dist
	@$(PY) -m hatchling build

docs: $(READY) ## Build the documentation site in build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

screenshots: ui ## Rewrite the pictures of the README in docs/images
	PYTHONPATH=. $(PY) scripts/screenshots.py

fmt: $(READY) ## Format the code and apply the safe lint fixes
	$(PY) -m ruff check --fix-only .
	$(PY) -m ruff format .

fuzz: $(READY) ## Fuzz both parsers (SECONDS_=600)
	$(PY) -m tests.fuzz.run --seconds $(SECONDS_) $(ARGS)

fuzz-server: $(READY) ## Send a server random requests that its OpenAPI document allows (EXAMPLES=300)
	EXAMPLES=$(EXAMPLES) $(PY) -m pytest tests/server/test_any_request.py tests/server/test_any_story.py $(ARGS)

# Every part takes SECONDS_ per test that goes on for a time: with 60 the whole takes about 85 minutes on 2 idle cores,
# 30 of them a graph under constant writing. The parts
# that measure time run alone; a part that fails does not stop the next ones.
LONG = SOAK_SECONDS=$(SECONDS_) POWER_LOSSES=50 PIPELINE_CASES=all DAMAGES=250 CSV_EXIT_RUNS=40 SOAK_BRANCHES=5000 MERGE_MATRIX=1 \
  LANE_CASES=all STUDIO_STORIES=all EXAMPLES=40 EFFORT=12
PARALLEL := -n 2 --dist loadscope --no-loadscope-reorder --timeout 2400 --durations=25

soak: SECONDS_ = 60
soak: ui $(JAVA) ## Everything long: kills, races, damages, 5,000 branches, a loaded server (SECONDS_=60 each)
	@failed=; run() { echo "$$*"; env $(LONG) "$$@" || failed="$$failed\n  $$*"; }; \
	run $(PY) -m pytest -s tests/unit/query/test_time_limits.py; \
	run $(PY) -m tests.server.soak --seconds $$((2 * $(SECONDS_))) --out build/soak-server.json; \
	run $(PY) -m tests.support.maintenance_soak --seconds $$((30 * $(SECONDS_))) --out build/soak-maintenance.json; \
	run $(PY) -m pytest $(PARALLEL) tests/commit tests/concurrency tests/property \
	  tests/behaviour/test_merge_matrix.py \
	  tests/behaviour/test_changes_served.py tests/behaviour/test_proposals.py \
	  tests/server/test_any_request.py tests/server/test_any_story.py \
	  tests/unit/maintain/test_verify_deep.py tests/studio tests/pipeline $(ARGS); \
	run $(PY) -m pytest tests/unit/write/test_csv_exit.py; \
	if [ -n "$$failed" ]; then printf "failed:$$failed\n" >&2; exit 1; fi

soak-server: $(READY) ## Run 64 clients against a server and kill one of its processes (SECONDS_=600)
	$(PY) -m tests.server.soak --seconds $(SECONDS_) --out build/soak-server.json $(ARGS)
	LANE_CASES=all $(PY) -m pytest tests/behaviour/test_changes_served.py

mutants: $(READY) ## Change core modules in 200 small ways and list what no test catches (ARGS="unique --count 5")
	$(PY) scripts/mutants.py --out build/mutants.json $(ARGS)

bench: $(READY) ## Measure speed and record it
	PYTHONPATH=. $(PY) benchmarks/run.py $(ARGS)

compat: ui $(UV) ## Run a fast part of the suite on the oldest and newest dependencies, on each Python
	$(PY) scripts/compat.py --uv $(UV) $(ARGS)

docs-gen: $(READY) ## Regenerate the reference tables in docs/ from the registries
	$(PY) scripts/docs_gen.py $(ARGS)

lock: $(UV) ## Rewrite requirements.lock after a change of dependencies (ARGS=--upgrade for newer versions)
	$(UV) pip compile --quiet --universal --python-version 3.11 --extra dev --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	  --output-file requirements.lock $(ARGS) pyproject.toml

clean: ## Remove the virtual environment, caches and build output
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ---------------------------------------------------------------- set-up

# Sets $$python to the first interpreter that is new enough and can make a virtual environment.
PROBE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
define find_python
python=; for candidate in "$(PYTHON)" python3 python3.13 python3.12 python3.11; do \
  if "$$candidate" -c '$(PROBE)' >/dev/null 2>&1; then python=$$candidate; break; fi; \
done; \
if [ -z "$$python" ]; then \
  echo "omnigraph needs Python 3.11 or newer with its venv module: install it (Debian, Ubuntu: apt install python3 python3-venv) or name one with make PYTHON=/path/to/python3." >&2; exit 1; \
fi
endef

# The stamp names the folder it was made for, because a virtual environment does not survive a move.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif

# The stamp is written last, so the next command continues an interrupted set-up. The lock is complete and is installed
# without resolving (--no-deps): pip before 23.3 ignores the pin of a package that is also required with extras.
$(READY): requirements.lock pyproject.toml hatch_build.py src/omnigraph/query/kernels.c
	@if [ "$$(cat $@ 2>/dev/null)" = '$(CURDIR)' ] && $(PY) -m pip --version >/dev/null 2>&1; then \
	  echo "Bringing $(VENV) up to date."; \
	else \
	  $(find_python); \
	  echo "Setting up $(VENV) with $$("$$python" --version); this happens once."; \
	  "$$python" -m venv --clear $(VENV); \
	fi
	@$(PY) -m pip install --quiet --no-deps --require-hashes -r requirements.lock
	@$(PY) -m pip install --quiet --no-deps --no-build-isolation -e .
	@broken=$$($(PY) -m pip check) || { echo "$$broken"; echo "requirements.lock is behind pyproject.toml: run make lock."; exit 1; } >&2
	@echo '$(CURDIR)' > $@

# Sessions of Spark start in a third of the time with it.
$(JAVA): $(READY)
	@echo "Creating the class archive of Java for the tests; this happens once."
	@$(PY) -m tests.support.java_runtime

$(UV):
	@$(find_python); "$$python" -m venv --clear build/uv
	@build/uv/bin/python -m pip install --quiet uv==$(UV_VERSION)
