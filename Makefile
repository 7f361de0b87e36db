# Flower Research Notes. `make help` lists the commands; each sets up what it needs on first use.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
.DEFAULT_GOAL := help

# The interpreter that .venv is made with; by default the first suitable one on the PATH.
PYTHON ?=
# An index of CPU-only torch builds, for Linux machines where pip would fetch CUDA's (see README).
FLOWER_TORCH_INDEX ?=
PORT ?= 8000
WORKERS ?= 2

VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip
TORCH_PIN := $(shell sed -n 's/^torch==//p' constraints.txt)
VENV_MADE := $(VENV)/.made
TORCH_READY := $(VENV)/.torch-$(TORCH_PIN)
READY := $(VENV)/.ready
LAB_READY := $(VENV)/.lab-ready

# Material for MkDocs advertises; mkdocs<2 is pinned.
export NO_MKDOCS_2_WARNING := 1

STAGES := lint types unit check test-notebooks test-site test-browser

.PHONY: help install serve build offline notebooks lab check test $(STAGES) coverage format mutate freeze \
        clean clean-venv test-portable

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- set-up: three stamps, each redone only when what it depends on has changed ------------------

$(VENV_MADE):
	@for candidate in $(or $(PYTHON),python3 python3.13 python3.12 python3.11); do \
	    if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
	        2>/dev/null; then found=$$candidate; break; fi; \
	done; \
	if [ -z "$${found:-}" ]; then \
	    echo "Python 3.11 or newer with venv was not found." \
	        "Install it (Debian, Ubuntu: python3 and python3-venv)," \
	        "or say where it is: make PYTHON=/path/to/python3" >&2; \
	    exit 1; \
	fi; \
	echo "[1/3] $(VENV): $$("$$found" --version)"; \
	"$$found" -m venv $(VENV)
	@touch $@

# torch first and exactly pinned: an open range can make pip fetch several GB of CUDA builds.
$(TORCH_READY): $(VENV_MADE)
	@echo "[2/3] torch $(TORCH_PIN)"
	@set -o pipefail; $(PIP) install --progress-bar on torch==$(TORCH_PIN) \
	    $(if $(FLOWER_TORCH_INDEX),--index-url $(FLOWER_TORCH_INDEX)) | $(call progress)
	@touch $@

$(READY): $(TORCH_READY) pyproject.toml constraints.txt
	@echo "[3/3] everything else"
	@set -o pipefail; $(PIP) install --constraint constraints.txt --editable '.[dev]' | $(call progress)
	@touch $@

$(LAB_READY): $(READY)
	@echo "JupyterLab"
	@set -o pipefail; $(PIP) install --constraint constraints.txt --editable '.[lab]' | $(call progress)
	@touch $@

# pip's hundreds of lines as one that counts; errors go to stderr and stay visible.
progress = awk -v tty="$$(test -t 2 && echo 1 || true)" \
    '/^(Collecting|Requirement already)/ { \
         name = $$1 == "Collecting" ? $$2 : $$4; \
         if (tty) printf "\r      %3d packages, now %-40.40s", ++n, name > "/dev/stderr" } \
     /^Successfully installed/ { installed = NF - 2 } \
     END { if (tty && n) printf "\r%79s\r", "" > "/dev/stderr"; \
           printf "      %d packages installed\n", installed }'

install: $(READY) ## set up .venv (every command below does so by itself)

# --- writing --------------------------------------------------------------------------------------

serve: $(READY) ## the site on 127.0.0.1:8000, reloading on edits (PORT=... for another port)
	@$(BIN)/mkdocs serve --livereload --dev-addr 127.0.0.1:$(PORT)

check: $(READY) ## formulas, front matter, links and labels, in seconds
	@$(BIN)/flower check

notebooks: $(READY) ## run every notebook in place and save its outputs
	@$(BIN)/python -m flower_site.run_notebooks

lab: $(LAB_READY) ## edit notebooks in JupyterLab
	@$(BIN)/jupyter lab notebooks

build: $(READY) ## the site in site/, strictly, with the built HTML checked
	@$(BIN)/mkdocs build --strict
	@$(BIN)/python -m flower_site.html_check site

