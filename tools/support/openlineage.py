"""Makes OpenLineage events as OpenLineage's integration for Spark sends them of SQL on Iceberg tables.

A query is a run, a part of the application's run. Its tables are named by their locations, with the names in the
catalog beside that (facet `symlinks`). Inputs have the snapshot that was read (facet `version`) from the first event
on, outputs have theirs in the event at the query's end alone. The shapes are those of its version 1.45.
"""

import json
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import urlsplit

from pyiceberg.table import Table

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.runtime import SystemRuntime

PRODUCER = "https://github.com/OpenLineage/OpenLineage/tree/1.45.0/integration/spark"
SPEC = "https://openlineage.io/spec"


_RUNTIME = SystemRuntime()


@dataclass
class Query:
    """A query of an application of Spark, which reports its run to the server at `uri` by events. Its facets are those
    that matter, and one that does not."""

    uri: str
    job: str
    application: str = field(default_factory=_RUNTIME.uuid)
    run: str = field(default_factory=_RUNTIME.uuid)

    def start(self, inputs: Sequence[Table], outputs: Sequence[Table]) -> None:
        """Sends the event of its begin."""
        self.send("START", [dataset(each) for each in inputs], [dataset(each, version=False) for each in outputs])

    def complete(self, inputs: Sequence[JsonObject], outputs: Sequence[Table]) -> None:
        """Sends that of its end, with inputs as they were read."""
        self.send("COMPLETE", inputs, [dataset(each) for each in outputs])

    def send(self, state: str, inputs: Sequence[JsonObject], outputs: Sequence[JsonObject]) -> None:
        """Sends an event."""
        post(self.uri, self.event(state, inputs, outputs))

    def event(self, state: str, inputs: Sequence[JsonObject], outputs: Sequence[JsonObject]) -> JsonObject:
        """An event of now."""
        return {
            "eventTime": datetime.fromtimestamp(_RUNTIME.now_ms() / 1000, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "producer": PRODUCER,
            "schemaURL": f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
            "eventType": state,
            "run": {
                "runId": self.run,
                "facets": {
                    "parent": facet(
                        "1-1-0/ParentRunFacet",
                        run={"runId": self.application},
                        job={"namespace": "default", "name": "nightly"},
                    ),
                    "processing_engine": facet("1-1-1/ProcessingEngineRunFacet", version="4.1.0", name="spark"),
                },
            },
            "job": {
                "namespace": "default",
                "name": self.job,
                "facets": {"jobType": facet("2-0-3/JobTypeJobFacet", jobType="SQL_JOB", integration="SPARK")},
            },
            "inputs": [*inputs],
            "outputs": [*outputs],
        }


def dataset(table: Table, *, version: bool = True) -> JsonObject:
    """A table as it was loaded."""
    where = urlsplit(table.location())
    namespace, name = (
        ("file", where.path) if where.scheme == "file" else (f"{where.scheme}://{where.netloc}", where.path)
    )
    symlink = {"namespace": "http://127.0.0.1", "name": ".".join(table.name()), "type": "TABLE"}
    facets: JsonObject = {"symlinks": facet("1-0-1/SymlinksDatasetFacet", identifiers=[symlink])}
    snapshot = table.current_snapshot()
    if version and snapshot is not None:
        facets["version"] = facet("1-0-1/DatasetVersionDatasetFacet", datasetVersion=str(snapshot.snapshot_id))
    return {"namespace": namespace, "name": name.rstrip("/"), "facets": facets}


def facet(schema: str, **said: object) -> JsonObject:
    """A facet of a schema."""
    name = schema.partition("/")[2]
    return {"_producer": PRODUCER, "_schemaURL": f"{SPEC}/facets/{schema}.json#/$defs/{name}", **said}  # type: ignore[dict-item]


def post(uri: str, event: JsonObject) -> None:
    """Sends an event, and raises `RuntimeError` unless it is taken."""
    request = urllib.request.Request(
        f"{uri}/api/v1/lineage", json.dumps(event).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        if answer.status != 201:
            raise RuntimeError(f"the event was answered with {answer.status}")
