"""`arco init`: makes an empty catalog in a store."""

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.finders import find_new_catalog
from arco_catalog.cli.session import carry_out, open_session
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.init import init_catalog
from arco_catalog.state.characters import escaped


def run(options: CatalogOptions, *, as_json: bool) -> int:
    """Makes an empty catalog, unless it exists, and displays which of the two it was. Returns 0. Raises `CliError`,
    before any commit, for a store that ignores conditions of writes, for a store in memory, and for a store with a
    realm that does not have this catalog."""
    if options.store.startswith("memory:"):
        raise CliError(
            "no catalog was made: a store in memory is gone when this command ends; give a store that stays by "
            "--store, such as file:/path or s3://bucket"
        )

    async def work() -> bool:
        async with open_session(options, "init", find_new_catalog, writes=True, creates=True) as session:
            there = (await session.state.head()).version is not None
            await init_catalog(session)
            return not there

    made = carry_out(work)
    document: JsonObject = {"store": options.store, "warehouse": options.warehouse, "made": made}
    where = f"warehouse {options.warehouse!r} in {options.store}"
    text = f"Made {where}. `arco serve` serves it." if made else f"There is a {where} already: nothing was done."
    print(json_text(document) if as_json else escaped(text))
    return 0
