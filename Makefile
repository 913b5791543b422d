# Everything here is also plain Snakemake and pytest: see README.md.
SHELL := /bin/bash
PYTHON ?= python3
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: figures test lint lock clean
figures: .venv/.installed  ## run every study of config/config.yaml and draw its tables and figures
	snakemake --cores all results/figures

test: lint  ## everything that CI checks
	pytest -n 2 --dist loadfile

lint: .venv/.installed
	ruff check . && ruff format --check . && mypy && snakefmt --check Snakefile workflow && snakemake --lint

.venv/.installed: envs/default.lock
	$(PYTHON) -m venv .venv
	pip install --quiet --disable-pip-version-check --no-deps -r envs/default.lock
	touch $@

lock: .venv/.installed  ## pin what envs/*.in ask for, in a fresh environment
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet -r envs/default.in
	.venv-lock/bin/pip install --quiet --no-deps -r envs/data.in
	head -n 1 envs/default.lock > .venv-lock/default.lock
	.venv-lock/bin/pip freeze --all --exclude pip >> .venv-lock/default.lock
	mv .venv-lock/default.lock envs/default.lock && rm -r .venv-lock
	python scripts/write_environment.py --lock envs/default.lock --output envs/default.yaml

clean:  ## remove what was computed, not the environment
	rm -rf results logs .snakemake
