"""`arco rename`: gives a table or view another name."""

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.session import carry_out, for_table_or_view, open_session
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.rename import rename_table, rename_view
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.characters import escaped


def run(options: CatalogOptions, name: str, to: str, *, as_json: bool) -> int:
    """Renames the table, or else the view, with the name, and displays both names. Returns 0. Raises `CliError`,
    also if neither exists."""
    source, destination = parse_identifier(name), parse_identifier(to)

    async def work() -> str:
        async with open_session(options, "rename", find_catalog, writes=True) as session:
            return await for_table_or_view(session, rename)

    async def rename(session: Session, kind: str) -> str:
        await (rename_table if kind == "table" else rename_view)(session, source, destination)
        return kind

    renamed: JsonObject = {"type": carry_out(work), "from": name, "to": to}
    print(json_text(renamed) if as_json else escaped(f"Renamed {renamed['type']} {name} to {to}"))
    return 0
