# make run    start the server          make test   run the tests            make bench  measure against its peers
# make lint   check style and types     make pins   take the newest packages make clean  remove what was made here
#
# ARGS=…   passed on: make run ARGS="--port 9000", make test ARGS="tests/model -k rope"
# PYTHON=… which Python 3.11 or newer makes the virtual environment
# VENV=…   where that environment lies

PYTHON ?= python3
VENV ?= .venv
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run test lint bench pins clean

setup = @command -v "$(PYTHON)" >/dev/null 2>&1 \
	|| { echo "setup: there is no $(PYTHON): install Python 3.11 or newer, or name it: make $@ PYTHON=/path/to/python3" >&2; exit 1; }; \
	"$(PYTHON)" scripts/setup $@ --venv "$(VENV)"

help:
	@sed -n 's/^# \?//p' Makefile

run:
	$(setup)
	@"$(VENV)/bin/attention-atlas" serve $(ARGS)

test:
	$(setup)
	@"$(VENV)/bin/python" -m pytest $(ARGS)

lint:
	$(setup)
	"$(VENV)/bin/python" -m ruff check .
	"$(VENV)/bin/python" -m ruff format --check .
	"$(VENV)/bin/python" -m mypy
	@if command -v node >/dev/null && command -v npm >/dev/null; then set -x; node node_modules/typescript/bin/tsc --project .; \
	else echo "lint: the types in the JavaScript were not checked: that needs Node.js"; fi

bench:
	$(setup)
	@"$(VENV)/bin/python" -m benchmarks $(ARGS)

pins:
	"$(PYTHON)" scripts/pins.py

clean:
	rm -rf "$(VENV)" "$(VENV).lock" node_modules build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
	@echo "The models stay in the user's cache; attention-atlas models remove takes them away."
