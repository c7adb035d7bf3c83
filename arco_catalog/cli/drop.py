"""`arco drop`: drops a table, view, generic table or semantic model. Files of a table are deleted only with --purge,
later."""

from contextlib import suppress

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.session import another, carry_out, open_session
from arco_catalog.iceberg.errors import NoSuchSemanticModel, NoSuchTable, NoSuchView
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.drop import drop_table, drop_view
from arco_catalog.operations.generic_tables import drop_generic_table
from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.operations.semantic_models import drop_semantic_model
from arco_catalog.state.characters import escaped

OTHERS = (
    ("view", drop_view, NoSuchView),
    ("generic-table", drop_generic_table, NoSuchTable),
    ("semantic-model", drop_semantic_model, NoSuchSemanticModel),
)
"""The other types of object that a name can have: type, function that drops it, error if there is none."""


def run(options: CatalogOptions, name: str, *, purge: bool, as_json: bool) -> int:
    """Drops the table, view, generic table or semantic model with the name, the first of them that there is, in this
    order; with `purge` only a table. Prints until when `arco undrop` can restore it if a purge follows (not with
    `purge.mode=off` or in a copy), and else that it can. Returns 0. Raises `CliError` if none of them, with `purge` no
    table, has the name."""
    namespace, table = parse_identifier(name)

    async def work() -> tuple[str, JsonValue, bool]:
        async with open_session(options, "drop", find_catalog, writes=True) as session:
            try:
                await drop_table(session, namespace, table, purge)
                left = await inspect_relation(another(session), namespace, table) if purge else {}
                begins = left.get("purge_after_ms")
                return "table", begins, isinstance(begins, int) and begins <= session.now_ms()
            except NoSuchTable as missing:
                for kind, drop, absent in () if purge else OTHERS:
                    with suppress(absent):
                        await drop(another(session), namespace, table)
                        return kind, None, False
                raise CliError(missing.message) from missing

    kind, begins, begun = carry_out(work)
    dropped: JsonObject = {"name": name, "type": kind, "purge_requested": purge, "purge_after_ms": begins}
    print(json_text(dropped) if as_json else escaped(f"Dropped {kind} {name}: {_way_back(begins, begun=begun)}"))
    return 0


def _way_back(begins: JsonValue, *, begun: bool) -> str:
    """Returns the sentence that `arco undrop` takes the drop back, with the time until which if a purge follows, which
    starts at `begins`, None if none does; or that it does so only until a worker executes the purge, if that may be now
    (`begun`)."""
    if begun:
        return "its files are deleted as soon as a worker executes the purge, and `arco undrop` restores it only before"
    if begins is None:
        return "`arco undrop` brings it back"
    return f"`arco undrop` brings it back until {format_time(begins)} UTC, when its files are deleted"
