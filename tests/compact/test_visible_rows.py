"""A grant on a namespace shows no rows about what was dropped from another namespace that had its name before
(docs/design/access.md#rule-10). SQLite answers here; tests/engines has the engines of readers."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence

import pytest

from reconciler.system import tables, visible
from reconciler.system.definition import SystemTable
from reconciler.system.iceberg import schema_of

Value = str | int | None
Row = Mapping[str, Value]


def event(sequence: int, kind: str, namespace: str, entity: str | None = None, to: str | None = None) -> Row:
    """A row of `catalog_events`."""
    return {"sequence": sequence, "kind": kind, "namespace": namespace, "entity": entity, "to_namespace": to}


HISTORY = (
    event(1, "create-namespace", "hr"),
    event(2, "create-table", "hr", "old"),
    event(3, "create-table", "other", "moved"),
    event(4, "create-table", "hr", "restored"),
    event(5, "drop-table", "hr", "old"),
    event(6, "drop-table", "hr", "unheard"),
    event(7, "drop-table", "hr", "restored"),
    event(8, "drop-namespace", "hr"),
    event(9, "create-namespace", "hr"),
    event(10, "create-table", "hr", "new"),
    event(11, "rename-table", "other", "moved", "hr"),
    event(12, "undrop", "hr", "restored"),
)
"""`unheard` was created before the history that is kept, `made` by a transaction."""
COMMITS = [("old", "hr"), ("unheard", "hr"), ("new", "hr"), ("moved", "other"), ("restored", "hr"), ("made", "hr")]


class MaxBy:
    """`max_by` of the engines: the value beside the greatest of another column."""

    def __init__(self) -> None:
        self.found: tuple[int, Value] | None = None

    def step(self, value: Value, by: int) -> None:
        self.found = (by, value) if self.found is None else max(self.found, (by, value), key=lambda pair: pair[0])

    def finalize(self) -> Value:
        return None if self.found is None else self.found[1]


@pytest.fixture
def lake() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.create_aggregate("max_by", 2, MaxBy)  # type: ignore[arg-type]
    connection.create_function("concat", 2, lambda one, other: one + other)
    connection.create_function("random", 0, lambda: 0.5)
    connection.execute("ATTACH ':memory:' AS lake")
    for table in (tables.CATALOG_EVENTS, tables.COMMITS, tables.READERS):
        connection.execute(
            f"CREATE TABLE lake.{table.name} ({', '.join(each.name for each in schema_of(table).fields)})"
        )
    fill(connection, tables.CATALOG_EVENTS, HISTORY)
    commits: list[Row] = [{"entity": entity, "namespace": space, "entity_type": "table"} for entity, space in COMMITS]
    fill(connection, tables.COMMITS, commits)
    yield connection
    connection.close()


def fill(connection: sqlite3.Connection, table: SystemTable, rows: Sequence[Row]) -> None:
    for row in rows:
        marks = ", ".join("?" for _ in row)
        connection.execute(f"INSERT INTO lake.{table.name} ({', '.join(row)}) VALUES ({marks})", [*row.values()])


def seen(connection: sqlite3.Connection) -> set[str]:
    """The entities of the commits that a reader is shown."""
    [shown] = [each for each in visible.VISIBLE_TABLES if each.table is tables.COMMITS]
    sql = shown.question.text("lake.").replace("current_user", "'reader'")
    return {str(entity) for [entity] in connection.execute(f"SELECT entity FROM ({sql}) v")}


@pytest.mark.parametrize(
    ("namespace", "entity", "expected"),
    [
        ("hr", None, {"new", "moved", "restored", "made"}),
        (None, None, {entity for entity, _ in COMMITS}),
        ("hr", "old", {"old"}),
        ("other", None, set()),
    ],
    ids=["the namespace", "the catalog", "the table", "another namespace"],
)
def test_a_reader_sees_what_was_never_in_an_earlier_namespace(
    lake: sqlite3.Connection, namespace: str | None, entity: str | None, expected: set[str]
) -> None:
    grant: Row = {"principal": "reader", "entity_type": "table", "namespace": namespace, "entity": entity}
    fill(lake, tables.READERS, [grant])
    assert seen(lake) == expected
