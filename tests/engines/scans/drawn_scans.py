"""Scans of a drawn table: as Java is to plan them, and as the request that means them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from arco_catalog.iceberg.json import JsonObject, JsonValue
from tests.engines.scans.drawn_filters import drawn_filter
from tests.engines.scans.drawn_tables import DrawnTable


@dataclass(frozen=True)
class DrawnScan:
    java: JsonObject
    request: JsonObject
    schema_id: int
    """The schema by which its filter is read."""

    @property
    def incremental(self) -> bool:
        return "end-snapshot-id" in self.request

    @property
    def of_present_state(self) -> bool:
        return self.request.keys().isdisjoint(("snapshot-id", "end-snapshot-id"))

    def on(self, op: str, metadata_location: str, **fields: JsonValue) -> JsonObject:
        """A request to Java for this scan."""
        return {"op": op, "metadata": metadata_location, **self.java, **fields}


def drawn_scan(random: Random, table: DrawnTable, metadata: Mapping[str, Any]) -> DrawnScan:
    """A scan of the table's present state, one of five of an earlier one or of an increment, with a filter."""
    columns = {**table.columns, **table.former} if random.random() < 0.1 else table.columns
    drawn: JsonValue = drawn_filter(random, columns, table.identities)
    case_sensitive = random.random() < 0.9
    java: JsonObject = {"filter": drawn, "case-sensitive": case_sensitive}
    request: JsonObject = {"filter": drawn, "case-sensitive": case_sensitive}
    current = metadata["current-schema-id"]
    snapshots: Sequence[Mapping[str, Any]] = metadata.get("snapshots", [])
    draw = random.random()
    if draw < 0.8 or not snapshots:
        return DrawnScan(java, request, current)
    snapshot = random.choice(snapshots)
    number = snapshot["snapshot-id"]
    if draw < 0.87:
        chosen: JsonObject = {"snapshot-id": number, "use-snapshot-schema": True}
        return DrawnScan({**java, "snapshot": number}, {**request, **chosen}, snapshot.get("schema-id", current))
    branches = [name for name, ref in metadata.get("refs", {}).items() if ref["type"] == "branch"]
    if draw < 0.92 and branches:
        branch = random.choice(branches)
        number = metadata["refs"][branch]["snapshot-id"]
        return DrawnScan({**java, "ref": branch}, {**request, "snapshot-id": number}, current)
    start = random.choice(snapshots)["snapshot-id"]
    increment: JsonObject = {"start-snapshot-id": start, "end-snapshot-id": number}
    return DrawnScan({**java, "from-snapshot": start, "to-snapshot": number}, {**request, **increment}, current)
