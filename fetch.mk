# What make fetches: Python environments, jars, servers of emulators, each by the hashes in requirements/ and tools/.

MVN := mvn --batch-mode --quiet -Dstyle.color=never
MAVEN_DEPENDENCY := org.apache.maven.plugins:maven-dependency-plugin:3.8.1

ICEBERG := 1.11.0
JARS := .jars/iceberg-spark-runtime-4.1_2.13-$(ICEBERG).jar .jars/iceberg-aws-bundle-$(ICEBERG).jar
RETRYING := .jars/iceberg-spark-runtime-4.1_2.13-1.12.0.jar
OLDER_SPARKS := .jars/iceberg-spark-runtime-3.5_2.12-$(ICEBERG).jar .jars/iceberg-spark-runtime-4.0_2.13-$(ICEBERG).jar
OLDEST_ICEBERG := .jars/iceberg-spark-runtime-3.5_2.12-1.6.1.jar
OPENLINEAGE := 1.37.0
LISTENERS := .jars/openlineage-spark_2.12-$(OPENLINEAGE).jar .jars/openlineage-spark_2.13-$(OPENLINEAGE).jar
GCP_JARS := .jars/iceberg-gcp-bundle-$(ICEBERG).jar
AZURE_JARS := .jars/azure-sdk/complete
KEYCLOAK := 26.7.3
NESSIE := .jars/nessie-quarkus-0.99.0-runner.jar
KITS := .jars/rck-1.11.0/complete .jars/rck-1.10.1/complete
TRINO := .jars/trino-476/complete
OTHER_TRINOS := .jars/trino-server-449/complete .jars/trino-server-483/complete

# The Pythons besides this one that the core is tested on: pyenv's, whose shims answer for one version alone, or PATH's.
python_of = $(firstword $(wildcard $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions/$(1).*/bin/python) $(shell command -v python$(1)))
OTHER_PYTHONS := $(strip $(file < .ci/pythons))

# What a machine lacks is named when tests begin, and what needs it is left out; with CI=true it must be there.
MISSING := $(strip $(foreach tool,java mvn go node npm chromium terraform,$(if $(shell command -v $(tool)),,$(tool))) \
  $(foreach version,$(OTHER_PYTHONS),$(if $(call python_of,$(version)),,python$(version))))
JVM_TESTS := $(if $(filter java mvn,$(MISSING)),,yes)
VERSITYGW := $(if $(filter go,$(MISSING)),,.tools/versitygw)
FAKE_GCS := $(if $(filter go,$(MISSING)),,.tools/fake-gcs-server)
DEPLOYMENT_TOOLS := $(if $(filter go,$(MISSING)),,.tools/helm .tools/crds/httproutes.yaml .tools/crds/servicemonitors.yaml .tools/compose-spec)
AZURITE := $(if $(filter node npm,$(MISSING)),,.tools/azurite/complete)
OIDC_PROVIDER := $(if $(AZURITE),.tools/oidc-provider/complete)
CONSOLE := arco_catalog/http/console/built/index.html
FETCHED := $(if $(JVM_TESTS),$(JARS) $(RETRYING) $(firstword $(KITS)) $(TRINO)) $(VERSITYGW) $(FAKE_GCS) $(DEPLOYMENT_TOOLS) $(AZURITE) $(OIDC_PROVIDER) $(if $(AZURITE),$(CONSOLE)) .venv-polaris/.complete

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

.PHONY: lock
lock: .venv/.serve ## Resolve the dependencies of pyproject.toml again (UPGRADE=1 for the newest)
	$(LOCK) $(if $(UPGRADE),--upgrade) requirements/bootstrap.in -o requirements/bootstrap.txt
	$(LOCK) $(if $(UPGRADE),--upgrade) --extra s3 --extra gcs --extra azure --extra kafka --extra serve --extra cli --extra auth pyproject.toml -o requirements/serve.txt
	$(LOCK) $(if $(UPGRADE),--upgrade) --extra lambda pyproject.toml -c requirements/serve.txt -o requirements/lambda.txt
	$(LOCK:3.11=3.12) $(if $(UPGRADE),--upgrade) --extra functions pyproject.toml -c requirements/serve.txt -o requirements/functions.txt
	$(LOCK) $(if $(UPGRADE),--upgrade) --extra s3 --extra gcs --extra azure --extra kafka --extra serve --extra cli --extra auth --extra lambda --extra functions --extra otel --group dev pyproject.toml \
	  -c requirements/serve.txt -o requirements/dev.txt
	$(LOCK) $(if $(UPGRADE),--upgrade) --extra lambda --extra s3-sdk pyproject.toml -c requirements/dev.txt -o requirements/lambda-sdk.txt
	$(LOCK) $(if $(UPGRADE),--upgrade) --extra lambda --extra auth pyproject.toml -c requirements/serve.txt -o requirements/lambda-oidc.txt
	$(foreach version,$(OTHER_PYTHONS),$(LOCK:3.11=$(version)) $(if $(UPGRADE),--upgrade) --extra s3 --extra gcs --extra azure --extra kafka --extra serve --extra cli \
	  --extra auth --extra lambda --extra otel --group core pyproject.toml -c requirements/dev.txt -o requirements/core-$(version).txt;)
	for engine in audit docs engines engines-dagster engines-dbt engines-flink polaris trino; do \
	  $(LOCK) $(if $(UPGRADE),--upgrade) requirements/$$engine.in -o requirements/$$engine.txt; done
	$(LOCK) $(if $(UPGRADE),--upgrade) --extra cli --extra pipeline pyproject.toml requirements/spark-3.5.in -c requirements/serve.txt -o requirements/spark-3.5.txt
	$(LOCK) $(if $(UPGRADE),--upgrade) --extra cli --extra pipeline pyproject.toml requirements/spark-4.0.in -c requirements/serve.txt -o requirements/spark-4.0.txt
	$(if $(AZURITE),for folder in requirements/azurite requirements/oidc-provider console; do (cd $$folder && \
	  npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved --no-audit --no-fund); done)

