# Two commands do all the set-up on a fresh machine: `make run` and `make test`.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# The CPU build where the index offers one; any 2.x works.
TORCH ?= torch==2.13.0

.PHONY: run test core lint format docs clean

# The main job: configure a scikit-learn pipeline on real data under declared rules.
run: $(VENV)/.run
	$(BIN)/mipcash run sklearn_pipeline --budget 40 --confirm 3 --fresh

test: lint core
	$(BIN)/python -m pytest -n $(or $(TEST_WORKERS),2) --dist worksteal

# The core with the core's dependencies alone: an environment with every extra hides a missing one.
core: $(VENV)-core/.core
	$(VENV)-core/bin/python -m pytest -n $(or $(TEST_WORKERS),2) tests/modelling tests/space tests/study/test_minimize.py

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The documentation, as a folder of pages that open without a server: site/index.html.
docs: $(VENV)/.test
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.run: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e '.[plots]'
	touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet '$(TORCH)'
	$(BIN)/python -m pip install --quiet -e '.[dev,plots,xgboost,gurobi,cplex,scip,toulbar2,optuna,configspace,dask,mpi,postgres,docs]'
	touch $@ $(VENV)/.run

$(VENV)-core/.core: pyproject.toml
	$(PYTHON) -m venv $(VENV)-core
	$(VENV)-core/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-core/bin/python -m pip install --quiet -e . 'pytest>=8' 'pytest-xdist>=3.5' 'hypothesis>=6.100'
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-core build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
