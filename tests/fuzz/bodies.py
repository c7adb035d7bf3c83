"""Bodies that are right, or would be for another state of the catalog: what requests are mutated from."""

from collections.abc import Mapping
from typing import cast

from hypothesis import strategies as st

from arco_catalog.iceberg.json import JsonObject, JsonValue
from tests.fuzz.native_bodies import native_bodies
from tests.fuzz.services import KEPT, KEPT_VIEW, NAMESPACES, TABLES, VIEWS, Address
from tests.iceberg import strategies
from tests.iceberg.values import (
    OTHER_UUID,
    TWO_COLUMNS,
    UUID,
    Object,
    array,
    column,
    mapping,
    order,
    schema,
    spec,
    struct,
)
from tools.support.request_bodies import view_request

Bodies = st.SearchStrategy[JsonObject]

FRESH = ("n0", "n1", "n2", "ü/n%2F")
"""Names that nothing has at first: a few, so that requests meet each other's."""

SCHEMAS = [
    TWO_COLUMNS,
    schema(column(1, "id", required=True), identifiers=[1]),
    schema(
        column(1, "id", required=True), column(2, "s", struct(column(3, "l", array(4)), column(5, "m", mapping(6, 7))))
    ),
    schema(column(1, "id", required=True), column(2, "at", "timestamptz"), column(3, "d", "decimal(9,2)", doc="d")),
    schema(column(1, "id", "variant"), column(2, "at", "timestamp_ns")),
    schema({**column(1, "id", "int"), "initial-default": 1, "write-default": 2}, column(2, "at", "timestamptz")),
]
names = st.sampled_from(FRESH)


def uniquely(address: Address) -> st.SearchStrategy[str]:
    """Locations that are allowed."""
    return st.sampled_from(["a", "a/b", "c", "d%20e", "é"]).map(lambda name: f"{address.root}/{name}")


def table_updates(address: Address) -> Bodies:
    """Each kind of update, for the tables that there are."""

    def here(update: Object) -> JsonObject:
        if update["action"] == "add-snapshot":
            snapshot = update["snapshot"]
            time = {"timestamp-ms": address.now_ms + snapshot["snapshot-id"], "schema-id": 0}
            return {**update, "snapshot": {**snapshot, **time, "manifest-list": f"{address.root}/m.avro"}}
        for field in ("statistics", "partition-statistics"):
            if field in update:
                file = update[field]
                return {**update, field: {**file, "statistics-path": f"{address.root}/{file['statistics-path']}"}}
        return update

    moved = uniquely(address).map(lambda location: {"action": "set-location", "location": location})
    assigned = st.sampled_from([UUID, OTHER_UUID]).map(lambda uuid: {"action": "assign-uuid", "uuid": uuid})
    known = strategies.updates.filter(lambda update: update["action"] != "set-location").map(here)
    return st.one_of(known, known, known, cast(Bodies, moved), cast(Bodies, assigned))


def _refs() -> Bodies:
    return st.fixed_dictionaries(
        {
            "type": st.just("assert-ref-snapshot-id"),
            "ref": st.sampled_from(["main", "b", "t", "none"]),
            "snapshot-id": st.sampled_from([None, 1, 2, 3]),
        }
    )


def _ids(name: str, field: str, *likely: int) -> Bodies:
    return st.fixed_dictionaries({"type": st.just(name), field: st.sampled_from([*likely, *likely, -1, 5])})


table_requirements: Bodies = st.one_of(
    _refs(),
    _ids("assert-last-assigned-field-id", "last-assigned-field-id", 2),
    _ids("assert-current-schema-id", "current-schema-id", 0),
    _ids("assert-last-assigned-partition-id", "last-assigned-partition-id", 999, 1000),
    _ids("assert-default-spec-id", "default-spec-id", 0),
    _ids("assert-default-sort-order-id", "default-sort-order-id", 0),
    st.sampled_from([UUID, OTHER_UUID]).map(lambda uuid: {"type": "assert-table-uuid", "uuid": uuid}),
    st.just({"type": "assert-create"}),
)


