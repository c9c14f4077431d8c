# One verb a habit; `make help` lists them. Nothing but Python 3.11 or newer is needed.
.SILENT:
.DEFAULT_GOAL := help
.PHONY: help run test lint format types bench faults fuzz stop clean
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$p && break; done)

help:  ## this list
	sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

run: $(VENV)/.run  ## set up, start, open the chat (one turn a line when stdin is piped)
	$(BIN)/jarvis chat

test: $(VENV)/.dev  ## all tests, on a real Postgres and real models
	$(BIN)/pytest -q $(ARGS)

lint: $(VENV)/.dev  ## ruff: rules and format
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

format: $(VENV)/.dev  ## ruff: format and mend
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

types: $(VENV)/.dev  ## mypy, strict, tests included
	$(BIN)/mypy

bench: $(VENV)/.dev  ## how fast it is here
	$(BIN)/jarvis bench latency

faults: $(VENV)/.dev  ## kill everything, many times, and count what was lost
	$(BIN)/python -m tests.faults

fuzz: $(VENV)/.dev  ## hostile input, for longer than in the tests
	FUZZ_BUDGET=$(or $(BUDGET),20) $(BIN)/pytest -q tests/faults tests/unit -k fuzz

stop:  ## stop the background parts
	if [ -x $(BIN)/jarvis ]; then $(BIN)/jarvis worker stop; $(BIN)/jarvis engine stop; $(BIN)/jarvis db stop; fi

clean: stop  ## stop, and remove the environment and caches (never your data)
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	if [ -z "$(PYTHON)" ]; then \
		echo "Jarvis needs Python 3.11 or newer with venv and ensurepip (Debian: apt install python3-venv)" >&2; exit 1; fi
	echo "making the environment in $(VENV)" >&2
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV) </dev/null >&2

$(VENV)/.run: $(VENV)/bin/python pyproject.toml constraints.txt
	echo "installing Jarvis (once)" >&2
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . </dev/null >&2
	touch $@

$(VENV)/.dev: $(VENV)/.run
	echo "installing what the tests need (once)" >&2
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,mcp]' </dev/null >&2
	touch $@
