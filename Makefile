# One verb a habit. Each installs what it needs into $(VENV) first; CI calls nothing else.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
SNAKEMAKE_USER_FOLDER = $${XDG_CONFIG_HOME:-$$HOME/.config}/snakemake

.DEFAULT_GOAL := help
.PHONY: help install sweep report study test lint format schemas weights bench fuzz browser-test slurm-test slurm-up \
        slurm-down slurm-full network-test install-profiles

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

install: $(VENV)/.run ## all that a sweep needs, into .venv; runs nothing, so fit for a login node

sweep: $(VENV)/.run ## the main job: every experiment at every count, to results/report.html
	$(BIN)/snakemake sweep

report: $(VENV)/.run ## the report over the sweep
	$(BIN)/snakemake report

study: $(VENV)/.run ## the published study, simulated by the model, to results/study/report.html
	$(BIN)/trisect study

test: $(VENV)/.test ## unit tests, then the workflow from bad input to a whole tiny sweep
	$(BIN)/pytest

lint: $(VENV)/.lint ## style, types, layers, Snakefiles
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/snakefmt --check Snakefile workflow/rules

format: $(VENV)/.lint ## repair what lint complains about, where a tool can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow/rules

schemas: $(VENV)/.run ## workflow/schemas/ from the models in src/trisect/config/
	$(BIN)/python -m trisect.config.schemas

weights: $(VENV)/.weights ## config/weights/ trained again: the laptop's denoiser, some ten minutes
	$(BIN)/python examples/train_denoiser.py

bench: $(VENV)/.run ## what the worker and the profiler cost, how fast traces are read, the model's times
	$(BIN)/python benchmarks/worker.py
	$(BIN)/python benchmarks/trace_reading.py
	$(BIN)/python benchmarks/model.py

fuzz: $(VENV)/.test ## 10,000 damaged traces thrown at the reader
	$(BIN)/python tests/fuzz/fuzz_reader.py

browser-test: $(VENV)/.test $(VENV)/.browser ## the report in a headless Chromium (installed where apt-get may)
	command -v chromedriver > /dev/null && command -v pdftoppm > /dev/null || \
	  { apt-get update -qq && apt-get install -qq chromium chromium-driver poppler-utils > /dev/null; } || \
	  echo "no Chromium and none installed: the tests will skip"
	$(BIN)/pytest tests/browser

network-test: $(VENV)/.test ## is transfer data moving? on a network of known rate on this host; root, 4 minutes
	$(BIN)/pytest tests/network

slurm-test: $(VENV)/.test ## the launcher on a real SLURM cluster on this host
	$(BIN)/pytest tests/slurm

slurm-up: $(VENV)/.test ## start that cluster to play with
	$(BIN)/python tests/slurm/cluster.py up

slurm-down: ## and stop it
	$(BIN)/python tests/slurm/cluster.py down

slurm-full: $(VENV)/.test ## the sweep at full width, 1 to 64 ranks; by hand, 10 minutes, 16 GiB
	$(BIN)/python tests/slurm/full.py

install-profiles: ## so that `snakemake --profile slurm` finds profiles/slurm
	mkdir -p "$(SNAKEMAKE_USER_FOLDER)"
	ln -sfn "$(CURDIR)/profiles/slurm" "$(SNAKEMAKE_USER_FOLDER)/slurm"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable '.[sweep]'
	touch $@

$(VENV)/.test $(VENV)/.lint $(VENV)/.browser $(VENV)/.weights: $(VENV)/.%: $(VENV)/.run
	$(BIN)/pip install --quiet --editable '.[sweep,$*]'
	touch $@
