# Every command of the project. Needs make and Python 3.11 with venv; `make test` says what more it would like.
# Downloads come from the package indexes that pip and Maven are configured for, pinned by hash.

PYTHON ?= python3.11
BIN := .venv/bin
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python
LOCK := $(BIN)/uv pip compile --quiet --generate-hashes --python-version 3.11

include fetch.mk

# uv does not read pip's configuration; an index named in pip's environment variable holds for both.
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif
# It trusts the machine's certificates, as pip does: behind a proxy that has its own, downloads would fail otherwise.
export UV_SYSTEM_CERTS ?= true
# Tests start hundreds of Pythons. Without bytecode on disk each of them compiles all that it imports: two seconds of CPU
# before `arco serve` listens, where it takes half a second.
unexport PYTHONDONTWRITEBYTECODE

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.PRECIOUS: .venv-core-%/.complete
.DEFAULT_GOAL := help

##@ Use it

.PHONY: help run setup demo pipeline
help: ## Say what each target does
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z%-]+:.*## / { printf "  make %-21s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: export ARCO_STORE ?= file:$(CURDIR)/.arco/store
run: setup ## Serve the catalog on http://127.0.0.1:8181 over .arco/store (ARGS="--port 9000" adds options)
	@exec $(BIN)/arco serve $(ARGS)

setup: .venv/.serve ## Make .venv with the console script `arco`

