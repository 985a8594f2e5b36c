# Two commands a newcomer needs: `make demo` and `make test`. Each sets up .venv on first use.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo explore test quick compat fuzz browser lint types check docs lock audit dist sbom bench-believable bench-bills bench-certified bench-cifar bench-class-audit bench-explorer bench-first bench-gradient bench-guides bench-kills bench-latent bench-levels bench-lmo bench-memory bench-norms bench-optimality bench-patches bench-prototype-suite bench-prototypes bench-references bench-relevance bench-robust bench-scale bench-search bench-sensitivity bench-series-prototypes bench-service bench-tables bench-tables-requests bench-tscfeval bench-tsnuc bench-visual clean

# Every file is checked against the hashes in requirements.lock. Where the index serves other builds of the same
# versions: make demo LOCK=constraints.txt
LOCK ?= requirements.lock
TORCH := $(shell grep -o '^torch==[^ ;]*' constraints.txt)

# torch comes after its dependencies, so that it is all that is installed without a hash.
.venv/.installed: pyproject.toml constraints.txt requirements.lock
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --no-deps --requirement $(LOCK)
	$(BIN)/pip install --quiet $(TORCH)
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	$(BIN)/pip check --quiet
	touch $@

demo: .venv/.installed
	$(BIN)/contrafact demo

# The live page on the demo's model, which is trained first, in some seconds, on bundled data.
explore: .venv/.installed
	$(BIN)/python -c "from contrafact.demo import explore; explore()"

test: .venv/.installed browser
	$(BIN)/pytest -n 2 --dist worksteal

# The inner loop, about a minute: lint, types, the core's tests, one cell of the contract for each explainer.
QUICK := tests/contract tests/engine tests/geometry tests/models tests/numerics tests/search tests/test_package.py
quick: lint types
	$(BIN)/pytest -n 2 --dist worksteal $(QUICK) $(wildcard tests/test_validation.py tests/test_deprecation.py) -m "quick or not contract"

# Strange arguments at every public door: a table of what was found, in build/fuzz.md. CONTRAFACT_FUZZ=1000 runs fewer cases.
fuzz: .venv/.installed
	$(BIN)/python tests/fuzz/run.py --jobs 2

# The report's tests open it in a real browser: one that is there, or Debian's where it may be installed.
browser:
	@for name in chromium chromium-browser google-chrome; do command -v $$name > /dev/null && exit 0; done; \
	test "$$(id -u)" = 0 && command -v apt-get > /dev/null && apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends chromium fonts-dejavu-core > /dev/null || \
	echo "No Chromium here, and none could be installed: tests that need a browser are skipped."

lint: .venv/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: .venv/.installed
	$(BIN)/mypy

check: lint types test

# Tools that nothing else needs: uv writes the lock, pip-audit asks a database of known vulnerabilities.
build/tools/.installed:
	$(PYTHON) -m venv build/tools
	build/tools/bin/pip install --quiet uv==0.13.8 pip-audit==2.10.1
	touch $@

lock: build/tools/.installed
	$(PYTHON) tools/lock.py $(CURDIR)/build/tools/bin/uv

# Not a part of `make test`: it needs a network, and its answer changes with the day. A database that cannot be
# reached is a note, not a failure.
audit: build/tools/.installed
	$(PYTHON) tools/audit.py build/tools/bin/pip-audit requirements.lock

# build/contrafact-*.whl and .tar.gz, and what stands behind them: build/sbom.json, build/licenses.md.
dist: .venv/.installed sbom
	$(BIN)/hatchling build --directory build

sbom: .venv/.installed
	$(BIN)/python tools/sbom.py build

docs: .venv/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

# The peer gets an environment of its own; its deep-learning back end is not needed for what we compare.
benchmarks/.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv benchmarks/.venv
	benchmarks/.venv/bin/pip install --quiet --constraint constraints.txt $(TORCH)
	benchmarks/.venv/bin/pip install --quiet --constraint constraints.txt --editable ".[benchmark]" tqdm deap==1.4.4 moocore==0.3.2
	benchmarks/.venv/bin/pip install --quiet --no-deps tscf-eval==1.2.0 tslearn==0.10.0
	touch $@

