# Slow tests of one thing: `make test` has a share of each. The Makefile includes this file.

##@ Slow tests of one thing

SLOW := test-image test-pipeline-package test-openapi test-spark-purge test-sparks test-openlineage test-spark-maintain test-restarts test-upgrade test-models test-oidc test-opa test-compose test-scans test-expiry test-kafka-connect test-trino test-prove test-cuts test-feed
.PHONY: $(SLOW)
$(SLOW): .venv/.dev
	$(BIN)/pytest -m '$(or $(MARKED),slow)' $(TESTED)

test-image: TESTED = tests/packaging/test_image.py ## The image's build for one cloud, and for one that there is not, in a folder
test-pipeline-package: TESTED = tests/packaging/test_pipeline_package.py ## The jobs, installed from the wheel, packed, and run by the command that is printed
test-openapi: TESTED = tests/fuzz/test_served_document.py ## schemathesis on the OpenAPI document of a real server, every corner of each schema
test-spark-purge: TESTED = tests/reconciler/test_killed_drivers.py tests/reconciler/test_compact.py ## Purges and compact on Spark, killed again and again, and the next goes on
test-sparks: TESTED = tests/reconciler/test_sparks.py tests/engines/test_spark_releases.py ## Every job and every kind of statement on Spark 3.5, 4.0 and 4.1, each in an environment of its own, by Iceberg 1.6, 1.11 and 1.12
test-openlineage: TESTED = tests/engines/test_openlineage.py ## Spark 3.5 and 4.1 with OpenLineage's own listener: what it sends becomes edges
test-spark-maintain: TESTED = $(wildcard tests/reconciler/test_maintain*.py) ## Maintenance on Spark: of 5,000 files beside writers by drivers that are killed
test-restarts: TESTED = -s tests/serve/test_restarts.py ## Servers that are killed or stopped under clients, a hundred times in each of four ways (ARCO_RESTARTS=100)
test-upgrade: TESTED = -s tests/upgrade ## Servers of an earlier commit and of this one over one store, under load, then `arco upgrade` (ARCO_UPGRADE_SECONDS=300)
test-oidc: TESTED = tests/authentication/test_keycloak*.py ## Keycloak as the identity provider: logins, the console in a browser, groups and roles, keys that are replaced, clocks, what is refused
test-opa: TESTED = tests/serve/test_policy.py ## Open Policy Agent, which Go builds in some minutes, with the policy that the page shows, and with policies that decide nothing
test-compose: TESTED = tests/packaging/test_compose_engines.py ## Trino and Spark as the compose files start them, at the servers of these files
test-scans: TESTED = -s tests/engines/scans ## 5,000 scans of drawn tables, planned by the catalog and by Iceberg's own planner in Java (ARCO_SCAN_PAIRS=5000)
test-expiry: TESTED = -s tests/engines/expiry ## 1,000 expiries of drawn tables, by the worker and by Iceberg's ExpireSnapshots in Java (ARCO_EXPIRY_TABLES=1000)
test-kafka-connect: TESTED = tests/engines/kafka_connect ## Iceberg's sink for Kafka Connect: each row of a topic is there once, though workers are killed and other writers append; and events that a worker sends to a broker
test-trino: TESTED = $(wildcard tests/engines/test_trino*.py) $(patsubst %,tests/engines/test_%.py,names logins purges system visible) ## Trino 483, by its jars, in place of 476: all tests of Trino, on files and S3; and 449 (needs JDK 25)
test-prove: TESTED = -s tests/prove ## `arco prove` at each shape of this catalog for ten minutes, at other catalogs, and at one that lies
test-cuts: TESTED = -s tests/simulation/test_cutting.py tests/serve/test_cuts.py tests/engines/test_spark_cut.py ## Consistent cuts: 1,000,000 simulated reads (ARCO_CUT_SIM_READS), 20,000 answers over HTTP (ARCO_CUT_READS), 100 cuts by Spark beside transactions
test-feed: TESTED = -s tests/serve/test_event_feed.py ## The event feed while servers, workers, a consumer and a webhook fail, for a quarter of an hour (ARCO_FEED_SECONDS=900), and with planted bugs
test-models: TESTED = tests/models ## Models of protocols that are planned: every state of the larger scenarios
test-cuts test-pipeline-package test-sparks test-openlineage test-spark-maintain test-scans test-expiry: $(JARS)
test-sparks: $(OLDER_SPARKS) $(OLDEST_ICEBERG) $(RETRYING) .venv-spark-3.5/.complete .venv-spark-4.0/.complete
test-openlineage: $(firstword $(OLDER_SPARKS)) $(LISTENERS) .venv-spark-3.5/.complete
test-spark-maintain: $(VERSITYGW)
test-kafka-connect: .jars/kafka-connect/complete
test-trino: export ARCO_TRINO = 483
test-trino: MARKED = slow or not slow
test-trino: $(JARS) $(OTHER_TRINOS)
test-prove: .jars/reference-server/complete $(NESSIE) $(VERSITYGW) $(FAKE_GCS) $(AZURITE)
test-oidc: .tools/keycloak/complete $(if $(AZURITE),$(CONSOLE))
test-opa: .tools/opa
test-compose: $(JARS) $(TRINO) $(VERSITYGW) .tools/compose-spec
