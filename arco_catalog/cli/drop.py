"""`arco drop`: takes the name of a table or view away. No file is deleted."""

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.session import another, carry_out, writing
from arco_catalog.iceberg.errors import NoSuchTable, NoSuchView
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.drop import drop_table, drop_view
from arco_catalog.state.characters import escaped


def run(options: CatalogOptions, name: str, *, purge: bool, as_json: bool) -> int:
    """Drops what has the name, and says how it comes back. Raises `CliError`."""
    namespace, table = parse_identifier(name)

    async def work() -> str:
        async with writing(options, "drop") as session:
            try:
                await drop_table(session, namespace, table, purge)
                return "table"
            except NoSuchTable as missing:
                try:
                    if not purge:
                        await drop_view(another(session), namespace, table)
                        return "view"
                except NoSuchView:
                    pass
                raise CliError(missing.message) from missing

    dropped: JsonObject = {"name": name, "type": carry_out(work), "purge_requested": purge}
    print(json_text(dropped) if as_json else escaped(f"Dropped {dropped['type']} {name}: `arco undrop` brings it back"))
    return 0