bench-gradient: benchmarks/.venv/.installed
	benchmarks/.venv/bin/python benchmarks/gradient_methods.py

# DATA=folder adds the data sets found there. One thread: numba's pool would slow torch down.
bench-believable: .venv/.installed
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python benchmarks/_believable_models.py $(if $(DATA),--data $(DATA))
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python benchmarks/believable.py $(if $(DATA),--data $(DATA))

# Load of 5 minutes by 50 clients; SECONDS=60 for another time.
bench-service: .venv/.installed
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python benchmarks/service.py --seconds $(or $(SECONDS),300)

bench-bills: .venv/.installed
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python benchmarks/bills.py

# Times of the live page in Chromium, about two minutes.
bench-explorer: .venv/.installed browser
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python benchmarks/explorer.py

# BEFORE=folder measures the sources of an earlier version, too.
bench-first: .venv/.installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/first_answer.py $(if $(BEFORE),--before $(BEFORE))

bench-guides: .venv/.installed
	$(BIN)/python benchmarks/guides.py

bench-sensitivity: .venv/.installed
	$(BIN)/python benchmarks/sensitivity.py

# 100 kills of a benchmark at random moments, here and on a Dask cluster.
bench-kills: .venv/.installed
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python benchmarks/kills.py

# DATA=folder adds the data sets found there.
bench-latent: .venv/.installed
	$(BIN)/python benchmarks/latent_methods.py $(if $(DATA),--data $(DATA))

bench-certified: .venv/.installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/certified.py

# DATA is a folder with the data sets.
bench-tsnuc: .venv/.installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/tsnuc_nearer.py --data $(DATA)

bench-lmo: .venv/.installed
	$(BIN)/python benchmarks/lmo.py

bench-memory: .venv/.installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/memory.py

bench-references: .venv/.installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/large_references.py

bench-optimality: .venv/.installed
	$(BIN)/python benchmarks/optimality.py

benchmarks/.venv-prosemble/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv benchmarks/.venv-prosemble
	benchmarks/.venv-prosemble/bin/pip install --quiet --constraint constraints.txt $(TORCH)
	benchmarks/.venv-prosemble/bin/pip install --quiet --constraint constraints.txt --editable ".[benchmark]"
	benchmarks/.venv-prosemble/bin/pip install --quiet --constraint constraints.txt "prosemble[jax]==2.4.0" jax==0.10.2 optax==0.2.8
	touch $@

# PART=accuracy, median or speed renews one section of the results.
bench-prototypes: benchmarks/.venv-prosemble/.installed
	benchmarks/.venv-prosemble/bin/python benchmarks/prototypes.py $(if $(PART),--part $(PART))

# DATA=folder adds the data sets found there.
bench-series-prototypes: .venv/.installed
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python benchmarks/series_prototypes.py $(if $(DATA),--data $(DATA))

# sklvq 0.1.2 uses names that later versions of NumPy and scikit-learn removed; Python 3.11 at most.
benchmarks/.venv-sklvq/.installed:
	$(PYTHON) -m venv benchmarks/.venv-sklvq
	benchmarks/.venv-sklvq/bin/pip install --quiet sklvq==0.1.2 numpy==1.23.5 scipy==1.10.1 scikit-learn==1.2.2
	touch $@

# DATA=folder adds sets of the UCR archive; a stopped run goes on.
bench-prototype-suite: benchmarks/.venv-prosemble/.installed benchmarks/.venv-sklvq/.installed .venv/.installed
	$(BIN)/python benchmarks/prototype_suite.py $(if $(DATA),--data $(DATA)) $(if $(PART),--part $(PART))

bench-relevance: .venv/.installed
	$(BIN)/python benchmarks/relevance.py

bench-robust: .venv/.installed
	$(BIN)/python benchmarks/robust_training.py

# SIZES="1000 10000" and WINDOWS="1000" choose sizes, PART=curve, dask or kills one part; a killed run goes on.
bench-scale: .venv/.installed
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python benchmarks/scale.py $(if $(PART),--part $(PART)) \
	  $(if $(SIZES),--sizes $(SIZES)) $(if $(WINDOWS),--windows $(WINDOWS))

