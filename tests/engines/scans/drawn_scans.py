"""Scans of a drawn table: as Java is to plan them, and as the request that means them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.schema import Schema, columns_of, type_name
from tests.engines.scans.drawn_filters import drawn_filter
from tests.engines.scans.drawn_values import VALUES
from tests.engines.scans.filter_forms import SchemaColumn, another_case, newer, recased

UNKNOWN = 7
"""A snapshot that no table has."""


@dataclass(frozen=True)
class DrawnScan:
    java: JsonObject
    request: JsonObject
    schema_id: int
    """The schema by which its filter is read."""
    is_invalid: bool = False
    """Whether the specification refuses the request, of which Java plans a part."""

    @property
    def incremental(self) -> bool:
        return "end-snapshot-id" in self.request

    @property
    def of_present_state(self) -> bool:
        return self.request.keys().isdisjoint(("snapshot-id", "end-snapshot-id", "start-snapshot-id"))

    @property
    def min_rows(self) -> int | None:
        """How many rows the client needs at least."""
        rows = self.request.get("min-rows-requested")
        assert rows is None or isinstance(rows, int)
        return rows

    def on(self, op: str, metadata_location: str, **fields: JsonValue) -> JsonObject:
        """A request to Java for this scan."""
        return {"op": op, "metadata": metadata_location, **self.java, **fields}


def drawn_scan(random: Random, metadata: Mapping[str, Any]) -> DrawnScan:
    """A scan of the table's present state, an earlier one or an increment, with a filter. One in ten of the filters
    uses columns of other schemas, a third has the newer form."""
    scan = _of_some_state(random, metadata)
    known = {number: _columns(schema) for number, schema in _schemas(metadata).items()}
    columns = known[scan.schema_id]
    case_sensitive = random.random() < 0.8
    scan = _with_options(random, scan, [*columns], case_sensitive)
    if random.random() < 0.1:
        columns = {name: column for each in (*known.values(), columns) for name, column in each.items()}
    drawn: JsonValue = True
    if random.random() < (0.5 if scan.min_rows is not None else 0.95):
        types = {name: column.type for name, column in columns.items() if column.type in VALUES}
        drawn = drawn_filter(random, types, _identities(metadata))
        drawn = recased(random, drawn, 0.01 if case_sensitive else 0.3)
    spelt = known[scan.schema_id]
    if not case_sensitive:
        spelt = {each: column for name, column in spelt.items() for each in (name.lower(), name.upper(), name)}
    sent = newer(random, drawn, spelt) if random.random() < 0.33 else drawn
    return replace(scan, java={**scan.java, "filter": drawn}, request={**scan.request, "filter": sent})


def _schemas(metadata: Mapping[str, Any]) -> Mapping[int, Schema]:
    return {each["schema-id"]: each for each in metadata["schemas"]}


def _columns(schema: Schema) -> Mapping[str, SchemaColumn]:
    return {each.name: SchemaColumn(each.id, type_name(each.type)) for each in columns_of(schema)}


def _identities(metadata: Mapping[str, Any]) -> frozenset[str]:
    """The names, also former ones, of columns that are or were a partition field as they are."""
    fields = [field for spec in metadata["partition-specs"] for field in spec["fields"]]
    ids = {field["source-id"] for field in fields if field["transform"] == "identity"}
    schemas = map(_columns, _schemas(metadata).values())
    return frozenset(name for columns in schemas for name, column in columns.items() if column.id in ids)


def _of_some_state(random: Random, metadata: Mapping[str, Any]) -> DrawnScan:
    current = DrawnScan({}, {}, metadata["current-schema-id"])
    snapshots: Sequence[Mapping[str, Any]] = metadata.get("snapshots", [])
    draw = random.random()
    if draw < 0.7 or not snapshots:
        return current
    if draw < 0.83:
        return _increment(random, current, snapshots)
    snapshot = random.choice(snapshots)
    number, schema_id = snapshot["snapshot-id"], snapshot.get("schema-id", current.schema_id)
    refs = [*metadata.get("refs", {}).items()]
    if draw < 0.9 and refs:
        name, ref = random.choice(refs)
        number = ref["snapshot-id"]
        if ref["type"] == "branch":
            return replace(current, java={"ref": name}, request={"snapshot-id": number})
        snapshot = next(each for each in snapshots if each["snapshot-id"] == number)
        chosen: JsonObject = {"snapshot-id": number, "use-snapshot-schema": True}
        return DrawnScan({"ref": name}, chosen, snapshot.get("schema-id", current.schema_id))
    if draw < 0.95:
        return replace(current, java={"at": number}, request={"snapshot-id": number, "use-snapshot-schema": False})
    if draw < 0.96:
        return replace(current, java={"snapshot": UNKNOWN}, request={"snapshot-id": UNKNOWN})
    return DrawnScan({"snapshot": number}, {"snapshot-id": number, "use-snapshot-schema": True}, schema_id)


def _increment(random: Random, current: DrawnScan, snapshots: Sequence[Mapping[str, Any]]) -> DrawnScan:
    """Up to a snapshot, mostly from one of its ancestors, of which the oldest may have expired."""
    by_number = {each["snapshot-id"]: each for each in snapshots}
    end = random.choice([*by_number])
    ancestors: list[int] = []
    each = by_number[end].get("parent-snapshot-id")
    while each is not None:
        ancestors.append(each)
        each = by_number[each].get("parent-snapshot-id") if each in by_number else None
    draw = random.random()
    start = random.choice(ancestors) if ancestors and draw < 0.8 else random.choice([*by_number, end, UNKNOWN])
    if draw > 0.97:
        end = UNKNOWN
    request: JsonObject = {"start-snapshot-id": start, "end-snapshot-id": end}
    scan = replace(current, java={"from-snapshot": start, "to-snapshot": end}, request=request)
    if random.random() < 0.05:
        name = random.choice([*request])
        return replace(scan, request={name: request[name]}, is_invalid=True)
    return scan


def _with_options(random: Random, scan: DrawnScan, names: Sequence[str], case_sensitive: bool) -> DrawnScan:
    """What else a request may have: whether case matters, the columns with statistics, rows that are enough, columns
    that are read."""
    java: JsonObject = {**scan.java, "case-sensitive": case_sensitive}
    request: JsonObject = {**scan.request, "case-sensitive": case_sensitive}
    if random.random() < 0.3:
        chosen = random.sample(names, random.randint(0, len(names)))
        java["stats"] = [*chosen]
        request["stats-fields"] = [name if case_sensitive else another_case(random, name) for name in chosen]
    if random.random() < 0.3:
        request["min-rows-requested"] = random.choice((0, 1, 1, 1, 2, 2, 3, 5, 10, 1000))
    if random.random() < 0.1:
        request["select"] = [*random.sample(names, random.randint(1, len(names)))]
    return replace(scan, java=java, request=request)
