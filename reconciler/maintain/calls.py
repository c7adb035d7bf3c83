"""Calls of Iceberg's procedures as values, and as Spark SQL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeAlias

from arco_catalog.iceberg.json import JsonObject


class Procedure(StrEnum):
    """Iceberg's procedures that `maintain` calls for tables, in the order in which a run calls them: a rewrite leaves
    files for an expiry to delete, and not the other way round."""

    REWRITE_DATA_FILES = "rewrite_data_files"
    REWRITE_POSITION_DELETE_FILES = "rewrite_position_delete_files"
    REWRITE_MANIFESTS = "rewrite_manifests"
    EXPIRE_SNAPSHOTS = "expire_snapshots"
    REMOVE_ORPHAN_FILES = "remove_orphan_files"

    @property
    def deletes(self) -> bool:
        """Whether the procedure deletes files."""
        return self in (Procedure.EXPIRE_SNAPSHOTS, Procedure.REMOVE_ORPHAN_FILES)


@dataclass(frozen=True, slots=True)
class Time:
    """A time as an argument of a procedure, in milliseconds since 1970 in UTC."""

    ms: int


Argument: TypeAlias = str | int | bool | Time | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one of Iceberg's procedures for a table: the procedure and its arguments without the table."""

    procedure: Procedure
    arguments: Mapping[str, Argument] = field(default_factory=dict)

    def statement(self, catalog: str, table: Sequence[str]) -> str:
        """Returns the SQL statement that calls the procedure for a table. `catalog` is the name of a Spark catalog,
        `table` the levels of the namespace followed by the name. These names and every text are quoted."""
        identifier = ".".join(_identifier(part) for part in (catalog, *table))
        arguments = {"table": identifier, **self.arguments}
        argument_list = ", ".join(f"{name} => {_literal(value)}" for name, value in arguments.items())
        return f"CALL {_identifier(catalog)}.system.{self.procedure}({argument_list})"

    def to_json(self) -> JsonObject:
        """Returns the arguments as JSON for a row of `system.maintenance`, times as text in UTC."""
        return {name: _json_value(value) for name, value in self.arguments.items()}


def _identifier(name: str) -> str:
    """Quotes a name for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def _literal(value: Argument) -> str:
    """Formats an argument of a procedure for Spark SQL."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return _text(value)
        case Time(ms):
            return f"TIMESTAMP {_text(_utc(ms))}"
        case _:
            return f"map({', '.join(_text(part) for item in value.items() for part in item)})"


def _json_value(value: Argument) -> str | int | bool | JsonObject:
    """Returns an argument of a procedure as JSON, a time as text in UTC."""
    match value:
        case Time(ms):
            return _utc(ms)
        case str() | int():
            return value
        case _:
            return {**value}


def _text(value: str) -> str:
    """Quotes a text for Spark SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _utc(ms: int) -> str:
    """Formats a time for Spark SQL."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}.{ms % 1000:03} UTC"
