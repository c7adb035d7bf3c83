"""`arco history`: lists the operations on the registry of a catalog or realm, such as creations, renames, drops and
grants, with their authors and times."""

from collections.abc import Callable, Sequence

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_author, format_text, format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_catalog, find_realm_registry
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.output import table
from arco_catalog.cli.session import carry_out, open_session
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.as_of import registry_at
from arco_catalog.operations.history import history
from arco_catalog.operations.history_page import HistoryFilter
from arco_catalog.planning.names import format_identifier
from arco_catalog.state.characters import escaped
from arco_catalog.state.fields import mapping, optional_text, texts
from arco_catalog.state.runtime import is_ulid

HEADINGS = ("TIME (UTC)", "COMMIT", "WHAT", "NAME", "BY", "ENTITY")
WIDE_ONLY = ("ENTITY",)


def run(
    options: CatalogOptions,
    limit: int,
    *,
    at_ms: int | None = None,
    table_name: str | None = None,
    of_realm: bool,
    own: bool,
    as_json: bool,
    wide: bool,
) -> int:
    """Displays the newest `limit` operations on the registry of a catalog, or with `of_realm` of the realm; with
    `at_ms` only those up to that time, with `table_name` only those on this name, or on the entity with this id; with
    `own` also commits that the catalog makes for itself, such as fences. Returns 0. Raises `CliError`."""
    selects = _selection(table_name)

    async def read() -> list[JsonObject]:
        found: list[JsonObject] = []
        async with open_session(options, "history", find_realm_registry if of_realm else find_catalog) as session:
            newest = None if at_ms is None else await registry_at(session, at_ms)
            async for operation in history(session, own=own, newest=newest):
                if selects(operation):
                    found.append(operation)
                if len(found) == limit:
                    break
        return found

    found = carry_out(read)
    if table_name is not None and not found and not as_json:
        until = "" if at_ms is None else f" up to {format_time(at_ms)} (UTC)"
        print(f"The history, which is kept for a time, has nothing about {escaped(table_name)}{until}.")
        return 0
    print(json_text([*found]) if as_json else as_table(found, at_ms=at_ms, of_realm=of_realm, wide=wide))
    return 0


def _selection(name: str | None) -> Callable[[JsonObject], bool]:
    """Returns the predicate that selects the operations on a name, or on the entity if the name is an id; for None all
    operations. Raises `CliError` for a malformed name."""
    if name is not None and is_ulid(name):
        return lambda operation: operation.get("entity") == name
    return (HistoryFilter() if name is None else HistoryFilter(*parse_identifier(name))).selects


def as_table(
    found: Sequence[JsonObject], *, at_ms: int | None = None, of_realm: bool = False, wide: bool = False
) -> str:
    """Formats one line for each operation, under headings; `wide` prints all columns. Without operations, formats one
    sentence: the catalog, or with `of_realm` the realm, has none, or with `at_ms` had none at that time."""
    if not found:
        subject = "This realm" if of_realm else "This catalog"
        return f"{subject} has no history." if at_ms is None else f"{subject} had no history at {format_time(at_ms)}."
    return table(HEADINGS, [*map(_columns, found)], wide=wide, wide_only=WIDE_ONLY)


def _columns(operation: JsonObject) -> tuple[str, ...]:
    """Returns an operation's row in the table: time, sequence number, kind (with a note of a purge), names, author and
    entity."""
    purged = " (purge)" if operation.get("purge") is True else ""
    return (
        format_time(operation.get("at_ms")),
        format_text(operation.get("sequence")),
        format_text(operation.get("kind")) + purged,
        format_names(operation),
        format_author(operation),
        format_text(operation.get("entity")),
    )


def format_names(operation: JsonObject) -> str:
    """Formats the object of an operation: its name, both names of a rename, or for a grant the role with its holder or
    its privilege. A dash if the operation has no name."""
    to, grant = mapping(operation, "to"), _grant(operation)
    if grant is not None:
        return grant
    return f"{_name(operation)} -> {_name(to)}" if to else _name(operation)


def _grant(operation: JsonObject) -> str | None:
    """Formats a role with its holder, or a role with the privilege that it has and the object of the privilege; None
    for an operation without a role."""
    role = optional_text(operation, "role")
    if role is None:
        return None
    holder = optional_text(operation, "assignee") or optional_text(operation, "principal_role")
    if holder is not None:
        return f"{format_text(holder)}: {format_text(role)}"
    on = "the catalog" if operation.get("type") == "catalog" else _name(operation)
    return f"{format_text(role)}: {format_text(operation.get('privilege'))} on {on}"


def _name(holder: JsonObject) -> str:
    """Returns the full name of the object of an operation; a dash if it has none."""
    name = optional_text(holder, "name")
    levels = [*texts(holder, "namespace"), *([] if name is None else [name])]
    return format_identifier(levels) if levels else "-"
