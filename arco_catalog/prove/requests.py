"""The requests of operations, as the Iceberg REST specification has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from arco_catalog.prove.history import Kind, Operation, TableState
from arco_catalog.prove.snapshots import snapshot_id

CREATOR, COMMITS = "prove.creator", "prove.commits"
"""The properties of a table that have the id of its creation, and those of its commits."""

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request: the path below the catalog's URI, with the query; a body of JSON, or None."""

    method: str
    path: str
    body: Json | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Base:
    """What a client knows of a table: the state that it saw, and what the next snapshot needs besides."""

    state: TableState
    location: str
    sequence_number: int
    updated_ms: int
    etag: str = ""


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths of one namespace in a catalog whose prefix, with the leading slash, is `prefix`."""

    prefix: str
    namespace: str

    @property
    def namespaces(self) -> str:
        """The path of namespaces."""
        return f"/v1{self.prefix}/namespaces"

    @property
    def of_namespace(self) -> str:
        """The path of this namespace."""
        return f"{self.namespaces}/{quote(self.namespace, safe='')}"

    @property
    def tables(self) -> str:
        """The path of the tables in this namespace."""
        return f"{self.of_namespace}/tables"

    def table(self, name: str) -> str:
        """Returns the path of a table."""
        return f"{self.tables}/{quote(name, safe='')}"


def request_of(operation: Operation, paths: Paths, bases: Sequence[Base], now_ms: int) -> Request:
    """Returns the request of an operation. A commit has a base for each of its tables; a load may have one, whose ETag
    is its condition, unless that is empty."""
    names = operation.names
    match operation.kind:
        case Kind.CREATE:
            return Request("POST", paths.tables, _creation(operation))
        case Kind.COMMIT:
            return Request("POST", paths.table(names[0]), _commit(operation.id, paths, names[0], bases[0], now_ms))
        case Kind.TRANSACTION:
            changes = [_commit(operation.id, paths, *change, now_ms) for change in zip(names, bases, strict=True)]
            return Request("POST", f"/v1{paths.prefix}/transactions/commit", {"table-changes": changes})
        case Kind.DROP:
            return Request("DELETE", f"{paths.table(names[0])}?purgeRequested=false")
        case Kind.RENAME:
            source, target = (_identifier(paths, name) for name in names)
            return Request("POST", f"/v1{paths.prefix}/tables/rename", {"source": source, "destination": target})
        case Kind.LOAD:
            condition = {"If-None-Match": bases[0].etag} if bases and bases[0].etag else {}
            return Request("GET", paths.table(names[0]), headers=condition)
        case Kind.EXISTS:
            return Request("HEAD", paths.table(names[0]))
        case Kind.LIST:
            return Request("GET", paths.tables)


def _creation(operation: Operation) -> Json:
    """Returns the request body that creates a table of one column, with the operation's id as the property
    `CREATOR`."""
    column = {"id": 1, "name": "id", "type": "long", "required": False}
    schema = {"type": "struct", "schema-id": 0, "fields": [column]}
    return {  # Nessie refuses a request without `stage-create`
        "name": operation.names[0],
        "schema": schema,
        "stage-create": False,
        "properties": {CREATOR: operation.id},
    }


def _commit(commit: str, paths: Paths, name: str, base: Base, now_ms: int) -> Json:
    """Returns the body of a commit that adds a snapshot to the state that the client read, makes it the current one of
    `main`, and appends the commit's id to a property. It requires that table and current snapshot are the ones that
    were read."""
    state = base.state
    added = snapshot_id(state.creator, commit)
    snapshot: dict[str, object] = {
        "snapshot-id": added,
        "sequence-number": base.sequence_number + 1,
        "timestamp-ms": max(now_ms, base.updated_ms + 1),
        "manifest-list": f"{base.location}/metadata/snap-{added}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    if state.snapshot is not None:
        snapshot["parent-snapshot-id"] = state.snapshot
    return {
        "identifier": _identifier(paths, name),
        "requirements": [
            {"type": "assert-table-uuid", "uuid": state.uuid},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": state.snapshot},
        ],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": added},
            {"action": "set-properties", "updates": {COMMITS: " ".join((*state.commits, commit))}},
        ],
    }


def _identifier(paths: Paths, name: str) -> Json:
    """Returns the identifier of a table in the program's namespace, as JSON."""
    return {"namespace": [paths.namespace], "name": name}
