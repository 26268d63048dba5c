# Two commands do everything on a machine with Python 3.11 and make:
#   make run    choose the best 30 of 164 crowd workers, with a guarantee
#   make test   style, types and tests
# and five more:
#   make docs      spelling, words and links of the documentation, then its site, build/docs/index.html
#   make package   wheel and sdist in dist/, checked, installed into an empty environment, run and measured
#   make mutants   whether the tests notice every change of the code that the guarantee rests on
#   make lowest    the tests with the lowest versions of what the package depends on
#   make attack    hours of hostile calls, files, kills, and of error rates; SHORTLIST_ATTACK_SEED repeats one
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
attack: export SHORTLIST_ATTACK_SEED := $(or $(SHORTLIST_ATTACK_SEED),$(shell date +%s))
attack: export SHORTLIST_ATTACK_SCALE := $(or $(SHORTLIST_ATTACK_SCALE),100)
# Tests start many processes, and import hundreds of modules: what is compiled is kept.
export PYTHONDONTWRITEBYTECODE :=
COVERED := 98  # percent of lines and branches that tests run, and may not fall below

.PHONY: run test check docs package mutants lowest attack install clean

run: install
	$(BIN)/python -m shortlist demo

test: check
	$(BIN)/pytest -n auto --cov --cov-report=
	$(BIN)/coverage report --skip-covered --fail-under=$(COVERED)
	$(BIN)/coverage report --skip-covered --fail-under=100 --include='*/certificates/*'

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: install
	$(BIN)/codespell README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs examples skills src
	$(BIN)/pytest -q tests/house/test_language.py tests/house/test_docs.py -k 'plain or links or index'
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs build/docs

package: install
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --group package
	$(BIN)/python benchmarks/package.py

mutants: install
	$(BIN)/python tests/mutation/mutants.py

# Dask and Ray are left out, and their tests skipped: they have floors of their own.
lowest:
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/pip install --quiet --disable-pip-version-check \
		--constraint constraints-lowest.txt --editable '.[parquet,plot,serve]' \
		hypothesis mpmath pandas polars pytest pytest-cov pytest-xdist
	.venv-lowest/bin/pytest -n auto

attack: install
	@echo SHORTLIST_ATTACK_SEED=$(SHORTLIST_ATTACK_SEED) SHORTLIST_ATTACK_SCALE=$(SHORTLIST_ATTACK_SCALE)
	$(BIN)/pytest -n auto -m 'attack or rates or hypothesis'

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt 'pip>=25.1'  # knows --group
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --group dev --editable '.[all,mcp]'
	touch $@

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .venv-lowest
