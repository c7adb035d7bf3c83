"""`arco history`: creations, renames and drops with their authors and times, from the registry's commits."""

from collections.abc import Sequence

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_author, format_text, format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.identifiers import format_namespace
from arco_catalog.cli.output import table
from arco_catalog.cli.session import carry_out, reading
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.history import history
from arco_catalog.state.fields import mapping, optional_text, texts

HEADINGS = ("TIME (UTC)", "COMMIT", "WHAT", "NAME", "BY", "ENTITY")


def run(options: CatalogOptions, limit: int, *, own: bool, as_json: bool) -> int:
    """Prints the newest operations on the registry. Raises `CliError`."""

    async def read() -> list[JsonObject]:
        found: list[JsonObject] = []
        async with reading(options, "history") as session:
            async for operation in history(session, own=own):
                found.append(operation)
                if len(found) == limit:
                    break
        return found

    found = carry_out(read)
    print(json_text([*found]) if as_json else as_table(found))
    return 0


def as_table(found: Sequence[JsonObject]) -> str:
    """One line an operation, under headings, in columns."""
    if not found:
        return "This catalog has no history."
    return table(HEADINGS, [*map(_columns, found)])


def _columns(operation: JsonObject) -> tuple[str, ...]:
    purged = " (purge)" if operation.get("purge") is True else ""
    return (
        format_time(operation.get("at_ms")),
        format_text(operation.get("sequence")),
        format_text(operation.get("kind")) + purged,
        _names(operation),
        format_author(operation),
        format_text(operation.get("entity")),
    )


def _names(operation: JsonObject) -> str:
    to = mapping(operation, "to")
    return f"{_name(operation)} -> {_name(to)}" if to else _name(operation)


def _name(holder: JsonObject) -> str:
    name = optional_text(holder, "name")
    levels = [*texts(holder, "namespace"), *([] if name is None else [name])]
    return format_namespace(levels) if levels else "-"
