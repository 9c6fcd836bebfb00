# `make demo` to look, `make check` while working, `make test` before a merge. The first run builds .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BASE   := $(VENV)/.installed-base
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo check test attack lint types contract hooks docs net evidence benchmark constraints clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 20

$(BASE): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing openset and its pinned dependencies into $(VENV) (a minute or two, once) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[data,plot,report]'
	@touch $(BASE)

$(STAMP): $(BASE)
	@echo "Installing what tests and benchmarks need besides (a few minutes, once) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

demo: $(BASE)  ## two files of real digits to an answer, then CoLOR against a discriminator, about a minute
	@$(BIN)/openset demo

check: lint types contract  ## while working: style, types, imports and the quick tests, about two minutes
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test: lint types contract  ## everything CI checks: as check, with the slow tests
	@$(BIN)/python -m pytest -n 2 --dist worksteal

attack: $(STAMP)  ## damaged files, tampered runs, kills, odd paths, for MINUTES=60; a table of what was found
	@cd tests && PYTHONPATH=. OMP_NUM_THREADS=1 ../$(BIN)/python -W ignore -m attack.run --minutes $(or $(MINUTES),60)

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP)
	@$(BIN)/mypy

contract: $(STAMP)
	@$(BIN)/lint-imports --no-logo

hooks: $(STAMP)  ## run style, types and imports before every commit (pre-commit)
	@$(BIN)/pre-commit install

docs: $(BASE)  ## the site, into site/; a warning is an error
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[docs,plot]'
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "Written: site/index.html"

net: $(STAMP)  ## write the net's hashes again, after numbers were changed on purpose
	@OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m net.fixture

evidence: $(STAMP)  ## statistical evidence that takes too long for a test; writes docs/evidence
	@$(BIN)/python benchmarks/evidence.py

benchmark: $(STAMP)  ## speed and memory, as ratios measured in one run
	@$(BIN)/python benchmarks/train_step.py

constraints: $(STAMP)  ## write constraints.txt again from what is installed
	@$(BIN)/python -m pip freeze --exclude-editable | sed -E 's/^(torch==[0-9.]+).*/\1/' > constraints.txt
	@touch $(BASE) $(STAMP)

clean:  ## remove .venv and caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist site
