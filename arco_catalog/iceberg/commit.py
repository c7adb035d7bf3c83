"""A commit to a table: its requirements and its updates, read from a request (REST spec, `CommitTableRequest`)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Generic, TypeVar

from arco_catalog.iceberg.checkpoint import Checkpoint, no_deadline
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.properties import REBASE
from arco_catalog.iceberg.requirements import (
    TABLE_REQUIREMENTS,
    AssertCreate,
    AssertRefSnapshotId,
    TableRequirement,
)
from arco_catalog.iceberg.shapes import OBJECT, STRING, Fields, check, list_of, quoted
from arco_catalog.iceberg.updates import TABLE_UPDATES, AddSnapshot, TableUpdate
from storage_backends.lazy_dataclass import dataclass

T = TypeVar("T", covariant=True)
U = TypeVar("U")

_ENGINE = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,39}(/[A-Za-z0-9.+_-]{1,40})?")

MAX_UPDATES = 50_000
"""Maximum updates of one commit: an expiry sends one for each snapshot to remove, and one for its statistics."""
MAX_REQUIREMENTS = 50_000
"""Maximum requirements of one commit: a client sends one for each ref, and a few others."""
REFS_COMPARED = 16
"""Maximum requirements on refs that are compared with a pointer while a commit waits: a writer needs one."""
SUMMARIES_READ = 100
"""Maximum snapshots of one commit whose summaries are read for the engine's name: all are of one engine."""

REBASE_FIELD = "arco.append"
"""The field of a snapshot's summary by which a commit requests to be rebased."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A client's commit to one table: the requirements and updates in the request's order; and the names by which the
    request has them in `type` and `action`, in lower case."""

    requirements: tuple[TableRequirement, ...]
    updates: tuple[TableUpdate, ...]
    requirement_types: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()

    @property
    def creates(self) -> bool:
        """Whether the commit creates its table: it has the requirement that the table does not exist
        (`assert-create`)."""
        return any(isinstance(requirement, AssertCreate) for requirement in self.requirements)


def parse_commit(body: JsonValue, checkpoint: Checkpoint = no_deadline) -> Commit:
    """Reads a `CommitTableRequest`, except its identifier.

    Raises what `checkpoint` raises, and `BadRequest` for more requirements or updates than a commit may have; for
    unknown types of requirements or updates, which one error lists before any other check of them; for a value that the
    specification does not allow, with the place; and for other requirements beside `assert-create`.
    """
    commit = Commit(*parse_changes(body, TABLE_REQUIREMENTS, TABLE_UPDATES, checkpoint))
    if commit.creates:
        others = [name for name in commit.requirement_types if name != "assert-create"]
        if others:
            raise BadRequest(
                f"Invalid create requirements: {', '.join(others)}: a commit with assert-create may have no others"
            )
    return commit


def parse_changes(
    body: JsonValue,
    requirements: Mapping[str, Callable[[Fields], T]],
    updates: Mapping[str, Callable[[Fields], U]],
    checkpoint: Checkpoint,
) -> tuple[tuple[T, ...], tuple[U, ...], tuple[str, ...], tuple[str, ...]]:
    """Reads the body of a commit to a table or view by these parsers of requirements and updates. Returns the
    requirements, the updates, and the names of both, in the order of the request. Raises as `parse_commit` does, but
    lets other requirements through with `assert-create`."""
    request = Fields(check(OBJECT, body, "request"))
    required = NamedObjects.read(request, "requirements", "type", requirements, MAX_REQUIREMENTS)
    changed = NamedObjects.read(request, "updates", "action", updates, MAX_UPDATES)
    refuse_unknown(required, changed)
    return required.parsed(checkpoint), changed.parsed(checkpoint), required.names, changed.names


def check_counts(*changes: JsonObject) -> None:
    """Raises `BadRequest` if all changes of a request together have more requirements, or more updates, than one commit
    may have. Reads none of them."""
    for field, limit in (("requirements", MAX_REQUIREMENTS), ("updates", MAX_UPDATES)):
        count = sum(len(entries) for change in changes if isinstance(entries := change.get(field), list))
        if count > limit:
            raise BadRequest(
                f"A commit to one table or more may have at most {limit:,} {field}, not {count:,}: make more commits"
            )


