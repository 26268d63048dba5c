# Two commands do everything on a machine with Python 3.11 and make:
#   make run    choose the best 30 of 164 crowd workers, with a guarantee
#   make test   style, types and tests
# and one takes longer:
#   make mutants   whether the tests notice every change of the code that the guarantee rests on
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: run test check mutants install clean

run: install
	$(BIN)/python -m shortlist demo

test: check
	$(BIN)/pytest -n auto

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

mutants: install
	$(BIN)/python tests/mutation/mutants.py

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
