"""`arco rename`: gives a table or view another name."""

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.session import another, carry_out, open_session
from arco_catalog.iceberg.errors import NoSuchTable, NoSuchView
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.rename import rename_table, rename_view
from arco_catalog.state.characters import escaped


def run(options: CatalogOptions, name: str, to: str, *, as_json: bool) -> int:
    """Renames the table, or else the view, with the name. Returns 0. Raises `CliError` if neither exists."""
    source, destination = parse_identifier(name), parse_identifier(to)

    async def work() -> str:
        async with open_session(options, "rename", find_catalog, writes=True) as session:
            try:
                await rename_table(session, source, destination)
                return "table"
            except NoSuchTable as missing:
                try:
                    await rename_view(another(session), source, destination)
                    return "view"
                except NoSuchView:
                    raise CliError(missing.message) from missing

    renamed: JsonObject = {"type": carry_out(work), "from": name, "to": to}
    print(json_text(renamed) if as_json else escaped(f"Renamed {renamed['type']} {name} to {to}"))
    return 0
