# Two commands do everything on a machine with Python 3.11 and make:
#   make run    choose the best 30 of 164 crowd workers, with a guarantee
#   make test   style, types and tests
# and one builds the documentation as a site, build/docs/index.html:
#   make docs
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: run test check docs install clean

run: install
	$(BIN)/python -m shortlist demo

test: check
	$(BIN)/pytest -n auto

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: install
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs build/docs

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
