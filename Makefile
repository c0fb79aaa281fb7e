# Every target sets up all it needs in .venv; a machine with Python 3.11 and pip is enough.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
READY := .venv/.ready

.PHONY: test lint types pytest docs dist dist-empty browser network demo bench bench-quick torture clean

test: lint types pytest docs dist

# What users of Newkind need, and nothing for its development.
$(INSTALLED): pyproject.toml
	@echo "Setting up .venv (PyTorch is large: about 6 GB and 2-3 minutes the first time) ..."
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Newkind needs Python 3.11 or newer; set PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	@touch $@

$(READY): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

pytest: $(READY) browser network
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

# Warnings are errors: a broken link or a reference to a missing name fails the build.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Documentation: build/docs/index.html (with search: python -m http.server -d build/docs)"

browser:
	@bash tools/install-browser.sh

network:
	@bash tools/install-iproute2.sh

# Wheel and source archive in dist; the wheel is installed into a new environment and used there.
dist: $(READY)
	$(BIN)/python tools/check_dist.py

dist-empty: $(READY)
	$(BIN)/python tools/check_dist.py --empty

demo: $(INSTALLED)
	$(BIN)/newkind demo

bench: $(READY)
	$(BIN)/python benchmarks/run_all.py

bench-quick: $(READY)
	$(BIN)/python benchmarks/run_all.py --quick

# Parts that were interrupted continue where they were; remove build/torture.json to start again. The tests run a share of it.
TORTURE := OMP_NUM_THREADS=1 $(BIN)/python tests/torture
torture: $(READY)
	$(TORTURE)/torture.py --only errors --per-site --state build/torture.json
	$(TORTURE)/torture.py --state build/torture.json
	$(TORTURE)/input_torture.py --state build/torture.json
	$(TORTURE)/fuzz_readers.py --state build/torture.json --seconds 300
	$(TORTURE)/image_bombs.py --state build/torture.json
	$(TORTURE)/figures.py build/torture.json benchmarks/results/torture.md

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