def commits(address: Address, max_size: int = 3) -> Bodies:
    """A commit of few updates: each more is one more that may be refused."""
    requirements = st.lists(table_requirements, max_size=1)
    return st.builds(_commit, requirements, st.lists(table_updates(address), max_size=max_size)) | creations_by_commit(
        address
    )


def _commit(requirements: list[JsonValue], updates: list[JsonValue]) -> JsonObject:
    return {"requirements": requirements, "updates": updates}


def creations_by_commit(address: Address) -> Bodies:
    """What an engine sends to create a table that it staged."""

    def commit(columns: JsonObject, location: str) -> JsonObject:
        updates: list[JsonValue] = [
            {"action": "assign-uuid", "uuid": OTHER_UUID},
            {"action": "upgrade-format-version", "format-version": 3},
            {"action": "add-schema", "schema": columns},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": spec()},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": order()},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": location},
        ]
        return {"requirements": [{"type": "assert-create"}], "updates": updates}

    return st.builds(commit, st.sampled_from(SCHEMAS), uniquely(address))


def table_creations(address: Address) -> Bodies:
    return st.fixed_dictionaries(
        {"name": names, "schema": st.sampled_from(SCHEMAS)},
        optional={
            "partition-spec": st.sampled_from([spec(), spec((1, "bucket[4]", "b")), spec((1, "identity", "id"))]),
            "write-order": st.sampled_from([order(), {"order-id": 1, **order((1, "identity"))}]),
            "properties": st.dictionaries(
                st.sampled_from(["format-version", "a", "write.metadata.compression-codec"]),
                st.sampled_from(["1", "2", "3", "gzip"]),
                max_size=2,
            ),
            "stage-create": st.booleans(),
            "location": uniquely(address),
        },
    )


def view_creations(address: Address) -> Bodies:
    return st.builds(
        lambda name, more: {**view_request(name), **more},
        names,
        st.fixed_dictionaries({}, optional={"location": uniquely(address)}),
    )


def _version(number: int, dialect: str) -> JsonObject:
    return {
        "version-id": number,
        "timestamp-ms": 1,
        "schema-id": -1 if number % 2 else 0,
        "summary": {"engine-name": dialect},
        "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": f"select {number} as x", "dialect": dialect}],
    }


