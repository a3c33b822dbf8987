# Every target does its own set-up: Python 3.11 or newer and make are enough.
PYTHON ?= python3
VENV := .venv
PIP := -m pip install --quiet --disable-pip-version-check
BIN := $(VENV)/bin
BENCH := .venv-bench
OLDEST := .venv-oldest
ARGS ?=
TESTS ?= tests
WORKERS ?= auto

# Without the compiled files each of the many processes that the tests start compiles the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test oldest lint mypy pyright reference pictures format bench faults clean

# What running needs. Modules are compiled when they are first imported: most of those in the large packages never are.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Jobtable needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) --no-compile -c constraints.txt -e ".[all]"
	touch $@

# What lint and test need as well.
$(VENV)/.developing: $(VENV)/.installed
	$(BIN)/python $(PIP) --upgrade "pip>=25.1"
	$(BIN)/python $(PIP) -c constraints.txt --group dev
	touch $@

run: $(VENV)/.installed
	$(BIN)/jobtable up --demo --data .jobtable $(ARGS)

test: $(VENV)/.developing
	$(BIN)/pytest -n $(WORKERS) $(TESTS) $(ARGS)

# The versions that pyproject.toml says are enough. Left out is what needs tools that want newer ones (the AWS command line, cfn-lint,
# schemathesis), and what is written about the newest typer.
NOT_WITH_OLDEST := tests/test_deployment.py tests/typing tests/web/test_openapi.py tests/dynamodb/test_template.py \
	tests/cli/test_dynamodb_serve.py tests/cli/test_reference.py tests/cli/test_usage.py

$(OLDEST)/.installed: pyproject.toml
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python $(PIP) --upgrade "pip>=25.1"
	$(OLDEST)/bin/python -m tests.oldest_versions > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python $(PIP) -c $(OLDEST)/constraints.txt --group test -e ".[all]"
	touch $@

oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/pytest -n $(WORKERS) $(addprefix --ignore=,$(NOT_WITH_OLDEST)) $(TESTS) $(ARGS)

lint: $(VENV)/.developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	@$(MAKE) --no-print-directory -j2 mypy pyright

# Side by side: each takes one core, and says what it has found when it is done.
mypy pyright: $(VENV)/.developing
	$(BIN)/$@

reference: $(VENV)/.developing
	$(BIN)/python -m tests.access_patterns

pictures: $(VENV)/.developing
	$(BIN)/python -m tests.web.pictures

# The documents as a site in ./site; a missing page or a broken link is an error.
.PHONY: docs docs-serve
DOCS := .venv-docs
export NO_MKDOCS_2_WARNING := 1

$(DOCS)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python $(PIP) --upgrade "pip>=25.1"
	$(DOCS)/bin/python $(PIP) -c constraints.txt --group docs
	touch $@

docs: $(DOCS)/.installed
	$(DOCS)/bin/mkdocs build --strict $(ARGS)

docs-serve: $(DOCS)/.installed
	$(DOCS)/bin/mkdocs serve $(ARGS)

format: $(VENV)/.developing
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(BENCH)/.installed: pyproject.toml constraints.txt bench/requirements.txt
	@echo "setting up $(BENCH), which has the peers" >&2
	@$(PYTHON) -m venv $(BENCH)
	@$(BENCH)/bin/python $(PIP) --upgrade "pip>=25.1"
	@$(BENCH)/bin/python $(PIP) -c constraints.txt \
		-r bench/requirements.txt -e ".[all,embeddings]"
	@touch $@

bench: $(BENCH)/.installed
	@$(BENCH)/bin/python -m bench $(ARGS)

faults: $(VENV)/.developing
	$(BIN)/python -m faults $(ARGS)

clean:
	rm -rf $(VENV) .venv-* site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