def added_snapshot_ids(commit: Commit) -> tuple[int, ...]:
    """Returns the ids of the snapshots that the commit adds, in its order."""
    return tuple(update.snapshot["snapshot-id"] for update in commit.updates if isinstance(update, AddSnapshot))


def required_refs(commit: Commit) -> tuple[AssertRefSnapshotId, ...]:
    """Returns the first `REFS_COMPARED` requirements of a commit on snapshots of branches and tags, or all if there are
    fewer."""
    found = (each for each in commit.requirements if isinstance(each, AssertRefSnapshotId))
    return tuple(islice(found, REFS_COMPARED))


def requests_rebase(commit: Commit) -> bool:
    """Whether a commit of two updates adds a snapshot whose summary requests that the append is rebased. Commits with
    more updates do not qualify (docs/design/appends.md)."""
    return len(commit.updates) == 2 and any(
        isinstance(update, AddSnapshot) and update.snapshot.get("summary", {}).get(REBASE_FIELD) == REBASE
        for update in commit.updates
    )


def engine_of(commit: Commit) -> str | None:
    """Returns the engine that made the snapshots of the commit, by the first of their summaries that names it: Spark
    and Flink write their names and versions, Trino its query. None if none of the first `SUMMARIES_READ` summaries
    names an engine, or only in texts that are no name and version."""
    summaries = (update.snapshot.get("summary") for update in commit.updates if isinstance(update, AddSnapshot))
    for summary in islice(summaries, SUMMARIES_READ):
        if isinstance(summary, dict):
            named = [summary.get(field) for field in ("engine-name", "engine-version")]
            engine = "/".join(part for part in named if isinstance(part, str))
            if _ENGINE.fullmatch(engine):
                return engine
            if "trino_query_id" in summary:
                return "trino"
    return None


@dataclass(frozen=True)
class NamedObjects(Generic[T]):
    """An array of a request, such as `updates`, whose objects each have a name that selects the parser of the rest.
    `readers` has the parsers by the known names."""

    field: str
    entries: Sequence[tuple[str, Fields]]
    readers: Mapping[str, Callable[[Fields], T]]

    @classmethod
    def read(
        cls, request: Fields, field: str, by: str, readers: Mapping[str, Callable[[Fields], T]], limit: int
    ) -> "NamedObjects[T]":
        """Returns the array under `field`, empty if it is missing or null, with the name of each object under `by`, in
        lower case. Raises `BadRequest` for an invalid value, and for more than `limit` objects."""
        objects: list[JsonObject] = request.optional(field, list_of(OBJECT)) or []
        if len(objects) > limit:
            raise BadRequest(f"A commit may have at most {limit:,} {field}, not {len(objects):,}: make more commits")
        places = (Fields(values, f"{field}[{position}]") for position, values in enumerate(objects))
        return cls(field, [(place.required(by, STRING).lower(), place) for place in places], readers)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the objects of an array of a request, in lower case, in order."""
        return tuple(name for name, _ in self.entries)

    @property
    def unknown(self) -> Iterator[str]:
        """The names, in lower case, of objects of an array of a request that have no parser, each once."""
        return (name for name in dict.fromkeys(self.names) if name not in self.readers)

    def parsed(self, checkpoint: Checkpoint) -> tuple[T, ...]:
        """Returns the objects, each read by the parser of its name. Raises `BadRequest` for an object that does not
        match, and what `checkpoint` raises, which is called before every object. All names must be known
        (`refuse_unknown`)."""
        meant: list[T] = []
        for name, place in self.entries:
            checkpoint()
            meant.append(self.readers[name](place))
        return tuple(meant)


def refuse_unknown(*fields: NamedObjects[object]) -> None:
    """Raises one `BadRequest` that lists every requirement and update whose name this catalog does not know."""
    problems = [
        f"{field.field}: {', '.join(map(quoted, unknown))}" for field in fields if (unknown := list(field.unknown))
    ]
    if problems:
        raise BadRequest(f"Cannot commit: unknown {'; unknown '.join(problems)}")