def view_commits(address: Address) -> Bodies:
    updates: Bodies = st.one_of(
        st.sampled_from(SCHEMAS).map(lambda columns: {"action": "add-schema", "schema": columns}),
        st.builds(_version, st.integers(1, 4), st.sampled_from(["spark", "trino"])).map(
            lambda version: {"action": "add-view-version", "view-version": version}
        ),
        st.sampled_from([-1, 1, 2]).map(lambda at: {"action": "set-current-view-version", "view-version-id": at}),
        st.just({"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "true"}}),
        st.just({"action": "remove-properties", "removals": ["a"]}),
        uniquely(address).map(lambda location: {"action": "set-location", "location": location}),
        st.just({"action": "upgrade-format-version", "format-version": 1}),
        st.just({"action": "assign-uuid", "uuid": UUID}),
    )
    requirements: Bodies = st.sampled_from([{"type": "assert-view-uuid", "uuid": UUID}])
    return st.builds(_commit, st.lists(requirements, max_size=1), st.lists(updates, max_size=3))


def _identifier(namespace: tuple[str, ...], name: str) -> JsonObject:
    return {"namespace": [*namespace], "name": name}


def _renames(relations: list[tuple[tuple[str, ...], str]]) -> Bodies:
    free = st.builds(_identifier, st.sampled_from(NAMESPACES), names)
    return st.fixed_dictionaries(
        {"source": st.sampled_from(relations).map(lambda each: _identifier(*each)), "destination": free}
    )


@st.composite
def transactions(draw: st.DrawFn, address: Address) -> JsonObject:
    """Commits to different tables, creations among them."""
    tables = draw(st.lists(st.sampled_from(TABLES), min_size=1, max_size=3, unique=True))
    changes: list[JsonValue] = [{"identifier": _identifier(*each), **draw(commits(address, 1))} for each in tables]
    if draw(st.integers(0, 3)) == 3:
        changes.append({"identifier": _identifier(("empty",), draw(names)), **draw(creations_by_commit(address))})
    return {"table-changes": changes}


def namespace_creations() -> Bodies:
    parents = st.sampled_from([(), ("db",), ("empty",)])
    return st.builds(
        lambda parent, name, properties: {"namespace": [*parent, name], "properties": properties},
        parents,
        names,
        st.dictionaries(st.sampled_from(["a", "location", "owner"]), st.sampled_from(["x", "y"]), max_size=2),
    )


def property_changes() -> Bodies:
    return st.fixed_dictionaries(
        {
            "removals": st.lists(st.sampled_from(["a", "b"]), max_size=1),
            "updates": st.dictionaries(st.sampled_from(["c", "owner"]), st.sampled_from(["x", "y"]), max_size=2),
        }
    )


def registrations(address: Address, file: str) -> Bodies:
    return st.fixed_dictionaries(
        {"name": names | st.just("t"), "metadata-location": st.just(f"{address.root}/{file}")},
        optional={"overwrite": st.booleans()},
    )


def resolutions() -> Bodies:
    """Loads of several tables and views, some of which are not there."""
    known = st.sampled_from([*TABLES, *VIEWS, (("db",), "none"), (("none",), "t")])
    item: Bodies = st.fixed_dictionaries(
        {"identifier": known.map(lambda named: [*named[0], named[1]])},
        optional={"etag": st.sampled_from(["*", '""', "x"]), "snapshots": st.sampled_from(["all", "refs"])},
    )
    relations: st.SearchStrategy[JsonValue] = st.lists(item, min_size=1, max_size=4)
    return st.fixed_dictionaries({"relations": relations}, optional={"consistent": st.booleans()})


def event_queries() -> Bodies:
    """Requests for events, most of which are from the beginning of the feed."""
    types = st.sampled_from(["create-table", "update-table", "drop-view", "x-gap", "none"])
    return st.fixed_dictionaries(
        {},
        optional={
            "continuation-token": st.sampled_from([None, "", "x", "1.1.x"]),
            "page-size": st.integers(1, 200),
            "operation-types": st.lists(types, max_size=3),
            "catalog-objects-by-name": st.lists(st.sampled_from([["db"], ["db", "t"], ["none"]]), max_size=2),
            "object-types": st.lists(st.sampled_from(["namespace", "table", "view"]), max_size=2),
            "since-timestamp-ms": st.integers(0, 2**41),
        },
    )


METRICS: JsonObject = {
    "report-type": "scan-report",
    "table-name": "t",
    "snapshot-id": 1,
    "filter": {"type": "true"},
    "schema-id": 0,
    "projected-field-ids": [1],
    "projected-field-names": ["id"],
    "metrics": {"total-planning-duration": {"count": 1, "time-unit": "nanoseconds", "total-duration": 1}},
}


def bodies(address: Address) -> Mapping[str, Bodies]:
    """By the end of the operation's path; for an operation without one here, by the specification."""
    return {
        "/namespaces": namespace_creations(),
        "/properties": property_changes(),
        "/tables": table_creations(address),
        "/register": registrations(address, KEPT),
        "/tables/{table}": commits(address),
        **({"/tables/{table}/tasks": st.just({"plan-task": address.plan_task})} if address.plan_task else {}),
        "/unregister": st.just({}),
        "/tables/rename": _renames([*TABLES]),
        "/metrics": st.just(METRICS),
        "/commit": transactions(address),
        "/resolve": resolutions(),
        "/events": event_queries(),
        "/views": view_creations(address),
        "/register-view": registrations(address, KEPT_VIEW),
        "/views/{view}": view_commits(address),
        "/views/rename": _renames([*VIEWS]),
        **native_bodies(address, names),
    }


def body_of(label: str, address: Address) -> Bodies | None:
    """Right bodies for an operation, if there are any here."""
    if not label.startswith(("POST ", "PUT ")):
        return None
    known = bodies(address)
    return next((known[end] for end in sorted(known, key=len, reverse=True) if label.endswith(end)), None)
