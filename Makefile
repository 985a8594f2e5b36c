# Two commands a newcomer needs: `make demo` and `make test`. Each sets up .venv on first use.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test quick browser lint types check docs bench-believable bench-gradient bench-guides bench-latent bench-lmo bench-optimality bench-prototypes bench-robust bench-search bench-tscfeval bench-visual clean

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt torch==2.13.0
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

demo: .venv/.installed
	$(BIN)/contrafact demo

test: .venv/.installed browser
	$(BIN)/pytest -n 2 --dist worksteal

# The inner loop, about a minute: lint, types, the core's tests, one cell of the contract for each explainer.
QUICK := tests/contract tests/engine tests/geometry tests/models tests/numerics tests/search tests/test_package.py
quick: lint types
	$(BIN)/pytest -n 2 --dist worksteal $(QUICK) $(wildcard tests/test_validation.py tests/test_deprecation.py) -m "quick or not contract"

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

docs: .venv/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

# The peer gets an environment of its own; its deep-learning back end is not needed for what we compare.
benchmarks/.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv benchmarks/.venv
	benchmarks/.venv/bin/pip install --quiet --constraint constraints.txt torch==2.13.0
	benchmarks/.venv/bin/pip install --quiet --constraint constraints.txt --editable . tqdm deap==1.4.4 moocore==0.3.2
	benchmarks/.venv/bin/pip install --quiet --no-deps tscf-eval==1.2.0 tslearn==0.10.0
	touch $@

bench-gradient: benchmarks/.venv/.installed
	benchmarks/.venv/bin/python benchmarks/gradient_methods.py

# DATA=folder adds the data sets found there. One thread: numba's pool would slow torch down.
bench-believable: .venv/.installed
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python benchmarks/_believable_models.py $(if $(DATA),--data $(DATA))
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python benchmarks/believable.py $(if $(DATA),--data $(DATA))

bench-guides: .venv/.installed
	$(BIN)/python benchmarks/guides.py

# DATA=folder adds the data sets found there.
bench-latent: .venv/.installed
	$(BIN)/python benchmarks/latent_methods.py $(if $(DATA),--data $(DATA))

bench-lmo: .venv/.installed
	$(BIN)/python benchmarks/lmo.py

bench-optimality: .venv/.installed
	$(BIN)/python benchmarks/optimality.py

benchmarks/.venv-prosemble/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv benchmarks/.venv-prosemble
	benchmarks/.venv-prosemble/bin/pip install --quiet --constraint constraints.txt torch==2.13.0
	benchmarks/.venv-prosemble/bin/pip install --quiet --constraint constraints.txt --editable .
	benchmarks/.venv-prosemble/bin/pip install --quiet --constraint constraints.txt "prosemble[jax]==2.4.0" jax==0.10.2 optax==0.2.8
	touch $@

# PART=accuracy, median or speed renews one section of the results.
bench-prototypes: benchmarks/.venv-prosemble/.installed
	benchmarks/.venv-prosemble/bin/python benchmarks/prototypes.py $(if $(PART),--part $(PART))

bench-robust: .venv/.installed
	$(BIN)/python benchmarks/robust_training.py

# PART=speed, rocket, channels, sets, grid-GunPoint, … or calls renews one section of the results.
bench-search: benchmarks/.venv/.installed
	benchmarks/.venv/bin/python benchmarks/search_methods.py $(if $(PART),--part $(PART))

# A killed run goes on where it was.
bench-tscfeval: .venv/.installed
	$(BIN)/python benchmarks/tscfeval.py $(if $(DATA),--data $(DATA))

bench-visual: .venv/.installed
	$(BIN)/python benchmarks/visual.py $(if $(DATA),--data $(DATA))

clean:
	rm -rf .venv benchmarks/.venv benchmarks/.venv-prosemble build dist .coverage htmlcov .mypy_cache .ruff_cache .pytest_cache
