# Two commands do all the set-up on a fresh machine: `make run` and `make test`.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# What the wheel is made of.
SOURCES = pyproject.toml MANIFEST.in README.md LICENSE CHANGELOG.md \
	$(shell find mipcash models solvers -type f -not -name '*.pyc')
# The CPU build where the index offers one; any 2.x works.
TORCH ?= torch==2.13.0

.PHONY: run test build bare core oldest newest sbom lint format docs clean

# The main job: configure a scikit-learn pipeline on real data under declared rules.
run: $(VENV)/.run
	$(BIN)/mipcash run sklearn_pipeline --option held_out=0.25 --limit model_bytes=400000 --pruning on --steps 250 --budget 120 --confirm 3 --workers 2 --fresh

test: lint bare core docs
	MIPCASH_PASSED=build/bare/passed.txt $(BIN)/python -m pytest $(WORKERS)

# Wheel and source distribution in dist/. The wheel is built from the unpacked source distribution, which therefore holds all it needs.
# Two wheels of one commit are equal: the times of the files in them are the commit's.
build: dist/.built

# The core without the methods, the integrations, the reports and the command line, which nothing in it may need: its tests run from a
# copy, where the source tree cannot be imported, and are not repeated by `make test`.
LEAVES = methods integrations report cli
WORKERS = -n $(or $(TEST_WORKERS),2) --dist worksteal
# Each worker has one core: more threads of BLAS would only wait for each other.
export OMP_NUM_THREADS ?= 1
bare: $(VENV)/.test
	rm -rf build/bare && mkdir -p build/bare/parts && cp -R tests benchmarks pyproject.toml build/bare
	cp -R mipcash build/bare/parts && cp -R models solvers build/bare/parts/mipcash
	cd build/bare/parts/mipcash && rm -r $(LEAVES)
	cd build/bare && PYTHONPATH=parts MIPCASH_PASSED=passed.txt $(abspath $(BIN))/python -m pytest $(WORKERS) \
		tests/modelling tests/space tests/study/test_minimize.py

# The wheel in an environment with the core's dependencies alone, since an environment with every extra hides a missing one, and with
# the oldest versions that pyproject.toml allows, since the other environments have the newest. Optuna is there for its adapter.
# `make newest` installs the newest versions of all dependencies again, those of executors, servers and other libraries too, and writes
# them to a file: .github/workflows/weekly.yml runs both every week.
core oldest: $(VENV)-core/.core
	$(call wheel_tests,core)

newest: dist/.built
	rm -rf $(VENV)-newest && $(PYTHON) -m venv $(VENV)-newest
	$(VENV)-newest/bin/python -m pip install --quiet --upgrade pip
	$(call install_wheel,newest,'distributed' 'ray' 'psycopg[binary]' 'ConfigSpace' 'matplotlib')
	$(VENV)-newest/bin/python -m pip list > $(VENV)-newest/versions.txt
	$(call wheel_tests,newest,tests/study/test_executors.py tests/study/test_outage.py tests/report tests/integrations)

define install_wheel
$(VENV)-$(1)/bin/python -m pip install --quiet $(2) \
	"$$(echo dist/mipcash-*.whl)[optuna]" 'pytest>=8' 'pytest-xdist>=3.5' 'hypothesis>=6.100' 'pandas>=2'
endef

define wheel_tests
rm -rf build/$(1) && mkdir -p build/$(1) && cp -R tests benchmarks pyproject.toml build/$(1)
cd build/$(1) && MIPCASH_SOURCE=$(CURDIR) $(abspath $(VENV)-$(1))/bin/python -m pytest $(WORKERS) \
		tests/test_release.py tests/study/test_minimize.py tests/modelling/test_messages.py tests/space/test_answers.py \
		tests/integrations/test_optuna_sampler.py tests/integrations/test_pipeline_search.py $(2)
endef

# The components that `pip install mipcash` brings, as a bill of materials in the format CycloneDX.
sbom: dist/.built
	rm -rf build/sbom && $(PYTHON) -m venv build/sbom/package && $(PYTHON) -m venv build/sbom/tool
	build/sbom/package/bin/python -m pip install --quiet dist/mipcash-*.whl
	build/sbom/tool/bin/python -m pip install --quiet 'cyclonedx-bom>=7,<8'
	build/sbom/tool/bin/cyclonedx-py environment --output-reproducible --output-file dist/sbom.json build/sbom/package/bin/python

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The documentation, as a folder of pages that open without a server: site/index.html. Its environment has the package without
# extras and the newest tools, so that neither a missing extra nor a new warning of a tool is hidden.
docs: $(VENV)-docs/.docs
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/python -m mkdocs build --strict --quiet

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.run: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e '.[plots]'
	touch $@

$(VENV)/.test: pyproject.toml benchmarks/pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet '$(TORCH)'
	$(BIN)/python -m pip install --quiet -e '.[dev,plots,xgboost,gurobi,cplex,scip,toulbar2,optuna,configspace,dask,ray,mpi,postgres]'
	$(BIN)/python -m pip install --quiet ./benchmarks
	touch $@ $(VENV)/.run

dist/.built: $(SOURCES) | $(VENV)/.test
	rm -rf dist
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 1700000000)} \
		$(BIN)/python -m build --no-isolation --outdir dist . > build.log 2>&1 || { cat build.log; rm -f build.log; exit 1; }
	rm -f build.log
	touch $@

$(VENV)-core/.core: dist/.built tests/oldest.py
	[ -x $(VENV)-core/bin/python ] || $(PYTHON) -m venv $(VENV)-core
	$(VENV)-core/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-core/bin/python -P tests/oldest.py > $(VENV)-core/oldest.txt
	$(call install_wheel,core,--constraint $(VENV)-core/oldest.txt)
	$(VENV)-core/bin/python -m pip install --quiet --force-reinstall --no-deps dist/mipcash-*.whl
	touch $@

$(VENV)-docs/.docs: pyproject.toml
	[ -x $(VENV)-docs/bin/python ] || $(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-docs/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager -e '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-core $(VENV)-newest $(VENV)-docs build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
