# One verb a habit. Everything below installs what it needs into $(VENV) first.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin

.PHONY: sweep report test lint format schemas bench fuzz clean

sweep: $(VENV)/.run ## the main job: every experiment at every count, to results/report.html
	$(BIN)/snakemake sweep

report: $(VENV)/.run ## only the report, from runs that stand
	$(BIN)/snakemake report

test: $(VENV)/.test ## unit tests, then the workflow from bad input to a whole tiny sweep
	$(BIN)/pytest

lint: $(VENV)/.lint ## style, types, Snakefiles
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile workflow/rules

format: $(VENV)/.lint ## mend what lint complains about, where a tool can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow/rules

schemas: $(VENV)/.run ## workflow/schemas/ from the models in src/trisect/config.py
	$(BIN)/python -m trisect.config

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.test $(VENV)/.lint $(VENV)/.bench: $(VENV)/.%: pyproject.toml $(VENV)/.run
	$(BIN)/pip install --quiet --editable '.[$*]'
	touch $@
