"""The requests that are sent to both compared servers, the same but for the prefix of their paths."""

import http.client
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

from arco_catalog.iceberg.json import JsonObject, JsonValue
from tools.bench.peers.generator import PLACE
from tools.support.many_snapshots import snapshot
from tools.support.request_bodies import schema, set_property

SNAPSHOTS = 20
TABLES = 32
"""One for each of the most clients that there are."""
SHARED = "shared"
COLUMNS = tuple(f"c{number}" for number in range(20))
# The log of metadata files, which grows with each commit, is as long as this from the beginning.
PROPERTIES: JsonObject = {"write.metadata.previous-versions-max": str(SNAPSHOTS)}
PREPARED_BESIDE = 8
ANSWER_IN_S = 60.0


def load(base: str, table: str) -> str:
    """A request for a table's state, as it goes over the wire."""
    return f"GET {base}/namespaces/db/tables/{table} HTTP/1.1\r\nHost: localhost\r\n\r\n"


def commit(base: str, table: str) -> str:
    """A request that sets one property, to another number each time."""
    body = json.dumps(set_property("bench.number", PLACE))
    return (
        f"POST {base}/namespaces/db/tables/{table} HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    )


@dataclass(frozen=True, slots=True)
class Catalog:
    """The catalog of a compared server: its URI, and the prefix of its paths."""

    uri: str
    base: str

    def ask(self, method: str, path: str, body: JsonValue = None) -> JsonObject:
        """One request, on a connection of its own. Raises `RuntimeError` unless the answer is 200."""
        parts = urlsplit(self.uri)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=ANSWER_IN_S)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, self.base + path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{method} {self.uri}{path}: {answer.status} {text[:500]!r}")
            found: JsonObject = json.loads(text)
            return found
        finally:
            connection.close()

    def prepare(self) -> None:
        """Makes the tables, each by as many commits as it has snapshots, as an engine would."""
        self.ask("POST", "/namespaces", {"namespace": ["db"]})
        with ThreadPoolExecutor(PREPARED_BESIDE) as threads:
            list(threads.map(self.make_table, [*(f"t{number}" for number in range(TABLES)), SHARED]))

    def make_table(self, name: str) -> None:
        """One table with its snapshots."""
        wanted: JsonObject = {"name": name, "schema": schema(*COLUMNS), "properties": PROPERTIES}
        created = self.ask("POST", "/namespaces/db/tables", wanted)["metadata"]
        if not isinstance(created, Mapping):
            raise RuntimeError("no metadata")
        newest: JsonValue = None
        for number in range(1, SNAPSHOTS + 1):
            made: JsonObject = {**snapshot(number, str(created["location"])), "timestamp-ms": int(time.time() * 1000)}
            if newest is not None:
                made["parent-snapshot-id"] = newest
            self.ask("POST", f"/namespaces/db/tables/{name}", append(made, newest))
            newest = made["snapshot-id"]

    def size_of_a_load(self) -> int:
        """Bytes of a table's metadata, as JSON without blanks. Raises `RuntimeError` if it is not what was prepared."""
        metadata = self.ask("GET", "/namespaces/db/tables/t0")["metadata"]
        if not isinstance(metadata, Mapping) or not isinstance(snapshots := metadata["snapshots"], Sequence):
            raise RuntimeError("no metadata")
        if len(snapshots) != SNAPSHOTS:
            raise RuntimeError(f"{len(snapshots)} snapshots instead of {SNAPSHOTS}")
        return len(json.dumps(metadata, separators=(",", ":")))


def append(made: JsonObject, after: JsonValue) -> JsonObject:
    """A commit of one snapshot to main, as engines send it."""
    head: JsonObject = {"type": "branch", "ref-name": "main", "snapshot-id": made["snapshot-id"]}
    return {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": after}],
        "updates": [{"action": "add-snapshot", "snapshot": made}, {"action": "set-snapshot-ref", **head}],
    }
