"""`arco undrop`: restores the table, view or other object that was dropped last under a name."""

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.session import another, carry_out, open_session
from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.operations.undrop import undrop
from arco_catalog.state.characters import escaped


def run(options: CatalogOptions, table: str, *, force: bool, as_json: bool) -> int:
    """Restores the table, view or other object that was dropped last under a name, and displays it, as text with the
    time from which a purge, if the drop had submitted a task for one, would have deleted the files. With `force` it is
    restored even if manifest lists are missing. Returns 0. Raises `CliError`."""
    namespace, name = parse_identifier(table)

    async def work() -> JsonObject:
        async with open_session(options, "undrop", find_catalog, writes=True) as session:
            try:
                before = await inspect_relation(session, namespace, name)
            except CatalogError:  # the undrop itself reports the error
                before = {}
            await undrop(another(session), namespace, name, force=force)
            now = await inspect_relation(another(session), namespace, name) if as_json else {}
            return {**now, "purge_after_ms": before.get("purge_after_ms")}

    restored = carry_out(work)
    print(json_text(restored) if as_json else escaped(f"Restored {table}{_averted(restored)}"))
    return 0


def _averted(restored: JsonObject) -> str:
    """Returns the part of a sentence about the purge that no longer happens; empty if the drop had submitted no task
    for one, although it may have been requested."""
    begins = restored.get("purge_after_ms")
    return "" if begins is None else f": its files would have been deleted after {format_time(begins)} UTC"
