"""Tables with all that engines make of them: dropped with purge, restored, and purged, with a leak audit of the
store."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.engines.lake import Lake
from tests.engines.shell import Rows, Sql
from tests.support.purges import Purges
from tools.demo.server import WAREHOUSE

WINDOW = ("--purge-undrop-window", "PT1S", "--tasks", "false")
"""Options of a server whose purges begin when a test says so."""

SPARK = (
    "CREATE TABLE {t} (id BIGINT, name STRING) USING iceberg PARTITIONED BY (bucket(2, id)) {location} TBLPROPERTIES ("
    "'format-version'='{version}', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read')",
    "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
    "DELETE FROM {t} WHERE id = 1",
    "ALTER TABLE {t} CREATE BRANCH side",
    "INSERT INTO {t}.branch_side VALUES (9, 'side')",
    "UPDATE {t} SET name = 'bb' WHERE id = 2",
    "ALTER TABLE {t} CREATE TAG kept",
    "CALL {catalog}.system.compute_table_stats('{bare}')",
    "INSERT INTO {t} VALUES (5, 'e')",
)
SPARK_ROWS = [(2, "bb"), (3, "c"), (4, "d"), (5, "e")]
TRINO = (
    "CREATE TABLE {t} (id bigint, name varchar) "
    "WITH (format_version = {version}, partitioning = ARRAY['bucket(id, 2)'])",
    "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
    "DELETE FROM {t} WHERE id = 1",
    "UPDATE {t} SET name = 'bb' WHERE id = 2",
    "ANALYZE {t}",
    "INSERT INTO {t} VALUES (5, 'e')",
)


@dataclass(frozen=True)
class Session:
    """One engine's statements that make a table. Its rows are those that a bystander reads, unless the engine
    `reads_itself` those that the bystander cannot read."""

    sql: Sql
    lake: Lake
    statements: Sequence[str]
    reads_itself: bool = False

    def make(self, bare: str, version: int = 2, location: str = "") -> None:
        """Makes a table."""
        place = f"LOCATION '{location}'" if location else ""
        for statement in self.statements:
            self.sql(
                statement.format(
                    t=f"{self.lake.name}.{bare}", bare=bare, catalog=self.lake.name, version=version, location=place
                )
            )

    def rows(self, bare: str) -> Rows:
        """The rows of a table, in an order of its own."""
        if not self.reads_itself:
            return self.lake.rows(bare)
        return sorted(self.sql(f"SELECT * FROM {self.lake.name}.{bare}"), key=repr)

    @property
    def purges(self) -> Purges:
        """What comes of its drops."""
        return Purges(self.lake.server.store, WAREHOUSE)


def drop_restore_and_purge(session: Session, bare: str, neighbour: str, drop: Callable[[], object]) -> None:
    """`drop` drops the table, twice: in between it is restored, and reads as before. Then it is purged, and of the
    whole store no file is gone but its own, and of those none is left."""
    lake, purges = session.lake, session.purges
    rows, others = session.rows(bare), session.rows(neighbour)
    place, all_files = folder_of(lake, bare), purges.files()
    own = {key for key in all_files if key.startswith(f"{place}/")}
    assert len(own) > 10

    drop()
    purges.undrop(bare)
    assert session.rows(bare) == rows

    drop()
    told = purges.purged(bare)

    assert purges.files() == all_files - own
    assert told["files_deleted"] == len({key for key in own if not key.endswith(".crc")})  # what nothing names
    assert told["outside"] == 0
    assert session.rows(neighbour) == others


def folder_of(lake: Lake, bare: str) -> str:
    """What the keys of a table's files begin with."""
    location = lake.bystander.load_table(bare).location()
    return location.removeprefix(lake.server.store.replace("file:/", "file:///")).strip("/")