# A folder's jars all go on a class path: none may be there that its list of checksums does not name.
only_listed = extra=$$(cd $(@D) && find . -name '*.jar' | cut -c3- | grep -vxFf <(awk '{ print $$2 }' $(CURDIR)/$(1)) || true); \
	  if [ -n "$$extra" ]; then echo "$(@D) holds jars that $(1) does not list: $$extra" >&2; exit 1; fi

JAVAC = "$$($(BIN)/python -c 'from tools.demo.java import java_home; print(java_home())')"/bin/javac --release 17

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

# Nessie's server, in one file of 245 MB: the last release of it that is on Maven Central.
.jars/nessie-quarkus-%-runner.jar: requirements/jars.sha256
	$(MVN) $(MAVEN_DEPENDENCY):copy \
	  -Dartifact=org.projectnessie.nessie:nessie-quarkus:$*:jar:runner -DoutputDirectory=.jars
	@cd .jars && grep -F ' $(@F)' ../$< | sha256sum --check --strict --quiet -
	@touch $@

.jars/rck-%/complete: tools/rck/pom.xml tools/rck/%.sha256
	$(MVN) --file $< $(MAVEN_DEPENDENCY):copy-dependencies \
	  -Diceberg.version=$* -DoutputDirectory=$(CURDIR)/$(@D)
	@cd $(@D) && sha256sum --check --strict --quiet $(CURDIR)/tools/rck/$*.sha256
	@$(call only_listed,tools/rck/$*.sha256)
	@touch $@

# Iceberg's sink for Kafka Connect, with a broker and a worker.
.jars/kafka-connect/complete: tools/kafkaconnect/pom.xml tools/kafkaconnect/jars.sha256
	$(MVN) --file $< $(MAVEN_DEPENDENCY):copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D)
	@cd $(@D) && sha256sum --check --strict --quiet $(CURDIR)/tools/kafkaconnect/jars.sha256
	@$(call only_listed,tools/kafkaconnect/jars.sha256)
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