offline: $(READY) ## the site in site-offline/, to open from disk without a server
	@FLOWER_OFFLINE=true $(BIN)/mkdocs build --strict --site-dir site-offline
	@echo "open site-offline/index.html"

# --- checking -------------------------------------------------------------------------------------

test: $(READY) ## everything: lint, types, unit, formulas, notebooks, site, browser
	@set -e; begun=$$SECONDS; \
	for stage in $(STAGES); do \
	    printf '\n== %s\n' "$$stage"; from=$$SECONDS; \
	    $(MAKE) --no-print-directory "$$stage"; \
	    echo "== $$stage: $$((SECONDS - from)) s"; \
	done; \
	echo "== all of make test: $$((SECONDS - begun)) s"

lint: $(READY) ## ruff, spelling, shell scripts, workflows
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/codespell
	$(BIN)/shellcheck .ci/run
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/actionlint
	$(BIN)/zizmor --offline --quiet .github

types: $(READY) ## mypy, strict
	$(BIN)/mypy

unit: $(READY) ## tests of the three packages and of the repository
	$(BIN)/pytest tests --ignore=tests/browser --numprocesses=$(WORKERS)

test-notebooks: $(READY) ## run the notebooks again and compare every output
	$(BIN)/pytest --nbval --nbval-current-env --nbval-cell-timeout=120 \
	    --numprocesses=$(WORKERS) --dist=loadfile notebooks

test-site: build

test-browser: $(READY) ## the built site in Chromium
	$(BIN)/pytest tests/browser

# Other processors, imitated: kernels for older instruction sets, sums taken by two threads.
PORTABLE := ATEN_CPU_CAPABILITY=default,OMP_NUM_THREADS=1 \
            ATEN_CPU_CAPABILITY=default,OMP_NUM_THREADS=2 \
            ATEN_CPU_CAPABILITY=avx2,OMP_NUM_THREADS=1 \
            ATEN_CPU_CAPABILITY=avx2,OMP_NUM_THREADS=2 \
            ONEDNN_MAX_CPU_ISA=SSE41,MKL_ENABLE_INSTRUCTIONS=SSE4_2,OMP_NUM_THREADS=1

test-portable: $(READY) ## tests that train or compare numbers, and all notebooks, as on other processors
	@set -e; begun=$$SECONDS; \
	for settings in $(PORTABLE); do \
	    from=$$SECONDS; export $${settings//,/ }; \
	    printf '\n== %s: ' "$$settings"; \
	    $(BIN)/python -c 'import torch; print(torch.backends.cpu.get_cpu_capability())'; \
	    $(BIN)/pytest --quiet --numprocesses=$$(($(WORKERS) / OMP_NUM_THREADS)) \
	        tests/transformer tests/formula tests/test_readme.py \
	        tests/site/test_planted_faults.py::test_the_site_as_it_stands_is_clean; \
	    $(BIN)/pytest --quiet --nbval --nbval-current-env --nbval-cell-timeout=120 \
	        --numprocesses=$(WORKERS) --dist=loadfile notebooks; \
	    echo "== $$((SECONDS - from)) s"; \
	    unset $$(sed 's/=[^,]*,*/ /g' <<<"$$settings"); \
	done; \
	echo "== all of make test-portable: $$((SECONDS - begun)) s"

coverage: $(READY) ## unit tests with line and branch coverage
	$(BIN)/pytest tests --ignore=tests/browser --numprocesses=$(WORKERS) --cov

format: $(READY) ## let ruff mend what it can
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format --quiet .

mutate: $(READY) ## change every formula and its code a piece at a time, and see each change noticed
	@$(BIN)/flower mutate

# --- upkeep ---------------------------------------------------------------------------------------

freeze: $(LAB_READY) ## write the installed versions to constraints.txt
	@{ sed -n '/^#/p' constraints.txt; \
	   $(PIP) freeze --exclude-editable | sed -e '/^#/d' -e 's/+[a-z0-9.]*$$//' | LC_ALL=C sort -f; \
	} > constraints.new
	@mv constraints.new constraints.txt
	@touch $(TORCH_READY) $(READY) $(LAB_READY)

clean: ## remove the built site and all caches
	rm -rf site site-offline .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage htmlcov

clean-venv: ## remove .venv
	rm -rf $(VENV)