# PART=speed, rocket, channels, sets, grid-GunPoint, … or calls renews one section of the results.
bench-search: benchmarks/.venv/.installed
	benchmarks/.venv/bin/python benchmarks/search_methods.py $(if $(PART),--part $(PART))

# DiCE works with the versions of constraints.txt, so that both are asked in one process.
benchmarks/.venv-dice/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv benchmarks/.venv-dice
	benchmarks/.venv-dice/bin/pip install --quiet --constraint constraints.txt $(TORCH)
	benchmarks/.venv-dice/bin/pip install --quiet --constraint constraints.txt --editable ".[benchmark]"
	benchmarks/.venv-dice/bin/pip install --quiet --constraint constraints.txt dice-ml==0.12 raiutils==0.4.2 xgboost==3.2.0 lightgbm==4.7.0
	touch $@

# METHODS="Graft NICE" renews these and leaves the records of the others.
bench-tables: benchmarks/.venv-dice/.installed
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 benchmarks/.venv-dice/bin/python benchmarks/tables.py $(if $(METHODS),--methods $(METHODS))

# 10,000 requests with random constraints, every answer checked by independent code.
bench-tables-requests: .venv/.installed
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python benchmarks/tables_requests.py

# A killed run goes on where it was.
bench-tscfeval: .venv/.installed
	$(BIN)/python benchmarks/tscfeval.py $(if $(DATA),--data $(DATA))

bench-patches: .venv/.installed
	$(BIN)/python benchmarks/patches.py

# DATA=folder with images/cifar10.npz and images/fashion_mnist.npz; a run that was stopped goes on.
bench-class-audit: .venv/.installed
	$(BIN)/python benchmarks/class_audit.py --data $(DATA)

# DATA is a folder with images/*.npz and weights/*.pt; what was measured is kept in build/robust_norms.
bench-norms: .venv/.installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/robust_norms.py --data $(DATA)

bench-cifar: .venv/.installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/visual_cifar.py --data $(DATA)

bench-visual: .venv/.installed
	$(BIN)/python benchmarks/visual.py $(if $(DATA),--data $(DATA))

bench-levels: .venv/.installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/visual_levels.py --data $(DATA)

# Models of other libraries, each in an environment of its own on top of .venv; what installs is tried.
# The packages of each: sklearn and aeon are in .venv already, but not all that aeon can use. wildboar, and two classifiers
# of aeon, work with a scikit-learn and a pandas older than ours.
COMPAT := sklearn aeon aeon_older xgboost lightgbm catboost skorch sktime tslearn pyts onnxruntime wildboar
PACKAGES_onnxruntime := onnxruntime skl2onnx onnx
PACKAGES_sklearn :=
PACKAGES_aeon := statsmodels tsfresh tensorflow roughpy
PACKAGES_aeon_older := --no-deps mrseql mrsqm pandas==2.3.3 pytz scikit-learn==1.7.2
CONSTRAINT_aeon_older := /dev/null
PACKAGES_wildboar := --no-deps wildboar scikit-learn==1.7.2
CONSTRAINT_wildboar := /dev/null
compat: .venv/.installed
	@for library in $(COMPAT); do $(MAKE) --no-print-directory compat-$$library || true; done
	$(BIN)/python tests/compat/write_table.py build/compat

compat-%: .venv/.installed
	$(PYTHON) -m venv .venv-compat-$*
	$(BIN)/python tests/compat/layer.py .venv-compat-$*
	$(if $(filter undefined,$(origin PACKAGES_$*)),.venv-compat-$*/bin/pip install --quiet --constraint constraints.txt $*,)
	$(if $(PACKAGES_$*),.venv-compat-$*/bin/pip install --quiet --constraint $(or $(CONSTRAINT_$*),constraints.txt) $(PACKAGES_$*),)
	CONTRAFACT_COMPAT=build/compat OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 \
	  .venv-compat-$*/bin/python -m pytest tests/compat/test_$*.py

clean:
	rm -rf .venv .venv-compat-* benchmarks/.venv benchmarks/.venv-prosemble benchmarks/.venv-sklvq benchmarks/.venv-dice build dist .coverage htmlcov .mypy_cache .ruff_cache .pytest_cache