# Trino of a release without such an archive: the jars of a server and of the one plugin, and a class that starts it.
.jars/trino-server-%/complete: tools/trinoserver/pom.xml tools/trinoserver/%.sha256 tools/trinoserver/TrinoServer.java .venv/.serve
	rm -rf $(@D)
	for part in main:lib iceberg:plugin/iceberg; do \
	  $(MVN) --file $< $(MAVEN_DEPENDENCY):copy-dependencies -DincludeScope=runtime -Dtrino.version=$* \
	    -Dtrino.part=trino-$${part%:*} -DoutputDirectory=$(CURDIR)/$(@D)/$${part#*:}; done
	@cd $(@D) && sha256sum --check --strict --quiet $(CURDIR)/tools/trinoserver/$*.sha256
	@$(call only_listed,tools/trinoserver/$*.sha256)
	@mkdir -p $(@D)/plugin/iceberg/services/META-INF/services
	echo io.trino.plugin.iceberg.IcebergPlugin > $(@D)/plugin/iceberg/services/META-INF/services/io.trino.spi.Plugin
	$(JAVAC) -d $(@D)/classes tools/trinoserver/TrinoServer.java
	@touch $@

# Keycloak, an identity provider, with the build step that it would repeat at each start, for a database in memory.
.PHONY: .tools/keycloak
.tools/keycloak: .tools/keycloak/complete
.tools/keycloak/complete: requirements/keycloak.sha256
	rm -rf $(@D)
	$(MVN) $(MAVEN_DEPENDENCY):copy \
	  -Dartifact=org.keycloak:keycloak-quarkus-dist:$(KEYCLOAK):zip -DoutputDirectory=$(@D)/archives
	@cd $(@D)/archives && sha256sum --check --strict --quiet $(CURDIR)/$<
	$(PYTHON) -m zipfile --extract $(@D)/archives/keycloak-quarkus-dist-$(KEYCLOAK).zip $(@D)/archives
	mv $(@D)/archives/keycloak-$(KEYCLOAK)/* $(@D)
	rm -r $(@D)/archives
	JAVA_HOME="$$($(PYTHON) -c 'from tools.demo.java import java_home; print(java_home())')" \
	  bash $(@D)/bin/kc.sh build --db=dev-mem
	@touch $@

# Servers and helm in Go, built from the versions that are pinned there.
.tools/%: requirements/go.txt
	GOBIN=$(CURDIR)/.tools go install $$(awk '$$1 == "$*" { print $$2 }' $<)
	@touch $@

# The loader of Docker Compose, as a program that prints what it loaded. Go names the program after its folder, `cmd`.
.tools/compose-spec: requirements/go.txt
	GOBIN=$(CURDIR)/.tools go install $$(awk '$$1 == "$(@F)" { print $$2 }' $<)
	mv .tools/cmd $@
	@touch $@

# Programs of the tests that append and read by iceberg-go. Their go.sum has the hashes of all modules.
ICEBERG_GO := tests/engines/others/iceberg_go
.tools/iceberg-go-appender: $(ICEBERG_GO)/main.go
.tools/iceberg-go-scanner: $(ICEBERG_GO)/scanner/main.go
.tools/iceberg-go-scanner: SOURCE := scanner
.tools/iceberg-go-appender .tools/iceberg-go-scanner: $(ICEBERG_GO)/lines/lines.go $(ICEBERG_GO)/go.mod $(ICEBERG_GO)/go.sum
	@mkdir -p $(@D)
	go build -C $(ICEBERG_GO) -mod=readonly -buildvcs=false -o $(CURDIR)/$@ ./$(SOURCE)

# DataFusion over iceberg-rust's client. Its Cargo.lock has the hashes of all crates.
ICEBERG_RUST := tests/engines/others/iceberg_rust
.tools/iceberg-rust-shell: $(ICEBERG_RUST)/src/main.rs $(ICEBERG_RUST)/Cargo.toml $(ICEBERG_RUST)/Cargo.lock
	cargo build --quiet --locked --manifest-path $(ICEBERG_RUST)/Cargo.toml --target-dir .tools/cargo
	strip -o $@ .tools/cargo/debug/$(@F)

# What Kubernetes is told of objects that are not its own, out of the Go modules that define them.
.tools/crds/%.yaml: requirements/go.txt
	@mkdir -p $(@D)
	read -r module file < <(awk '$$1 == "crds/$*.yaml" { print $$2, $$3 }' $<); \
	  folder=$$(go mod download -json $$module | $(PYTHON) -c 'import json, sys; print(json.load(sys.stdin)["Dir"])'); \
	  install -m 644 "$$folder/$$file" $@

# An emulator of Azure Blob Storage and an issuer of tokens in JavaScript, with what their lock files name, by hash.
.PHONY: .tools/azurite .tools/oidc-provider
.tools/azurite: .tools/azurite/complete
.tools/oidc-provider: .tools/oidc-provider/complete
.tools/azurite/complete .tools/oidc-provider/complete: .tools/%/complete: requirements/%/package.json requirements/%/package-lock.json
	@mkdir -p $(@D)
	cp $^ $(@D)
	cd $(@D) && npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# The console: pages in TypeScript, which a wheel holds as built files.
.PHONY: console
console: $(CONSOLE) ## Build the console, the pages at /ui of the server, into the package (needs Node.js and npm)
console/node_modules/.complete: console/package.json console/package-lock.json
	@command -v npm >/dev/null || { echo "npm is not here: the console needs Node.js 20.19 or newer with npm" >&2; exit 1; }
	cd console && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@
$(CONSOLE): console/node_modules/.complete $(wildcard console/build.mjs console/src/* console/src/*/*)
	cd console && npm run --silent build

.venv-core-%/.complete: requirements/core-%.txt requirements/bootstrap.txt pyproject.toml .venv/.serve
	$(BIN)/uv venv --quiet --allow-existing --python $(call python_of,$*) $(@D)
	$(BIN)/uv pip install --quiet --python $(@D)/bin/python --require-hashes -r $< -r requirements/bootstrap.txt
	$(BIN)/uv pip install --quiet --python $(@D)/bin/python --no-deps --no-build-isolation --editable .
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
	$(JAVAC) -cp '$(@D)/*' -d $(@D)/classes tools/referenceserver/ReferenceServer.java
	@touch $@