demo: .venv/.dev $(JARS) $(if $(findstring gs://,$(ARGS)),$(GCP_JARS) $(FAKE_GCS)) $(if $(findstring abfss://,$(ARGS))$(findstring az://,$(ARGS)),$(AZURE_JARS) $(AZURITE))
demo: ## Spark and PyIceberg work on TPC-H through the catalog (ARGS="--store s3://bucket/prefix --short"; gs://, az://)
	$(BIN)/python -m tools.demo $(ARGS)

pipeline: .venv/.dev $(JARS) ## The demo's lake as tables: who wrote what from where, what grew, what is stale (ARGS="--store s3://bucket/prefix")
	$(BIN)/python -m tools.demo.pipeline $(ARGS)

##@ Work on it

.PHONY: dev jars lint static test test-pythons test-thorough test-slow rck test-engines test-polaris-spark test-polaris-python fuzz smoke-cloud infra trace clean
dev: .venv/.dev ## Add the tools and libraries for development to .venv

jars: $(JARS) $(GCP_JARS) $(AZURE_JARS) ## Fetch Iceberg's Spark runtime and what it needs for S3, GCS and Azure into .jars

lint: static ## Formatter, linter, types, import rules, the words of the field
	$(BIN)/pytest --quiet tests/test_architecture.py tests/test_language.py

static: .venv/.dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

test: lacks .venv/.dev $(FETCHED) ## All tests, and the short demo on local files (CI=true: lint, too)
	@echo "Beside each other, $(JOBS) at a time; each is shown when it ends: $(PARTS)"
	+@$(BESIDE) $(PARTS:%=timed/%)

timed/%:
	+@$(MAKE) --no-print-directory $* && status=0 || status=$$?; echo "$* took $$((SECONDS / 60)) min $$((SECONDS % 60)) s"; exit $$status

.PHONY: lacks
lacks:
ifneq ($(MISSING),)
	@echo "This machine lacks: $(MISSING). Tests that need them are left out; pytest says which." >&2
	@if [ "$${CI:-}" = true ]; then echo "With CI=true all must be there." >&2; exit 1; fi
endif

# Parts run beside each other, the longest first, so that no core is idle before the last of them. Two more than there are
# cores, since most wait for half of their time: for sleeps, JVMs, Terraform and gateways. What is not named here, or lacks
# its tools, is a part together: tests-of-the-rest.
JOBS = $(shell $(PYTHON) -c 'import os; print(len(os.sched_getaffinity(0)) + 2)')
BESIDE = $(MAKE) --no-print-directory --jobs=$(JOBS) --output-sync=target --keep-going
LEFT_OUT := $(if $(JVM_TESTS),,tests/engines tests/reconciler demo-short) \
  $(if $(filter terraform,$(MISSING)),tests/infra) $(if $(filter node npm chromium,$(MISSING)),tests/console) $(if $(filter true,$(CI)),,static)
ON_PYTHONS := $(patsubst %,tests-on-%,$(filter-out $(MISSING:python%=%),$(lastword $(OTHER_PYTHONS))))
PARTS := $(filter-out $(LEFT_OUT),tests-of-the-rest tests/engines tests/simulation tests/console tests/cli tests/operations \
  tests/upkeep $(ON_PYTHONS) tests/lambda_ tests/infra tests/reconciler tests/serve tests/storage_backends tests/fuzz static demo-short tests/packaging)
FOLDERS := $(filter tests/%,$(PARTS))

# JVMs of tests live for seconds: to compile what they run as well as can be, to collect garbage on threads of its own, or
# to verify the bytecode of jars whose checksums were verified, costs more than it saves.
$(FOLDERS) tests-of-the-rest test-thorough demo-short rck-serve rck-lambda: export JDK_JAVA_OPTIONS ?= \
  -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote

.PHONY: $(FOLDERS) tests-of-the-rest demo-short rck-serve rck-lambda
$(FOLDERS): .venv/.dev $(FETCHED)
	$(BIN)/pytest --quiet $@

tests-of-the-rest: .venv/.dev $(FETCHED)
	$(BIN)/pytest --quiet tests $(FOLDERS:%=--ignore=%)

# A part of the core, all of it by `make test-pythons`: with few of the examples of Hypothesis, and without what differs in
# no Python, which are the counts of steps, the rules that are left out, and the longest sweeps of hostile requests and
# damaged objects. LONG_ON_PYTHONS are left to `make test-pythons`, too: laws over values, which all Pythons compute alike,
# what is read from the sources, and bounds of memory.
CORE := iceberg state config tasks operations
LONG_ON_PYTHONS := append_rebase_bounds expression_json fields_of_later_versions file_blocks hostile_manifests \
  internal_proposals json_pieces json_slices packing paths pruning_laws pyiceberg_oracle pyiceberg_pruning wide_filters
tests-on-%: .venv-core-%/.complete
	$(<D)/bin/python -m pytest --quiet -p no:cacheprovider --hypothesis-profile brief $(CORE:%=tests/%) \
	  $(patsubst %,--ignore-glob '*/test_%.py',linear_* *_left_out hostile every_object $(LONG_ON_PYTHONS))

demo-short: .venv/.dev $(JARS)
	$(BIN)/python -m tools.demo --short

rck-serve: .venv/.dev $(KITS)
	$(BIN)/python -m tools.rck $(ARGS)

rck-lambda: .venv/.dev $(KITS)
	$(BIN)/python -m tools.rck --lambda $(ARGS)

test-pythons: CORE += upkeep http
test-pythons: LONG_ON_PYTHONS :=
test-pythons: $(OTHER_PYTHONS:%=tests-on-%) ## The tests of the core on every Python of .ci/pythons: `make test` has a part of them on the newest, and all on this one

smoke-cloud: .venv/.dev ## Try a bucket with your own keys: store, commits, purge, vending; removes what it made (URL=s3://bucket/prefix)
	$(BIN)/python -m tools.smoke_cloud $(URL) $(ARGS)

.PHONY: test-stores test-versitygw test-minio test-gcs test-azure
test-stores: test-versitygw test-minio test-gcs test-azure ## Versity's gateway, MinIO, which Go builds in some minutes, fake-gcs-server and Azurite: killed servers, the short demo, the kit

test-versitygw: .venv/.dev $(JARS) $(VERSITYGW)
	$(BIN)/python -m tools.demo --short --store s3://arco-demo/catalog --s3-server versitygw

test-minio: .venv/.dev $(JARS) $(if $(JVM_TESTS),$(TRINO)) .tools/minio
	$(BIN)/pytest tests/stores/test_minio*.py
	$(BIN)/python -m tools.demo --short --store s3://arco-demo/catalog --s3-server minio

test-gcs: .venv/.dev $(JARS) $(GCP_JARS) $(firstword $(KITS)) .tools/fake-gcs-server
	$(BIN)/pytest -m slow tests/stores/test_gcs.py
	$(BIN)/python -m tools.demo --short --store gs://arco-demo/catalog
	$(BIN)/python -m tools.rck --kit 1.11.0 --store gcs

test-azure: .venv/.dev $(JARS) $(AZURE_JARS) $(firstword $(KITS)) .tools/azurite/complete
	$(BIN)/pytest -m slow tests/stores/test_azure.py
	$(BIN)/python -m tools.demo --short --store abfss://arco-demo@devstoreaccount1.dfs.core.windows.net/catalog
	$(BIN)/python -m tools.rck --kit 1.11.0 --store azure

test-thorough: export ARCO_SIM_RUNS ?= 1
test-thorough: .venv/.dev $(FETCHED) ## Whole, of what `make test` tries a share: the simulation's runs, engines on local files, Hypothesis' examples
	$(BIN)/pytest tests/simulation
	$(BIN)/pytest -m slow tests
	$(BIN)/pytest --hypothesis-profile thorough tests/iceberg tests/state tests/storage_backends tests/vending tests/authentication

test-slow: export ARCO_SIM_RUNS ?= 20
test-slow: .venv/.dev ## The simulation: every scenario ARCO_SIM_RUNS (20) times as long as in test-thorough, then 1,000,000 random schedules (goes on where it was stopped; ARGS="--part 10000")
	$(BIN)/pytest tests/simulation
	@mkdir -p .arco
	$(BIN)/python -m tests.simulation --schedules 1000000 --state .arco/campaign.json $(ARGS)

.PHONY: test-healthy-use test-hostile
test-healthy-use: .venv/.dev ## 100,000 commits over months, by processes of any age and without a failure: no outcome is unknown (goes on where it was stopped; ARGS="--part 10000")
	$(BIN)/python -m tests.simulation.healthy_use --state .arco/healthy-use.json $(ARGS)

test-hostile: .venv/.dev ## The worst documents of every format at real servers, with what others see meanwhile: bench-hostile, which fails where a bound breaks
	$(BIN)/python -m tools.bench.hostile $(ARGS)

rck: rck-serve rck-lambda ## Iceberg's REST Compatibility Kit, both releases against a fresh server on local files and on S3, and through the zip for Lambda

include slow.mk

fuzz: .venv/.dev ## Hostile requests made from the specification, in memory and at a real server (ARGS="--minutes 60")
	$(BIN)/python -m tests.fuzz $(ARGS)

test-engines: .venv/.dev $(JARS) $(TRINO) .venv-engines/.complete .venv-engines-dagster/.complete .venv-engines-dbt/.complete .venv-engines-flink/.complete .jars/flink/complete .tools/iceberg-go-appender .tools/iceberg-go-scanner .tools/iceberg-rust-shell ## DuckDB, ClickHouse, DataFusion, iceberg-rust, Polars, Flink, dbt and Dagster on the catalog; five engines append to one table at once; iceberg-go reads what the catalog plans
	$(BIN)/pytest tests/engines/others

# The plugin itself is its user's: no repository of Maven's that was looked into had it.
test-polaris-spark: export POLARIS_SPARK_JAR := $(abspath $(POLARIS_SPARK_JAR))
test-polaris-spark: .venv/.dev $(JARS) .jars/delta/complete ## Polaris's Spark plugin: Delta tables beside Iceberg's in one catalog (POLARIS_SPARK_JAR=polaris-spark-....jar)
	$(BIN)/pytest tests/engines/polaris_spark

test-polaris-python: export POLARIS_SOURCES := $(abspath $(POLARIS_SOURCES))
test-polaris-python: .venv/.dev .venv-polaris/.complete ## Integration tests of Polaris's Python client (POLARIS_SOURCES=a checkout of apache/polaris)
	$(BIN)/pytest tests/engines/polaris_python

infra: .venv/.dev ## Terraform: format, validity, plans, policies, and an apply against moto (TF_PLUGIN_DIR: a folder of plugins)
	$(BIN)/pytest tests/infra

trace: .venv/.dev ## The way of loads and commits through the code, down to the store calls (ARGS=--all: every function)
	@$(BIN)/python -m tools.trace $(ARGS)

bench-creates: .venv/.dev ## Creates by many processes at once, in the time of a simulated world (ARGS="2x1 64x1 --version 1")
	$(BIN)/python -m tests.simulation.contention $(ARGS)

# tools/bench has a program for each. Its first lines, and its --help, describe what it measures.
bench-peers: .jars/reference-server/complete
bench-%: .venv/.dev ## A bench of tools/bench, as bench-calls, bench-peers, bench-cold (ARGS=--help: its options)
	$(BIN)/python -m tools.bench.$* $(ARGS)

.PHONY: dist
dist: .venv/.bootstrap $(CONSOLE) ## Build the wheel and the source distribution into dist
	$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist

.PHONY: package package-azure release image docs
package: .venv/.bootstrap ## Build dist/arco-catalog-lambda.zip, which every function is deployed from (ARGS=--oidc: another, which verifies tokens of other issuers; --sdk: with Amazon's SDK; --console, too: with the pages for browsers, after make console)
	$(BIN)/python -m tools.package $(ARGS)

package-azure: .venv/.bootstrap ## Build dist/arco-catalog-functions.zip, which the function app on Azure is deployed from (ARGS=--console: another, with the pages for browsers, after make console)
	$(BIN)/python -m tools.package_azure $(ARGS)

release: .venv/.bootstrap sbom $(CONSOLE) ## Build all files of a release into dist/release, of a checkout without changes (CONTRIBUTING.md says how to make one)
	$(BIN)/python -m tools.release

image: $(CONSOLE) ## Build the container image (PLATFORMS=linux/amd64,linux/arm64: both, as dist/arco-catalog-image.tar; EXTRAS=gcs: for one cloud)
	@$(PYTHON) -m tools.image $(if $(PLATFORMS),--platforms $(PLATFORMS)) $(if $(EXTRAS),--extras $(EXTRAS))

docs: .venv/.serve .venv-docs/.complete ## Build the documentation site in dist/site; a warning or a broken link is an error
	$(BIN)/python -m tools.configuration --check
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=. .venv-docs/bin/mkdocs build --strict --quiet

clean: ## Remove everything that make made, but not the store in .arco
	rm -rf .venv .venv-audit .venv-core-* .venv-docs .venv-engines .venv-engines-dagster .venv-engines-dbt .venv-engines-flink .venv-polaris .venv-spark-3.5 .venv-spark-4.0 build console/build console/node_modules $(dir $(CONSOLE)) .jars .demo dist .hypothesis .mypy_cache .pytest_cache .ruff_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
